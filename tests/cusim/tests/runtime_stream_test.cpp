#include <algorithm>
#include <thread>

#include "runtime/delays.h"
#include "runtime_kernels.h"

using namespace cusim::testing;

TEST_CASE("pauses are each stream's own, and the same in every run of a seed") {
  const auto pauses = [](std::uint64_t stream, unsigned seed) {
    cusim::Delays delays(stream, seed, 100);
    std::vector<int> all(1000);
    for (int& pause : all) pause = delays.next();
    return all;
  };
  const std::vector<int> first = pauses(1, 7);
  CHECK(first == pauses(1, 7));
  CHECK(first != pauses(2, 7));
  CHECK(first != pauses(1, 8));
  CHECK(std::count(first.begin(), first.end(), 0) > 64);       // it hurries for a while
  CHECK(*std::max_element(first.begin(), first.end()) > 100);  // and dawdles for a while
  CHECK(std::count_if(first.begin(), first.end(), [](int p) { return p > 0 && p < 100; }) > 64);
  CHECK(cusim::Delays(1, 7, 0).next() == 0);
}

TEST_CASE("a stream is busy until its work is done") {
  const TestStream stream;
  Gate gate(stream);
  CHECK(code(cudaStreamQuery(stream)) == cudaErrorNotReady);
  gate.open();
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(cudaStreamQuery(stream) == cudaSuccess);
}

TEST_CASE("streams run side by side, and an event orders them") {
  const DeviceArray<float> x({1.0f});
  const PinnedArray<float> host({0.0f});
  const TestStream first;
  const TestStream second;
  const TestEvent event;
  Gate gate(first);
  REQUIRE(launch(add, 1, 1, first, x.data(), 1.0f, 1) == cudaSuccess);
  REQUIRE(cudaEventRecord(event, first) == cudaSuccess);

  const auto copy = [&] {
    return cudaMemcpyAsync(host.data(), x.data(), 4, cudaMemcpyDeviceToHost, second);
  };
  REQUIRE(copy() == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(second) == cudaSuccess);
  CHECK(host[0] == 1);

  REQUIRE(cudaStreamWaitEvent(second, event, 0) == cudaSuccess);
  REQUIRE(copy() == cudaSuccess);
  settle();
  CHECK(code(cudaEventQuery(event)) == cudaErrorNotReady);
  CHECK(code(cudaStreamQuery(second)) == cudaErrorNotReady);
  gate.open();
  REQUIRE(cudaStreamSynchronize(second) == cudaSuccess);
  CHECK(host[0] == 2);
  CHECK(cudaEventQuery(event) == cudaSuccess);
}

TEST_CASE("who waits for an event waits for its record at that time") {
  const TestStream first;
  const TestStream second;
  const TestEvent event;
  REQUIRE(cudaStreamWaitEvent(second, event, 0) == cudaSuccess);  // not recorded yet
  REQUIRE(cudaEventRecord(event, first) == cudaSuccess);
  REQUIRE(cudaStreamWaitEvent(second, event, 0) == cudaSuccess);
  Gate gate(first);
  REQUIRE(cudaEventRecord(event, first) == cudaSuccess);  // behind the gate: not waited for
  CHECK(cudaStreamSynchronize(second) == cudaSuccess);
  CHECK(code(cudaEventQuery(event)) == cudaErrorNotReady);
}

TEST_CASE("an event may go when its record and its waits are on their way") {
  const TestStream first;
  const TestStream second;
  Gate gate(first);
  cudaEvent_t event = nullptr;
  REQUIRE(cudaEventCreate(&event) == cudaSuccess);
  REQUIRE(cudaEventRecord(event, first) == cudaSuccess);
  REQUIRE(cudaStreamWaitEvent(second, event, 0) == cudaSuccess);
  REQUIRE(cudaEventDestroy(event) == cudaSuccess);
  settle();
  CHECK(code(cudaStreamQuery(second)) == cudaErrorNotReady);
  gate.open();
  CHECK(cudaStreamSynchronize(second) == cudaSuccess);
}

