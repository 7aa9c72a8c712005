// Stream capture and graphs of the CUDA runtime. Each case ends its captures, so that the next one
// starts clean. The codes are those that driver_types.h gives for the very mistake; the programming
// guide says of all of them that they invalidate the capture, whose end then fails with 901 and
// gives no graph.
#include <algorithm>

#include "calibration/support.h"

namespace lockstep::calibration {
namespace {

void begin(cudaStream_t stream, cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal) {
  REQUIRE(cudaStreamBeginCapture(stream, mode) == cudaSuccess);
}

/// Ends the capture of `stream`; the code.
int end(cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  const int result = code(cudaStreamEndCapture(stream, &graph));
  CHECK((graph != nullptr) == (result == cudaSuccess));
  if (graph != nullptr) CHECK(cudaGraphDestroy(graph) == cudaSuccess);
  return result;
}

cudaStreamCaptureStatus status(cudaStream_t stream) {
  cudaStreamCaptureStatus result{};
  REQUIRE(cudaStreamIsCapturing(stream, &result) == cudaSuccess);
  return result;
}

int malloc_code() {
  void* memory = nullptr;
  const int result = code(cudaMalloc(&memory, 4));
  if (memory != nullptr) cudaFree(memory);
  return result;
}

/// The graph of what `work` puts on a stream.
class Captured {
 public:
  template <class Work>
  Captured(cudaStream_t stream, Work work) {
    begin(stream);
    work();
    REQUIRE(cudaStreamEndCapture(stream, &graph_) == cudaSuccess);
    REQUIRE(graph_ != nullptr);
  }
  ~Captured() { cudaGraphDestroy(graph_); }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;
  operator cudaGraph_t() const { return graph_; }  // NOLINT: it is the handle in all but name

