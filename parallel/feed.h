// The samples of a data set on their way to a device. Internal.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/core/buffer.h"
#include "lockstep/core/context.h"
#include "lockstep/core/stream.h"
#include "lockstep/data/dataset.h"
#include "lockstep/kernels/gather.h"
#include "lockstep/parallel/sharding.h"

namespace lockstep {

/// The places of a batch whose samples this replica needs.
struct FeedPlaces {
  std::int64_t batch_size = 0;  ///< places of a step over all replicas
  std::int64_t first = 0;       ///< of this replica's
  std::int64_t count = 0;
};

/// Gives a replica the values of a data set: all of them once, or two windows of steps by turns,
/// one of which is filled while the device reads the other. Targets are always resident.
class Feed {
 public:
  /// Steps of a window. A replica looks at what its device has done as often.
  static constexpr std::int64_t kWindow = 32;

  /// Keeps a share in `data`. Returns when the device has what it needs for any step, or, streamed,
  /// for none yet.
  Feed(Context& context, const Dataset& data, Residence residence, const FeedPlaces& places);

  /// What gather reads.
  [[nodiscard]] const DeviceSamples& samples() const { return samples_; }
  /// Whether these are the samples of `data`.
  [[nodiscard]] bool holds(const Dataset& data) const;
  [[nodiscard]] bool streamed() const { return samples_.ring_steps > 0; }

  /// An epoch that visits samples order[0], order[1], ...; the caller keeps the memory. The device
  /// is done with the epoch before.
  void start_epoch(const std::int32_t* order, std::int64_t samples);
  /// Sees to it that what `context` is given next finds the samples of `step`; the steps of the
  /// window before the last one are done.
  void provide(const Context& context, std::int64_t step);

 private:
  void make_resident(Context& context);
  void make_ring(Context& context, const FeedPlaces& places);
  void fill(std::int64_t window, std::byte* rows) const;

  Dataset data_;
  FeedPlaces places_;
  std::size_t row_bytes_;
  DeviceSamples samples_;
  Buffer values_;
  Buffer targets_;

  // Streamed only.
  Context upload_;  ///< a stream of its own, so that copies run beside the steps
  HostBuffer staging_;
  Event uploaded_;
  const std::int32_t* order_ = nullptr;
  std::int64_t epoch_samples_ = 0;
  std::int64_t provided_ = -1;  ///< the last window that was
};

}  // namespace lockstep
