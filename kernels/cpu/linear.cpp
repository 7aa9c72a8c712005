// The fully connected layer on groups of 16 samples.
//
// Forward and data gradient are the same sum with the weights walked in two ways: out[i] = sum over
// t of in[t] * w(t, i), vectors of samples times a weight in all lanes. A tile keeps the sums of
// some outputs, for all samples of a group, in registers while it runs through a chunk of `in` that
// stays in the first-level cache for all outputs.
//
//           t: in[t], 16 samples
//            +-----------------+        The weights of the data gradient lie across its walk, and
//    out[0]  |  += in * w(t,0) |        where a row has a multiple of 4 KiB, they all fall into one
//    out[1]  |  += in * w(t,1) |        set of the cache: blocks of them are copied together first.
//     ...    +-----------------+
//
// The weight gradient dw[o][i] = sum over samples of dy[o] * x[i] would need a sum over the lanes
// for every weight. Instead squares of x are transposed, so that lanes are neighbouring inputs i
// and a sample is a vector: then dw's rows are written as they lie in memory, and dy's samples are
// the scalars.
#include "lockstep/kernels/cpu/numbers.h"
#include "lockstep/kernels/cpu/set.h"

namespace lockstep::cpu::LOCKSTEP_CPU_SET {
namespace {

/// Outputs of a tile: its sums, a vector for each part of a group, leave registers for the input.
constexpr int kTile = kParts == 1 ? 14 : kParts == 2 ? 6 : 2;
/// Terms of `in` that stay in the first-level cache: 16 KiB.
constexpr Index kTerms = 256;
/// A block of weights that is copied together: outputs by terms.
constexpr Index kBlockOutputs = 48;
constexpr Index kBlockTerms = 64;

/// Weights seen as w(t, i): from output i to i + 1 and from term t to t + 1.
struct Weights {
  const float* data;
  Index next_output, next_term;
};

/// out[i] = start + sum over t of in[t] * w(t, i) for `count` outputs i from 0. The sums start from
/// `out` where they are `begun`, else from the bias or 0.
template <int count>
void tile(Index terms, const float* in, Weights w, const float* bias, bool begun, float* out) {
  Floats sum[count][kParts];
#pragma GCC unroll 14
  for (int i = 0; i < count; ++i) {
    const Floats first = bias ? broadcast(bias[i]) : Floats{};
#pragma GCC unroll 4
    for (int part = 0; part < kParts; ++part)
      sum[i][part] = begun ? load(out + i * kGroup + part * kLanes) : first;
  }
  for (Index t = 0; t < terms; ++t) {
    Floats value[kParts];
    for (int part = 0; part < kParts; ++part) value[part] = load(in + t * kGroup + part * kLanes);
    const float* weight = w.data + t * w.next_term;
#pragma GCC unroll 14
    for (int i = 0; i < count; ++i) {
      const Floats here = broadcast(weight[i * w.next_output]);
#pragma GCC unroll 4
      for (int part = 0; part < kParts; ++part) sum[i][part] += value[part] * here;
    }
  }
#pragma GCC unroll 14
  for (int i = 0; i < count; ++i) {
#pragma GCC unroll 4
    for (int part = 0; part < kParts; ++part) store(out + i * kGroup + part * kLanes, sum[i][part]);
  }
}

/// The tile for what is left of the outputs: 1 to kTile of them.
template <int count = kTile>
void any_tile(Index wanted, Index terms, const float* in, Weights w, const float* bias, bool begun,
              float* out) {
  if constexpr (count > 1) {
    if (wanted < count) return any_tile<count - 1>(wanted, terms, in, w, bias, begun, out);
  }
  tile<count>(terms, in, w, bias, begun, out);
}

/// Outputs in tiles of nearly equal sizes.
void tiles(Index outputs, Index terms, const float* in, Weights w, const float* bias, bool begun,
           float* out) {
  Index i = 0;
  for (Index left = (outputs + kTile - 1) / kTile; left > 0; --left) {
    const Index count = (outputs - i + left - 1) / left;
    any_tile(count, terms, in, {w.data + i * w.next_output, w.next_output, w.next_term},
             bias ? bias + i : nullptr, begun, out + i * kGroup);
    i += count;
  }
}

void forward(Index groups, Index d, Index o, const float* x, const float* w, const float* b,
             float* y) {
  for (Index t = 0; t < d; t += kTerms) {
    for (Index group = 0; group < groups; ++group) {
      tiles(o, smaller(kTerms, d - t), x + (group * d + t) * kGroup, {w + t, d, 1}, b, t > 0,
            y + group * o * kGroup);
    }
  }
}

void copy_block(Index terms, Index outputs, Index d, const float* w, float* to) {
  for (Index row = 0; row < terms; ++row, w += d, to += kBlockOutputs) {
    if (outputs == kBlockOutputs) {
      __builtin_memcpy(to, w, sizeof(float) * kBlockOutputs);  // without a call
    } else {
      __builtin_memcpy(to, w, sizeof(float) * static_cast<std::size_t>(outputs));
    }
  }
}

void backward_data(Index groups, Index d, Index o, const float* dy, const float* w, float* dx) {
  alignas(64) float block[kBlockTerms * kBlockOutputs];
  for (Index i = 0; i < d; i += kBlockOutputs) {
    const Index outputs = smaller(kBlockOutputs, d - i);
    for (Index t = 0; t < o; t += kBlockTerms) {
      const Index terms = smaller(kBlockTerms, o - t);
      copy_block(terms, outputs, d, w + t * d + i, block);
      for (Index group = 0; group < groups; ++group) {
        tiles(outputs, terms, dy + (group * o + t) * kGroup, {block, 1, kBlockOutputs}, nullptr,
              t > 0, dx + (group * d + i) * kGroup);
      }
    }
  }
}

/// Vectors of neighbouring inputs, and groups of samples, that are transposed together.
constexpr int kVectors = 2;
constexpr int kRows = kLanes == 16 ? 12 : kLanes == 8 ? 6 : 4;
constexpr Index kInputs = kVectors * kLanes;
constexpr Index kGroupsAtOnce = 4;

/// x of some groups with lanes that are inputs: [samples][kInputs]. `width` of the inputs exist,
/// the others are 0.
void transpose_inputs(Index groups, Index d, Index width, const float* x, float* to) {
  for (Index group = 0; group < groups; ++group) {
    for (int part = 0; part < kParts; ++part) {
      for (int v = 0; v < kVectors; ++v) {
        Floats square[kLanes];
        for (int i = 0; i < kLanes; ++i) {
          const Index input = v * kLanes + i;
          square[i] =
              input < width ? load(x + (group * d + input) * kGroup + part * kLanes) : Floats{};
        }
        transpose(square);
        for (int n = 0; n < kLanes; ++n) {
          store(to + (group * kGroup + part * kLanes + n) * kInputs + v * kLanes, square[n]);
        }
      }
    }
  }
}

/// `rows` rows of dw for kInputs inputs, from or onto `sums`.
template <int rows>
void add_samples(Index groups, const float* x, const float* dy, Index dy_group, float* sums,
                 Index next_row, bool add) {
  Floats sum[rows][kVectors];
#pragma GCC unroll 12
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v)
      sum[r][v] = add ? load(sums + r * next_row + v * kLanes) : Floats{};
  }
  for (Index group = 0; group < groups; ++group) {
    for (Index n = 0; n < kGroup; ++n) {
      const float* sample = x + (group * kGroup + n) * kInputs;
      Floats value[kVectors];
      for (int v = 0; v < kVectors; ++v) value[v] = load(sample + v * kLanes);
#pragma GCC unroll 12
      for (int r = 0; r < rows; ++r) {
        const Floats gradient = broadcast(dy[group * dy_group + r * kGroup + n]);
        for (int v = 0; v < kVectors; ++v) sum[r][v] += value[v] * gradient;
      }
    }
  }
#pragma GCC unroll 12
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) store(sums + r * next_row + v * kLanes, sum[r][v]);
  }
}

