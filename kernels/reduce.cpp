// Sums, copies and hashes of arenas: checks and dispatch.
#include "lockstep/kernels/reduce.h"

#include <algorithm>

#include "lockstep/kernels/checks.h"
#include "lockstep/kernels/cpu/kernels.h"
#include "lockstep/kernels/cpu/plain.h"

namespace lockstep {

void sum_of_squares(Context& context, const float* x, std::int64_t count, double* scratch,
                    double* result) {
  checks::count("sum_of_squares", count);
  if (!context.on_cpu()) checks::no_kernel("sum_of_squares", context);
  cpu::kernels(context.cpu_set()).reduce.sum_of_squares(x, count, kSumChunk, scratch, result);
}

void l2_term(Context& context, const float* factor, const float* x, std::int64_t count,
             double* scratch, double* result) {
  checks::count("l2_term", count);
  if (!context.on_cpu()) checks::no_kernel("l2_term", context);
  cpu::kernels(context.cpu_set()).reduce.l2_term(factor, x, count, kSumChunk, scratch, result);
}

void add_into(Context& context, float* dst, const float* src, std::int64_t count) {
  checks::count("add_into", count);
  if (!context.on_cpu()) checks::no_kernel("add_into", context);
  cpu::kernels(context.cpu_set()).reduce.add_into(dst, src, count);
}

void copy_into(Context& context, float* dst, const float* src, std::int64_t count) {
  checks::count("copy_into", count);
  if (!context.on_cpu()) checks::no_kernel("copy_into", context);
  std::copy_n(src, count, dst);
}

void fill_zero(Context& context, float* dst, std::int64_t count) {
  checks::count("fill_zero", count);
  if (!context.on_cpu()) checks::no_kernel("fill_zero", context);
  std::fill_n(dst, count, 0.0F);
}

void hash_floats(Context& context, const float* x, std::int64_t count, std::uint64_t* scratch,
                 std::uint64_t* result) {
  checks::count("hash_floats", count);
  if (!context.on_cpu()) checks::no_kernel("hash_floats", context);
  *result = cpu::hash_floats(x, count, scratch);
}

}  // namespace lockstep
