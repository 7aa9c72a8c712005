#include "lockstep/parallel/feed.h"

#include <algorithm>
#include <cstring>

#include "lockstep/core/error.h"

namespace lockstep {

namespace {

/// The data set as it lies in host memory.
DeviceSamples in_host_memory(const Dataset& data) {
  return {.bytes = data.bytes(),
          .floats = data.floats(),
          .classes = data.classes(),
          .soft = data.soft_targets(),
          .count = data.size(),
          .features = data.sample_shape().count(),
          .soft_classes = data.soft_classes(),
          .scale = data.scale()};
}

const std::byte* values_of(const Dataset& data) {
  return data.bytes() != nullptr ? reinterpret_cast<const std::byte*>(data.bytes())
                                 : reinterpret_cast<const std::byte*>(data.floats());
}

}  // namespace

Feed::Feed(Context& context, const Dataset& data, Residence residence, const FeedPlaces& places)
    : data_(data),
      places_(places),
      row_bytes_(static_cast<std::size_t>(data.sample_shape().count()) *
                 (data.bytes() != nullptr ? sizeof(std::uint8_t) : sizeof(float))),
      samples_(in_host_memory(data)),
      upload_(context.device()),
      uploaded_(context.device()) {
  if (context.on_cpu() || data.size() == 0) return;
  const std::size_t target_bytes =
      static_cast<std::size_t>(data.size()) *
      (samples_.classes != nullptr
           ? sizeof(std::int32_t)
           : static_cast<std::size_t>(samples_.soft_classes) * sizeof(float));
  targets_ = Buffer(context.device(), target_bytes, "the targets of the data set");
  const void* host_targets = samples_.classes != nullptr
                                 ? static_cast<const void*>(samples_.classes)
                                 : static_cast<const void*>(samples_.soft);
  context.copy_to_device(targets_.data(), host_targets, target_bytes);
  if (samples_.classes != nullptr) {
    samples_.classes = targets_.as<std::int32_t>();
  } else {
    samples_.soft = targets_.as<float>();
  }
  const std::size_t bytes = row_bytes_ * static_cast<std::size_t>(data.size());
  const bool fits = bytes <= free_device_memory(context.device()) / 2;
  if (residence == Residence::resident || (residence == Residence::automatic && fits)) {
    make_resident(context);
  } else {
    make_ring(context, places);
  }
  if (samples_.bytes != nullptr) {
    samples_.bytes = values_.as<std::uint8_t>();
  } else {
    samples_.floats = values_.as<float>();
  }
  context.synchronize();
}

bool Feed::holds(const Dataset& data) const {
  // data_ keeps the memory alive, so equal addresses mean equal samples.
  return data.size() == data_.size() && values_of(data) == values_of(data_) &&
         data.classes() == data_.classes() && data.soft_targets() == data_.soft_targets();
}

void Feed::make_resident(Context& context) {
  values_ =
      Buffer(context.device(), row_bytes_ * static_cast<std::size_t>(data_.size()), "the data set");
  context.copy_to_device(values_.data(), values_of(data_), values_.bytes());
}

void Feed::make_ring(Context& context, const FeedPlaces& places) {
  samples_.ring_steps = 2 * kWindow;
  samples_.ring_places = places.count;
  samples_.ring_first = places.first;
  const std::size_t bytes =
      static_cast<std::size_t>(samples_.ring_steps * places.count) * row_bytes_;
  values_ = Buffer(context.device(), bytes, "the windows of the data set");
  staging_ = HostBuffer(context.device(), bytes, "the windows of the data set");
}

void Feed::start_epoch(const std::int32_t* order, std::int64_t samples) {
  order_ = order;
  epoch_samples_ = samples;
  provided_ = -1;
}

void Feed::provide(const Context& context, std::int64_t step) {
  const std::int64_t window = step / kWindow;
  if (!streamed() || window == provided_) return;
  const std::size_t window_bytes = staging_.bytes() / 2;
  const std::size_t offset = static_cast<std::size_t>(window % 2) * window_bytes;
  fill(window, staging_.data() + offset);
  upload_.copy_to_device(values_.data() + offset, staging_.data() + offset, window_bytes);
  uploaded_.record(upload_);
  uploaded_.hold_up(context);
  provided_ = window;
}

/// Copies this replica's rows of the steps of `window`, in the order of the epoch. Places without a
/// sample keep what is there: nobody reads them.
void Feed::fill(std::int64_t window, std::byte* rows) const {
  const std::byte* values = values_of(data_);
  for (std::int64_t i = 0; i < kWindow; ++i) {
    const std::int64_t first = (window * kWindow + i) * places_.batch_size + places_.first;
    const std::int64_t in_batch = places_.batch_size - places_.first;
    const std::int64_t end = std::min(first + std::min(places_.count, in_batch), epoch_samples_);
    for (std::int64_t visit = first; visit < end; ++visit) {
      const auto sample = static_cast<std::size_t>(order_ != nullptr ? order_[visit] : visit);
      const auto row = static_cast<std::size_t>(i * places_.count + visit - first);
      std::memcpy(rows + row * row_bytes_, values + sample * row_bytes_, row_bytes_);
    }
  }
}

}  // namespace lockstep
