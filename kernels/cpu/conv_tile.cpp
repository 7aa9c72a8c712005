// The sums of a convolution in registers; conv_tile.h says how.
#include "lockstep/kernels/cpu/conv_tile.h"

namespace lockstep::cpu::LOCKSTEP_CPU_SET {
namespace {

/// What the sums start from.
template <int outputs, int columns>
LOCKSTEP_INLINE void begin(Floats (&total)[outputs][columns], const Strip& strip,
                           const float* out) {
  if (strip.begun) {
#pragma GCC unroll 8
    for (int i = 0; i < outputs; ++i) {
#pragma GCC unroll 14
      for (int j = 0; j < columns; ++j)
        total[i][j] = load(out + i * strip.out_channel + j * strip.out_step);
    }
    return;
  }
#pragma GCC unroll 8
  for (int i = 0; i < outputs; ++i) {
    const Floats bias = strip.bias ? broadcast(strip.bias[i]) : Floats{};
#pragma GCC unroll 14
    for (int j = 0; j < columns; ++j) total[i][j] = bias;
  }
}

/// `count` tiles, one beside the other. `dense`: one place's vector lies right behind the other's.
template <bool dense, int outputs, int columns>
void tiles(const Strip& strip, Index count, Index at, float* out) {
  const Index in_step = dense ? kLanes : strip.in_step;
  do {
    Floats total[outputs][columns];
    begin(total, strip, out);
    const float* weights = strip.weights;
    const Index* offset = strip.offset;
    Index runs = strip.runs;
    for (;;) {  // loops that run at least once, so that the sums never leave the registers
      const Index* const end = offset + strip.length;
      do {
        add_tap(total, strip.input + (at + *offset), in_step, weights);
        weights += outputs;
      } while (++offset != end);
      if (--runs == 0) break;
      offset += strip.gap;
      weights += strip.gap * outputs;
    }
    asm("" : "+r"(out));  // else the addresses of begin() wait in registers that sums need
    const Index out_step = strip.out_step;
    const Index out_channel = strip.out_channel;
#pragma GCC unroll 8
    for (int i = 0; i < outputs; ++i) {
#pragma GCC unroll 12
      for (int j = 0; j < columns; ++j) store(out + i * out_channel + j * out_step, total[i][j]);
    }
    at += columns * in_step;
    out += columns * out_step;
  } while (--count > 0);
}

/// The places of a tile of one output.
constexpr int kSlidingColumns = kLanes == 16 ? 14 : 8;

/// One output of a line of neighbouring places. A vector for every multiply-add would be more than
/// the cache gives: here a vector meets all the taps that lie side by side, and their weights wait
/// in registers.
template <int width, int columns>
void sliding_tiles(const Strip& strip, Index count, Index at, float* out) {
  do {
    Floats total[1][columns];
    begin(total, strip, out);
    const bool rising = strip.offset[1] > strip.offset[0];
    const float* weights = strip.weights;
    const Index* offset = strip.offset;
    const Index* const end = offset + strip.length;
    do {
      Floats weight[width];
#pragma GCC unroll 5
      for (int s = 0; s < width; ++s)
        weight[s] = broadcast(rising ? weights[s] : weights[width - 1 - s]);
      const float* from = strip.input + (at + (rising ? offset[0] : offset[width - 1]));
      // By turns from two halves: a sum's next multiply-add comes when its last one has ended.
      constexpr int kPlaces = columns + width - 1;
      constexpr int kHalf = (kPlaces + 1) / 2;
#pragma GCC unroll 18
      for (int i = 0; i < 2 * kHalf; ++i) {
        const int place = i / 2 + i % 2 * kHalf;
        if (place == kPlaces) continue;
        const Floats value = load(from + place * kGroup);
#pragma GCC unroll 5
        for (int s = 0; s < width; ++s) {
          if (place >= s && place - s < columns) total[0][place - s] += value * weight[s];
        }
      }
      weights += width;
      offset += width;
    } while (offset != end);
#pragma GCC unroll 14
    for (int j = 0; j < columns; ++j) store(out + j * strip.out_step, total[0][j]);
    at += columns * strip.in_step;
    out += columns * strip.out_step;
  } while (--count > 0);
}

template <int width, int columns = kSlidingColumns>
void sliding_tiles_of_columns(Index wanted, const Strip& strip, Index count, Index at, float* out) {
  if constexpr (columns > 1) {
    if (wanted < columns)
      return sliding_tiles_of_columns<width, columns - 1>(wanted, strip, count, at, out);
  }
  sliding_tiles<width, columns>(strip, count, at, out);
}

template <bool dense, int outputs, int columns = tile_columns(outputs)>
void tiles_of_columns(Index wanted, const Strip& strip, Index count, Index at, float* out) {
  if constexpr (columns > 1) {
    if (wanted < columns)
      return tiles_of_columns<dense, outputs, columns - 1>(wanted, strip, count, at, out);
  }
  tiles<dense, outputs, columns>(strip, count, at, out);
}

/// Calls `use` for the places of a strip in tiles of nearly equal widths.
LOCKSTEP_INLINE void in_tiles(const Strip& strip, Index most, Index at, float* out, auto&& use) {
  const Index count = (strip.places + most - 1) / most;
  const Index width = strip.places / count;
  const Index wider = strip.places - width * count;  // tiles with a place more
  if (wider > 0) use(width + 1, strip, wider, at, out);
  const Index done = wider * (width + 1);
  use(width, strip, count - wider, at + done * strip.in_step, out + done * strip.out_step);
}

/// From so many on a tile's stores are few beside its multiply-adds.
constexpr Index kManyTaps = 40;

/// Columns of a tile. With 32 registers few taps are best summed for few places at a time: a vector
/// of 512 bits takes two turns to store, and behind 24 of them in a row the next tile's
/// multiply-adds wait. Eight are stored mostly meanwhile.
template <int outputs>
LOCKSTEP_INLINE Index columns_for(Index taps) {
  constexpr int kAll = tile_columns(outputs);
  if (kLanes < 16 || outputs == 1 || taps >= kManyTaps) return kAll;
  return smaller(kAll, kTileOutputs / outputs);
}

template <int outputs = kTileOutputs>
void strip_of_outputs(Index wanted, const Strip& strip, Index at, float* out) {
  if constexpr (outputs > 1) {
    if (wanted < outputs) return strip_of_outputs<outputs - 1>(wanted, strip, at, out);
  }
  const Index columns = columns_for<outputs>(strip.runs * strip.length);
  if (strip.in_step == kLanes) {
    in_tiles(strip, columns, at, out, tiles_of_columns<true, outputs>);
  } else {
    in_tiles(strip, columns, at, out, tiles_of_columns<false, outputs>);
  }
}

/// Whether there are sliding tiles for the taps that lie side by side.
bool slides(const Strip& strip, Index outputs) {
  const Index taps = strip.side_by_side;
  return outputs == 1 && (taps == 2 || taps == 3 || taps == 5);
}

void sliding_strip(const Strip& strip, Index at, float* out) {
  const auto use = [&](auto tiles) { in_tiles(strip, kSlidingColumns, at, out, tiles); };
  if (strip.side_by_side == 2) return use(sliding_tiles_of_columns<2>);
  if (strip.side_by_side == 3) return use(sliding_tiles_of_columns<3>);
  use(sliding_tiles_of_columns<5>);
}

/// What sums without any tap are.
void fill(const Strip& strip, Index outputs, float* out) {
  for (Index i = 0; i < outputs; ++i) {
    const Floats bias = strip.bias ? broadcast(strip.bias[i]) : Floats{};
    for (Index j = 0; j < strip.places; ++j)
      store(out + i * strip.out_channel + j * strip.out_step, bias);
  }
}

/// Places of one vector each.
void sum_places(const Strip& strip, Index outputs, Index at, float* out) {
  if (strip.runs * strip.length > 0) {
    if (slides(strip, outputs)) return sliding_strip(strip, at, out);
    strip_of_outputs(outputs, strip, at, out);
  } else if (!strip.begun) {
    fill(strip, outputs, out);
  }
}

}  // namespace

void sum_strip(const Strip& strip, Index outputs, Index at, float* out) {
  const bool neighbours = strip.in_step == kGroup && strip.out_step == kGroup;
  if (strip.places == 1 || (kParts > 1 && neighbours && !slides(strip, outputs))) {
    // All vectors of samples are one line: lines of memory are read and written whole, and the sums
    // of a single place are enough to hide the time that a multiply-add takes. Where a group is one
    // vector, neighbours are a line as they are.
    Strip line = strip;
    line.places *= kParts;
    line.in_step = kLanes;
    line.out_step = kLanes;
    line.side_by_side = 0;
    sum_places(line, outputs, at, out);
    return;
  }
  for (int part = 0; part < kParts; ++part)
    sum_places(strip, outputs, at + part * kLanes, out + part * kLanes);
}

}  // namespace lockstep::cpu::LOCKSTEP_CPU_SET
