// A library to be preloaded: says on stderr of what nodes every graph is that the program
// instantiates, "graph of 11 nodes: 11 kernels". Works with the real runtime and the simulated one.
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>
#include <dlfcn.h>

namespace {

const char* kind(cudaGraphNodeType type) {
  switch (type) {
    case cudaGraphNodeTypeKernel:
      return "kernels";
    case cudaGraphNodeTypeMemcpy:
      return "memcpys";
    case cudaGraphNodeTypeMemset:
      return "memsets";
    case cudaGraphNodeTypeHost:
      return "host functions";
    default:
      return "others";
  }
}

void report(cudaGraph_t graph) {
  std::size_t count = 0;
  if (cudaGraphGetNodes(graph, nullptr, &count) != cudaSuccess) return;
  std::vector<cudaGraphNode_t> nodes(count);
  if (cudaGraphGetNodes(graph, nodes.data(), &count) != cudaSuccess) return;
  std::map<std::string, int> kinds;
  for (cudaGraphNode_t node : nodes) {
    cudaGraphNodeType type{};
    if (cudaGraphNodeGetType(node, &type) == cudaSuccess) ++kinds[kind(type)];
  }
  std::string text = "graph of " + std::to_string(count) + " nodes:";
  const char* separator = " ";
  for (const auto& [name, number] : kinds) {
    text += separator + std::to_string(number) + " " + name;
    separator = ", ";
  }
  std::fprintf(stderr, "%s\n", text.c_str());
}

}  // namespace

extern "C" cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                            unsigned long long flags) {
  report(graph);
  static const auto next =
      reinterpret_cast<decltype(&cudaGraphInstantiate)>(dlsym(RTLD_NEXT, "cudaGraphInstantiate"));
  return next == nullptr ? cudaErrorSharedObjectSymbolNotFound : next(exec, graph, flags);
}
