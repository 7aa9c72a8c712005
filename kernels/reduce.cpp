// Sums, copies and hashes of arenas: checks and dispatch.
#include "lockstep/kernels/reduce.h"

#include <algorithm>

#include "lockstep/config.h"
#include "lockstep/kernels/checks.h"
#include "lockstep/kernels/cpu/kernels.h"
#include "lockstep/kernels/cpu/plain.h"
#include "lockstep/kernels/cuda/kernels.h"

namespace lockstep {

void l2_term(Context& context, const float* factor, const float* x, std::int64_t count,
             double* scratch, double* result) {
  checks::count("l2_term", count);
  if constexpr (kHasCuda) {
    if (!context.on_cpu()) return cuda::l2_term(context, factor, x, count, scratch, result);
  }
  cpu::kernels(context.cpu_set())
      .reduce.l2_term(factor, x, count, kSumChunk, scratch + kSumTickets, result);
}

void add_into(Context& context, float* dst, const float* src, std::int64_t count) {
  checks::count("add_into", count);
  if constexpr (kHasCuda) {
    if (!context.on_cpu()) return cuda::add_into(context, dst, src, count);
  }
  cpu::kernels(context.cpu_set()).reduce.add_into(dst, src, count);
}

void sum_tree(Context& context, const float* parts, int count, std::int64_t stride,
              std::int64_t floats, float* sum) {
  checks::count("sum_tree", floats);
  if (count < 1) {
    throw ShapeError(message("sum_tree: the sum is over ", count, " parts; it must be 1 or more"));
  }
  if constexpr (kHasCuda) {
    if (!context.on_cpu()) return cuda::sum_tree(context, parts, count, stride, floats, sum);
  }
  cpu::kernels(context.cpu_set()).reduce.sum_tree(parts, count, stride, floats, sum);
}

void copy_into(Context& context, float* dst, const float* src, std::int64_t count) {
  checks::count("copy_into", count);
  if constexpr (kHasCuda) {
    if (!context.on_cpu()) return cuda::copy_into(context, dst, src, count);
  }
  std::copy_n(src, count, dst);
}

void fill_zero(Context& context, float* dst, std::int64_t count) {
  checks::count("fill_zero", count);
  if constexpr (kHasCuda) {
    if (!context.on_cpu()) return cuda::fill_zero(context, dst, count);
  }
  std::fill_n(dst, count, 0.0F);
}

void hash_floats(Context& context, const float* x, std::int64_t count, std::uint64_t* scratch,
                 std::uint64_t* result) {
  checks::count("hash_floats", count);
  if constexpr (kHasCuda) {
    if (!context.on_cpu()) return cuda::hash_floats(context, x, count, scratch, result);
  }
  *result = cpu::hash_floats(x, count, scratch + kSumTickets);
}

}  // namespace lockstep
