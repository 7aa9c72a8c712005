#include "lockstep/core/cuda/probe.h"

namespace lockstep::cuda {
namespace {

__global__ void probe() {}

}  // namespace

cudaError_t probe_kernel_image() {
  cudaFuncAttributes attributes{};
  return cudaFuncGetAttributes(&attributes, probe);
}

}  // namespace lockstep::cuda
