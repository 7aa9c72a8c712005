// The container of weights files: https://github.com/huggingface/safetensors.
// Internal to this folder.
//
// A file is the length of a JSON header (8 bytes, little endian), the header padded with spaces so
// that data begins at a multiple of 8, and the tensors one after another. Whatever is read is taken
// for hostile.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lockstep/core/shape.h"
#include "lockstep/io/descriptor.h"

namespace lockstep {

/// A tensor to write; `values` has shape.count() floats.
struct TensorToWrite {
  std::string name;
  Shape shape;
  const float* values = nullptr;
};

/// The bytes of a file: its opening, and values where they lie.
struct SafetensorsBytes {
  std::string opening;
  std::vector<std::string_view> values;

  /// All of them in their order; they refer to this.
  [[nodiscard]] std::vector<std::string_view> parts() const;
};

/// The tensors in their order. Text in `metadata` that is no UTF-8 is mended.
[[nodiscard]] SafetensorsBytes safetensors_bytes(
    const std::vector<TensorToWrite>& tensors, const std::map<std::string, std::string>& metadata);

/// What we write into the header's __metadata__ of weights.
[[nodiscard]] std::map<std::string, std::string> weights_metadata();

/// A tensor of a file.
struct TensorEntry {
  std::string name;
  std::vector<std::uint64_t> extents;
  std::uint64_t begin = 0;  ///< bytes from the begin of the data
  std::uint64_t end = 0;

  [[nodiscard]] bool has_shape(const Shape& shape) const;
  [[nodiscard]] std::string shape_text() const;
};

/// A file whose header was read and found sound: every tensor is F32, has the bytes that its
/// shape asks for, and they fill the file without gaps or overlaps. Everything else is an IoError
/// that names the file.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path);
  /// The same for a file whose content, `bytes`, was read before.
  SafetensorsFile(const std::filesystem::path& path, std::string bytes);

  /// In the order of their data.
  [[nodiscard]] const std::vector<TensorEntry>& entries() const { return entries_; }
  /// The texts of the header's __metadata__; what is no text there is left out.
  [[nodiscard]] const std::map<std::string, std::string>& metadata() const { return metadata_; }
  /// Reads the values of an entry of this file; `to` has room for them.
  void read(const TensorEntry& entry, float* to) const;

 private:
  void read_header(std::uint64_t file_bytes);
  void check_layout(std::uint64_t data_bytes);
  void read_at(std::uint64_t offset, std::uint64_t bytes, void* to) const;

  std::filesystem::path path_;
  std::variant<Descriptor, std::string> content_;
  std::uint64_t data_begin_ = 0;
  std::vector<TensorEntry> entries_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace lockstep
