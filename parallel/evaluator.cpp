#include "lockstep/parallel/evaluator.h"

#include <algorithm>

#include "lockstep/kernels/softmax_cross_entropy.h"

namespace lockstep {

namespace {

/// Data sets that stay on the device: training, validation and test data.
constexpr std::size_t kKept = 3;

}  // namespace

Evaluator::Evaluator(Context& context, const Sequential& model, const ParameterLayout& layout,
                     const float* params, Residence residence, bool fuse)
    : context_(context),
      model_(model),
      layout_(layout),
      params_(params),
      residence_(residence),
      fuse_(fuse),
      state_(context.device(), sizeof(StepState), "the state of evaluations") {}

Evaluator::Share::Share(Context& context, const Dataset& data, Residence residence, int rank_in,
                        int size_in)
    : feed(context, data, residence,
           {.batch_size = kEvaluationChunk, .first = 0, .count = kEvaluationChunk}),
      rank(rank_in),
      size(size_in) {
  for (std::int64_t first = rank * kEvaluationChunk; first < data.size();
       first += size * kEvaluationChunk) {
    const std::int64_t end = std::min(first + kEvaluationChunk, data.size());
    for (std::int64_t i = first; i < end; ++i) order.push_back(static_cast<std::int32_t>(i));
  }
  if (context.on_cpu()) return;
  const std::size_t bytes = order.size() * sizeof(std::int32_t);
  device_order = Buffer(context.device(), bytes, "the order of the samples");
  context.copy_to_device(device_order.data(), order.data(), bytes);
  context.synchronize();
}

Evaluator::Share& Evaluator::share_of(const Dataset& data, int rank, int size) {
  const auto is_it = [&](const std::unique_ptr<Share>& share) {
    return share->feed.holds(data) && share->rank == rank && share->size == size;
  };
  const auto found = std::find_if(shares_.begin(), shares_.end(), is_it);
  if (found != shares_.end()) {
    std::rotate(found, found + 1, shares_.end());
  } else {
    if (shares_.size() == kKept) shares_.erase(shares_.begin());
    shares_.push_back(std::make_unique<Share>(context_, data, residence_, rank, size));
  }
  return *shares_.back();
}

Plan& Evaluator::plan_for(const Dataset& data) {
  const std::int64_t soft_classes = data.soft_classes();
  if (plan_ == nullptr || plan_soft_classes_ != soft_classes) {
    const std::int64_t block =
        block_samples(context_, model_, data.sample_shape(), kEvaluationChunk, fuse_);
    plan_ = std::make_unique<Plan>(
        context_, model_, layout_, data.sample_shape(),
        PlanOptions{.block = block, .soft_classes = soft_classes, .fuse = fuse_}, params_, nullptr);
    plan_soft_classes_ = soft_classes;
  }
  return *plan_;
}

void Evaluator::run(const Dataset& data, int rank, int size,
                    const std::function<void()>& chunk_done, std::vector<ChunkSums>& sums) {
  Plan& plan = plan_for(data);
  Share& share = share_of(data, rank, size);
  const auto samples = static_cast<std::int64_t>(share.order.size());
  const std::int64_t chunks = (samples + kEvaluationChunk - 1) / kEvaluationChunk;
  if (chunks == 0) return;
  const EpochTables tables{
      .permutation = context_.on_cpu() ? share.order.data() : share.device_order.as<std::int32_t>(),
      .samples = samples,
      .batch_size = kEvaluationChunk};
  share.feed.start_epoch(share.order.data(), samples);
  const std::size_t bytes = static_cast<std::size_t>(chunks) * sizeof(ChunkSums);
  const Buffer results(context_.device(), bytes, "the sums of an evaluation");
  auto* state = state_.as<StepState>();

  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    // Two windows behind, the device is done with what the next one overwrites.
    if (share.feed.streamed() && chunk % Feed::kWindow == 0) context_.synchronize();
    share.feed.provide(context_, chunk);
    open_chunk(context_, tables, chunk, state);
    const std::int64_t real = std::min(kEvaluationChunk, samples - chunk * kEvaluationChunk);
    for (std::int64_t place = 0; place < real; place += plan.block()) {
      gather(context_, share.feed.samples(), tables, state, place, kEvaluationChunk, plan.input());
      plan.forward(context_, state);
      plan.loss(context_, state);
      sum_chunk(context_, plan.losses(), plan.correct(), plan.block(),
                results.as<ChunkSums>() + chunk, place > 0);
    }
    chunk_done();
  }
  const std::size_t before = sums.size();
  sums.resize(before + static_cast<std::size_t>(chunks));
  context_.copy_to_host(sums.data() + before, results.data(), bytes);
  context_.synchronize();
}

}  // namespace lockstep
