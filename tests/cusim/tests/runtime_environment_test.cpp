// Run by check_reports.cmake, with faults and reports asked for by the environment.
#include "runtime_kernels.h"

using namespace cusim::testing;

TEST_CASE("faults of the environment", "[.]") {
  void* x = nullptr;
  REQUIRE(cudaMalloc(&x, 4) == cudaSuccess);
  REQUIRE(cudaMemset(x, 0, 4) == cudaSuccess);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  void* y = nullptr;
  CHECK(code(cudaMalloc(&y, 4)) == 2);  // the first 4 bytes are still alive at the end
}
