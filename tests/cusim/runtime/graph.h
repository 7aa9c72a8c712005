// Graphs: operations with their dependencies.
#pragma once

#include <cstddef>
#include <deque>
#include <mutex>
#include <random>
#include <vector>

#include <cuda_runtime_api.h>

#include "runtime/queue.h"

struct CUgraphNode_st {
  cusim::Operation operation;
  int device;
  std::vector<std::size_t> dependencies;  ///< numbers of nodes, all smaller than this one's
};

struct CUgraph_st {
  std::deque<CUgraphNode_st> nodes;  ///< nodes keep their addresses: they are handles
};

/// An executable copy of a graph.
struct CUgraphExec_st {
  /// Executes the nodes on this thread in a random order that the dependencies allow.
  void run(std::uint64_t stream);

  const CUgraph_st graph;
  std::minstd_rand random;  ///< of the launches, which run one after another
  std::mutex mutex{};
  cusim::Ticket last_launch{};
};

namespace cusim {

/// The handle of a graph that the program owns from now on.
cudaGraph_t give_out(CUgraph_st graph);

}  // namespace cusim
