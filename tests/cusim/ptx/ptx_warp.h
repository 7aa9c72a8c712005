// Warp collectives on top of Block::warp.
#pragma once

#include <bit>

#include "ptx/ptx_bits.h"
#include "ptx/ptx_frame.h"

namespace cusim::ptx {

inline constexpr unsigned kWarpSize = 32;

inline void warp_sync(const Frame& frame, u32 mask) {
  frame.block.warp(WarpOperation::sync, mask, 0);
}
inline bool vote_any(const Frame& frame, bool value, u32 mask) {
  return frame.block.warp(WarpOperation::any, mask, value) != 0;
}
inline bool vote_all(const Frame& frame, bool value, u32 mask) {
  return frame.block.warp(WarpOperation::all, mask, value) != 0;
}
inline u32 ballot(const Frame& frame, bool value, u32 mask) {
  return static_cast<u32>(frame.block.warp(WarpOperation::ballot, mask, value));
}

/// shfl.sync: the value of lane `source` when that lies in this lane's part of the warp (`in_range`
/// tells), else the own value.
template <class InRange>
inline u32 shuffle(const Frame& frame, u32 value, u32 source, bool ok, u32 mask,
                   InRange& in_range) {
  in_range = ok;
  if (!ok) source = frame.thread.lane;
  return static_cast<u32>(frame.block.warp(WarpOperation::shuffle, mask, value, source));
}

/// The part of the warp that operand `clamp` of shfl.sync describes: bits 8-12 are 1 where a lane
/// number may not change, bits 0-4 the highest (lowest for `up`) lane number within them.
struct Segment {
  u32 first;
  u32 limit;
  Segment(u32 lane, u32 clamp) {
    const u32 fixed = clamp >> 8 & 31;
    first = lane & fixed;
    limit = first | (clamp & ~fixed & 31);
  }
};

template <class InRange>
inline u32 shuffle_up(const Frame& frame, u32 value, u32 delta, u32 clamp, u32 mask,
                      InRange& in_range) {
  const u32 lane = frame.thread.lane;
  const int source = static_cast<int>(lane) - static_cast<int>(delta & 31);
  const bool ok = source >= static_cast<int>(Segment(lane, clamp).limit);
  return shuffle(frame, value, static_cast<u32>(source), ok, mask, in_range);
}
template <class InRange>
inline u32 shuffle_down(const Frame& frame, u32 value, u32 delta, u32 clamp, u32 mask,
                        InRange& in_range) {
  const u32 lane = frame.thread.lane;
  const u32 source = lane + (delta & 31);
  return shuffle(frame, value, source, source <= Segment(lane, clamp).limit, mask, in_range);
}
template <class InRange>
inline u32 shuffle_bfly(const Frame& frame, u32 value, u32 lanes, u32 clamp, u32 mask,
                        InRange& in_range) {
  const u32 lane = frame.thread.lane;
  const u32 source = lane ^ (lanes & 31);
  return shuffle(frame, value, source, source <= Segment(lane, clamp).limit, mask, in_range);
}
template <class InRange>
inline u32 shuffle_idx(const Frame& frame, u32 value, u32 index, u32 clamp, u32 mask,
                       InRange& in_range) {
  const Segment segment(frame.thread.lane, clamp);
  const u32 source = segment.first | (index & ~(clamp >> 8) & 31);
  return shuffle(frame, value, source, source <= segment.limit, mask, in_range);
}

/// Calls visit(lane, value) for every lane of the mask in ascending order.
template <class T, class Visit>
inline void for_each_lane(const Frame& frame, T value, u32 mask, Visit visit) {
  for (u32 lane = 0; lane < kWarpSize; ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    visit(lane, static_cast<T>(frame.block.warp(WarpOperation::shuffle, mask, value, lane)));
  }
}

template <class Operation, class T>
inline T warp_reduce(const Frame& frame, T value, u32 mask) {
  T result{};
  bool first = true;
  for_each_lane(frame, value, mask, [&](u32, T other) {
    result = first ? other : Operation{}(result, other);
    first = false;
  });
  return result;
}

/// The lanes that have the same value.
template <class T>
inline u32 match_any(const Frame& frame, T value, u32 mask) {
  u32 equal = 0;
  for_each_lane(frame, value, mask, [&](u32 lane, T other) {
    if (other == value) equal |= 1u << lane;
  });
  return equal;
}
/// The mask when all lanes have the same value (`all` tells), else 0.
template <class T, class All>
inline u32 match_all(const Frame& frame, T value, u32 mask, All& all) {
  const bool same = match_any(frame, value, mask) == mask;
  all = same;
  return same ? mask : 0;
}

}  // namespace cusim::ptx
