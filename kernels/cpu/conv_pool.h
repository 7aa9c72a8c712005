// What the files of the fused convolution and pooling share: their several ways.
#pragma once

#include "lockstep/kernels/cpu/conv_image.h"

namespace lockstep::cpu::LOCKSTEP_CPU_SET {

/// The arguments of conv_pool_backward.
struct ConvPoolGradients {
  const WindowGeometry& conv;
  const WindowGeometry& pool;
  bool relu;
  const float* x;
  const float* w;
  const float* y;
  const std::uint8_t* argmax;
  const float* dy;
  float* dw;
  float* db;
  bool accumulate;
  float* dx;
};

/// The gradients of the windows of one vector of samples: dy, or 0 where ReLU has cut y off.
LOCKSTEP_INLINE Floats window_gradient(const float* dy, const float* y, bool relu) {
  const Floats gradient = load(dy);
  return relu ? select(load(y) <= 0, Floats{}, gradient) : gradient;
}

/// Forward for kernels of 3 x 3, stride 1, and windows of 2 x 2.
void conv_pool_forward_winograd(const WindowGeometry& conv, const WindowGeometry& pool, bool relu,
                                const float* x, const float* w, const float* b, float* y,
                                std::uint8_t* argmax, void* workspace);
std::size_t conv_pool_winograd_bytes(const WindowGeometry& conv);

/// For few channels, in registers: forward for windows of 2 x 2; gradients without dx.
void conv_pool_forward_few(const WindowGeometry& conv, const WindowGeometry& pool, bool relu,
                           const float* x, const float* w, const float* b, float* y,
                           std::uint8_t* argmax, void* workspace);
void conv_pool_backward_few(const ConvPoolGradients& all, void* workspace);
std::size_t conv_pool_few_bytes(const WindowGeometry& conv);

/// Visits the winning places alone, sample by sample.
void conv_pool_backward_sparse(const ConvPoolGradients& all, void* workspace);
std::size_t conv_pool_sparse_bytes(const WindowGeometry& conv, const WindowGeometry& pool);

}  // namespace lockstep::cpu::LOCKSTEP_CPU_SET
