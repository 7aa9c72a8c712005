#include "lockstep/io/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <nlohmann/json.hpp>

#include "lockstep/config.h"
#include "lockstep/core/printable.h"
#include "lockstep/io/json_object.h"

namespace lockstep {

namespace {

using Json = nlohmann::json;

static_assert(std::endian::native == std::endian::little, "safetensors data is little endian");

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;
/// Objects and arrays inside each other: header, tensor, shape.
constexpr int kMaxDepth = 3;

std::uint64_t decode_length(const unsigned char (&bytes)[kLengthBytes]) {
  std::uint64_t length = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;) length = length << 8U | bytes[i];
  return length;
}

std::string encode_length(std::uint64_t length) {
  std::string bytes;
  for (std::uint64_t i = 0; i < kLengthBytes; ++i) {
    bytes.push_back(static_cast<char>(length >> (8 * i) & 0xFFU));
  }
  return bytes;
}

/// The whole numbers of `object[key]`, an array.
std::vector<std::uint64_t> numbers(const Json& object, const char* key, const std::string& where) {
  const auto found = object.find(key);
  bool good = found != object.end() && found->is_array();
  std::vector<std::uint64_t> values;
  if (good) {
    for (const Json& value : *found) {
      good = good && value.is_number_unsigned();
      if (good) values.push_back(value.get<std::uint64_t>());
    }
  }
  if (!good) throw IoError(message(where, "'", key, "' is no list of whole numbers"));
  return values;
}

/// Bytes of floats of these extents, or false when they are more than any file has.
bool byte_count(const std::vector<std::uint64_t>& extents, std::uint64_t& bytes) {
  bytes = sizeof(float);
  if (std::find(extents.begin(), extents.end(), 0U) != extents.end()) bytes = 0;
  for (const std::uint64_t extent : extents) {
    if (__builtin_mul_overflow(bytes, extent, &bytes)) return false;
  }
  return true;
}

TensorEntry parse_entry(const std::string& name, const Json& value, std::uint64_t data_bytes,
                        const std::filesystem::path& path) {
  const std::string where = message(path.string(), ": tensor '", printable(name), "': ");
  if (!value.is_object()) throw IoError(message(where, "its description is no JSON object"));
  const auto dtype = value.find("dtype");
  if (dtype == value.end() || !dtype->is_string()) {
    throw IoError(message(where, "its dtype is missing"));
  }
  if (const auto type = dtype->get<std::string>(); type != "F32") {
    throw IoError(
        message(where, "its dtype is ", printable(type), "; only F32 is read: convert it"));
  }
  const std::vector<std::uint64_t> offsets = numbers(value, "data_offsets", where);
  if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > data_bytes) {
    throw IoError(message(where, "its data_offsets are not two places in the ", data_bytes,
                          " bytes of data; the file is damaged or cut off"));
  }
  TensorEntry entry{name, numbers(value, "shape", where), offsets[0], offsets[1]};
  std::uint64_t bytes = 0;
  if (!byte_count(entry.extents, bytes) || bytes != entry.end - entry.begin) {
    throw IoError(message(where, "its shape ", entry.shape_text(), " does not take the ",
                          entry.end - entry.begin, " bytes that it has; the file is damaged"));
  }
  return entry;
}

/// The members of an object that are texts.
std::map<std::string, std::string> texts_of(const Json& object) {
  std::map<std::string, std::string> texts;
  if (!object.is_object()) return texts;
  for (const auto& [name, value] : object.items()) {
    if (value.is_string()) texts.emplace(name, value.get<std::string>());
  }
  return texts;
}

}  // namespace

std::vector<std::string_view> SafetensorsBytes::parts() const {
  std::vector<std::string_view> all{opening};
  all.insert(all.end(), values.begin(), values.end());
  return all;
}

