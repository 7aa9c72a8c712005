// CPU kernels where no instruction set pays: bookkeeping of a step, changes of layout, and softmax,
// whose time goes into the library's exp. Compiled once, for the baseline. They trust their input,
// as the per-set kernels do.
#pragma once

#include "lockstep/kernels/convert.h"
#include "lockstep/kernels/gather.h"
#include "lockstep/kernels/softmax_cross_entropy.h"

namespace lockstep::cpu {

void open_step(const EpochTables& tables, const std::uint32_t* stop_request, StepState* state);

/// Everything of gather but the samples' values: numbers, classes and soft targets of the places.
void gather_places(const DeviceSamples& samples, const EpochTables& tables, const StepState& state,
                   std::int64_t first_place, std::int64_t end_place, std::int64_t places,
                   const GatheredBlock& out);

void softmax_cross_entropy(std::int64_t samples, std::int64_t classes, const float* logits,
                           const Targets& targets, const StepState* state, float* loss,
                           float* correct, float* dlogits);
void sum_losses(const StepState& state, const float* loss, const float* correct, std::int64_t n,
                StepTail* tail, bool accumulate);
void sum_chunk(const float* loss, const float* correct, std::int64_t n, ChunkSums* sums,
               bool accumulate);

/// The shapes of x and y are alike but for their first extents.
void convert_layout(ConstFloatView x, FloatView y);

/// `scratch` has a word for each chunk of kSumChunk floats.
std::uint64_t hash_floats(const float* x, std::int64_t count, std::uint64_t* scratch);

}  // namespace lockstep::cpu
