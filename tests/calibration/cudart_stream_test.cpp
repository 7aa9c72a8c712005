// Streams, events and host functions of the CUDA runtime.
#include "calibration/support.h"

namespace lockstep::calibration {

TEST_CASE("cudaStreamCreate, cudaStreamCreateWithFlags and cudaStreamGetFlags") {
  cudaStream_t stream = nullptr;
  unsigned flags = 99;
  REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  REQUIRE(cudaStreamGetFlags(stream, &flags) == cudaSuccess);
  CHECK(flags == cudaStreamDefault);
  CHECK(cudaStreamDestroy(stream) == cudaSuccess);
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  REQUIRE(cudaStreamGetFlags(stream, &flags) == cudaSuccess);
  CHECK(flags == cudaStreamNonBlocking);
  CHECK(cudaStreamDestroy(stream) == cudaSuccess);
  CHECK(code(cudaStreamCreateWithFlags(&stream, 0x4000)) == cudaErrorInvalidValue);
}

TEST_CASE("cudaStreamCreateWithPriority takes what cudaDeviceGetStreamPriorityRange says") {
  int least = 0;
  int greatest = 0;
  REQUIRE(cudaDeviceGetStreamPriorityRange(&least, &greatest) == cudaSuccess);
  CHECK(greatest <= least);  // lower numbers are higher priorities
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest) == cudaSuccess);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(cudaStreamDestroy(stream) == cudaSuccess);
}

TEST_CASE("cudaStreamQuery is not ready until the work is done, cudaStreamSynchronize waits") {
  const Stream stream;
  CHECK(cudaStreamQuery(stream) == cudaSuccess);
  Gate gate(stream);
  CHECK(code(cudaStreamQuery(stream)) == cudaErrorNotReady);
  gate.open();
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(cudaStreamQuery(stream) == cudaSuccess);
}

TEST_CASE("cudaStreamDestroy lets work that is on its way finish") {
  const Buffer<float> x(1);
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  for (int i = 0; i < 20; ++i) REQUIRE(add(stream, x.get(), 1) == cudaSuccess);
  REQUIRE(cudaStreamDestroy(stream) == cudaSuccess);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(x.read() == std::vector<float>{20});
}

TEST_CASE("cudaLaunchHostFunc runs in the order of its stream") {
  const Buffer<float> x(std::vector<float>{7});
  const Pinned host(1);
  host.get()[0] = 0;
  const Stream stream;
  float seen = 0;
  struct Look {
    const float* from;
    float* to;
  } look{host.get(), &seen};
  REQUIRE(cudaMemcpyAsync(host.get(), x.get(), 4, cudaMemcpyDeviceToHost, stream) == cudaSuccess);
  const auto copy = [](void* given) {
    const Look& both = *static_cast<Look*>(given);
    *both.to = *both.from;
  };
  REQUIRE(cudaLaunchHostFunc(stream, copy, &look) == cudaSuccess);
  REQUIRE(stream.wait() == cudaSuccess);
  CHECK(seen == 7);
}

TEST_CASE("the legacy stream waits for blocking streams and not for others") {
  const Buffer<float> x(1);
  REQUIRE(add(nullptr, x.get(), 1) == cudaSuccess);  // loads the kernel before the gate
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  SECTION("blocking") {
    const BlockingStream stream;
    Gate gate(stream);
    REQUIRE(add(nullptr, x.get(), 1) == cudaSuccess);
    CHECK(code(cudaStreamQuery(nullptr)) == cudaErrorNotReady);
    gate.open();
    REQUIRE(cudaStreamSynchronize(nullptr) == cudaSuccess);
    CHECK(x.read() == std::vector<float>{2});
  }
  SECTION("non-blocking") {
    const Stream stream;
    Gate gate(stream);
    REQUIRE(add(nullptr, x.get(), 1) == cudaSuccess);
    CHECK(cudaStreamSynchronize(nullptr) == cudaSuccess);
    gate.open();
  }
}

TEST_CASE("cudaEventCreate: an event that was never recorded has happened") {
  cudaEvent_t event = nullptr;
  REQUIRE(cudaEventCreate(&event) == cudaSuccess);
  CHECK(cudaEventQuery(event) == cudaSuccess);
  CHECK(cudaEventSynchronize(event) == cudaSuccess);
  CHECK(cudaEventDestroy(event) == cudaSuccess);
}

