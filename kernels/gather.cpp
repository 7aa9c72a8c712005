// The opening of a step: checks and dispatch.
#include "lockstep/kernels/gather.h"

#include "lockstep/config.h"
#include "lockstep/kernels/checks.h"
#include "lockstep/kernels/cpu/kernels.h"
#include "lockstep/kernels/cpu/plain.h"
#include "lockstep/kernels/cuda/kernels.h"

namespace lockstep {
namespace {

void check_gather(const Context& context, const DeviceSamples& samples, std::int64_t first_place,
                  std::int64_t end_place, const GatheredBlock& out) {
  checks::activation("gather", context, "x", out.x);
  if (out.x.shape.without_first().count() != samples.features) {
    throw ShapeError(message("gather: x is ", out.x.shape, " and a sample has ", samples.features,
                             " elements; the extents of x after the first must multiply to that"));
  }
  if (first_place < 0 || end_place < 0) {
    throw ShapeError(message("gather: the places are ", first_place, " to ", end_place,
                             "; they must be 0 or more"));
  }
  if ((samples.bytes != nullptr) == (samples.floats != nullptr)) {
    throw UsageError("gather: the data set must have uint8 samples or float samples, and not both");
  }
  if (samples.classes != nullptr && samples.soft != nullptr) {
    throw UsageError(
        "gather: the data set has class indices and soft targets; it must have one of them");
  }
  if (out.sample_index == nullptr || (samples.classes != nullptr && out.classes == nullptr) ||
      (samples.soft != nullptr && out.soft == nullptr)) {
    throw UsageError(
        "gather: the block has no memory for sample numbers or targets; give it what the data set "
        "has");
  }
  if (samples.ring_steps != 0 && context.on_cpu()) {
    throw UsageError("gather: the data set is a ring of steps; on a CPU it must be the whole one");
  }
  if (samples.ring_steps < 0 || (samples.ring_steps > 0 && samples.ring_places < 1)) {
    throw UsageError(message("gather: a ring of ", samples.ring_steps, " steps with ",
                             samples.ring_places, " places; both must be at least 1"));
  }
}

void check_tables(const char* operation, const EpochTables& tables) {
  if (tables.batch_size < 1 || tables.samples < 0) {
    throw UsageError(message(operation, ": the batch size is ", tables.batch_size, " for ",
                             tables.samples, " samples; it must be at least 1"));
  }
}

}  // namespace

void open_step(Context& context, const EpochTables& tables, const std::uint32_t* stop_request,
               StepState* state) {
  check_tables("open_step", tables);
  if constexpr (kHasCuda) {
    if (!context.on_cpu()) return cuda::open_step(context, tables, stop_request, state);
  }
  cpu::open_step(tables, stop_request, state);
}

void open_chunk(Context& context, const EpochTables& tables, std::int64_t chunk, StepState* state) {
  check_tables("open_chunk", tables);
  if (chunk < 0) {
    throw UsageError(message("open_chunk: the chunk is ", chunk, "; it must be 0 or more"));
  }
  if constexpr (kHasCuda) {
    if (!context.on_cpu()) return cuda::open_chunk(context, tables, chunk, state);
  }
  state->step_in_epoch = static_cast<std::uint32_t>(chunk);
  cpu::open_step(tables, nullptr, state);
}

void gather(Context& context, const DeviceSamples& samples, const EpochTables& tables,
            const StepState* state, std::int64_t first_place, std::int64_t end_place,
            const GatheredBlock& out) {
  check_gather(context, samples, first_place, end_place, out);
  if constexpr (kHasCuda) {
    if (!context.on_cpu()) {
      return cuda::gather(context, samples, tables, state, first_place, end_place, out);
    }
  }
  const std::int64_t places = out.x.shape[0];
  cpu::gather_places(samples, tables, *state, first_place, end_place, places, out);
  const cpu::GatherKernels& kernels = cpu::kernels(context.cpu_set()).gather;
  const std::int64_t groups = places / kN16;
  if (samples.bytes != nullptr) {
    kernels.bytes(groups, samples.features, out.sample_index, samples.bytes, samples.scale,
                  out.x.data);
  } else {
    kernels.floats(groups, samples.features, out.sample_index, samples.floats, out.x.data);
  }
}

void open_and_gather(Context& context, const DeviceSamples& samples, const EpochTables& tables,
                     const std::uint32_t* stop_request, StepState* state, std::int64_t first_place,
                     std::int64_t end_place, const GatheredBlock& out) {
  if constexpr (kHasCuda) {
    if (!context.on_cpu()) {
      check_tables("open_step", tables);
      check_gather(context, samples, first_place, end_place, out);
      return cuda::open_and_gather(context, samples, tables, stop_request, state, first_place,
                                   end_place, out);
    }
  }
  open_step(context, tables, stop_request, state);
  gather(context, samples, tables, state, first_place, end_place, out);
}

}  // namespace lockstep