SafetensorsBytes safetensors_bytes(const std::vector<TensorToWrite>& tensors,
                                   const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header;
  header["__metadata__"] = metadata;
  SafetensorsBytes bytes_of_file;
  std::uint64_t offset = 0;
  for (const TensorToWrite& tensor : tensors) {
    const std::uint64_t bytes = static_cast<std::uint64_t>(tensor.shape.count()) * sizeof(float);
    auto& entry = header[tensor.name];
    entry["dtype"] = "F32";
    entry["shape"] = Json::array();
    for (int axis = 0; axis < tensor.shape.rank(); ++axis) {
      entry["shape"].push_back(tensor.shape[axis]);
    }
    entry["data_offsets"] = {offset, offset + bytes};
    offset += bytes;
    bytes_of_file.values.emplace_back(reinterpret_cast<const char*>(tensor.values), bytes);
  }
  std::string text = header.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  bytes_of_file.opening = encode_length(text.size()) + text;
  return bytes_of_file;
}

std::map<std::string, std::string> weights_metadata() {
  // "pt" is what readers elsewhere look for: filters and linear weights lie as PyTorch's do.
  return {
      {"format", "pt"}, {"lockstep_version", kVersion}, {"flattening", "channel-first (C, H, W)"}};
}

bool TensorEntry::has_shape(const Shape& shape) const {
  if (std::ssize(extents) != shape.rank()) return false;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (extents[static_cast<std::size_t>(axis)] != static_cast<std::uint64_t>(shape[axis])) {
      return false;
    }
  }
  return true;
}

std::string TensorEntry::shape_text() const {
  std::string text;
  for (const std::uint64_t extent : extents) {
    text += message(text.empty() ? "" : ", ", extent);
  }
  return printable("(" + text + ")");
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
    : path_(path), content_(Descriptor(path, O_RDONLY | O_NONBLOCK, "open")) {
  const auto& file = std::get<Descriptor>(content_);
  if (!file.is_regular()) throw IoError(message(path_.string(), ": is no regular file"));
  read_header(file.size());
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path, std::string bytes)
    : path_(path), content_(std::move(bytes)) {
  read_header(std::get<std::string>(content_).size());
}

void SafetensorsFile::read_header(std::uint64_t file_bytes) {
  if (file_bytes < kLengthBytes) {
    throw IoError(message(path_.string(), ": has ", file_bytes,
                          " bytes; a safetensors file has at least ", kLengthBytes));
  }
  unsigned char length[kLengthBytes];
  read_at(0, kLengthBytes, length);
  const std::uint64_t header_bytes = decode_length(length);
  if (header_bytes > file_bytes - kLengthBytes || header_bytes > kMaxHeaderBytes) {
    throw IoError(message(path_.string(), ": a header of ", header_bytes,
                          " bytes does not fit a file of ", file_bytes, " bytes (and is at most ",
                          kMaxHeaderBytes, "); it is cut off or no safetensors file"));
  }
  std::string text(header_bytes, '\0');
  read_at(kLengthBytes, header_bytes, text.data());
  data_begin_ = kLengthBytes + header_bytes;
  const std::uint64_t data_bytes = file_bytes - data_begin_;
  const Json header = parse_object(text, kMaxDepth, path_, "the header");
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") {
      metadata_ = texts_of(value);
    } else {
      entries_.push_back(parse_entry(name, value, data_bytes, path_));
    }
  }
  check_layout(data_bytes);
}

void SafetensorsFile::check_layout(std::uint64_t data_bytes) {
  std::sort(entries_.begin(), entries_.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t end = 0;
  for (const TensorEntry& entry : entries_) {
    if (entry.begin != end) {
      throw IoError(message(
          path_.string(), ": tensor '", printable(entry.name), "' begins at byte ", entry.begin,
          " of the data, the one before it ends at ", end, "; the file is damaged"));
    }
    end = entry.end;
  }
  if (end != data_bytes) {
    throw IoError(message(path_.string(), ": the tensors take ", end,
                          " bytes of data, the file has ", data_bytes,
                          "; it is damaged or cut off"));
  }
}

void SafetensorsFile::read(const TensorEntry& entry, float* to) const {
  read_at(data_begin_ + entry.begin, entry.end - entry.begin, to);
}

/// The file has these bytes.
void SafetensorsFile::read_at(std::uint64_t offset, std::uint64_t bytes, void* to) const {
  if (const auto* file = std::get_if<Descriptor>(&content_)) {
    file->read_exactly(to, bytes, offset);
  } else if (bytes > 0) {
    std::memcpy(to, std::get<std::string>(content_).data() + offset, bytes);
  }
}

}  // namespace lockstep
