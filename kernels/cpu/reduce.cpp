// Sums over arenas. A chunk is summed in 16 lanes whatever the width of the vectors, in double.
#include "lockstep/kernels/cpu/set.h"
#include "lockstep/kernels/cpu/simd.h"

namespace lockstep::cpu::LOCKSTEP_CPU_SET {
namespace {

/// Adds up `count` values in place by a binary tree over their numbers: 0+1, 2+3, ... then those.
double tree_sum(double* values, std::int64_t count) {
  for (std::int64_t step = 1; step < count; step *= 2) {
    for (std::int64_t i = 0; i + step < count; i += 2 * step) values[i] += values[i + step];
  }
  return count == 0 ? 0 : values[0];
}

/// Element i of a chunk goes to lane i % 16. A square of a float is exact in double, so the sum of
/// squares has the same bits on every instruction set, fused multiply-add or not.
double chunk_squares(const float* x, std::int64_t count) {
  double lanes[kGroup] = {};
  std::int64_t i = 0;
  for (; i + kGroup <= count; i += kGroup) {
    for (int lane = 0; lane < kGroup; ++lane) {
      const double value = x[i + lane];
      lanes[lane] += value * value;
    }
  }
  for (int lane = 0; i + lane < count; ++lane) {
    const double value = x[i + lane];
    lanes[lane] += value * value;
  }
  return tree_sum(lanes, kGroup);
}

double chunk_weighted_squares(const float* factor, const float* x, std::int64_t count) {
  double lanes[kGroup] = {};
  std::int64_t i = 0;
  for (; i + kGroup <= count; i += kGroup) {
    for (int lane = 0; lane < kGroup; ++lane) {
      const double value = x[i + lane];
      lanes[lane] += factor[i + lane] * value * value;
    }
  }
  for (int lane = 0; i + lane < count; ++lane) {
    const double value = x[i + lane];
    lanes[lane] += factor[i + lane] * value * value;
  }
  return tree_sum(lanes, kGroup);
}

LOCKSTEP_INLINE std::int64_t at_most(std::int64_t value, std::int64_t limit) {
  return value < limit ? value : limit;
}

void sum_of_squares(const float* x, std::int64_t count, std::int64_t chunk, double* scratch,
                    double* result) {
  std::int64_t chunks = 0;
  for (std::int64_t at = 0; at < count; at += chunk) {
    scratch[chunks++] = chunk_squares(x + at, at_most(chunk, count - at));
  }
  *result = tree_sum(scratch, chunks);
}

void l2_term(const float* factor, const float* x, std::int64_t count, std::int64_t chunk,
             double* scratch, double* result) {
  std::int64_t chunks = 0;
  for (std::int64_t at = 0; at < count; at += chunk) {
    scratch[chunks++] = chunk_weighted_squares(factor + at, x + at, at_most(chunk, count - at));
  }
  *result = tree_sum(scratch, chunks) / 2;
}

void add_into(float* dst, const float* src, std::int64_t count) {
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(dst + i, load(dst + i) + load(src + i));
  for (; i < count; ++i) dst[i] += src[i];
}

/// Sum over the parts by the tree that splits at the largest power of two; `load_part` gives what
/// is summed of a part.
template <class LoadPart>
auto tree_of(const float* parts, int count, std::int64_t stride, LoadPart load_part) {
  if (count == 1) return load_part(parts);
  int half = 1;
  while (2 * half < count) half *= 2;
  const auto low = tree_of(parts, half, stride, load_part);
  return low + tree_of(parts + half * stride, count - half, stride, load_part);
}

void sum_tree(const float* parts, int count, std::int64_t stride, std::int64_t floats, float* sum) {
  std::int64_t i = 0;
  for (; i + kLanes <= floats; i += kLanes) store(sum + i, tree_of(parts + i, count, stride, load));
  const auto one = [](const float* part) { return *part; };
  for (; i < floats; ++i) sum[i] = tree_of(parts + i, count, stride, one);
}

}  // namespace

const ReduceKernels reduce_kernels = {.sum_of_squares = sum_of_squares,
                                      .l2_term = l2_term,
                                      .add_into = add_into,
                                      .sum_tree = sum_tree};

}  // namespace lockstep::cpu::LOCKSTEP_CPU_SET
