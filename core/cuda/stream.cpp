// Streams, copies and events.
#include "lockstep/core/cuda/backend.h"
#include "lockstep/core/cuda/runtime.h"
#include "lockstep/core/error.h"

namespace lockstep::cuda {
namespace {

class Stream final : public BackendState {
 public:
  explicit Stream(Device device) : device_(device) {
    const CurrentDevice current(device);
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), device,
          "cudaStreamCreateWithFlags");
  }
  ~Stream() override { note(cudaStreamDestroy(stream_), device_, "cudaStreamDestroy"); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  [[nodiscard]] cudaStream_t get() const { return stream_; }

 private:
  Device device_;
  cudaStream_t stream_ = nullptr;
};

class StreamEvent final : public BackendState {
 public:
  explicit StreamEvent(Device device) : device_(device) {
    const CurrentDevice current(device);
    check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), device,
          "cudaEventCreateWithFlags");
  }
  ~StreamEvent() override { note(cudaEventDestroy(event_), device_, "cudaEventDestroy"); }
  StreamEvent(const StreamEvent&) = delete;
  StreamEvent& operator=(const StreamEvent&) = delete;

  [[nodiscard]] Device device() const { return device_; }
  [[nodiscard]] cudaEvent_t get() const { return event_; }

 private:
  Device device_;
  cudaEvent_t event_ = nullptr;
};

const StreamEvent& event_of(const BackendState& event) {
  return static_cast<const StreamEvent&>(event);
}

}  // namespace

cudaStream_t stream_of(const Context& context) {
  return static_cast<const Stream&>(*context.stream()).get();
}

std::unique_ptr<BackendState> make_stream(Device device) {
  return std::make_unique<Stream>(device);
}

void synchronize(const Context& context) {
  check(cudaStreamSynchronize(stream_of(context)), context.device(), "cudaStreamSynchronize");
}

void copy_to_device(const Context& context, void* to, const void* from, std::size_t bytes) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_of(context)),
        context.device(), "cudaMemcpyAsync");
}

void copy_to_host(const Context& context, void* to, const void* from, std::size_t bytes) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_of(context)),
        context.device(), "cudaMemcpyAsync");
}

std::unique_ptr<BackendState> make_event(Device device) {
  return std::make_unique<StreamEvent>(device);
}

void record_event(const BackendState& event, const Context& context) {
  check(cudaEventRecord(event_of(event).get(), stream_of(context)), context.device(),
        "cudaEventRecord");
}

void wait_for_event(const BackendState& event, const Context& context) {
  check(cudaStreamWaitEvent(stream_of(context), event_of(event).get(), 0), context.device(),
        "cudaStreamWaitEvent");
}

bool event_is_done(const BackendState& event) {
  const cudaError_t status = cudaEventQuery(event_of(event).get());
  if (status == cudaErrorNotReady) {
    static_cast<void>(cudaGetLastError());  // the answer is kept like an error
    return false;
  }
  check(status, event_of(event).device(), "cudaEventQuery");
  return true;
}

}  // namespace lockstep::cuda
