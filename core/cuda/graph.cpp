// Capture of a stream's operations and their replay.
#include "lockstep/core/cuda/backend.h"
#include "lockstep/core/cuda/runtime.h"

namespace lockstep::cuda {
namespace {

class StepGraph final : public BackendState {
 public:
  explicit StepGraph(cudaGraph_t graph) {
    check(cudaGraphGetNodes(graph, nullptr, &nodes_), "cudaGraphGetNodes");
    check(cudaGraphInstantiate(&exec_, graph, 0), "cudaGraphInstantiate");
  }
  ~StepGraph() override { static_cast<void>(cudaGraphExecDestroy(exec_)); }
  StepGraph(const StepGraph&) = delete;
  StepGraph& operator=(const StepGraph&) = delete;

  [[nodiscard]] cudaGraphExec_t exec() const { return exec_; }
  [[nodiscard]] std::size_t nodes() const { return nodes_; }

 private:
  cudaGraphExec_t exec_ = nullptr;
  std::size_t nodes_ = 0;
};

/// A stream that captures, until end() or an exception: it must not be left capturing.
class Capture {
 public:
  explicit Capture(cudaStream_t stream) : stream_(stream) {
    // Thread-local: the threads of other replicas may allocate or wait meanwhile.
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
          "cudaStreamBeginCapture");
  }
  ~Capture() {
    if (stream_ != nullptr) static_cast<void>(cudaStreamEndCapture(stream_, &graph_));
    if (graph_ != nullptr) static_cast<void>(cudaGraphDestroy(graph_));
    static_cast<void>(cudaGetLastError());
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  [[nodiscard]] cudaGraph_t end() {
    check(cudaStreamEndCapture(stream_, &graph_), "cudaStreamEndCapture");
    stream_ = nullptr;
    return graph_;
  }

 private:
  cudaStream_t stream_;
  cudaGraph_t graph_ = nullptr;
};

}  // namespace

std::unique_ptr<BackendState> capture(const Context& context, const std::function<void()>& work) {
  Capture capturing(stream_of(context));
  work();
  auto graph = std::make_unique<StepGraph>(capturing.end());
  check(cudaGraphUpload(graph->exec(), stream_of(context)), "cudaGraphUpload");
  return graph;
}

void launch_graph(const BackendState& graph, const Context& context) {
  check(cudaGraphLaunch(static_cast<const StepGraph&>(graph).exec(), stream_of(context)),
        "cudaGraphLaunch");
}

std::size_t graph_nodes(const BackendState& graph) {
  return static_cast<const StepGraph&>(graph).nodes();
}

}  // namespace lockstep::cuda
