#include "lockstep/kernels/optimize.h"

#include "lockstep/kernels/reduce.h"

#include "kernels/optimize_cases.h"
#include "support/cuda_device.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

/// The arenas of an optimizer on the GPU.
struct Arenas {
  DeviceArray<float> grads, mask, params, first, second;

  Arenas(Context& context, const Problem& problem)
      : grads(context, problem.count),
        mask(context, problem.mask),
        params(context, problem.start),
        first(context, std::vector<float>(problem.start.size())),
        second(context, std::vector<float>(problem.start.size())) {}
  [[nodiscard]] ArenaPointers pointers() const {
    return {grads.data(), mask.data(), params.data(), first.data(), second.data()};
  }
};

void require_equal(const Arenas& a, const Arenas& b) {
  REQUIRE(same_bits(a.params.download(), b.params.download()));
  REQUIRE(same_bits(a.first.download(), b.first.download()));
  REQUIRE(same_bits(a.second.download(), b.second.download()));
}

/// Trains on the whole arena and beside it range by range, and compares the two bit by bit; then
/// takes a frozen step, which must change nothing.
template <class Case>
void check(Context& context, const Case& optimizer, const Problem& problem) {
  Arenas whole(context, problem), parts(context, problem);
  DeviceValue<StepState> state(context, {});
  const std::vector<std::int64_t> cuts = {0, problem.count / 3, problem.count / 2, problem.count};
  for (int step = 0; step < kOptimizerSteps; ++step) {
    state.upload(Problem::state(step));
    whole.grads.upload(problem.grads(step));
    parts.grads.upload(problem.grads(step));
    optimizer.update(context, state.data(), whole.pointers(), 0, problem.count);
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      optimizer.update(context, state.data(), parts.pointers(), cuts[i], cuts[i + 1]);
    }
  }
  require_equal(parts, whole);
  check_close(whole.params.download(), trained_in_double(problem, optimizer));

  StepState frozen = Problem::state(1);
  frozen.frozen = 1;
  frozen.clip_factor = kNan;
  state.upload(frozen);
  whole.grads.upload(not_written(problem.count));
  optimizer.update(context, state.data(), whole.pointers(), 0, problem.count);
  require_equal(whole, parts);
}

}  // namespace

TEST_CASE("on CUDA every optimizer follows a trainer in double, range by range as in one") {
  Gpu gpu;
  std::vector<std::int64_t> counts = kOptimizerCounts;
  counts.push_back(2000);  // more than one block of threads
  for (const std::int64_t count : counts) {
    INFO("count " << count);
    const Problem problem(count);
    for (const AdamCase& adam : kAdamCases) {
      INFO("Adam, case " << &adam - kAdamCases.data());
      check(gpu.context, adam, problem);
    }
    for (const SgdCase& sgd : kSgdCases) {
      INFO("SGD, case " << &sgd - kSgdCases.data());
      check(gpu.context, sgd, problem);
    }
  }
}

TEST_CASE("optimizers on CUDA take no elements at all") {
  Gpu gpu;
  const DeviceArray<float> nothing(gpu.context, 1);
  const DeviceValue<StepState> state(gpu.context, {});
  float* at = nothing.data();
  adam_update(gpu.context, {}, state.data(), at, nullptr, at, at, at, 0);
  sgd_update(gpu.context, {}, state.data(), at, at, nullptr, 0);
  add_l2_gradient(gpu.context, at, at, at, 0);
  CHECK(std::isnan(nothing.download()[0]));
}

TEST_CASE("on CUDA the L2 gradient is added element by element") {
  Gpu gpu;
  for (const std::int64_t count : kOptimizerCounts) {
    const std::vector<float> factor = random_values(count, 1, 0, 0.1F);
    const std::vector<float> params = random_values(count, 2);
    const std::vector<float> before = random_values(count, 3);
    const DeviceArray<float> f(gpu.context, factor), p(gpu.context, params), g(gpu.context, before);
    add_l2_gradient(gpu.context, f.data(), p.data(), g.data(), count);
    const std::vector<float> grads = g.download();
    for (std::size_t i = 0; i < grads.size(); ++i) {
      REQUIRE(grads[i] == std::fmaf(factor[i], params[i], before[i]));
    }
  }
}

