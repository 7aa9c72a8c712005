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

TEST_CASE("points are counted, and so are the faults that have happened") {
  const DeviceArray<float> x({1.0f});
  const TestStream stream;
  const auto passed = [](const std::string& point) {
    std::vector<cusim_tally> all(cusim_points(nullptr, 0));
    CHECK(cusim_points(all.data(), all.size()) == all.size());
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const cusim_tally& entry) { return entry.name == point; });
    return found == all.end() ? -1 : found->value;
  };
  cusim_reset_points();
  cusim_set_fault("cudaStreamSynchronize@2=999,kernel:add@7=1");
  CHECK(cusim_faults_happened() == 0);
  for (int i = 0; i < 3; ++i) {
    REQUIRE(launch(add, 1, 1, stream, x.data(), 1.0f, 1) == cudaSuccess);
    CHECK(code(cudaStreamSynchronize(stream)) == (i == 1 ? 999 : 0));
  }
  CHECK(cusim_faults_happened() == 1);  // a call that fails is one too
  CHECK(passed("cudaStreamSynchronize") == 3);
  CHECK(passed("cudaLaunchKernel") == 3);
  CHECK(passed("kernel:add") == 3);
  CHECK(passed("cudaNothing") == -1);
  cusim_set_fault("");
  CHECK(cusim_faults_happened() == 0);
  cusim_reset_points();
  CHECK(passed("kernel:add") == 0);
}

TEST_CASE("what gives something back has done so when it fails, and the ledger tells") {
  const auto alive = [](const std::string& kind) {
    std::vector<cusim_tally> all(cusim_ledger(nullptr, 0));
    cusim_ledger(all.data(), all.size());
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const cusim_tally& entry) { return entry.name == kind; });
    return found == all.end() ? 0 : found->value;
  };
  const std::vector<std::string> kinds = {"device_bytes",     "pinned_bytes", "streams",
                                          "events",           "captures",     "graphs",
                                          "graph_executables"};
  std::vector<std::int64_t> before;
  for (const std::string& kind : kinds) before.push_back(alive(kind));
  void* memory = nullptr;
  void* pinned = nullptr;
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  REQUIRE(cudaMalloc(&memory, 100) == cudaSuccess);
  REQUIRE(cudaMallocHost(&pinned, 100) == cudaSuccess);
  REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  REQUIRE(cudaEventCreate(&event) == cudaSuccess);
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed) == cudaSuccess);
  CHECK(alive("captures") == before[4] + 1);
  REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  REQUIRE(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    INFO(kinds[i]);
    const std::int64_t more = i < 2 ? 100 : kinds[i] == "captures" ? 0 : 1;
    CHECK(alive(kinds[i]) == before[i] + more);
  }
  cusim_set_fault(
      "cudaFree@1=999,cudaFreeHost@1=999,cudaStreamDestroy@1=999,cudaEventDestroy@1=999,"
      "cudaGraphDestroy@1=999,cudaGraphExecDestroy@1=999,cudaStreamEndCapture@1=999");
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed) == cudaSuccess);
  cudaGraph_t none = nullptr;
  CHECK(code(cudaStreamEndCapture(stream, &none)) == 999);
  CHECK(none == nullptr);
  CHECK(code(cudaGraphExecDestroy(exec)) == 999);
  CHECK(code(cudaGraphDestroy(graph)) == 999);
  CHECK(code(cudaEventDestroy(event)) == 999);
  CHECK(code(cudaStreamDestroy(stream)) == 999);
  CHECK(code(cudaFreeHost(pinned)) == 999);
  CHECK(code(cudaFree(memory)) == 999);
  CHECK(cusim_faults_happened() == 7);
  cusim_set_fault("");
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    INFO(kinds[i]);
    CHECK(alive(kinds[i]) == before[i]);
  }
}

TEST_CASE("a device that failed works again when it is revived") {
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  const DeviceArray<float> x({1.0f});
  const TestStream stream;
  REQUIRE(launch(throws, 1, 1, stream, 719) == cudaSuccess);
  CHECK(code(cudaStreamSynchronize(stream)) == 719);
  CHECK(code(cudaStreamSynchronize(stream)) == 719);
  cusim_revive_devices();
  CHECK(code(cudaStreamSynchronize(stream)) == 0);
  REQUIRE(launch(add, 1, 1, stream, x.data(), 1.0f, 1) == cudaSuccess);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(x.values() == std::vector<float>{2});
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
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
