#include <set>

#include "runtime_kernels.h"

using namespace cusim::testing;

namespace {

/// An instantiated graph of what `capture` puts on the stream.
class TestGraph {
 public:
  template <class F>
  TestGraph(cudaStream_t stream, F capture) {
    REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    capture();
    REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
    REQUIRE(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
  }
  ~TestGraph() {
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
  }
  TestGraph(const TestGraph&) = delete;
  TestGraph& operator=(const TestGraph&) = delete;

  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
};

/// Names of the trace's kernels in the order in which they ran.
std::vector<std::string> traced_kernels() {
  std::vector<std::string> names;
  cusim_trace_entry entry{};
  for (std::size_t i = 0; cusim_trace_get(i, &entry); ++i) {
    if (std::string(entry.kind) == "kernel") names.emplace_back(entry.name);
  }
  return names;
}

}  // namespace

TEST_CASE("a graph runs when it is launched, as often as it is launched") {
  const DeviceArray<float> x({0.0f});
  const TestStream stream;
  const TestGraph graph(stream, [&] {
    float value = 1;
    REQUIRE(launch(add, 1, 1, stream, x.data(), value, 1) == cudaSuccess);
    value = 100;  // arguments were copied
  });
  CHECK(x.values() == std::vector<float>{0});
  cusim_reset_counters();
  REQUIRE(cudaGraphUpload(graph.exec, stream) == cudaSuccess);
  for (int i = 0; i < 3; ++i) REQUIRE(cudaGraphLaunch(graph.exec, stream) == cudaSuccess);
  CHECK(x.values() == std::vector<float>{3});
  CHECK(cusim_counter("graph_launches") == 3);
  CHECK(cusim_counter("graph_nodes") == 3);
  CHECK(cusim_counter("kernels_run") == 3);
  CHECK(cusim_counter("launches") == 0);
}

TEST_CASE("copies of a graph read pinned memory at each replay") {
  const DeviceArray<int> x({0});
  const PinnedArray<int> host({1});
  const TestStream stream;
  const TestGraph graph(stream, [&] {
    REQUIRE(cudaMemcpyAsync(x.data(), host.data(), 4, cudaMemcpyHostToDevice, stream) == 0);
  });
  host[0] = 7;
  REQUIRE(cudaGraphLaunch(graph.exec, stream) == cudaSuccess);
  CHECK(x.values() == std::vector<int>{7});
  host[0] = 8;
  REQUIRE(cudaGraphLaunch(graph.exec, stream) == cudaSuccess);
  CHECK(x.values() == std::vector<int>{8});
}

TEST_CASE("nodes tell their kinds") {
  const DeviceArray<float> x({0.0f});
  const PinnedArray<float> host({1.0f});
  const TestStream stream;
  const TestGraph graph(stream, [&] {
    REQUIRE(cudaMemsetAsync(x.data(), 0, 4, stream) == cudaSuccess);
    REQUIRE(cudaMemcpyAsync(x.data(), host.data(), 4, cudaMemcpyDefault, stream) == 0);
    REQUIRE(launch(add, 1, 1, stream, x.data(), 1.0f, 1) == cudaSuccess);
    REQUIRE(cudaLaunchHostFunc(
                stream, [](void*) {}, nullptr) == cudaSuccess);
  });
  std::size_t count = 0;
  REQUIRE(cudaGraphGetNodes(graph.graph, nullptr, &count) == cudaSuccess);
  REQUIRE(count == 4);
  std::vector<cudaGraphNode_t> nodes(count);
  REQUIRE(cudaGraphGetNodes(graph.graph, nodes.data(), &count) == cudaSuccess);
  std::vector<cudaGraphNodeType> types(count);
  for (std::size_t i = 0; i < count; ++i) {
    REQUIRE(cudaGraphNodeGetType(nodes[i], &types[i]) == cudaSuccess);
  }
  CHECK(types == std::vector<cudaGraphNodeType>{cudaGraphNodeTypeMemset, cudaGraphNodeTypeMemcpy,
                                                cudaGraphNodeTypeKernel, cudaGraphNodeTypeHost});
}

TEST_CASE("nodes run in every order that the dependencies allow, and in no other") {
  const DeviceArray<int> out(std::vector<int>(128));
  const DeviceArray<float> x({0.0f});
  const TestStream stream;
  const TestStream fork;
  const TestEvent forked;
  const TestEvent joined;
  const TestGraph graph(stream, [&] {  // add, then block_sum and count_even, then add_variable
    REQUIRE(launch(add, 1, 1, stream, x.data(), 1.0f, 1) == cudaSuccess);
    REQUIRE(cudaEventRecord(forked, stream) == cudaSuccess);
    REQUIRE(cudaStreamWaitEvent(fork, forked, 0) == cudaSuccess);
    REQUIRE(launch(block_sum, 1, 32, stream, out.data()) == cudaSuccess);
    REQUIRE(launch(count_even, 1, 32, fork, out.data() + 64) == cudaSuccess);
    REQUIRE(cudaEventRecord(joined, fork) == cudaSuccess);
    REQUIRE(cudaStreamWaitEvent(stream, joined, 0) == cudaSuccess);
    REQUIRE(launch(add_variable, 1, 1, stream, x.data()) == cudaSuccess);
  });
  using Names = std::vector<std::string>;
  std::set<Names> orders;
  for (int i = 0; i < 64; ++i) {
    cusim_trace_start();
    REQUIRE(cudaGraphLaunch(graph.exec, stream) == cudaSuccess);
    REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
    orders.insert(traced_kernels());
  }
  cusim_trace_stop();
  CHECK(orders == std::set<Names>{{"add", "block_sum", "count_even", "add_variable"},
                                  {"add", "count_even", "block_sum", "add_variable"}});
}

TEST_CASE("a graph needs neither the events nor the streams of its capture") {
  const DeviceArray<float> x({0.0f});
  const TestStream stream;
  const TestGraph graph(stream, [&] {
    const TestEvent forked;
    const TestEvent joined;
    static cudaStream_t fork = nullptr;
    REQUIRE(cudaStreamCreateWithFlags(&fork, cudaStreamNonBlocking) == cudaSuccess);
    REQUIRE(cudaEventRecord(forked, stream) == cudaSuccess);
    REQUIRE(cudaStreamWaitEvent(fork, forked, 0) == cudaSuccess);
    REQUIRE(launch(add, 1, 1, fork, x.data(), 1.0f, 1) == cudaSuccess);
    REQUIRE(cudaEventRecord(joined, fork) == cudaSuccess);
    REQUIRE(cudaStreamWaitEvent(stream, joined, 0) == cudaSuccess);
  });
  REQUIRE(cudaGraphLaunch(graph.exec, stream) == cudaSuccess);
  CHECK(x.values() == std::vector<float>{1});
}

TEST_CASE("launches of one graph do not overlap, on whatever streams") {
  const DeviceArray<float> x({0.0f});
  const TestStream first;
  const TestStream second;
  const TestGraph graph(
      first, [&] { REQUIRE(launch(add, 1, 1, first, x.data(), 1.0f, 1) == cudaSuccess); });
  Gate gate(first);
  REQUIRE(cudaGraphLaunch(graph.exec, first) == cudaSuccess);
  REQUIRE(cudaGraphLaunch(graph.exec, second) == cudaSuccess);
  settle();
  CHECK(code(cudaStreamQuery(second)) == cudaErrorNotReady);
  gate.open();
  CHECK(x.values() == std::vector<float>{2});
}

TEST_CASE("an executable graph is destroyed after its launches") {
  const DeviceArray<float> x({0.0f});
  const TestStream stream;
  {
    const TestGraph graph(
        stream, [&] { REQUIRE(launch(add, 1, 1, stream, x.data(), 1.0f, 1) == cudaSuccess); });
    for (int i = 0; i < 50; ++i) REQUIRE(cudaGraphLaunch(graph.exec, stream) == cudaSuccess);
  }
  CHECK(x.values() == std::vector<float>{50});
}

TEST_CASE("destroyed graphs are refused") {
  const TestStream stream;
  cudaGraphExec_t exec = nullptr;
  cudaGraph_t graph = nullptr;
  {
    const TestGraph made(stream, [] {});
    exec = made.exec;
    graph = made.graph;
  }
  CHECK(code(cudaGraphLaunch(exec, stream)) == cudaErrorInvalidResourceHandle);
  CHECK(code(cudaGraphInstantiate(&exec, graph, 0)) == cudaErrorInvalidResourceHandle);
}
