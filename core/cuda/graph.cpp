// Capture of a stream's operations and their replay.
#include <utility>

#include "lockstep/core/cuda/backend.h"
#include "lockstep/core/cuda/runtime.h"

namespace lockstep::cuda {
namespace {

class StepGraph final : public BackendState {
 public:
  StepGraph(Device device, cudaGraph_t graph) : device_(device) {
    check(cudaGraphGetNodes(graph, nullptr, &nodes_), device, "cudaGraphGetNodes");
    check(cudaGraphInstantiate(&exec_, graph, 0), device, "cudaGraphInstantiate");
  }
  ~StepGraph() override { note(cudaGraphExecDestroy(exec_), device_, "cudaGraphExecDestroy"); }
  StepGraph(const StepGraph&) = delete;
  StepGraph& operator=(const StepGraph&) = delete;

  [[nodiscard]] cudaGraphExec_t exec() const { return exec_; }
  [[nodiscard]] std::size_t nodes() const { return nodes_; }

 private:
  Device device_;
  cudaGraphExec_t exec_ = nullptr;
  std::size_t nodes_ = 0;
};

/// A stream that captures, until end() or an exception: it must not be left capturing.
class Capture {
 public:
  explicit Capture(const Context& context)
      : device_(context.device()), stream_(stream_of(context)) {
    // Thread-local: the threads of other replicas may allocate or wait meanwhile.
    check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), device_,
          "cudaStreamBeginCapture");
  }
  ~Capture() {
    if (stream_ != nullptr) {  // an exception is on its way, and may have spoilt the recording
      static_cast<void>(cudaStreamEndCapture(stream_, &graph_));
      static_cast<void>(cudaGetLastError());
    }
    if (graph_ != nullptr) note(cudaGraphDestroy(graph_), device_, "cudaGraphDestroy");
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  [[nodiscard]] cudaGraph_t end() {
    check(cudaStreamEndCapture(std::exchange(stream_, nullptr), &graph_), device_,
          "cudaStreamEndCapture");
    return graph_;
  }

 private:
  Device device_;
  cudaStream_t stream_;
  cudaGraph_t graph_ = nullptr;
};

}  // namespace

std::unique_ptr<BackendState> capture(const Context& context, const std::function<void()>& work) {
  Capture capturing(context);
  work();
  auto graph = std::make_unique<StepGraph>(context.device(), capturing.end());
  check(cudaGraphUpload(graph->exec(), stream_of(context)), context.device(), "cudaGraphUpload");
  return graph;
}

void launch_graph(const BackendState& graph, const Context& context) {
  check(cudaGraphLaunch(static_cast<const StepGraph&>(graph).exec(), stream_of(context)),
        context.device(), "cudaGraphLaunch");
}

std::size_t graph_nodes(const BackendState& graph) {
  return static_cast<const StepGraph&>(graph).nodes();
}

}  // namespace lockstep::cuda
