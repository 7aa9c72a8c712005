#include "lockstep/kernels/softmax_cross_entropy.h"

#include <cmath>

#include "kernels/softmax_cases.h"
#include "support/cuda_device.h"
#include "support/throws.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

struct Outcome {
  std::vector<float> loss, correct, dlogits;
};

/// A batch on the GPU; places without a sample have logits that must not matter.
struct OnGpu {
  Context& context;
  Shape shape;
  DeviceArray<std::int32_t> index, classes;
  DeviceArray<float> soft, logits, loss, correct;
  bool is_soft;

  OnGpu(Context& the_context, const Batch& batch)
      : context(the_context),
        shape{batch.padded, batch.classes},
        index(context, batch.index),
        classes(context, batch.target),
        soft(context, batch.soft),
        logits(context, filled(batch)),
        loss(context, batch.padded),
        correct(context, batch.padded),
        is_soft(!batch.soft.empty()) {}

  [[nodiscard]] static std::vector<float> filled(const Batch& batch) {
    std::vector<float> z = batch.logits;
    z.resize(static_cast<std::size_t>(batch.padded * batch.classes), kNan);
    return z;
  }
  void run(const StepState* state, FloatView dlogits) const {
    const Targets targets{index.data(), is_soft ? nullptr : classes.data(),
                          is_soft ? soft.data() : nullptr};
    softmax_cross_entropy(context, logits.view(shape), targets, state, loss.data(), correct.data(),
                          dlogits);
  }
};

Outcome run(Context& context, const Batch& batch, float inverse_samples) {
  const OnGpu on_gpu(context, batch);
  const DeviceArray<float> dlogits(context, on_gpu.shape.count());
  StepState values;
  values.inverse_samples = inverse_samples;
  const DeviceValue<StepState> state(context, values);
  on_gpu.run(state.data(), dlogits.view(on_gpu.shape));
  return {on_gpu.loss.download(), on_gpu.correct.download(), dlogits.download()};
}

void check_formula(const Batch& batch, const Outcome& out) {
  for (std::int64_t n = 0; n < batch.padded; ++n) {
    INFO("sample " << n);
    const auto at = static_cast<std::size_t>(n);
    const float* gradient = out.dlogits.data() + n * batch.classes;
    if (n >= batch.real) {
      REQUIRE(out.loss[at] == 0);
      REQUIRE(out.correct[at] == 0);
      for (std::int64_t c = 0; c < batch.classes; ++c) REQUIRE(gradient[c] == 0);
      continue;
    }
    const std::vector<double> z = batch.sample(n);
    const std::vector<double> t = batch.target_of(n);
    REQUIRE(out.loss[at] == Approx(reference_loss(z, t)).epsilon(1e-6).margin(1e-7));
    REQUIRE(out.correct[at] == (first_largest(z) == first_largest(t) ? 1.0F : 0.0F));
    double sum_exp = 0, sum_target = 0;
    for (std::size_t c = 0; c < z.size(); ++c) {
      sum_exp += std::exp(z[c]);
      sum_target += t[c];
    }
    for (std::size_t c = 0; c < z.size(); ++c) {
      const double expected = 0.125 * (std::exp(z[c]) / sum_exp * sum_target - t[c]);
      REQUIRE(gradient[c] == Approx(expected).epsilon(1e-6).margin(1e-9));
    }
  }
}

}  // namespace

TEST_CASE("on CUDA loss, hits and gradient follow the formula, empty places are exactly 0") {
  Gpu gpu;
  for (const std::int64_t classes : {1, 2, 10, 31, 32, 33, 100}) {
    for (const std::int64_t real : {1, 17}) {
      for (const std::int64_t group : {1, 3, 16}) {
        for (const bool soft : {false, true}) {
          INFO(real << " samples in groups of " << group << ", classes " << classes << ", soft "
                    << soft);
          const Batch batch(real, classes, soft, group);
          check_formula(batch, run(gpu.context, batch, 0.125F));
        }
      }
    }
  }
}

