// Which taps of a convolution lie inside the image, along one axis.
#pragma once

#include "lockstep/kernels/cpu/numbers.h"

namespace lockstep::cpu::LOCKSTEP_CPU_SET {

/// One axis of a sum: place p of the output takes tap i from the place p * step + start + i *
/// direction of the input, where that is inside.
struct Axis {
  Index places, taps;
  Index step, start, direction;  ///< direction: 1 or -1
  Index extent;                  ///< of the input
  Index inner_first, inner_end;  ///< places of the output whose taps are all inside
};

/// Taps [first, end) of a place.
struct TapRange {
  Index first, end;
};

LOCKSTEP_INLINE TapRange taps_inside(const Axis& axis, Index place) {
  const Index at = place * axis.step + axis.start;
  const Index low = axis.direction > 0 ? -at : at - axis.extent + 1;
  const Index high = axis.direction > 0 ? axis.extent - at : at + 1;
  const Index first = smaller(at_least_zero(low), axis.taps);
  return {first, larger(first, smaller(high, axis.taps))};
}

/// Fills in the inner places.
LOCKSTEP_INLINE Axis with_inner_places(Axis axis) {
  const auto whole = [&axis](Index place) {
    const TapRange taps = taps_inside(axis, place);
    return taps.end - taps.first == axis.taps;
  };
  Index first = 0;
  while (first < axis.places && !whole(first)) ++first;
  Index end = first;
  while (end < axis.places && whole(end)) ++end;
  axis.inner_first = first;
  axis.inner_end = end;
  return axis;
}

}  // namespace lockstep::cpu::LOCKSTEP_CPU_SET