template <int rows = kRows>
void any_rows(Index wanted, Index groups, const float* x, const float* dy, Index dy_group,
              float* sums, Index next_row, bool add) {
  if constexpr (rows > 1) {
    if (wanted < rows)
      return any_rows<rows - 1>(wanted, groups, x, dy, dy_group, sums, next_row, add);
  }
  add_samples<rows>(groups, x, dy, dy_group, sums, next_row, add);
}

/// Rows of a tile. With 32 registers the stores of all sums at once would hold up what comes behind
/// them (conv_tile.cpp), which few samples do not outweigh; few rows, which are one tile, do.
Index rows_for(Index groups, Index o) {
  return kLanes == 16 && groups < kGroupsAtOnce && o > kRows ? 4 : kRows;
}

/// All rows of dw for `width` inputs, in tiles of nearly equal sizes.
void add_rows(Index groups, Index d, Index o, Index width, const float* x, const float* dy,
              float* dw, bool add) {
  Index row = 0;
  const Index most = rows_for(groups, o);
  for (Index left = (o + most - 1) / most; left > 0; --left) {
    const Index count = (o - row + left - 1) / left;
    const float* gradients = dy + row * kGroup;
    float* to = dw + row * d;
    row += count;
    if (width == kInputs) {
      any_rows(count, groups, x, gradients, o * kGroup, to, d, add);
      continue;
    }
    float edge[kRows * kInputs] = {};
    const std::size_t bytes = sizeof(float) * static_cast<std::size_t>(width);
    for (Index r = 0; add && r < count; ++r)
      __builtin_memcpy(edge + r * kInputs, to + r * d, bytes);
    any_rows(count, groups, x, gradients, o * kGroup, edge, kInputs, add);
    for (Index r = 0; r < count; ++r) __builtin_memcpy(to + r * d, edge + r * kInputs, bytes);
  }
}

void bias_gradient(Index groups, Index o, const float* dy, float* db, bool accumulate) {
  for (Index row = 0; row < o; ++row) {
    Floats sum{};
    for (Index group = 0; group < groups; ++group) {
      for (int part = 0; part < kGroup; part += kLanes)
        sum += load(dy + (group * o + row) * kGroup + part);
    }
    float total = accumulate ? db[row] : 0;
    for (int lane = 0; lane < kLanes; ++lane) total += sum[lane];
    db[row] = total;
  }
}

void backward_parameters(Index groups, Index d, Index o, const float* x, const float* dy, float* dw,
                         float* db, bool accumulate) {
  alignas(64) float samples[kGroupsAtOnce * kGroup * kInputs];
  for (Index i = 0; i < d; i += kInputs) {
    const Index width = smaller(kInputs, d - i);
    for (Index group = 0; group < groups; group += kGroupsAtOnce) {
      const Index here = smaller(kGroupsAtOnce, groups - group);
      transpose_inputs(here, d, width, x + (group * d + i) * kGroup, samples);
      add_rows(here, d, o, width, samples, dy + group * o * kGroup, dw + i,
               accumulate || group > 0);
    }
  }
  if (db) bias_gradient(groups, o, dy, db, accumulate);
}

}  // namespace

const LinearKernels linear_kernels = {
    .forward = forward,
    .backward_data = backward_data,
    .backward_parameters = backward_parameters,
};

}  // namespace lockstep::cpu::LOCKSTEP_CPU_SET
