// Sums and copies of arenas, four elements to a thread.
#include "lockstep/core/cuda/runtime.h"
#include "lockstep/kernels/cuda/chunk_sums.h"
#include "lockstep/kernels/cuda/elements.h"
#include "lockstep/kernels/cuda/kernels.h"

namespace lockstep::cuda {
namespace {

__device__ double weighted_square(float factor, float x) {
  return static_cast<double>(factor) * x * x;
}

__global__ void l2_term_kernel(const float* factor, const float* x, std::int64_t count,
                               double* scratch, double* result) {
  sum_chunks(
      count, scratch,
      [&](std::int64_t i, std::int64_t left) {
        const float4 f = load4(factor + i, left);
        const float4 v = load4(x + i, left);
        return (weighted_square(f.x, v.x) + weighted_square(f.y, v.y)) +
               (weighted_square(f.z, v.z) + weighted_square(f.w, v.w));
      },
      [&](double sum) { *result = sum / 2; });
}

__global__ void add_into_kernel(float* dst, const float* src, std::int64_t count) {
  for (std::int64_t i = first_element(); i < count; i += element_stride()) {
    const std::int64_t left = count - i;
    store4(dst + i, left, load4(dst + i, left) + load4(src + i, left));
  }
}

__global__ void copy_into_kernel(float* dst, const float* src, std::int64_t count) {
  for (std::int64_t i = first_element(); i < count; i += element_stride()) {
    store4(dst + i, count - i, load4(src + i, count - i));
  }
}

__global__ void fill_zero_kernel(float* dst, std::int64_t count) {
  for (std::int64_t i = first_element(); i < count; i += element_stride()) {
    store4(dst + i, count - i, {});
  }
}

/// Parts whose loads are under way at once.
constexpr int kPartsAtOnce = 8;

struct Parts {
  const float* data;
  int count;
  std::int64_t stride;
};

/// Four elements' sum over parts [first, first + kCount), those there are; at least one is.
template <int kCount>
__device__ float4 tree_of(const Parts& parts, int first, std::int64_t left) {
  if constexpr (kCount == 1) {
    return load4(parts.data + first * parts.stride, first < parts.count ? left : 0);
  } else {
    const float4 low = tree_of<kCount / 2>(parts, first, left);
    const float4 high = tree_of<kCount / 2>(parts, first + kCount / 2, left);
    return first + kCount / 2 < parts.count ? low + high : low;
  }
}

/// Above kPartsAtOnce the finished subtrees are kept as in a binary counter of the groups of parts:
/// a group whose number has its lowest bits set completes that many of them.
__global__ void sum_tree_kernel(Parts parts, std::int64_t floats, float* sum) {
  const int groups = (parts.count + kPartsAtOnce - 1) / kPartsAtOnce;
  for (std::int64_t i = first_element(); i < floats; i += element_stride()) {
    const std::int64_t left = floats - i;
    const Parts here{parts.data + i, parts.count, parts.stride};
    float4 finished[32];
    float4 value{};
    for (int group = 0; group < groups; ++group) {
      value = tree_of<kPartsAtOnce>(here, group * kPartsAtOnce, left);
      int level = 0;
      for (; ((group >> level) & 1) != 0; ++level) value = finished[level] + value;
      finished[level] = value;
    }
    // `value` is the last subtree; the larger ones that wait for it are the other bits of the
    // number of groups.
    for (int rest = groups & (groups - 1); rest != 0; rest &= rest - 1) {
      value = finished[__ffs(rest) - 1] + value;
    }
    store4(sum + i, left, value);
  }
}

}  // namespace

void l2_term(Context& context, const float* factor, const float* x, std::int64_t count,
             double* scratch, double* result) {
  l2_term_kernel<<<chunks_of(count), kThreads, 0, stream_of(context)>>>(factor, x, count, scratch,
                                                                        result);
  check_launch("l2_term");
}

void add_into(Context& context, float* dst, const float* src, std::int64_t count) {
  add_into_kernel<<<blocks_for(count), kThreads, 0, stream_of(context)>>>(dst, src, count);
  check_launch("add_into");
}

void sum_tree(Context& context, const float* parts, int count, std::int64_t stride,
              std::int64_t floats, float* sum) {
  sum_tree_kernel<<<blocks_for(floats), kThreads, 0, stream_of(context)>>>({parts, count, stride},
                                                                           floats, sum);
  check_launch("sum_tree");
}

void copy_into(Context& context, float* dst, const float* src, std::int64_t count) {
  copy_into_kernel<<<blocks_for(count), kThreads, 0, stream_of(context)>>>(dst, src, count);
  check_launch("copy_into");
}

void fill_zero(Context& context, float* dst, std::int64_t count) {
  fill_zero_kernel<<<blocks_for(count), kThreads, 0, stream_of(context)>>>(dst, count);
  check_launch("fill_zero");
}

}  // namespace lockstep::cuda
