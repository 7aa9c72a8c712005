// The opening and the end of a step: one thread's work.
#include "lockstep/core/cuda/runtime.h"
#include "lockstep/kernels/cuda/kernels.h"
#include "lockstep/kernels/step_math.h"

namespace lockstep::cuda {
namespace {

__global__ void open_step_kernel(EpochTables tables, const volatile std::uint32_t* stop_request,
                                 StepState* state) {
  set_batch(tables, *state);
  state->stop = stop_request == nullptr ? 0 : *stop_request;
}

__global__ void open_chunk_kernel(EpochTables tables, std::uint32_t chunk, StepState* state) {
  state->step_in_epoch = chunk;
  set_batch(tables, *state);
  state->stop = 0;
}

__global__ void close_step_kernel(const StepTail* tail, const double* l2_term, StepState* state,
                                  EpochSums* sums) {
  end_step(*tail, l2_term == nullptr ? 0 : *l2_term, *state, *sums);
}

}  // namespace

void open_step(Context& context, const EpochTables& tables, const std::uint32_t* stop_request,
               StepState* state) {
  open_step_kernel<<<1, 1, 0, stream_of(context)>>>(tables, stop_request, state);
  check_launch("open_step");
}

void open_chunk(Context& context, const EpochTables& tables, std::int64_t chunk, StepState* state) {
  open_chunk_kernel<<<1, 1, 0, stream_of(context)>>>(tables, static_cast<std::uint32_t>(chunk),
                                                     state);
  check_launch("open_chunk");
}

void close_step(Context& context, const StepTail* tail, const double* l2_term, StepState* state,
                EpochSums* sums) {
  close_step_kernel<<<1, 1, 0, stream_of(context)>>>(tail, l2_term, state, sums);
  check_launch("close_step");
}

}  // namespace lockstep::cuda
