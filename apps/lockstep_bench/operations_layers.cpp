// Pooling, fully connected layers, ReLU and dropout.
#include "lockstep/core/error.h"
#include "lockstep/kernels/dropout.h"
#include "lockstep/kernels/linear.h"
#include "lockstep/kernels/pool.h"
#include "lockstep/kernels/relu.h"

#include "apps/lockstep_bench/catalogue.h"

namespace lockstep::apps {

namespace {

void pool(Catalogue& list, const Shape& sample, std::int64_t block, const std::string& shape) {
  const Window window{.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2};
  const Shape small{sample[0], sample[1] / 2, sample[2] / 2};
  const auto comparisons = static_cast<double>(block * sample.count());
  if (list.wanted("maxpool2d_forward", shape)) {
    Draft d("maxpool2d_forward", shape, block);
    const FloatView x = d.activation(sample);
    const FloatView y = d.activation(small);
    const View<std::uint8_t> argmax = d.bytes_of(small);
    list.add(d, comparisons,
             [=, &context = list.context()] { maxpool2d_forward(context, window, x, y, argmax); });
  }
  if (list.wanted("maxpool2d_backward", shape)) {
    Draft d("maxpool2d_backward", shape, block);
    const FloatView dy = d.activation(small);
    const View<std::uint8_t> argmax = d.bytes_of(small);
    const FloatView dx = d.activation(sample);
    for (std::int64_t i = 0; i < block * small.count(); ++i) {
      argmax.data[i] = static_cast<std::uint8_t>(dy.data[i] > 0 ? 3 : 0);
    }
    list.add(d, comparisons, [=, &context = list.context()] {
      maxpool2d_backward(context, window, dy, argmax, dx);
    });
  }
}

void linear(Catalogue& list, std::int64_t in, std::int64_t out, std::int64_t block) {
  const std::string shape = message(in, "->", out);
  const double flops = 2.0 * static_cast<double>(block * in * out);
  if (list.wanted("linear_forward", shape)) {
    Draft d("linear_forward", shape, block);
    const FloatView x = d.activation({in});
    const FloatView w = d.parameter({out, in});
    const FloatView b = d.parameter({out});
    const FloatView y = d.activation({out});
    list.add(d, flops, [=, &context = list.context()] { linear_forward(context, x, w, b, y); });
  }
  if (list.wanted("linear_backward_data", shape)) {
    Draft d("linear_backward_data", shape, block);
    const FloatView dy = d.activation({out});
    const FloatView w = d.parameter({out, in});
    const FloatView dx = d.activation({in});
    list.add(d, flops,
             [=, &context = list.context()] { linear_backward_data(context, dy, w, dx); });
  }
  if (list.wanted("linear_backward_parameters", shape)) {
    Draft d("linear_backward_parameters", shape, block);
    const FloatView x = d.activation({in});
    const FloatView dy = d.activation({out});
    const FloatView dw = d.parameter({out, in});
    const FloatView db = d.parameter({out});
    list.add(d, flops, [=, &context = list.context()] {
      linear_backward_parameters(context, x, dy, dw, db, false);
    });
  }
}

void relu(Catalogue& list, const Shape& sample, std::int64_t block) {
  const std::string shape = message(sample.count());
  const auto elements = static_cast<double>(block * sample.count());
  if (list.wanted("relu_forward", shape)) {
    Draft d("relu_forward", shape, block);
    const FloatView x = d.activation(sample);
    const FloatView y = d.activation(sample);
    list.add(d, elements, [=, &context = list.context()] { relu_forward(context, x, y); });
  }
  if (list.wanted("relu_backward", shape)) {
    Draft d("relu_backward", shape, block);
    const FloatView y = d.activation(sample);
    const FloatView dy = d.activation(sample);
    const FloatView dx = d.activation(sample);
    list.add(d, elements, [=, &context = list.context()] { relu_backward(context, y, dy, dx); });
  }
}

void dropout(Catalogue& list, const Shape& sample, std::int64_t block) {
  const std::string shape = message(sample.count());
  const auto elements = static_cast<double>(block * sample.count());
  constexpr float kRate = 0.5F;
  if (list.wanted("dropout_forward", shape)) {
    Draft d("dropout_forward", shape, block);
    auto* const state = d.values<StepState>(1);
    auto* const index = d.sample_index();
    const FloatView x = d.activation(sample);
    const FloatView y = d.activation(sample);
    const View<std::uint8_t> mask = d.bytes_of(sample);
    list.add(d, elements, [=, &context = list.context()] {
      dropout_forward(context, kRate, {.seed = 1, .layer = 5}, state, index, x, y, mask);
    });
  }
  if (list.wanted("dropout_backward", shape)) {
    Draft d("dropout_backward", shape, block);
    const View<std::uint8_t> mask = d.bytes_of(sample);
    const FloatView dy = d.activation(sample);
    const FloatView dx = d.activation(sample);
    list.add(d, elements,
             [=, &context = list.context()] { dropout_backward(context, kRate, mask, dy, dx); });
  }
}

}  // namespace

void add_pools(Catalogue& list) {
  for (const auto& [channels, image] : {std::pair{8, 28}, std::pair{16, 14}, std::pair{64, 24}}) {
    const Shape sample{channels, image, image};
    for (const std::int64_t block : Catalogue::blocks({MaxPool2d{.kernel = 2}}, sample)) {
      pool(list, sample, block, message(channels, ' ', image, 'x', image, " k2 s2"));
    }
  }
}

void add_linears(Catalogue& list) {
  for (const auto& [in, out] : {std::pair{784, 10}, std::pair{400, 120}, std::pair{12544, 128}}) {
    for (const std::int64_t block : Catalogue::blocks({Linear{.in = in, .out = out}}, {in})) {
      linear(list, in, out, block);
    }
  }
}

void add_elementwise(Catalogue& list) {
  for (const std::int64_t elements : {1176, 18432}) {
    const Shape sample{elements};
    for (const std::int64_t block : Catalogue::blocks({ReLU{}}, sample)) relu(list, sample, block);
  }
  for (const std::int64_t block : Catalogue::blocks({Dropout{.rate = 0.5F}}, {128}))
    dropout(list, {128}, block);
  for (const std::int64_t block : Catalogue::blocks({Dropout{.rate = 0.25F}}, {9216})) {
    dropout(list, {9216}, block);
  }
}

}  // namespace lockstep::apps
