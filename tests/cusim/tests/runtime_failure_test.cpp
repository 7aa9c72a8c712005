// A device that fails stays failed for the life of the process, so every case here takes its own.
#include "runtime/device_api.h"
#include "runtime_kernels.h"

using namespace cusim::testing;

namespace {

/// Makes the next unused device current; device 0 is left alone.
int fresh_device() {
  static int last = 0;
  REQUIRE(cudaSetDevice(++last) == cudaSuccess);
  return last;
}

/// What a kernel leaves on a device of its own.
template <class... Arguments>
int failure_of(Stub& kernel, dim3 block, Arguments... arguments) {
  fresh_device();
  const TestStream stream;
  REQUIRE(launch(kernel, 1, block, stream, arguments...) == cudaSuccess);
  return code(cudaStreamSynchronize(stream));
}

}  // namespace

TEST_CASE("a kernel that fails shows at the next synchronisation, and ever after") {
  fresh_device();
  const DeviceArray<float> x({1.0f});
  const TestStream stream;
  const TestEvent event;
  cusim_reset_counters();
  Gate gate(stream);
  REQUIRE(launch(throws, 1, 1, stream, 719) == cudaSuccess);
  REQUIRE(launch(add, 1, 1, stream, x.data(), 1.0f, 1) == cudaSuccess);
  REQUIRE(cudaEventRecord(event, stream) == cudaSuccess);
  CHECK(cudaGetLastError() == cudaSuccess);
  gate.open();
  CHECK(cudaEventSynchronize(event) == cudaErrorLaunchFailure);
  CHECK(cusim_counter("kernels_run") == 1);  // what was behind it did not run
  for (int i = 0; i < 2; ++i) CHECK(cudaGetLastError() == cudaErrorLaunchFailure);
  void* y = nullptr;
  CHECK(cudaMalloc(&y, 4) == cudaErrorLaunchFailure);
  CHECK(cudaStreamQuery(stream) == cudaErrorLaunchFailure);
  CHECK(cudaDeviceSynchronize() == cudaErrorLaunchFailure);
  CHECK(launch(add, 1, 1, stream, x.data(), 1.0f, 1) == cudaErrorLaunchFailure);
  int host = 0;
  CHECK(cudaMemcpy(&host, x.data(), 4, cudaMemcpyDeviceToHost) == cudaErrorLaunchFailure);

  REQUIRE(cudaSetDevice(0) == cudaSuccess);
  CHECK(cudaGetLastError() == cudaErrorLaunchFailure);  // what this thread's last call returned
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
}

TEST_CASE("destruction works on a failed device, while work is still queued") {
  const int device = fresh_device();
  const std::size_t before = cusim_live_bytes(device);
  const TestStream other;
  {
    const DeviceArray<float> x({1.0f});
    const TestStream stream;
    const TestEvent event;
    Gate gate(stream);
    REQUIRE(launch(throws, 1, 1, stream, 700) == cudaSuccess);
    for (int i = 0; i < 10; ++i) {
      REQUIRE(launch(add, 1, 1, stream, x.data(), 1.0f, 1) == cudaSuccess);
    }
    REQUIRE(cudaEventRecord(event, stream) == cudaSuccess);
    REQUIRE(cudaStreamWaitEvent(other, event, 0) == cudaSuccess);
  }
  CHECK(cusim_live_bytes(device) == before);
  CHECK(cudaStreamSynchronize(other) == cudaErrorIllegalAddress);
}

TEST_CASE("kernels that touch what is not theirs fail with 700") {
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
  const DeviceArray<float> elsewhere({1.0f});
  SECTION("memory of another device") {
    CHECK(failure_of(add, 1, elsewhere.data(), 1.0f, 1) == 700);
  }
  SECTION("past the end") {
    fresh_device();
    const DeviceArray<float> x({1.0f});
    REQUIRE(launch(add, 1, 2, nullptr, x.data(), 1.0f, 2) == cudaSuccess);
    CHECK(code(cudaDeviceSynchronize()) == 700);
  }
  SECTION("freed memory") {
    fresh_device();
    float* x = nullptr;
    REQUIRE(cudaMalloc(reinterpret_cast<void**>(&x), 4) == cudaSuccess);
    REQUIRE(cudaFree(x) == cudaSuccess);
    REQUIRE(launch(add, 1, 1, nullptr, x, 1.0f, 1) == cudaSuccess);
    CHECK(code(cudaDeviceSynchronize()) == 700);
  }
}

TEST_CASE("a graph whose memory is gone fails with 700") {
  fresh_device();
  const TestStream stream;
  void* x = nullptr;
  REQUIRE(cudaMalloc(&x, 4) == cudaSuccess);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  SECTION("memset") {
    REQUIRE(cudaMemsetAsync(x, 0, 4, stream) == cudaSuccess);
  }
  SECTION("copy") {
    int host = 0;
    REQUIRE(cudaMemcpyAsync(x, &host, 4, cudaMemcpyHostToDevice, stream) == cudaSuccess);
  }
  REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  REQUIRE(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
  REQUIRE(cudaFree(x) == cudaSuccess);
  REQUIRE(cudaGraphLaunch(exec, stream) == cudaSuccess);
  CHECK(cudaStreamSynchronize(stream) == cudaErrorIllegalAddress);
  CHECK(cudaGraphExecDestroy(exec) == cudaSuccess);
  CHECK(cudaGraphDestroy(graph) == cudaSuccess);
}

TEST_CASE("blocks that cannot go on fail with 719 in place of hanging") {
  SECTION("lanes that have returned") {
    CHECK(failure_of(half_warp_shuffles, 32) == 719);
  }
  SECTION("lanes at another barrier") {
    CHECK(failure_of(half_block_waits, 32) == 719);
  }
}

TEST_CASE("libraries' pointers are checked when their operation executes") {
  const int device = fresh_device();
  const TestStream stream;
  const DeviceArray<float> x({1.0f, 2.0f});
  CHECK(cusim::host_pointer(x.data(), 2, device, "x") != nullptr);
  REQUIRE_THROWS_AS(cusim::host_pointer(x.data(), 3, device, "x"), cusim::KernelError);
  REQUIRE_THROWS_AS(cusim::host_pointer(x.data(), 1, 0, "x"), cusim::KernelError);
  cusim_reset_counters();
  REQUIRE(cusim::enqueue(stream, {.kind = cusim::Kind::library, .name = "gemm", .run = [&] {
                                    cusim::host_pointer(x.data(), 3, device, "gemm");
                                  }}) == cudaSuccess);
  CHECK(cusim_counter("library_calls") == 1);
  CHECK(cusim_counter("calls") == 1);
  CHECK(cudaStreamSynchronize(stream) == cudaErrorIllegalAddress);
}