TEST_CASE("cudaEventCreateWithFlags refuses flags that there are not") {
  cudaEvent_t event = nullptr;
  CHECK(code(cudaEventCreateWithFlags(&event, 0x4000)) == cudaErrorInvalidValue);
}

TEST_CASE("cudaEventRecord, cudaEventQuery and cudaEventSynchronize follow the stream") {
  const Stream stream;
  const Event event;
  Gate gate(stream);
  REQUIRE(cudaEventRecord(event, stream) == cudaSuccess);
  CHECK(code(cudaEventQuery(event)) == cudaErrorNotReady);
  gate.open();
  CHECK(cudaEventSynchronize(event) == cudaSuccess);
  CHECK(cudaEventQuery(event) == cudaSuccess);
}

TEST_CASE("cudaEventDestroy lets a record on its way finish") {
  const Stream stream;
  Gate gate(stream);
  cudaEvent_t event = nullptr;
  REQUIRE(cudaEventCreateWithFlags(&event, cudaEventDisableTiming) == cudaSuccess);
  REQUIRE(cudaEventRecord(event, stream) == cudaSuccess);
  CHECK(cudaEventDestroy(event) == cudaSuccess);
  gate.open();
  CHECK(stream.wait() == cudaSuccess);
}

TEST_CASE("cudaStreamWaitEvent orders two streams by the event's record at that time") {
  const Buffer<float> x(std::vector<float>{1});
  const Pinned host(1);
  host.get()[0] = 0;
  const Stream first;
  const Stream second;
  const Event event;
  REQUIRE(add(first, x.get(), 0) == cudaSuccess);  // loads the kernel before the gate
  REQUIRE(first.wait() == cudaSuccess);
  REQUIRE(cudaStreamWaitEvent(second, event, 0) == cudaSuccess);  // not recorded: no wait
  CHECK(second.wait() == cudaSuccess);
  Gate gate(first);
  REQUIRE(add(first, x.get(), 1) == cudaSuccess);
  REQUIRE(cudaEventRecord(event, first) == cudaSuccess);
  REQUIRE(cudaStreamWaitEvent(second, event, 0) == cudaSuccess);
  REQUIRE(cudaMemcpyAsync(host.get(), x.get(), 4, cudaMemcpyDeviceToHost, second) == cudaSuccess);
  CHECK(code(cudaStreamQuery(second)) == cudaErrorNotReady);
  gate.open();
  REQUIRE(second.wait() == cudaSuccess);
  CHECK(host.get()[0] == 2);
}

TEST_CASE("cudaEventElapsedTime: milliseconds, once both have happened") {
  const Stream stream;
  const Event start(cudaEventDefault);
  const Event end(cudaEventDefault);
  const Event untimed;
  float milliseconds = -1;
  CHECK(code(cudaEventElapsedTime(&milliseconds, start, end)) == cudaErrorInvalidResourceHandle);
  REQUIRE(cudaEventRecord(start, stream) == cudaSuccess);
  Gate gate(stream);
  REQUIRE(cudaEventRecord(end, stream) == cudaSuccess);
  REQUIRE(cudaEventRecord(untimed, stream) == cudaSuccess);
  CHECK(code(cudaEventElapsedTime(&milliseconds, start, end)) == cudaErrorNotReady);
  gate.open();
  REQUIRE(stream.wait() == cudaSuccess);
  CHECK(cudaEventElapsedTime(&milliseconds, start, end) == cudaSuccess);
  CHECK(milliseconds >= 0);
  CHECK(code(cudaEventElapsedTime(&milliseconds, start, untimed)) ==
        cudaErrorInvalidResourceHandle);
}

TEST_CASE("launches and records need a stream of the right device") {
  // Programming guide, "Stream and Event Behavior": both fail. With one device there is none such.
  if (device_count() < 2) return;
  const Buffer<float> x(1);
  const Stream stream;
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  {
    const Event event;
    CHECK(refused(add(stream, x.get(), 1)));
    CHECK(refused(cudaEventRecord(event, stream)));
  }
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
}

}  // namespace lockstep::calibration