TEST_CASE("on CUDA the gradient may overwrite the logits, and may be left out") {
  Gpu gpu;
  const Batch batch(17, 40, false);
  const Outcome apart = run(gpu.context, batch, 0.5F);
  const OnGpu on_gpu(gpu.context, batch);
  on_gpu.run(nullptr, {});
  CHECK(same_bits(on_gpu.loss.download(), apart.loss));
  CHECK(same_bits(on_gpu.correct.download(), apart.correct));
  StepState values;
  values.inverse_samples = 0.5F;
  const DeviceValue<StepState> state(gpu.context, values);
  on_gpu.run(state.data(), on_gpu.logits.view(on_gpu.shape));
  CHECK(same_bits(on_gpu.logits.download(), apart.dlogits));
}

TEST_CASE("on CUDA logits of any size give finite losses") {
  Gpu gpu;
  Outcome out = run(gpu.context, single({1e4F, -1e4F, 0}, 1), 1);
  CHECK(out.loss[0] == 2e4F);
  CHECK(out.dlogits[0] == 1);
  CHECK(out.dlogits[1] == -1);
  CHECK(out.dlogits[2] == 0);
  out = run(gpu.context, single({-1e4F, -1e4F}, 0), 1);
  CHECK(out.loss[0] == Approx(std::log(2.0)));
  CHECK(out.dlogits[0] == -0.5F);
  // A gradient that is almost 0 keeps its digits: -exp(-20) / (1 + exp(-20)).
  out = run(gpu.context, single({20, 0}, 0), 1);
  CHECK(out.dlogits[0] == Approx(-std::exp(-20.0)).epsilon(1e-6));
  CHECK(out.loss[0] == Approx(std::exp(-20.0)).epsilon(1e-6));
}

TEST_CASE("on CUDA logits that are not finite are passed on and never count as right") {
  Gpu gpu;
  for (const float bad : {kNan, kInfinity}) {
    for (const std::size_t place : {0, 1, 40}) {
      for (const std::int32_t target : {0, 1, 40}) {
        INFO(bad << " at " << place << ", target " << target);
        std::vector<float> logits(45, 1.0F);
        logits[place] = bad;
        const Outcome out = run(gpu.context, single(logits, target), 1);
        CHECK(std::isnan(out.loss[0]));
        CHECK(out.correct[0] == 0);
        CHECK(std::isnan(out.dlogits[0]));
      }
    }
  }
  // A class that is ruled out costs nothing unless it was the target.
  const Outcome out = run(gpu.context, single({-kInfinity, 1, 1}, 1), 1);
  CHECK(out.loss[0] == Approx(std::log(2.0)));
  CHECK(out.correct[0] == 1);
  CHECK(out.dlogits[0] == 0);
  CHECK(run(gpu.context, single({-kInfinity, 1, 1}, 0), 1).loss[0] == kInfinity);
}

TEST_CASE("on CUDA the first of equal logits is the prediction") {
  Gpu gpu;
  CHECK(run(gpu.context, single({1, 3, 3}, 1), 1).correct[0] == 1);
  CHECK(run(gpu.context, single({1, 3, 3}, 2), 1).correct[0] == 0);
  // In one lane of the warp, and in two with the later class in the lower lane.
  std::vector<float> logits(70, 0.0F);
  logits[5] = logits[37] = 2;
  CHECK(run(gpu.context, single(logits, 5), 1).correct[0] == 1);
  CHECK(run(gpu.context, single(logits, 37), 1).correct[0] == 0);
  logits[5] = 0;
  logits[64] = 2;
  CHECK(run(gpu.context, single(logits, 37), 1).correct[0] == 1);
  CHECK(run(gpu.context, single(logits, 64), 1).correct[0] == 0);
}

