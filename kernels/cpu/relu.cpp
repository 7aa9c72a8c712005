// ReLU over a run of floats in any layout.
#include "lockstep/kernels/cpu/set.h"
#include "lockstep/kernels/cpu/simd.h"

namespace lockstep::cpu::LOCKSTEP_CPU_SET {
namespace {

// Comparing with <= lets NaN through and turns -0 into 0. The output may be the input: a vector is
// read whole before it is written.
void forward(std::int64_t count, const float* x, float* y) {
  const Floats zero{};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const Floats value = load(x + i);
    store(y + i, select(value <= zero, zero, value));
  }
  for (; i < count; ++i) y[i] = x[i] <= 0 ? 0.0F : x[i];
}

void backward(std::int64_t count, const float* y, const float* dy, float* dx) {
  const Floats zero{};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    store(dx + i, select(load(y + i) <= zero, zero, load(dy + i)));
  }
  for (; i < count; ++i) dx[i] = y[i] <= 0 ? 0.0F : dy[i];
}

}  // namespace

const ReluKernels relu_kernels = {.forward = forward, .backward = backward};

}  // namespace lockstep::cpu::LOCKSTEP_CPU_SET
