// Samples with their targets in host memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/core/shape.h"
#include "lockstep/core/tensor.h"

namespace lockstep {

/// A data set: samples of one shape as uint8 or float32, each with a class index or a soft target.
/// Immutable and shared: copying is cheap, and a slice shares the memory of the whole.
class Dataset {
 public:
  /// uint8 samples; a value v counts as v * scale. `bytes` has count * sample_shape.count() values,
  /// `classes` one label in [0, class_count) per sample. Throws DataError with the first label that
  /// is out of range, or when sizes do not fit or there are 2^31 samples or more.
  static Dataset from_bytes(std::string name, Shape sample_shape, std::vector<std::uint8_t> bytes,
                            std::vector<std::int32_t> classes, int class_count,
                            float scale = 1.0F / 255.0F);
  /// float32 samples (N, ...sample shape), taken as they are.
  static Dataset from_floats(std::string name, Tensor samples, std::vector<std::int32_t> classes,
                             int class_count);
  /// float32 samples with soft targets (N, classes).
  static Dataset from_floats(std::string name, Tensor samples, Tensor soft_targets);

  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] std::int64_t size() const { return count_; }
  [[nodiscard]] const Shape& sample_shape() const;
  [[nodiscard]] int class_count() const;
  [[nodiscard]] float scale() const;

  /// First sample of this slice as uint8, or null when the samples are floats; size() *
  /// sample_shape().count() values.
  [[nodiscard]] const std::uint8_t* bytes() const;
  [[nodiscard]] const float* floats() const;
  /// size() class indices, or null with soft targets.
  [[nodiscard]] const std::int32_t* classes() const;
  /// (size(), class_count()) or null.
  [[nodiscard]] const float* soft_targets() const;
  /// Length of a soft target: class_count(), or 0 with class indices.
  [[nodiscard]] int soft_classes() const { return soft_targets() != nullptr ? class_count() : 0; }

  /// Samples [first, first + count); UsageError when they are not all there.
  [[nodiscard]] Dataset slice(std::int64_t first, std::int64_t count) const;
  /// Digest of what training sees of this slice: shape, classes, scale, samples and targets, not
  /// the name. Takes a few seconds a gigabyte.
  [[nodiscard]] std::string sha256() const;
  /// The first min(count, size()) samples.
  [[nodiscard]] Dataset take(std::int64_t count) const;
  /// Samples [first, first + count) as floats (count, ...sample_shape), scaled: what a model's
  /// predict takes.
  [[nodiscard]] Tensor tensor(std::int64_t first, std::int64_t count) const;

 private:
  struct Storage;
  Dataset(std::shared_ptr<const Storage> storage, std::int64_t first, std::int64_t count);

  std::shared_ptr<const Storage> storage_;
  std::int64_t first_ = 0;
  std::int64_t count_ = 0;
};

/// What one trains with.
struct DatasetSplits {
  Dataset train;
  Dataset validation;
  Dataset test;
};

}  // namespace lockstep
