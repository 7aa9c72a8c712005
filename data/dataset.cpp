// Shared, immutable samples and the slices of them.
#include "lockstep/data/dataset.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/number_text.h"
#include "lockstep/core/sha256.h"

namespace lockstep {

struct Dataset::Storage {
  std::string name;
  Shape sample_shape;
  int class_count = 0;
  float scale = 1.0F;
  std::vector<std::uint8_t> bytes;
  std::vector<float> floats;
  std::vector<std::int32_t> classes;
  std::vector<float> soft_targets;
};

namespace {

constexpr std::size_t kMaxSamples = std::numeric_limits<std::int32_t>::max();

void check_sample_shape(const std::string& name, const Shape& shape) {
  if (shape.rank() < Shape::kMaxRank && shape.count() > 0) return;
  throw DataError(message("data set ", name, ": samples of shape ", shape, ", expected 0 to ",
                          Shape::kMaxRank - 1,
                          " extents of at least 1: a batch of samples is a tensor of rank ",
                          Shape::kMaxRank, " at most"));
}

void check_count(const std::string& name, std::size_t samples, std::size_t targets) {
  if (samples > kMaxSamples) {
    throw DataError(message("data set ", name, ": ", samples,
                            " samples, expected fewer than 2^31; split the data"));
  }
  if (samples != targets) {
    throw DataError(message("data set ", name, ": ", samples, " samples but ", targets,
                            " targets, expected one target for each sample"));
  }
}

void check_classes(const std::string& name, const std::vector<std::int32_t>& classes,
                   int class_count) {
  if (class_count < 1) {
    throw DataError(
        message("data set ", name, ": class_count is ", class_count, ", expected at least 1"));
  }
  const auto wrong =
      std::find_if(classes.begin(), classes.end(),
                   [class_count](std::int32_t label) { return label < 0 || label >= class_count; });
  if (wrong == classes.end()) return;
  throw DataError(message("data set ", name, ": the label of sample ", wrong - classes.begin(),
                          " is ", *wrong, ", expected 0 to ", class_count - 1,
                          "; correct the label or the number of classes"));
}

void check_samples_of(const std::string& name, const Tensor& samples) {
  if (samples.shape().rank() == 0) {
    throw DataError(message("data set ", name,
                            ": the samples are a scalar, expected shape (N, ...sample shape)"));
  }
}

}  // namespace

Dataset::Dataset(std::shared_ptr<const Storage> storage, std::int64_t first, std::int64_t count)
    : storage_(std::move(storage)), first_(first), count_(count) {}

Dataset Dataset::from_bytes(std::string name, Shape sample_shape, std::vector<std::uint8_t> bytes,
                            std::vector<std::int32_t> classes, int class_count, float scale) {
  check_sample_shape(name, sample_shape);
  const auto sample_size = static_cast<std::size_t>(sample_shape.count());
  if (bytes.size() % sample_size != 0) {
    throw DataError(message("data set ", name, ": ", bytes.size(),
                            " bytes are no whole number of samples of shape ", sample_shape,
                            ", expected a multiple of ", sample_size));
  }
  check_count(name, bytes.size() / sample_size, classes.size());
  check_classes(name, classes, class_count);
  const auto count = static_cast<std::int64_t>(classes.size());
  return {std::make_shared<Storage>(Storage{.name = std::move(name),
                                            .sample_shape = sample_shape,
                                            .class_count = class_count,
                                            .scale = scale,
                                            .bytes = std::move(bytes),
                                            .floats = {},
                                            .classes = std::move(classes),
                                            .soft_targets = {}}),
          0, count};
}

Dataset Dataset::from_floats(std::string name, Tensor samples, std::vector<std::int32_t> classes,
                             int class_count) {
  check_samples_of(name, samples);
  const Shape sample_shape = samples.shape().without_first();
  check_sample_shape(name, sample_shape);
  check_count(name, static_cast<std::size_t>(samples.shape()[0]), classes.size());
  check_classes(name, classes, class_count);
  const auto count = static_cast<std::int64_t>(classes.size());
  return {std::make_shared<Storage>(Storage{.name = std::move(name),
                                            .sample_shape = sample_shape,
                                            .class_count = class_count,
                                            .bytes = {},
                                            .floats = std::move(samples.values()),
                                            .classes = std::move(classes),
                                            .soft_targets = {}}),
          0, count};
}

Dataset Dataset::from_floats(std::string name, Tensor samples, Tensor soft_targets) {
  check_samples_of(name, samples);
  const Shape sample_shape = samples.shape().without_first();
  check_sample_shape(name, sample_shape);
  const Shape targets = soft_targets.shape();
  if (targets.rank() != 2 || targets[1] < 1 || targets[1] > std::numeric_limits<int>::max()) {
    throw DataError(
        message("data set ", name, ": soft targets of shape ", targets, ", expected (N, classes)"));
  }
  const std::int64_t count = samples.shape()[0];
  check_count(name, static_cast<std::size_t>(count), static_cast<std::size_t>(targets[0]));
  const auto& values = soft_targets.values();
  const auto wrong =
      std::find_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
  if (wrong != values.end()) {
    throw DataError(message("data set ", name, ": a soft target of sample ",
                            (wrong - values.begin()) / targets[1], " is ", *wrong,
                            ", expected finite numbers"));
  }
  return {std::make_shared<Storage>(Storage{.name = std::move(name),
                                            .sample_shape = sample_shape,
                                            .class_count = static_cast<int>(targets[1]),
                                            .bytes = {},
                                            .floats = std::move(samples.values()),
                                            .classes = {},
                                            .soft_targets = std::move(soft_targets.values())}),
          0, count};
}

const std::string& Dataset::name() const {
  return storage_->name;
}
const Shape& Dataset::sample_shape() const {
  return storage_->sample_shape;
}
int Dataset::class_count() const {
  return storage_->class_count;
}
float Dataset::scale() const {
  return storage_->scale;
}

const std::uint8_t* Dataset::bytes() const {
  if (storage_->bytes.empty()) return nullptr;
  return storage_->bytes.data() + first_ * storage_->sample_shape.count();
}

const float* Dataset::floats() const {
  if (storage_->floats.empty()) return nullptr;
  return storage_->floats.data() + first_ * storage_->sample_shape.count();
}

const std::int32_t* Dataset::classes() const {
  return storage_->classes.empty() ? nullptr : storage_->classes.data() + first_;
}

const float* Dataset::soft_targets() const {
  if (storage_->soft_targets.empty()) return nullptr;
  return storage_->soft_targets.data() + first_ * storage_->class_count;
}

std::string Dataset::sha256() const {
  Sha256 digest;
  const std::string form =
      message(sample_shape(), ' ', class_count(), ' ', number_text(scale()), ' ', count_);
  digest.add(std::span(form));
  const auto values = static_cast<std::size_t>(count_ * sample_shape().count());
  const auto samples = static_cast<std::size_t>(count_);
  if (bytes() != nullptr) digest.add(std::span(bytes(), values));
  if (floats() != nullptr) digest.add(std::span(floats(), values));
  if (classes() != nullptr) digest.add(std::span(classes(), samples));
  if (soft_targets() != nullptr) {
    digest.add(std::span(soft_targets(), samples * static_cast<std::size_t>(class_count())));
  }
  return digest.finish();
}

Dataset Dataset::slice(std::int64_t first, std::int64_t count) const {
  if (first < 0 || count < 0 || first > count_ || count > count_ - first) {
    throw UsageError(message("data set ", name(), ": a slice of ", count, " samples from sample ",
                             first, " on, expected one within its ", count_, " samples"));
  }
  return {storage_, first_ + first, count};
}

Dataset Dataset::take(std::int64_t count) const {
  return slice(0, std::min(count, count_));
}

Tensor Dataset::tensor(std::int64_t first, std::int64_t count) const {
  const Dataset part = slice(first, count);
  Tensor samples(sample_shape().with_first(count));
  std::vector<float>& values = samples.values();
  if (const float* floats_of_part = part.floats()) {
    std::copy_n(floats_of_part, values.size(), values.begin());
  } else if (const std::uint8_t* bytes_of_part = part.bytes()) {
    const float factor = scale();
    std::transform(bytes_of_part, bytes_of_part + values.size(), values.begin(),
                   [factor](std::uint8_t value) { return static_cast<float>(value) * factor; });
  }
  return samples;
}

}  // namespace lockstep
