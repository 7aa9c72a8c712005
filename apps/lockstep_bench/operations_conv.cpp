// Convolutions, alone and with the pooling behind them.
#include <cstddef>

#include "lockstep/core/error.h"
#include "lockstep/kernels/conv.h"
#include "lockstep/kernels/fused.h"

#include "apps/lockstep_bench/catalogue.h"

namespace lockstep::apps {

namespace {

struct ConvCase {
  std::int64_t in, out, image, kernel, stride;
  bool same = true;

  [[nodiscard]] Window window() const {
    if (same) return same_window(image, image, kernel, kernel, stride, stride);
    return {.kernel_h = kernel, .kernel_w = kernel, .stride_h = stride, .stride_w = stride};
  }
  [[nodiscard]] Shape x() const { return {in, image, image}; }
  [[nodiscard]] Shape w() const { return {out, in, kernel, kernel}; }
  [[nodiscard]] Shape y() const {
    return {out, window().output_h(image), window().output_w(image)};
  }
  [[nodiscard]] std::string text() const {
    return message(in, "->", out, ' ', image, 'x', image, " k", kernel, " s", stride,
                   same ? "" : " valid");
  }
  [[nodiscard]] double flops(std::int64_t block) const {
    return 2.0 * static_cast<double>(block * y().count() * in * kernel * kernel);
  }
  [[nodiscard]] Sequential layers() const {
    return {Conv2d{.in = in,
                   .out = out,
                   .kernel = kernel,
                   .stride = stride,
                   .padding = same ? lockstep::same : valid}};
  }
};

// The article's two first, then those of the zoo's other models, then the rest, which would only
// make the table longer in larger blocks too.
constexpr std::ptrdiff_t kZooConvs = 4;
constexpr ConvCase kConvs[] = {
    {1, 8, 28, 3, 1},   {8, 16, 14, 3, 1},  {6, 16, 14, 5, 1, false}, {32, 64, 26, 3, 1, false},
    {1, 8, 28, 1, 1},   {1, 8, 28, 5, 1},   {1, 8, 28, 3, 2},         {3, 6, 32, 3, 1},
    {3, 6, 32, 5, 1},   {8, 16, 14, 1, 1},  {8, 16, 14, 5, 1},        {8, 16, 28, 3, 2},
    {16, 32, 14, 1, 1}, {16, 32, 14, 3, 1}, {16, 32, 14, 5, 1},       {16, 32, 14, 3, 2},
    {32, 64, 14, 3, 1}, {64, 64, 14, 1, 1}, {64, 64, 14, 3, 1},       {64, 64, 14, 3, 2}};

struct FusedCase {
  ConvCase conv;
  bool relu;
  bool wants_dx;
};
constexpr FusedCase kFused[] = {{{1, 8, 28, 3, 1}, false, false},
                                {{8, 16, 14, 3, 1}, false, true},
                                {{6, 16, 14, 5, 1, false}, true, true}};

void convolution(Catalogue& list, const ConvCase& c, std::int64_t block) {
  const Window window = c.window();
  list.need(conv2d_workspace_bytes(list.context(), window, c.x().with_first(block), c.w()));
  const double flops = c.flops(block);
  if (list.wanted("conv2d_forward", c.text())) {
    Draft d("conv2d_forward", c.text(), block);
    const FloatView x = d.activation(c.x());
    const FloatView w = d.parameter(c.w());
    const FloatView b = d.parameter({c.out});
    const FloatView y = d.activation(c.y());
    list.add(d, flops,
             [=, &context = list.context()] { conv2d_forward(context, window, x, w, b, y); });
  }
  if (list.wanted("conv2d_backward_data", c.text())) {
    Draft d("conv2d_backward_data", c.text(), block);
    const FloatView dy = d.activation(c.y());
    const FloatView w = d.parameter(c.w());
    const FloatView dx = d.activation(c.x());
    list.add(d, flops,
             [=, &context = list.context()] { conv2d_backward_data(context, window, dy, w, dx); });
  }
  if (list.wanted("conv2d_backward_parameters", c.text())) {
    Draft d("conv2d_backward_parameters", c.text(), block);
    const FloatView x = d.activation(c.x());
    const FloatView dy = d.activation(c.y());
    const FloatView dw = d.parameter(c.w());
    const FloatView db = d.parameter({c.out});
    list.add(d, flops, [=, &context = list.context()] {
      conv2d_backward_parameters(context, window, x, dy, dw, db, false);
    });
  }
}

Shape pooled(const FusedCase& c, const Window& pool) {
  return {c.conv.out, pool.output_h(c.conv.y()[1]), pool.output_w(c.conv.y()[2])};
}
std::string text(const FusedCase& c) {
  return c.conv.text() + (c.relu ? " relu" : "");
}

std::size_t workspace_bytes(const Catalogue& list, const FusedCase& c, const Window& pool) {
  return conv_pool_workspace_bytes(list.context(), c.conv.window(), pool,
                                   c.conv.x().with_first(kN16), c.conv.w(), 1);
}

void fused_forward(Catalogue& list, const FusedCase& c, const Window& pool) {
  if (!list.wanted("conv_pool_forward", text(c))) return;
  list.need(workspace_bytes(list, c, pool));
  Draft d("conv_pool_forward", text(c), kN16);
  const FloatView x = d.activation(c.conv.x());
  const FloatView w = d.parameter(c.conv.w());
  const FloatView b = d.parameter({c.conv.out});
  const FloatView y = d.activation(pooled(c, pool));
  const View<std::uint8_t> argmax = d.bytes_of(pooled(c, pool));
  list.add(d, c.conv.flops(kN16),
           [=, &context = list.context(), conv = c.conv.window(), relu = c.relu] {
             conv_pool_forward(context, conv, pool, relu, x, w, b, y, argmax);
           });
}

void fused_backward(Catalogue& list, const FusedCase& c, const Window& pool) {
  const std::string shape = text(c) + (c.wants_dx ? "" : " no dx");
  if (!list.wanted("conv_pool_backward", shape)) return;
  list.need(workspace_bytes(list, c, pool));
  // Its argmax is forward's of the same values: where the maxima lie decides what it skips.
  Draft d("conv_pool_backward", shape, kN16);
  const FloatView x = d.activation(c.conv.x());
  const FloatView w = d.parameter(c.conv.w());
  const FloatView y = d.activation(pooled(c, pool));
  const View<std::uint8_t> argmax = d.bytes_of(pooled(c, pool));
  const FloatView dy = d.activation(pooled(c, pool));
  const FloatView dw = d.parameter(c.conv.w());
  const FloatView db = d.parameter({c.conv.out});
  const FloatView dx = c.wants_dx ? d.activation(c.conv.x()) : FloatView{};
  const std::int64_t stride = round_up(c.conv.w().count() + c.conv.out, kAlignedFloats);
  conv_pool_forward(list.context(), c.conv.window(), pool, c.relu, x, w, FloatView{}, y, argmax);
  list.add(d, c.conv.flops(kN16) * (c.wants_dx ? 2 : 1),
           [=, &context = list.context(), conv = c.conv.window(), relu = c.relu] {
             conv_pool_backward(context, conv, pool, relu, x, w, y, argmax, dy, dw, db, false, dx,
                                1, stride);
           });
}

}  // namespace

void add_convolutions(Catalogue& list) {
  for (const ConvCase& c : kConvs) {
    convolution(list, c, kN16);
    if (&c >= kConvs + kZooConvs) continue;
    for (const std::int64_t block : Catalogue::blocks(c.layers(), c.x())) {
      if (block > kN16) convolution(list, c, block);
    }
  }
}

void add_fused(Catalogue& list) {
  const Window pool{.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2};
  for (const FusedCase& c : kFused) {
    const Shape x = c.conv.x().with_first(kN16);
    if (conv_pool_is_fused(list.context(), c.conv.window(), pool, x, c.conv.w())) {
      fused_forward(list, c, pool);
      fused_backward(list, c, pool);
    }
  }
}

}  // namespace lockstep::apps
