// The fully connected layer on groups of 16 samples.
//
// Forward and data gradient are the same sum with the weights walked in two ways: out[i] = sum over
// t of in[t] * w(t, i), a vector of samples times a weight in all lanes. A tile keeps the sums of
// kTile neighbouring outputs in registers while it runs through all of `in` once.
//
// The weight gradient dw[o][i] = sum over samples of dy[o] * x[i] would need a sum over the lanes
// for every weight. Instead squares of x are transposed in registers, so that lanes are
// neighbouring inputs i and a sample is a vector: then dw's rows are written as they lie in memory,
// and dy's samples are the scalars.
#include "lockstep/kernels/cpu/set.h"
#include "lockstep/kernels/cpu/simd.h"

namespace lockstep::cpu::LOCKSTEP_CPU_SET {
namespace {

using Index = std::int64_t;

/// Sums in registers: enough to hide the latency of an addition, few enough for 16 registers.
constexpr int kTile = 12;

/// Weights seen as w(t, i): from output i to i + 1 and from term t to t + 1.
struct Weights {
  const float* data;
  Index next_output, next_term;
};

/// out[i] = bias[i] + sum over t of in[t] * w(t, i) for `count` outputs i from 0 and one part of
/// the samples.
template <int count>
void tile(Index terms, const float* in, Weights w, const float* bias, float* out) {
  Floats sum[count];
  for (int i = 0; i < count; ++i) sum[i] = bias ? broadcast(bias[i]) : Floats{};
  for (Index t = 0; t < terms; ++t) {
    const Floats value = load(in + t * kGroup);
    const float* weight = w.data + t * w.next_term;
#pragma GCC unroll 12
    for (int i = 0; i < count; ++i) sum[i] += value * broadcast(weight[i * w.next_output]);
  }
  for (int i = 0; i < count; ++i) store(out + i * kGroup, sum[i]);
}

/// The tile for what is left of the outputs: 1 to kTile of them.
template <int count = kTile>
void any_tile(int wanted, Index terms, const float* in, Weights w, const float* bias, float* out) {
  if constexpr (count > 1) {
    if (wanted < count) return any_tile<count - 1>(wanted, terms, in, w, bias, out);
  }
  tile<count>(terms, in, w, bias, out);
}

void weighted_sums(Index groups, Index terms, Index outputs, const float* in, Weights w,
                   const float* bias, float* out) {
  for (Index i = 0; i < outputs; i += kTile) {
    const int count = static_cast<int>(outputs - i < kTile ? outputs - i : kTile);
    const Weights here{w.data + i * w.next_output, w.next_output, w.next_term};
    for (Index group = 0; group < groups; ++group) {
      for (int part = 0; part < kGroup; part += kLanes) {
        any_tile(count, terms, in + group * terms * kGroup + part, here, bias ? bias + i : nullptr,
                 out + (group * outputs + i) * kGroup + part);
      }
    }
  }
}

void forward(Index groups, Index d, Index o, const float* x, const float* w, const float* b,
             float* y) {
  weighted_sums(groups, d, o, x, {w, d, 1}, b, y);
}

void backward_data(Index groups, Index d, Index o, const float* dy, const float* w, float* dx) {
  weighted_sums(groups, o, d, dy, {w, 1, d}, nullptr, dx);
}

/// Adds the gradients of kLanes neighbouring inputs from one part of the samples to all rows of dw,
/// or overwrites them. `width` of the inputs exist.
void input_square(Index d, Index o, int width, const float* x, const float* dy, float* dw,
                  bool add) {
  Floats samples[kLanes];
  for (int i = 0; i < kLanes; ++i) samples[i] = i < width ? load(x + i * kGroup) : Floats{};
  transpose(samples);
  for (Index row = 0; row < o; ++row) {
    float* to = dw + row * d;
    float edge[kLanes] = {};
    const bool inside = width == kLanes;
    if (add && !inside) __builtin_memcpy(edge, to, sizeof(float) * static_cast<unsigned>(width));
    Floats sum = add ? load(inside ? to : edge) : Floats{};
#pragma GCC unroll 16
    for (int n = 0; n < kLanes; ++n) sum += samples[n] * broadcast(dy[row * kGroup + n]);
    if (inside) {
      store(to, sum);
    } else {
      store(edge, sum);
      __builtin_memcpy(to, edge, sizeof(float) * static_cast<unsigned>(width));
    }
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
  for (Index i = 0; i < d; i += kLanes) {
    const int width = static_cast<int>(d - i < kLanes ? d - i : kLanes);
    for (Index group = 0; group < groups; ++group) {
      for (int part = 0; part < kGroup; part += kLanes) {
        input_square(d, o, width, x + (group * d + i) * kGroup + part,
                     dy + group * o * kGroup + part, dw + i, accumulate || group > 0 || part > 0);
      }
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
