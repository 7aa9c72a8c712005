#include "lockstep/kernels/softmax_cross_entropy.h"

#include <cmath>

#include "kernels/softmax_cases.h"
#include "support/throws.h"

using namespace lockstep;
using namespace lockstep::test;

namespace {

struct Outcome {
  std::vector<float> loss, correct, dlogits;
};

Outcome run(Context& context, const Batch& batch, float inverse_samples, float filling = kNan) {
  const Shape shape{batch.padded, batch.classes};
  const std::vector<float> z = to_n16(batch.logits, {batch.real, batch.classes}, filling);
  Outcome outcome{not_written(batch.padded), not_written(batch.padded), not_written(shape.count())};
  StepState state;
  state.inverse_samples = inverse_samples;
  softmax_cross_entropy(context, {z.data(), shape, Layout::n16}, batch.targets(), &state,
                        outcome.loss.data(), outcome.correct.data(),
                        {outcome.dlogits.data(), shape, Layout::n16});
  return outcome;
}

}  // namespace

TEST_CASE("loss, hits and gradient follow the formula, empty places are exactly 0", "[kernels]") {
  for_each_set([](Context& context) {
    for (const std::int64_t classes : {1, 2, 10, 37}) {
      for (const std::int64_t real : {1, 17}) {
        for (const bool soft : {false, true}) {
          const Batch batch(real, classes, soft);
          const Outcome out = run(context, batch, 0.125F);
          for (std::int64_t n = 0; n < batch.padded; ++n) {
            INFO("sample " << n << " of " << real << ", classes " << classes << ", soft " << soft);
            const auto at = static_cast<std::size_t>(n);
            if (n >= real) {
              REQUIRE(out.loss[at] == 0);
              REQUIRE(out.correct[at] == 0);
              for (std::int64_t c = 0; c < classes; ++c)
                REQUIRE(out.dlogits[n16_index(classes, n, c)] == 0);
              continue;
            }
            const std::vector<double> z = batch.sample(n);
            const std::vector<double> t = batch.target_of(n);
            REQUIRE(out.loss[at] == Approx(reference_loss(z, t)).epsilon(1e-6).margin(1e-7));
            REQUIRE(out.correct[at] == (first_largest(z) == first_largest(t) ? 1.0F : 0.0F));
            for (std::int64_t c = 0; c < classes; ++c) {
              constexpr double kStep = 1e-5;
              std::vector<double> up = z, down = z;
              up[static_cast<std::size_t>(c)] += kStep;
              down[static_cast<std::size_t>(c)] -= kStep;
              const double slope = (reference_loss(up, t) - reference_loss(down, t)) / (2 * kStep);
              REQUIRE(out.dlogits[n16_index(classes, n, c)] ==
                      Approx(0.125 * slope).epsilon(1e-6).margin(1e-9));
            }
          }
        }
      }
    }
  });
}

TEST_CASE("the gradient may overwrite the logits, and may be left out", "[kernels]") {
  for_each_set([](Context& context) {
    const Batch batch(17, 10, false);
    const Outcome apart = run(context, batch, 0.5F);
    const Shape shape{batch.padded, batch.classes};
    std::vector<float> z = to_n16(batch.logits, {batch.real, batch.classes}, kInfinity);
    Outcome out{not_written(batch.padded), not_written(batch.padded), {}};
    softmax_cross_entropy(context, {z.data(), shape, Layout::n16}, batch.targets(), nullptr,
                          out.loss.data(), out.correct.data(), {});
    CHECK(same_bits(out.loss, apart.loss));
    CHECK(same_bits(out.correct, apart.correct));
    StepState state;
    state.inverse_samples = 0.5F;
    softmax_cross_entropy(context, {z.data(), shape, Layout::n16}, batch.targets(), &state,
                          out.loss.data(), out.correct.data(), {z.data(), shape, Layout::n16});
    CHECK(same_bits(z, apart.dlogits));
  });
}