 private:
  cudaGraph_t graph_ = nullptr;
};

}  // namespace

TEST_CASE("cudaStreamIsCapturing: none, active, invalidated, none") {
  const Stream stream;
  CHECK(status(stream) == cudaStreamCaptureStatusNone);
  begin(stream);
  CHECK(status(stream) == cudaStreamCaptureStatusActive);
  CHECK(malloc_code() == cudaErrorStreamCaptureUnsupported);
  CHECK(status(stream) == cudaStreamCaptureStatusInvalidated);
  CHECK(end(stream) == cudaErrorStreamCaptureInvalidated);
  CHECK(status(stream) == cudaStreamCaptureStatusNone);
}

TEST_CASE("what waits for a capturing stream, or looks at it, breaks the capture") {
  const Buffer<float> x(std::vector<float>{1});
  const Stream stream;
  begin(stream);
  SECTION("cudaStreamSynchronize") {
    CHECK(code(cudaStreamSynchronize(stream)) == cudaErrorStreamCaptureUnsupported);
  }
  SECTION("cudaStreamQuery") {
    CHECK(code(cudaStreamQuery(stream)) == cudaErrorStreamCaptureUnsupported);
  }
  SECTION("cudaDeviceSynchronize") {
    CHECK(code(cudaDeviceSynchronize()) == cudaErrorStreamCaptureUnsupported);
  }
  SECTION("cudaFree, which the guide does not name: only that it fails") {
    void* other = x.get();
    CHECK(refused(cudaFree(other)));
  }
  CHECK(refused(add(stream, x.get(), 1)));
  CHECK(end(stream) == cudaErrorStreamCaptureInvalidated);
  CHECK(x.read() == std::vector<float>{1});
}

TEST_CASE("cudaMemGetInfo leaves a capture alone") {
  const Stream stream;
  begin(stream);
  std::size_t free = 0;
  std::size_t total = 0;
  CHECK(cudaMemGetInfo(&free, &total) == cudaSuccess);
  CHECK(status(stream) == cudaStreamCaptureStatusActive);
  CHECK(end(stream) == cudaSuccess);
}

TEST_CASE("cudaThreadExchangeStreamCaptureMode: whom a capture forbids to allocate") {
  const Stream stream;
  const auto elsewhere = [](cudaStreamCaptureMode mode) {
    int result = -1;
    std::thread([&] {
      cudaThreadExchangeStreamCaptureMode(&mode);
      result = malloc_code();
    }).join();
    return result;
  };
  SECTION("relaxed: nobody") {
    begin(stream, cudaStreamCaptureModeRelaxed);
    CHECK(malloc_code() == cudaSuccess);
    CHECK(elsewhere(cudaStreamCaptureModeGlobal) == cudaSuccess);
    CHECK(end(stream) == cudaSuccess);
  }
  SECTION("thread-local: the thread that began it") {
    begin(stream, cudaStreamCaptureModeThreadLocal);
    CHECK(elsewhere(cudaStreamCaptureModeGlobal) == cudaSuccess);
    CHECK(malloc_code() == cudaErrorStreamCaptureUnsupported);
    CHECK(end(stream) == cudaErrorStreamCaptureInvalidated);
  }
  SECTION("global: every thread that has not opted out") {
    begin(stream, cudaStreamCaptureModeGlobal);
    CHECK(elsewhere(cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    CHECK(elsewhere(cudaStreamCaptureModeGlobal) == cudaErrorStreamCaptureUnsupported);
    CHECK(end(stream) == cudaErrorStreamCaptureInvalidated);
  }
  SECTION("a thread in relaxed mode may") {
    begin(stream, cudaStreamCaptureModeGlobal);
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    REQUIRE(cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess);
    CHECK(mode == cudaStreamCaptureModeGlobal);
    CHECK(malloc_code() == cudaSuccess);
    REQUIRE(cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess);
    CHECK(mode == cudaStreamCaptureModeRelaxed);
    CHECK(end(stream) == cudaSuccess);
  }
}

TEST_CASE("work on the legacy stream breaks the capture of a blocking stream only") {
  const Buffer<float> x(1);
  REQUIRE(add(nullptr, x.get(), 0) == cudaSuccess);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  SECTION("blocking") {
    const BlockingStream stream;
    begin(stream);
    CHECK(code(add(nullptr, x.get(), 1)) == cudaErrorStreamCaptureImplicit);
    CHECK(end(stream) == cudaErrorStreamCaptureInvalidated);
  }
  SECTION("non-blocking") {
    const Stream stream;
    begin(stream);
    CHECK(code(add(nullptr, x.get(), 1)) == cudaSuccess);
    CHECK(end(stream) == cudaSuccess);
    CHECK(x.read() == std::vector<float>{1});
  }
}

TEST_CASE("cudaStreamBeginCapture refuses the legacy stream and a stream that captures already") {
  CHECK(refused(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeRelaxed)));
  const Stream stream;
  begin(stream);
  CHECK(refused(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal)));
  end(stream);  // whether that has broken the first capture is not written
  CHECK(status(stream) == cudaStreamCaptureStatusNone);
}

TEST_CASE("cudaStreamEndCapture: not without a beginning, nor with work left on a fork") {
  const Buffer<float> x(1);
  const Stream origin;
  const Stream fork;
  const Event forked;
  const Event joined;
  CHECK(refused(static_cast<cudaError_t>(end(origin))));
  begin(origin);
  REQUIRE(cudaEventRecord(forked, origin) == cudaSuccess);
  REQUIRE(cudaStreamWaitEvent(fork, forked, 0) == cudaSuccess);
  CHECK(status(fork) == cudaStreamCaptureStatusActive);
  REQUIRE(add(fork, x.get(), 1) == cudaSuccess);
  SECTION("joined") {
    REQUIRE(cudaEventRecord(joined, fork) == cudaSuccess);
    REQUIRE(cudaStreamWaitEvent(origin, joined, 0) == cudaSuccess);
    CHECK(end(origin) == cudaSuccess);
  }
  SECTION("left open") {
    CHECK(end(origin) == cudaErrorStreamCaptureUnjoined);
  }
  SECTION("ended on the fork") {
    CHECK(end(fork) == cudaErrorStreamCaptureUnmatched);
    end(origin);
  }
  CHECK(status(origin) == cudaStreamCaptureStatusNone);
  CHECK(status(fork) == cudaStreamCaptureStatusNone);
  CHECK(x.read() == std::vector<float>{0});
}

TEST_CASE("two captures cannot merge") {
  const Stream first;
  const Stream second;
  const Event event;
  begin(first);
  begin(second);
  REQUIRE(cudaEventRecord(event, first) == cudaSuccess);
  CHECK(code(cudaStreamWaitEvent(second, event, 0)) == cudaErrorStreamCaptureMerge);
  CHECK(end(first) == cudaErrorStreamCaptureInvalidated);
  CHECK(end(second) == cudaErrorStreamCaptureInvalidated);
}

TEST_CASE("a capture cannot depend on work outside it") {
  const Stream stream;
  const Stream outside;
  const Event event;
  REQUIRE(cudaEventRecord(event, outside) == cudaSuccess);
  begin(stream);
  CHECK(code(cudaStreamWaitEvent(stream, event, 0)) == cudaErrorStreamCaptureIsolation);
  CHECK(end(stream) == cudaErrorStreamCaptureInvalidated);
}

TEST_CASE("the host can neither query nor await an event that was recorded in a capture") {
  const Stream stream;
  const Event event;
  begin(stream);
  REQUIRE(cudaEventRecord(event, stream) == cudaSuccess);
  SECTION("cudaEventSynchronize") {
    CHECK(code(cudaEventSynchronize(event)) == cudaErrorCapturedEvent);
  }
  SECTION("cudaEventQuery") {
    CHECK(code(cudaEventQuery(event)) == cudaErrorCapturedEvent);
  }
  end(stream);
  REQUIRE(cudaEventRecord(event, stream) == cudaSuccess);
  CHECK(cudaEventSynchronize(event) == cudaSuccess);
}

TEST_CASE("the thread that began a capture ends it, unless it is relaxed") {
  const Stream stream;
  const auto end_elsewhere = [&] {
    int result = -1;
    std::thread([&] {
      cudaGraph_t graph = nullptr;
      result = static_cast<int>(cudaStreamEndCapture(stream, &graph));
      if (graph != nullptr) cudaGraphDestroy(graph);
    }).join();
    return result;
  };
  SECTION("thread-local") {
    begin(stream);
    CHECK(end_elsewhere() == cudaErrorStreamCaptureWrongThread);
    end(stream);
  }
  SECTION("relaxed") {
    begin(stream, cudaStreamCaptureModeRelaxed);
    CHECK(end_elsewhere() == cudaSuccess);
  }
  CHECK(status(stream) == cudaStreamCaptureStatusNone);
}

TEST_CASE(
    "cudaGraphInstantiate, cudaGraphUpload, cudaGraphLaunch: arguments are the captured ones") {
  const Buffer<float> x(1);
  const Stream stream;
  cudaGraphExec_t exec = nullptr;
  {
    const Captured graph(stream, [&] {
      float value = 1;
      REQUIRE(add(stream, x.get(), value) == cudaSuccess);
      value = 100;
    });
    CHECK(x.read() == std::vector<float>{0});
    REQUIRE(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
  }  // an executable graph needs its graph no longer
  REQUIRE(cudaGraphUpload(exec, stream) == cudaSuccess);
  for (int i = 0; i < 3; ++i) REQUIRE(cudaGraphLaunch(exec, stream) == cudaSuccess);
  REQUIRE(stream.wait() == cudaSuccess);
  CHECK(x.read() == std::vector<float>{3});
  CHECK(cudaGraphExecDestroy(exec) == cudaSuccess);
}

TEST_CASE("a captured copy reads pinned memory at each launch") {
  const Buffer<float> x(1);
  const Pinned host(1);
  const Stream stream;
  host.get()[0] = 1;
  const Graph graph(stream, [&] {
    REQUIRE(cudaMemcpyAsync(x.get(), host.get(), 4, cudaMemcpyHostToDevice, stream) == cudaSuccess);
  });
  for (const float value : {7.0F, 8.0F}) {
    host.get()[0] = value;
    REQUIRE(graph.launch(stream) == cudaSuccess);
    REQUIRE(stream.wait() == cudaSuccess);
    CHECK(x.read() == std::vector<float>{value});
  }
}

TEST_CASE("launches of one graph are in order on whatever streams") {
  const Buffer<float> x(1);
  const Stream first;
  const Stream second;
  const Graph graph(first, [&] { REQUIRE(add(first, x.get(), 1) == cudaSuccess); });
  REQUIRE(graph.launch(first) == cudaSuccess);
  REQUIRE(first.wait() == cudaSuccess);
  Gate gate(first);
  REQUIRE(graph.launch(first) == cudaSuccess);
  REQUIRE(graph.launch(second) == cudaSuccess);
  CHECK(code(cudaStreamQuery(second)) == cudaErrorNotReady);
  gate.open();
  REQUIRE(second.wait() == cudaSuccess);
  CHECK(x.read() == std::vector<float>{3});
}

TEST_CASE("cudaGraphGetNodes and cudaGraphNodeGetType list what was captured") {
  const Buffer<float> x(1);
  const Pinned host(1);
  const Stream stream;
  const Captured graph(stream, [&] {
    REQUIRE(cudaMemsetAsync(x.get(), 0, 4, stream) == cudaSuccess);
    REQUIRE(cudaMemcpyAsync(x.get(), host.get(), 4, cudaMemcpyHostToDevice, stream) == cudaSuccess);
    REQUIRE(add(stream, x.get(), 1) == cudaSuccess);
    REQUIRE(cudaLaunchHostFunc(
                stream, [](void*) {}, nullptr) == cudaSuccess);
  });
  std::size_t count = 0;
  REQUIRE(cudaGraphGetNodes(graph, nullptr, &count) == cudaSuccess);
  REQUIRE(count == 4);
  count = 3;
  cudaGraphNode_t first[3] = {};
  REQUIRE(cudaGraphGetNodes(graph, first, &count) == cudaSuccess);
  CHECK(count == 3);
  CHECK(first[2] != nullptr);
  count = 6;
  const auto nowhere = reinterpret_cast<cudaGraphNode_t>(&count);
  std::vector<cudaGraphNode_t> nodes(count, nowhere);
  REQUIRE(cudaGraphGetNodes(graph, nodes.data(), &count) == cudaSuccess);
  REQUIRE(count == 4);
  CHECK(nodes[4] == nullptr);
  CHECK(nodes[5] == nullptr);
  std::vector<cudaGraphNodeType> types(count);
  for (std::size_t i = 0; i < count; ++i) {
    REQUIRE(cudaGraphNodeGetType(nodes[i], &types[i]) == cudaSuccess);
  }
  std::sort(types.begin(), types.end());  // the order of the list is not written
  std::vector<cudaGraphNodeType> wanted{cudaGraphNodeTypeKernel, cudaGraphNodeTypeMemcpy,
                                        cudaGraphNodeTypeMemset, cudaGraphNodeTypeHost};
  std::sort(wanted.begin(), wanted.end());
  CHECK(types == wanted);
}

}  // namespace lockstep::calibration
