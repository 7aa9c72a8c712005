// The dense sum of convolutions; conv_sum.h says what it is.
#include "lockstep/kernels/cpu/conv_sum.h"

#include "lockstep/kernels/cpu/conv_tile.h"

namespace lockstep::cpu::LOCKSTEP_CPU_SET {
namespace {

Index taps_of_channel(const TapSum& sum) {
  return sum.vertical.taps * sum.horizontal.taps;
}

Index offset_of(const TapSum& sum, Index c, Index r, Index s) {
  return c * sum.in_channel + (sum.vertical.start + r * sum.vertical.direction) * sum.in_row +
         (sum.horizontal.start + s * sum.horizontal.direction) * kGroup;
}

}  // namespace

Index channels_at_once(Index outputs, Index rows, Index in_row, Index in_channel) {
  // Few outputs use a vector too seldom to wait for the second-level cache. Of that x86 cores have
  // 256 KiB at least, of the first 32.
  const Index near_floats = (kLanes < 16 && outputs <= 2 ? 24 : 96) * 1024 / 4;
  // Planes that are a multiple of 4 KiB apart share the sets of the first-level cache.
  constexpr Index kWayFloats = 4096 / 4;
  constexpr Index kWays = 8;
  const Index floats = larger(1, rows) * in_row;  // no row: a phase of a gradient without taps
  const bool shared_sets = in_channel % kWayFloats == 0;
  const Index channels =
      shared_sets ? kWays / ((floats + kWayFloats - 1) / kWayFloats) : near_floats / floats;
  return larger(1, channels);
}

std::size_t tap_sum_bytes(const WindowGeometry& g) {
  const Index taps = g.kernel_h * g.kernel_w;
  return static_cast<std::size_t>(Index{sizeof(float)} * g.k * g.c * taps +
                                  whole_lines(Index{sizeof(Index)} * larger(g.c, g.k) * taps));
}

void pack(TapSum& sum, const Filters& filters, void* workspace) {
  auto* offsets = static_cast<Index*>(workspace);
  auto* weights = reinterpret_cast<float*>(
      static_cast<unsigned char*>(workspace) +
      whole_lines(Index{sizeof(Index)} * sum.channels * taps_of_channel(sum)));
  sum.offset = offsets;
  sum.weights = weights;
  const Index rows = sum.vertical.taps;
  const Index columns = sum.horizontal.taps;
  for (Index first = 0; first < sum.channels; first += sum.channels_at_once) {
    const Index end = smaller(sum.channels, first + sum.channels_at_once);
    for (Index r = 0; r < rows; ++r) {
      for (Index c = first; c < end; ++c) {
        for (Index s = 0; s < columns; ++s) *offsets++ = offset_of(sum, c, r, s);
      }
    }
  }
  for (Index k = 0, outputs = 0; k < sum.outputs; k += outputs) {
    outputs = tile_outputs(sum.outputs, k);
    const float* tile = filters.data + k * filters.output;
    for (Index first = 0; first < sum.channels; first += sum.channels_at_once) {
      const Index end = smaller(sum.channels, first + sum.channels_at_once);
      for (Index r = 0; r < rows; ++r) {
        for (Index c = first; c < end; ++c) {
          for (Index s = 0; s < columns; ++s) {
            const float* tap = tile + c * filters.channel + r * filters.row + s * filters.column;
            for (Index i = 0; i < outputs; ++i) *weights++ = tap[i * filters.output];
          }
        }
      }
    }
  }
}

TapSum forward_sum(const WindowGeometry& g, const float* w, const float* b, Index rows,
                   void* workspace) {
  const Index in_row = g.w * kGroup;
  const Index in_channel = g.h * in_row;
  TapSum sum{
      .vertical = with_inner_places({g.p, g.kernel_h, g.stride_h, -g.pad_top, 1, g.h, 0, 0}),
      .horizontal = with_inner_places({g.q, g.kernel_w, g.stride_w, -g.pad_left, 1, g.w, 0, 0}),
      .channels = g.c,
      .outputs = g.k,
      .channels_at_once = smaller(
          g.c, channels_at_once(g.k, g.kernel_h + (rows - 1) * g.stride_h, in_row, in_channel)),
      .in_channel = in_channel,
      .in_row = in_row,
      .out_channel = g.p * g.q * kGroup,
      .out_row = g.q * kGroup,
      .out_column = kGroup,
      .offset = nullptr,
      .weights = nullptr,
      .bias = b};
  const Index taps = g.kernel_h * g.kernel_w;
  pack(sum, {w, g.c * taps, taps, g.kernel_w, 1}, workspace);
  return sum;
}

namespace {

/// Some channels and outputs of a sum, and the row that `out` begins with: what its strips have in
/// common.
struct Part {
  const TapSum* sum;
  Index first_row;
  Index output, outputs, channel, channels;
  const Index* offset;
  const float* weights;
};

Part part_of(const TapSum& sum, Index first_row, Index output, Index channel) {
  const Index outputs = tile_outputs(sum.outputs, output);
  const Index first = channel * taps_of_channel(sum);
  return {&sum,
          first_row,
          output,
          outputs,
          channel,
          smaller(sum.channels - channel, sum.channels_at_once),
          sum.offset + first,
          sum.weights + output * sum.channels * taps_of_channel(sum) + first * outputs};
}

/// Where a strip begins, and where its `count` places go on, in the input and the output.
struct Line {
  Index row, column, count;
  Index in_step, out_step;
};

/// The sums along a line of places that all have the taps of the first.
void sum_line(const Part& part, const Line& line, const float* in, float* out) {
  const TapSum& sum = *part.sum;
  const TapRange vertical = taps_inside(sum.vertical, line.row);
  const TapRange horizontal = taps_inside(sum.horizontal, line.column);
  const Index rows = vertical.end - vertical.first;
  const Index columns = horizontal.end - horizontal.first;
  const Index all = sum.horizontal.taps;
  const bool one_run = columns == all;
  const Index before = vertical.first * part.channels * all + horizontal.first;
  sum_strip({.input = in,
             .runs = one_run ? 1 : rows * part.channels,
             .length = one_run ? rows * part.channels * all : columns,
             .gap = one_run ? 0 : all - columns,
             .offset = part.offset + before,
             .weights = part.weights + before * part.outputs,
             .bias = sum.bias ? sum.bias + part.output : nullptr,
             .begun = part.channel > 0,
             .places = line.count,
             .in_step = line.in_step,
             .out_step = line.out_step,
             .out_channel = sum.out_channel,
             .side_by_side = one_run && line.in_step == kGroup ? all : 0},
            part.outputs,
            line.row * sum.vertical.step * sum.in_row + line.column * sum.horizontal.step * kGroup,
            out + (line.row - part.first_row) * sum.out_row + line.column * sum.out_column);
}

/// The columns of a row of which all taps are inside.
void sum_inner(const Part& part, Index row, const float* in, float* out) {
  const TapSum& sum = *part.sum;
  const Axis& axis = sum.horizontal;
  const Index count = axis.inner_end - axis.inner_first;
  if (count == 0) return;
  sum_line(part, {row, axis.inner_first, count, axis.step * kGroup, sum.out_column}, in, out);
}

/// The other columns of some rows. They are short of taps, each in its own way, so the lines run
/// down the image.
void sum_edges(const Part& part, Index row, Index rows, const float* in, float* out) {
  const TapSum& sum = *part.sum;
  const Axis& down = sum.vertical;
  for (Index column = 0; column < sum.horizontal.places; ++column) {
    if (column == sum.horizontal.inner_first) column = sum.horizontal.inner_end;
    if (column == sum.horizontal.places) return;
    Index count = 1;
    for (Index p = row; p < row + rows; p += count) {
      const bool inner = p >= down.inner_first && p < down.inner_end;
      count = inner ? smaller(down.inner_end, row + rows) - p : 1;
      sum_line(part, {p, column, count, down.step * sum.in_row, sum.out_row}, in, out);
    }
  }
}

}  // namespace

void sum_tile(const TapSum& sum, Index output, Index channel, Index row, Index rows,
              const float* in, float* out) {
  const Part part = part_of(sum, row, output, channel);
  for (Index p = row; p < row + rows; ++p) sum_inner(part, p, in, out);
  sum_edges(part, row, rows, in, out);
}

void sum_group(const TapSum& sum, const float* in, float* out) {
  const auto each_part = [&sum](auto&& use) {
    for (Index channel = 0; channel < sum.channels; channel += sum.channels_at_once) {
      for (Index i = 0; i < sum.outputs; i += tile_outputs(sum.outputs, i))
        use(part_of(sum, 0, i, channel));
    }
  };
  for (Index row = 0; row < sum.vertical.places; ++row) {
    each_part(
        [&](const Part& part) { sum_inner(part, row, in, out + part.output * sum.out_channel); });
  }
  each_part([&](const Part& part) {
    sum_edges(part, 0, sum.vertical.places, in, out + part.output * sum.out_channel);
  });
}

}  // namespace lockstep::cpu::LOCKSTEP_CPU_SET