TEST_CASE("events measure time in order") {
  const TestStream stream;
  const TestEvent start(cudaEventDefault);
  const TestEvent end(cudaEventDefault);
  const TestEvent untimed;
  float milliseconds = -1;
  REQUIRE(cudaEventRecord(start, stream) == cudaSuccess);
  Gate gate(stream);
  REQUIRE(cudaEventRecord(end, stream) == cudaSuccess);
  REQUIRE(cudaEventRecord(untimed, stream) == cudaSuccess);
  CHECK(code(cudaEventElapsedTime(&milliseconds, start, end)) == cudaErrorNotReady);
  gate.open();
  REQUIRE(cudaEventSynchronize(end) == cudaSuccess);
  CHECK(cudaEventElapsedTime(&milliseconds, start, end) == cudaSuccess);
  CHECK(milliseconds >= 0);
  CHECK(code(cudaEventElapsedTime(&milliseconds, start, untimed)) == 400);
}

TEST_CASE("the legacy stream waits for blocking streams and they for it") {
  const DeviceArray<float> x({0.0f});
  const PinnedArray<float> host({0.0f});
  const TestStream blocking(cudaStreamDefault);
  const TestStream free;
  const auto copy = [&](cudaStream_t stream) {
    return cudaMemcpyAsync(host.data(), x.data(), 4, cudaMemcpyDeviceToHost, stream);
  };
  SECTION("legacy after blocking") {
    Gate gate(blocking);
    REQUIRE(launch(add, 1, 1, blocking, x.data(), 1.0f, 1) == cudaSuccess);
    REQUIRE(copy(nullptr) == cudaSuccess);
    settle();
    CHECK(code(cudaStreamQuery(nullptr)) == cudaErrorNotReady);
    CHECK(cudaStreamQuery(free) == cudaSuccess);
    gate.open();
    REQUIRE(cudaStreamSynchronize(nullptr) == cudaSuccess);
    CHECK(host[0] == 1);
  }
  SECTION("blocking after legacy, non-blocking not") {
    Gate gate(nullptr);
    REQUIRE(launch(add, 1, 1, nullptr, x.data(), 1.0f, 1) == cudaSuccess);
    REQUIRE(copy(blocking) == cudaSuccess);
    settle();
    CHECK(code(cudaStreamQuery(blocking)) == cudaErrorNotReady);
    REQUIRE(copy(free) == cudaSuccess);
    CHECK(cudaStreamSynchronize(free) == cudaSuccess);
    CHECK(host[0] == 0);
    gate.open();
    REQUIRE(cudaStreamSynchronize(blocking) == cudaSuccess);
    CHECK(host[0] == 1);
  }
}

TEST_CASE("handles of another device and destroyed ones are refused") {
  const DeviceArray<float> x({0.0f});
  const TestStream stream;
  cudaStream_t gone = nullptr;
  REQUIRE(cudaStreamCreate(&gone) == cudaSuccess);
  REQUIRE(cudaStreamDestroy(gone) == cudaSuccess);
  CHECK(code(cudaStreamSynchronize(gone)) == cudaErrorInvalidResourceHandle);
  CHECK(code(cudaStreamDestroy(gone)) == cudaErrorInvalidResourceHandle);
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  const TestEvent event;
  CHECK(code(launch(add, 1, 1, stream, x.data(), 1.0f, 1)) == cudaErrorInvalidResourceHandle);
  CHECK(code(cudaEventRecord(event, stream)) == cudaErrorInvalidResourceHandle);
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
}

TEST_CASE("destroying a stream waits for its work") {
  const DeviceArray<float> x({1.0f});
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  for (int i = 0; i < 100; ++i) REQUIRE(launch(add, 1, 1, stream, x.data(), 1.0f, 1) == 0);
  REQUIRE(cudaStreamDestroy(stream) == cudaSuccess);
  CHECK(x.values() == std::vector<float>{101});
}

TEST_CASE("a host function may not call CUDA") {
  const TestStream stream;
  int result = -1;
  const auto allocate = [](void* out) {
    void* x = nullptr;
    *static_cast<int*>(out) = cudaMalloc(&x, 4);
  };
  REQUIRE(cudaLaunchHostFunc(stream, allocate, &result) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(result == cudaErrorNotPermitted);
}

TEST_CASE("each thread has its own device and its own last error") {
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  CHECK(cudaSetDevice(99) == cudaErrorInvalidDevice);
  int device = -1;
  std::thread([&] {
    CHECK(cudaGetLastError() == cudaSuccess);
    CHECK(cudaGetDevice(&device) == cudaSuccess);
  }).join();
  CHECK(device == 0);
  CHECK(cudaPeekAtLastError() == cudaErrorInvalidDevice);
  CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
  CHECK(cudaGetLastError() == cudaSuccess);
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
}
