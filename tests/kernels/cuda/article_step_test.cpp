// The operations of a training step of the article's CNN, one by one: how many calls they are, and
// that a recorded step has the bits of an eager one.
#include <dlfcn.h>

#include "lockstep/core/stream.h"
#include "lockstep/kernels/conv.h"
#include "lockstep/kernels/linear.h"
#include "lockstep/kernels/pool.h"
#include "lockstep/kernels/softmax_cross_entropy.h"

#include "kernels/n16.h"
#include "kernels/samples.h"
#include "support/cuda_device.h"

namespace lockstep {
namespace {

using namespace test;

/// A counter of the simulated CUDA; null on a real GPU.
using Counter = std::uint64_t (*)(const char*);
Counter counter() {
  return reinterpret_cast<Counter>(dlsym(RTLD_DEFAULT, "cusim_counter"));
}

constexpr std::int64_t kBatch = 5;

/// An activation of the batch with its gradient.
struct Activation {
  Shape shape;
  DeviceArray<float> value, gradient;

  Activation(const Context& context, const Shape& the_shape)
      : shape(the_shape), value(context, shape.count()), gradient(context, shape.count()) {}
  [[nodiscard]] FloatView y() const { return value.view(shape); }
  [[nodiscard]] FloatView dy() const { return gradient.view(shape); }
};

/// Weights and bias of a layer, with their gradients.
struct Parameters {
  Shape shape;
  DeviceArray<float> w, b, dw, db;

  Parameters(const Context& context, const Shape& the_shape, std::uint64_t seed)
      : shape(the_shape),
        w(context, random_values(shape.count(), seed)),
        b(context, random_values(shape[0], seed + 1)),
        dw(context, shape.count()),
        db(context, shape[0]) {}
};

struct ArticleStep {
  Gpu gpu;
  Context& context = gpu.context;
  Window same = same_window(28, 28, 3, 3, 1, 1);
  Window two{.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2};
  DeviceArray<float> x{context, random_values(kBatch * 28 * 28, 1)};
  Activation conv1{context, {kBatch, 8, 28, 28}}, pool1{context, {kBatch, 8, 14, 14}},
      conv2{context, {kBatch, 16, 14, 14}}, pool2{context, {kBatch, 16, 7, 7}},
      logits{context, {kBatch, 10}};
  Parameters w1{context, {8, 1, 3, 3}, 2}, w2{context, {16, 8, 3, 3}, 4}, w3{context, {10, 784}, 6};
  DeviceArray<std::uint8_t> argmax1{context, pool1.shape.count()},
      argmax2{context, pool2.shape.count()};
  DeviceArray<std::int32_t> index{context, std::vector<std::int32_t>{3, 1, -1, 0, 2}};
  DeviceArray<std::int32_t> classes{context, std::vector<std::int32_t>{9, 0, 0, 4, 5}};
  DeviceArray<float> loss{context, kBatch}, correct{context, kBatch};
  DeviceValue<StepState> state{context, {.inverse_samples = 0.25F}};
  DeviceValue<StepTail> tail{context, {}};

  ArticleStep() {
    for (const auto& [in, weights] :
         {std::pair{Shape{kBatch, 1, 28, 28}, w1.shape}, std::pair{pool1.shape, w2.shape}}) {
      context.reserve_workspace(conv2d_workspace_bytes(context, same, in, weights));
    }
  }

  void run() {
    const FloatView image = x.view({kBatch, 1, 28, 28});
    conv2d_forward(context, same, image, w1.w.view(w1.shape), w1.b.view({8}), conv1.y());
    maxpool2d_forward(context, two, conv1.y(), pool1.y(), argmax1.view(pool1.shape));
    conv2d_forward(context, same, pool1.y(), w2.w.view(w2.shape), w2.b.view({16}), conv2.y());
    maxpool2d_forward(context, two, conv2.y(), pool2.y(), argmax2.view(pool2.shape));
    linear_forward(context, pool2.y(), w3.w.view(w3.shape), w3.b.view({10}), logits.y());
    softmax_cross_entropy(context, logits.y(), {index.data(), classes.data(), nullptr},
                          state.data(), loss.data(), correct.data(), logits.dy());
    sum_losses(context, state.data(), loss.data(), correct.data(), kBatch, tail.data(), false);
    linear_backward_parameters(context, pool2.y(), logits.dy(), w3.dw.view(w3.shape),
                               w3.db.view({10}), false);
    linear_backward_data(context, logits.dy(), w3.w.view(w3.shape), pool2.dy());
    maxpool2d_backward(context, two, pool2.dy(), argmax2.view(pool2.shape), conv2.dy());
    conv2d_backward_parameters(context, same, pool1.y(), conv2.dy(), w2.dw.view(w2.shape),
                               w2.db.view({16}), false);
    conv2d_backward_data(context, same, conv2.dy(), w2.w.view(w2.shape), pool1.dy());
    maxpool2d_backward(context, two, pool1.dy(), argmax1.view(pool1.shape), conv1.dy());
    conv2d_backward_parameters(context, same, image, conv1.dy(), w1.dw.view(w1.shape),
                               w1.db.view({8}), false);
  }

  /// All that a step computes for the update.
  [[nodiscard]] std::vector<float> results() const {
    std::vector<float> all{tail.download().loss, tail.download().correct};
    for (const Parameters* p : {&w1, &w2, &w3}) {
      for (const DeviceArray<float>* gradient : {&p->dw, &p->db}) {
        const std::vector<float> values = gradient->download();
        all.insert(all.end(), values.begin(), values.end());
      }
    }
    return all;
  }
  void forget_results() {
    for (Parameters* p : {&w1, &w2, &w3}) {
      p->dw.upload(not_written(p->shape.count()));
      p->db.upload(not_written(p->shape[0]));
    }
    tail.upload({.loss = kNan, .correct = kNan});
  }
};

TEST_CASE("a recorded step of the article's CNN has the bits of an eager one") {
  ArticleStep step;
  step.run();
  const std::vector<float> eager = step.results();
  for (const float value : eager) REQUIRE(std::isfinite(value));
  step.forget_results();
  Graph graph;
  graph.record(step.context, [&] { step.run(); });
  REQUIRE(std::isnan(step.results()[0]));  // recording executes nothing
  for (int launch = 0; launch < 2; ++launch) {
    step.forget_results();
    graph.launch(step.context);
    REQUIRE(same_bits(step.results(), eager));
  }
}

TEST_CASE("a step of the article's CNN is 20 calls without fusion, and allocates nothing") {
  const Counter count = counter();
  if (count == nullptr) {
    WARN("a real GPU: calls are counted only on the simulated one");
    return;
  }
  ArticleStep step;
  step.run();
  const std::uint64_t calls = count("calls");
  const std::uint64_t allocations = count("mallocs");
  const std::uint64_t waits = count("stream_syncs") + count("device_syncs");
  step.run();
  // Forward: 2 convolutions with bias, 2 poolings, linear with bias, loss, sums: 4 + 2 + 2 + 1 + 1.
  // Backward: linear's dw, db, dx; 2 poolings; dw and db of 2 convolutions, dx of one: 3 + 2 + 5.
  CHECK(count("calls") - calls == 20);
  CHECK(count("mallocs") == allocations);
  CHECK(count("stream_syncs") + count("device_syncs") == waits);
}

}  // namespace
}  // namespace lockstep
