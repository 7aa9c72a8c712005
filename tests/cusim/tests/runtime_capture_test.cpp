// What CUDA forbids during a capture; each case ends it, so that the next one starts clean.
#include <thread>

#include "runtime_kernels.h"

using namespace cusim::testing;

namespace {

/// Ends the capture of `stream`; returns the error.
int end(cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  const int result = code(cudaStreamEndCapture(stream, &graph));
  CHECK((graph != nullptr) == (result == cudaSuccess));
  if (graph) cudaGraphDestroy(graph);
  return result;
}

void begin(cudaStream_t stream, cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal) {
  REQUIRE(cudaStreamBeginCapture(stream, mode) == cudaSuccess);
}

cudaStreamCaptureStatus status(cudaStream_t stream) {
  cudaStreamCaptureStatus result{};
  REQUIRE(cudaStreamIsCapturing(stream, &result) == cudaSuccess);
  return result;
}

int malloc_code() {
  void* x = nullptr;
  const int result = code(cudaMalloc(&x, 4));
  if (x) cudaFree(x);
  return result;
}

}  // namespace

TEST_CASE("a stream says whether it is capturing") {
  const TestStream stream;
  CHECK(status(stream) == cudaStreamCaptureStatusNone);
  begin(stream);
  CHECK(status(stream) == cudaStreamCaptureStatusActive);
  CHECK(malloc_code() == 900);
  CHECK(status(stream) == cudaStreamCaptureStatusInvalidated);
  CHECK(end(stream) == 901);
  CHECK(status(stream) == cudaStreamCaptureStatusNone);
}

TEST_CASE("allocation, copies that wait and synchronisation break a capture") {
  const DeviceArray<int> x({1});
  const TestStream stream;
  const TestEvent event;
  REQUIRE(cudaEventRecord(event, stream) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  int host = 0;
  begin(stream);
  SECTION("malloc") {
    CHECK(malloc_code() == 900);
  }
  SECTION("free") {
    CHECK(code(cudaFree(x.data())) == 900);
  }
  SECTION("pinned malloc") {
    void* pinned = nullptr;
    CHECK(code(cudaMallocHost(&pinned, 4)) == 900);
  }
  SECTION("pinned free") {
    CHECK(code(cudaFreeHost(&host)) == 900);
  }
  SECTION("copy to a variable") {
    CHECK(code(cudaMemcpyToSymbol(&bias, &host, 4, 0, cudaMemcpyHostToDevice)) == 900);
  }
  SECTION("event") {
    CHECK(code(cudaEventSynchronize(event)) == 900);
  }
  SECTION("copy") {
    CHECK(code(cudaMemcpy(&host, x.data(), 4, cudaMemcpyDefault)) == 900);
  }
  SECTION("memset") {
    CHECK(code(cudaMemset(x.data(), 0, 4)) == 900);
  }
  SECTION("stream") {
    CHECK(code(cudaStreamSynchronize(stream)) == 900);
  }
  SECTION("stream query") {
    CHECK(code(cudaStreamQuery(stream)) == 900);
  }
  SECTION("device") {
    CHECK(code(cudaDeviceSynchronize()) == 900);
  }
  SECTION("event query") {
    CHECK(code(cudaEventQuery(event)) == 900);
  }
  CHECK(code(launch(add, 1, 1, stream, x.data(), 1.0f, 1)) == 901);
  CHECK(end(stream) == 901);
  CHECK(x.values() == std::vector<int>{1});
}

TEST_CASE("the mode says whom a capture forbids to allocate") {
  const TestStream stream;
  const auto elsewhere = [](cudaStreamCaptureMode mode) {
    int result = -1;
    std::thread([&] {
      REQUIRE(cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess);
      result = malloc_code();
    }).join();
    return result;
  };
  SECTION("relaxed: nobody") {
    begin(stream, cudaStreamCaptureModeRelaxed);
    CHECK(malloc_code() == 0);
    CHECK(elsewhere(cudaStreamCaptureModeGlobal) == 0);
    CHECK(end(stream) == 0);
  }
  SECTION("thread-local: the thread that began it") {
    begin(stream, cudaStreamCaptureModeThreadLocal);
    CHECK(elsewhere(cudaStreamCaptureModeGlobal) == 0);
    CHECK(malloc_code() == 900);
    CHECK(end(stream) == 901);
  }
  SECTION("global: every thread that has not opted out") {
    begin(stream, cudaStreamCaptureModeGlobal);
    CHECK(elsewhere(cudaStreamCaptureModeThreadLocal) == 0);
    CHECK(elsewhere(cudaStreamCaptureModeGlobal) == 900);
    CHECK(end(stream) == 901);
  }
  SECTION("a thread in relaxed mode may allocate during its own capture") {
    begin(stream, cudaStreamCaptureModeGlobal);
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    REQUIRE(cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess);
    CHECK(mode == cudaStreamCaptureModeGlobal);
    CHECK(malloc_code() == 0);
    REQUIRE(cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess);
    CHECK(end(stream) == 0);
  }
}

TEST_CASE("the legacy stream breaks captures of blocking streams only") {
  const DeviceArray<float> x({1.0f});
  const auto on_legacy = [&] { return code(launch(add, 1, 1, nullptr, x.data(), 1.0f, 1)); };
  SECTION("blocking") {
    const TestStream stream(cudaStreamDefault);
    begin(stream);
    CHECK(on_legacy() == 906);
    CHECK(end(stream) == 901);
  }
  SECTION("non-blocking") {
    const TestStream stream;
    begin(stream);
    CHECK(on_legacy() == 0);
    CHECK(end(stream) == 0);
  }
  SECTION("it cannot be captured, nor join a capture") {
    CHECK(code(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeRelaxed)) == 900);
    const TestStream stream;
    const TestEvent event;
    begin(stream);
    REQUIRE(cudaEventRecord(event, stream) == cudaSuccess);
    CHECK(code(cudaStreamWaitEvent(nullptr, event, 0)) == 906);
    CHECK(end(stream) == 901);
  }
}