TEST_CASE("sum_losses on CUDA overwrites or adds, and hands the stop request on") {
  Gpu gpu;
  for (const std::int64_t count : {0, 1, 33, 300, 1001}) {
    INFO(count << " samples");
    const std::vector<float> losses = random_values(count, 1, 0, 3);
    std::vector<float> hits(losses.size(), 0.0F);
    for (std::size_t i = 0; i < hits.size(); i += 3) hits[i] = 1;
    double sum = 0, hit = 0;
    for (std::size_t i = 0; i < losses.size(); ++i) sum += losses[i], hit += hits[i];
    const DeviceArray<float> loss(gpu.context, losses), correct(gpu.context, hits);
    StepState values;
    values.stop = 1;
    DeviceValue<StepState> state(gpu.context, values);
    StepTail poisoned;
    poisoned.loss = poisoned.correct = poisoned.stop = kNan;
    const DeviceValue<StepTail> tail(gpu.context, poisoned);
    sum_losses(gpu.context, state.data(), loss.data(), correct.data(), count, tail.data(), false);
    CHECK(tail.download().loss == Approx(sum).epsilon(1e-6));
    CHECK(tail.download().correct == hit);
    CHECK(tail.download().stop == 1);
    values.stop = 0;
    state.upload(values);
    sum_losses(gpu.context, state.data(), loss.data(), correct.data(), count, tail.data(), true);
    CHECK(tail.download().loss == Approx(2 * sum).epsilon(1e-6));
    CHECK(tail.download().correct == 2 * hit);
    CHECK(tail.download().stop == 1);
  }
}

TEST_CASE("sum_losses on CUDA gives every slice its own tail, with the bits it has alone") {
  Gpu gpu;
  constexpr std::int64_t kSlice = 301;
  const DeviceArray<float> loss(gpu.context, random_values(4 * kSlice, 1, 0, 3));
  const DeviceArray<float> correct(gpu.context, std::vector<float>(4 * kSlice, 1.0F));
  const DeviceValue<StepState> state(gpu.context, StepState{});
  const DeviceArray<StepTail> tails(gpu.context, std::vector<StepTail>(8));
  sum_losses(gpu.context, state.data(), loss.data(), correct.data(), 4 * kSlice, tails.data(),
             false, 4, 2 * kTailFloats);
  const std::vector<StepTail> together = tails.download();
  for (std::size_t slice = 0; slice < 4; ++slice) {
    const DeviceValue<StepTail> alone(gpu.context, StepTail{});
    sum_losses(gpu.context, state.data(), loss.data() + slice * kSlice, correct.data(), kSlice,
               alone.data(), false);
    CHECK(together[2 * slice].loss == alone.download().loss);
    CHECK(together[2 * slice].correct == kSlice);
    CHECK(together[2 * slice + 1].correct == 0);
  }
}

TEST_CASE("sum_chunk on CUDA overwrites or adds") {
  Gpu gpu;
  for (const std::int64_t count : {0, 1, 33, 1001}) {
    INFO(count << " samples");
    const std::vector<float> losses = random_values(count, 1, 0, 3);
    std::vector<float> hits(losses.size(), 0.0F);
    for (std::size_t i = 0; i < hits.size(); i += 3) hits[i] = 1;
    double sum = 0;
    std::int64_t hit = 0;
    for (std::size_t i = 0; i < losses.size(); ++i) sum += losses[i], hit += hits[i] > 0 ? 1 : 0;
    const DeviceArray<float> loss(gpu.context, losses), correct(gpu.context, hits);
    const DeviceValue<ChunkSums> sums(gpu.context, {kNan, -7});
    sum_chunk(gpu.context, loss.data(), correct.data(), count, sums.data(), false);
    CHECK(sums.download().loss == Approx(sum).epsilon(1e-13));
    CHECK(sums.download().correct == hit);
    sum_chunk(gpu.context, loss.data(), correct.data(), count, sums.data(), true);
    CHECK(sums.download().loss == Approx(2 * sum).epsilon(1e-13));
    CHECK(sums.download().correct == 2 * hit);
  }
}
