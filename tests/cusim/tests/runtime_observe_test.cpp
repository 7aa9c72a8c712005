// Faults, counters and the trace.
#include <algorithm>

#include "runtime_kernels.h"

using namespace cusim::testing;

namespace {

std::vector<cusim_trace_entry> traced() {
  std::vector<cusim_trace_entry> entries(cusim_trace_size());
  for (std::size_t i = 0; i < entries.size(); ++i) REQUIRE(cusim_trace_get(i, &entries[i]));
  return entries;
}

}  // namespace

TEST_CASE("a fault hits the call that was asked for, and no other") {
  const auto allocate = [] {
    void* x = nullptr;
    const int result = code(cudaMalloc(&x, 4));
    cudaFree(x);
    return result;
  };
  cusim_set_fault("cudaMalloc@2=2,cudaStreamSynchronize@1=719");
  CHECK(allocate() == 0);
  CHECK(allocate() == 2);
  CHECK(allocate() == 0);
  const TestStream stream;
  CHECK(code(cudaStreamSynchronize(stream)) == 719);
  CHECK(code(cudaStreamSynchronize(stream)) == 0);
  cusim_set_fault("cudaMalloc@1=2");
  cusim_set_fault("");
  CHECK(allocate() == 0);
}

TEST_CASE("a fault of a kernel hits its launch or its device") {
  REQUIRE(cudaSetDevice(2) == cudaSuccess);
  const DeviceArray<float> x({1.0f});
  const TestStream stream;
  const auto add_one = [&] { return code(launch(add, 1, 1, stream, x.data(), 1.0f, 1)); };
  const auto sum = [&] { return code(launch(block_sum, 1, 1, stream, x.data())); };
  cusim_set_fault("kernel:block@1=2");
  CHECK(add_one() == 0);
  CHECK(sum() == 2);
  CHECK(code(cudaStreamSynchronize(stream)) == 0);
  cusim_set_fault("kernel:ad@2=719");
  CHECK(add_one() == 0);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(add_one() == 0);
  CHECK(code(cudaStreamSynchronize(stream)) == 719);
  cusim_set_fault("");
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
}

TEST_CASE("counters count calls, captured or not, once each") {
  const DeviceArray<float> x({1.0f});
  const TestStream stream;
  const TestEvent event;
  cusim_reset_counters();
  const auto work = [&] {
    REQUIRE(launch(add, 1, 1, stream, x.data(), 1.0f, 1) == cudaSuccess);
    REQUIRE(cudaMemsetAsync(x.data(), 0, 4, stream) == cudaSuccess);
    REQUIRE(cudaEventRecord(event, stream) == cudaSuccess);
  };
  work();
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  work();
  cudaGraph_t graph = nullptr;
  REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  REQUIRE(cudaGraphDestroy(graph) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(code(launch(add, 0, 1, stream, x.data(), 1.0f, 1)) != 0);
  CHECK(cusim_counter("launches") == 2);
  CHECK(cusim_counter("memsets") == 2);
  CHECK(cusim_counter("calls") == 4);
  CHECK(cusim_counter("kernels_run") == 1);
  CHECK(cusim_counter("event_records") == 2);
  CHECK(cusim_counter("stream_syncs") == 1);
  CHECK(cusim_counter("mallocs") == 0);
  CHECK(cusim_counter("never counted") == 0);
}

TEST_CASE("the trace shows what ran where, and what ended before what began") {
  const DeviceArray<float> x({1.0f});
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  const TestStream second;
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
  const TestStream first;
  const TestEvent event;
  cusim_trace_start();
  REQUIRE(cudaMemsetAsync(x.data(), 0, 4, first) == cudaSuccess);
  REQUIRE(launch(add, 1, 1, first, x.data(), 1.0f, 1) == cudaSuccess);
  REQUIRE(cudaEventRecord(event, first) == cudaSuccess);
  REQUIRE(cudaStreamWaitEvent(second, event, 0) == cudaSuccess);
  REQUIRE(cudaMemsetAsync(x.data(), 0, 4, second) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(second) == cudaSuccess);
  cusim_trace_stop();
  REQUIRE(cudaMemsetAsync(x.data(), 0, 4, first) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(first) == cudaSuccess);

  const auto entries = traced();
  const auto find = [&](const std::string& kind, int device) {
    const auto found = std::find_if(entries.begin(), entries.end(), [&](const auto& entry) {
      return entry.kind == kind && entry.device == device;
    });
    REQUIRE(found != entries.end());
    return *found;
  };
  CHECK(entries.size() == 5);
  const auto kernel = find("kernel", 0);
  CHECK(kernel.name == std::string("add"));
  CHECK(kernel.begin < kernel.end);
  CHECK(find("memset", 0).end < kernel.begin);
  CHECK(find("memset", 0).stream == kernel.stream);
  CHECK(kernel.end < find("memset", 1).begin);
  CHECK(find("memset", 1).stream != kernel.stream);
  CHECK(find("event", 0).end < find("wait", 1).end);
  cusim_trace_entry none{};
  CHECK(cusim_trace_get(entries.size(), &none) == 0);
}