TEST_CASE("forks join a capture by events and must come back") {
  const DeviceArray<float> x({0.0f});
  const TestStream origin;
  const TestStream fork;
  const TestEvent forked;
  const TestEvent joined;
  begin(origin);
  REQUIRE(launch(add, 1, 1, origin, x.data(), 1.0f, 1) == cudaSuccess);
  REQUIRE(cudaEventRecord(forked, origin) == cudaSuccess);
  REQUIRE(cudaStreamWaitEvent(fork, forked, 0) == cudaSuccess);
  CHECK(status(fork) == cudaStreamCaptureStatusActive);
  REQUIRE(launch(add, 1, 1, fork, x.data(), 1.0f, 1) == cudaSuccess);
  SECTION("joined") {
    REQUIRE(cudaEventRecord(joined, fork) == cudaSuccess);
    REQUIRE(cudaStreamWaitEvent(origin, joined, 0) == cudaSuccess);
    CHECK(end(origin) == 0);
  }
  SECTION("left open") {
    CHECK(end(origin) == 904);
  }
  SECTION("ended on the fork") {
    CHECK(end(fork) == 903);
    CHECK(end(origin) == 904);
  }
  SECTION("destroyed on the way") {
    {
      const TestStream late;
      REQUIRE(cudaStreamWaitEvent(late, forked, 0) == cudaSuccess);
    }
    CHECK(end(origin) == 901);
  }
  CHECK(status(fork) == cudaStreamCaptureStatusNone);
  CHECK(x.values() == std::vector<float>{0});
}

TEST_CASE("two captures cannot merge") {
  const TestStream first;
  const TestStream second;
  const TestEvent event;
  begin(first);
  begin(second);
  REQUIRE(cudaEventRecord(event, first) == cudaSuccess);
  CHECK(code(cudaStreamWaitEvent(second, event, 0)) == 902);
  CHECK(end(first) == 901);
  CHECK(end(second) == 901);
}

TEST_CASE("a capture cannot depend on work outside it") {
  const TestStream stream;
  const TestStream outside;
  const TestEvent event;
  REQUIRE(cudaEventRecord(event, outside) == cudaSuccess);
  begin(stream);
  CHECK(code(cudaStreamWaitEvent(stream, event, 0)) == 905);
  CHECK(end(stream) == 901);
}

TEST_CASE("a captured event cannot be waited for by the host, nor outlive its capture") {
  const TestStream stream;
  const TestStream other;
  const TestEvent event;
  begin(stream);
  REQUIRE(cudaEventRecord(event, stream) == cudaSuccess);
  SECTION("synchronize") {
    CHECK(code(cudaEventSynchronize(event)) == 907);
    CHECK(end(stream) == 901);
  }
  SECTION("query") {
    CHECK(code(cudaEventQuery(event)) == 907);
    CHECK(end(stream) == 901);
  }
  SECTION("after the capture") {
    CHECK(end(stream) == 0);
    CHECK(code(cudaStreamWaitEvent(other, event, 0)) == 907);
    CHECK(code(cudaEventSynchronize(event)) == 907);
    REQUIRE(cudaEventRecord(event, stream) == cudaSuccess);
    CHECK(cudaEventSynchronize(event) == cudaSuccess);
  }
}

TEST_CASE("the thread that began a capture ends it") {
  const TestStream stream;
  const auto end_elsewhere = [&] {
    int result = -1;
    std::thread([&] { result = end(stream); }).join();
    return result;
  };
  SECTION("thread-local") {
    begin(stream);
    CHECK(end_elsewhere() == 908);
    CHECK(end(stream) == 0);
  }
  SECTION("relaxed") {
    begin(stream, cudaStreamCaptureModeRelaxed);
    CHECK(end_elsewhere() == 0);
  }
}

TEST_CASE("beginning twice and ending without a beginning are refused") {
  const TestStream stream;
  CHECK(end(stream) == cudaErrorIllegalState);
  begin(stream);
  CHECK(code(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal)) ==
        cudaErrorIllegalState);
  CHECK(end(stream) == 0);
}
