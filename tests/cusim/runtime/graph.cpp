#include "runtime/graph.h"

#include <algorithm>
#include <memory>

#include "runtime/capture.h"
#include "runtime/settings.h"
#include "runtime/status.h"
#include "runtime/stream.h"

using namespace cusim;

namespace {

LiveHandles<cudaGraph_t>& live_graphs() {
  static auto& all = *new LiveHandles<cudaGraph_t>("graphs");
  return all;
}

LiveHandles<cudaGraphExec_t>& live_execs() {
  static auto& all = *new LiveHandles<cudaGraphExec_t>("graph_executables");
  return all;
}

CUgraphExec_st& resolve_exec(cudaGraphExec_t exec) {
  require(live_execs().contains(exec), cudaErrorInvalidResourceHandle);
  return *exec;
}

cudaGraphNodeType node_type(Kind kind) {
  switch (kind) {
    case Kind::memset:
      return cudaGraphNodeTypeMemset;
    case Kind::memcpy:
      return cudaGraphNodeTypeMemcpy;
    case Kind::host:
      return cudaGraphNodeTypeHost;
    default:
      return cudaGraphNodeTypeKernel;
  }
}

}  // namespace

void CUgraphExec_st::run(std::uint64_t stream) {
  const std::size_t size = graph.nodes.size();
  std::vector<std::size_t> missing(size);
  std::vector<std::vector<std::size_t>> followers(size);
  std::vector<std::size_t> ready;
  for (std::size_t node = 0; node < size; ++node) {
    missing[node] = graph.nodes[node].dependencies.size();
    for (const std::size_t before : graph.nodes[node].dependencies) {
      followers[before].push_back(node);
    }
    if (missing[node] == 0) ready.push_back(node);
  }
  while (!ready.empty()) {
    std::swap(ready[random() % ready.size()], ready.back());
    const std::size_t node = ready.back();
    ready.pop_back();
    execute(graph.nodes[node].operation, graph.nodes[node].device, stream);
    for (const std::size_t next : followers[node]) {
      if (--missing[next] == 0) ready.push_back(next);
    }
  }
  count("graph_nodes", size);
}

cudaGraph_t cusim::give_out(CUgraph_st graph) {
  return live_graphs().add(new CUgraph_st(std::move(graph)));
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  return api("cudaGraphInstantiate", [&] {
    require(live_graphs().contains(graph), cudaErrorInvalidResourceHandle);
    count("graph_instantiates");
    static std::atomic<unsigned> made{0};
    const unsigned seed = settings().seed + ++made;
    *exec = live_execs().add(new CUgraphExec_st{.graph = *graph, .random = std::minstd_rand(seed)});
  });
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
  return api("cudaGraphUpload", [&] {
    resolve_exec(exec);
    resolve(stream);
    count("graph_uploads");
  });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t handle, cudaStream_t stream_handle) {
  return api("cudaGraphLaunch", [&] {
    CUgraphExec_st& exec = resolve_exec(handle);
    Stream& stream = resolve(stream_handle);
    require(!stream.capture.load(std::memory_order_acquire), cudaErrorNotSupported);
    // Launches of one executable graph never overlap, whatever streams they are on.
    const std::lock_guard lock(exec.mutex);
    for (const CUgraphNode_st& node : exec.graph.nodes) {
      if (node.operation.launched) node.operation.launched();
    }
    submit(stream, {.kind = Kind::graph,
                    .name = "graph",
                    .run = [&exec, before = exec.last_launch, id = stream.id()] {
                      before.wait();
                      exec.run(id);
                    }});
    exec.last_launch = stream.tail();
  });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
  return api("cudaGraphGetNodes", [&] {
    require(live_graphs().contains(graph), cudaErrorInvalidResourceHandle);
    const std::size_t there = graph->nodes.size();
    const std::size_t room = nodes ? *count : 0;
    for (std::size_t i = 0; i < room; ++i) nodes[i] = i < there ? &graph->nodes[i] : nullptr;
    *count = nodes ? std::min(room, there) : there;
  });
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  return api("cudaGraphNodeGetType", [&] { *type = node_type(node->operation.kind); });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return release_api("cudaGraphDestroy", [&] {
    require(live_graphs().remove(graph), cudaErrorInvalidResourceHandle);
    delete graph;
  });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return release_api("cudaGraphExecDestroy", [&] {
    require(live_execs().remove(exec), cudaErrorInvalidResourceHandle);
    exec->last_launch.wait();
    delete exec;
  });
}