TEST_CASE("measure_gradient on CUDA clips what is too long and freezes on what is not finite") {
  Gpu gpu;
  const DeviceArray<double> scratch(
      gpu.context, std::vector<double>(static_cast<std::size_t>(sum_scratch_doubles(40000))));
  const auto measure = [&](const std::vector<float>& grads, float max_norm,
                           std::uint32_t frozen = 0) {
    StepState before;
    before.grad_norm = kNan;
    before.clip_factor = kNan;
    before.frozen = frozen;
    const DeviceValue<StepState> state(gpu.context, before);
    std::vector<float> values = grads;
    values.push_back(kNan);  // what is behind the end must not be read
    const DeviceArray<float> g(gpu.context, values);
    measure_gradient(gpu.context, g.data(), static_cast<std::int64_t>(grads.size()), max_norm,
                     scratch.data(), state.data());
    CHECK(scratch.download()[0] == 0);
    return state.download();
  };
  check_measured_gradients(measure);
  // Several chunks; the same scratch serves all of them.
  for (const std::int64_t count : {4095, 4096, 4097, 3 * 4096 + 5, 8 * 4096}) {
    const std::vector<float> many = random_values(count, 1, -3, 3);
    double squares = 0;
    for (const float g : many) squares += static_cast<double>(g) * g;
    const float norm = measure(many, 0).grad_norm;
    INFO("count " << count);
    CHECK(norm == Approx(std::sqrt(squares)).epsilon(1e-6));
    CHECK(measure(many, 0).grad_norm == norm);
  }
}

TEST_CASE("measure_gradient on CUDA freezes what was abandoned") {
  Gpu gpu;
  const DeviceArray<float> grads(gpu.context, std::vector<float>{3, 4});
  const DeviceArray<double> scratch(gpu.context, std::vector<double>(2));
  const HostBuffer abandoned(kGpu, sizeof(std::uint32_t), "a test");
  for (const std::uint32_t sign : {0U, 1U}) {
    *abandoned.as<std::uint32_t>() = sign;
    const DeviceValue<StepState> state(gpu.context, {});
    measure_gradient(gpu.context, grads.data(), 2, 0, scratch.data(), state.data(),
                     reinterpret_cast<const std::uint32_t*>(abandoned.device_address()));
    CHECK(state.download().frozen == sign);
  }
}

TEST_CASE("close_step on CUDA adds up the epoch and moves on, unless frozen") {
  Gpu gpu;
  StepState before;
  before.step = 10;
  before.step_in_epoch = 3;
  before.real_samples = 4;
  StepTail losses;
  losses.loss = 8;
  losses.correct = 3;
  losses.stop = 2;
  DeviceValue<StepState> state(gpu.context, before);
  DeviceValue<StepTail> tail(gpu.context, losses);
  const DeviceValue<double> l2(gpu.context, 0.5);
  const DeviceValue<EpochSums> sums(gpu.context, {});
  close_step(gpu.context, tail.data(), l2.data(), state.data(), sums.data());
  CHECK(state.download().step == 11);
  CHECK(state.download().step_in_epoch == 4);
  CHECK(sums.download().last_loss == 2.5);
  losses.loss = 4;
  tail.upload(losses);
  close_step(gpu.context, tail.data(), nullptr, state.data(), sums.data());
  const EpochSums two = sums.download();
  CHECK(two.loss == 12);
  CHECK(two.correct == 6);
  CHECK(two.samples == 8);
  CHECK(two.reg_loss == 0.5);
  CHECK(two.steps == 2);
  CHECK(two.last_loss == 1);
  CHECK(two.ema == Approx(0.9 * 0.1 * 2.5 + 0.1 * 1));
  CHECK(two.stop == 2);

  before = state.download();
  before.frozen = 1;
  state.upload(before);
  losses.loss = kNan;
  losses.stop = 0;
  tail.upload(losses);
  close_step(gpu.context, tail.data(), nullptr, state.data(), sums.data());
  CHECK(state.download().step == 12);
  CHECK(sums.download().loss == two.loss);
  CHECK(sums.download().steps == two.steps);
  CHECK(sums.download().stop == 0);
}