TEST_CASE("logits of any size give finite losses", "[kernels]") {
  for_each_set([](Context& context) {
    Outcome out = run(context, single({1e4F, -1e4F, 0}, 1), 1);
    CHECK(out.loss[0] == 2e4F);
    CHECK(out.dlogits[n16_index(3, 0, 0)] == 1);
    CHECK(out.dlogits[n16_index(3, 0, 1)] == -1);
    CHECK(out.dlogits[n16_index(3, 0, 2)] == 0);
    out = run(context, single({-1e4F, -1e4F}, 0), 1);
    CHECK(out.loss[0] == Approx(std::log(2.0)));
    CHECK(out.dlogits[n16_index(2, 0, 0)] == -0.5F);
    // A gradient that is almost 0 keeps its digits: -exp(-20) / (1 + exp(-20)).
    out = run(context, single({20, 0}, 0), 1);
    CHECK(out.dlogits[n16_index(2, 0, 0)] == Approx(-std::exp(-20.0)).epsilon(1e-6));
    CHECK(out.loss[0] == Approx(std::exp(-20.0)).epsilon(1e-6));
  });
}

TEST_CASE("logits that are not finite are passed on and never count as right", "[kernels]") {
  for_each_set([](Context& context) {
    for (const float bad : {kNan, kInfinity}) {
      for (const std::int32_t target : {0, 1}) {
        const Outcome out = run(context, single({bad, 1}, target), 1);
        CHECK(std::isnan(out.loss[0]));
        CHECK(out.correct[0] == 0);
        CHECK(std::isnan(out.dlogits[n16_index(2, 0, 0)]));
      }
    }
    // A class that is ruled out costs nothing unless it was the target.
    const Outcome out = run(context, single({-kInfinity, 1, 1}, 1), 1);
    CHECK(out.loss[0] == Approx(std::log(2.0)));
    CHECK(out.correct[0] == 1);
    CHECK(out.dlogits[n16_index(3, 0, 0)] == 0);
    CHECK(run(context, single({-kInfinity, 1, 1}, 0), 1).loss[0] == kInfinity);
  });
}

TEST_CASE("of equal logits the first is the prediction", "[kernels]") {
  for_each_set([](Context& context) {
    CHECK(run(context, single({1, 3, 3}, 1), 1).correct[0] == 1);
    CHECK(run(context, single({1, 3, 3}, 2), 1).correct[0] == 0);
  });
}

TEST_CASE("sum_losses overwrites or adds, and hands the stop request on", "[kernels]") {
  Context context(Device{});
  const std::vector<float> loss = random_values(33, 1, 0, 3);
  std::vector<float> correct(33, 0.0F);
  correct[4] = correct[32] = 1;
  StepState state;
  state.stop = 1;
  StepTail tail;
  tail.loss = kNan;
  tail.correct = kNan;
  sum_losses(context, &state, loss.data(), correct.data(), 33, &tail, false);
  double sum = 0;
  for (const float value : loss) sum += value;
  CHECK(tail.loss == Approx(sum).epsilon(1e-6));
  CHECK(tail.correct == 2);
  CHECK(tail.stop == 1);
  state.stop = 0;
  sum_losses(context, &state, loss.data(), correct.data(), 5, &tail, true);
  for (int i = 0; i < 5; ++i) sum += loss[static_cast<std::size_t>(i)];
  CHECK(tail.loss == Approx(sum).epsilon(1e-6));
  CHECK(tail.correct == 3);
  CHECK(tail.stop == 1);
  CHECK_THROWS_AS(sum_losses(context, &state, loss.data(), correct.data(), -1, &tail, true),
                  ShapeError);
}

TEST_CASE("sum_losses gives every slice its own tail, as if it were alone", "[kernels]") {
  Context context(Device{});
  const std::vector<float> loss = random_values(24, 1, 0, 3);
  const std::vector<float> correct(24, 1.0F);
  StepState state;
  state.stop = 1;
  std::vector<StepTail> tails(6);
  sum_losses(context, &state, loss.data(), correct.data(), 24, tails.data(), false, 3,
             2 * kTailFloats);
  for (std::size_t slice = 0; slice < 3; ++slice) {
    StepTail alone;
    sum_losses(context, &state, loss.data() + 8 * slice, correct.data(), 8, &alone, false);
    CHECK(tails[2 * slice].loss == alone.loss);
    CHECK(tails[2 * slice].correct == 8);
    CHECK(tails[2 * slice].stop == 1);
    CHECK(tails[2 * slice + 1].correct == 0);
  }
  CHECK_THROWS_AS(sum_losses(context, &state, loss.data(), correct.data(), 24, tails.data(), false,
                             5, kTailFloats),
                  ShapeError);
}

TEST_CASE("sum_chunk adds in the order of the samples, fresh or onto what is there", "[kernels]") {
  Context context(Device{});
  const std::vector<float> loss = random_values(33, 1, 0, 3);
  std::vector<float> correct(33, 0.0F);
  correct[4] = correct[32] = 1;
  ChunkSums sums{kNan, -7};
  sum_chunk(context, loss.data(), correct.data(), 33, &sums, false);
  double expected = 0;
  for (const float value : loss) expected += value;
  CHECK(sums.loss == expected);
  CHECK(sums.correct == 2);
  sum_chunk(context, loss.data(), correct.data(), 5, &sums, true);
  for (int i = 0; i < 5; ++i) expected += loss[static_cast<std::size_t>(i)];
  CHECK(sums.loss == expected);
  CHECK(sums.correct == 3);
  sum_chunk(context, loss.data(), correct.data(), 0, &sums, false);
  CHECK(sums.loss == 0);
  CHECK(sums.correct == 0);
  CHECK_THROWS_AS(sum_chunk(context, loss.data(), correct.data(), -1, &sums, true), ShapeError);
}

TEST_CASE("softmax_cross_entropy refuses what does not fit", "[kernels]") {
  Context context(Device{});
  const Batch batch(16, 3, false);
  std::vector<float> z(48), out(48);
  const StepState state;
  const auto call = [&](const Shape& shape, Layout layout, const Targets& targets,
                        const Shape& gradient, const StepState* step) {
    softmax_cross_entropy(context, {z.data(), shape, layout}, targets, step, out.data(),
                          out.data() + 16, {z.data(), gradient, layout});
  };
  CHECK(contains(message_of<ShapeError>([&] {
                   call({16, 3, 1}, Layout::n16, batch.targets(), {16, 3, 1}, &state);
                 }),
                 "softmax_cross_entropy: logits is (16, 3, 1)"));
  CHECK_THROWS_AS(call({16, 0}, Layout::n16, batch.targets(), {16, 0}, &state), ShapeError);
  CHECK_THROWS_AS(call({16, 3}, Layout::canonical, batch.targets(), {16, 3}, &state), ShapeError);
  CHECK_THROWS_AS(call({12, 3}, Layout::n16, batch.targets(), {12, 3}, &state), ShapeError);
  CHECK_THROWS_AS(call({16, 3}, Layout::n16, batch.targets(), {16, 2}, &state), ShapeError);
  CHECK_THROWS_AS(call({16, 3}, Layout::n16, batch.targets(), {16, 3}, nullptr), UsageError);
  Targets targets = batch.targets();
  targets.soft = z.data();
  CHECK_THROWS_AS(call({16, 3}, Layout::n16, targets, {16, 3}, &state), UsageError);
  targets = {batch.index.data(), nullptr, nullptr};
  CHECK_THROWS_AS(call({16, 3}, Layout::n16, targets, {16, 3}, &state), UsageError);
  targets = batch.targets();
  targets.sample_index = nullptr;
  CHECK_THROWS_AS(call({16, 3}, Layout::n16, targets, {16, 3}, &state), UsageError);
}
