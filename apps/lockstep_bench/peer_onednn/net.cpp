#include "apps/lockstep_bench/peer_onednn/net.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>

namespace lockstep::peer_onednn {

namespace {

constexpr auto kAny = memory::format_tag::any;

memory::desc floats(const memory::dims& shape, memory::format_tag tag = kAny) {
  return {shape, memory::data_type::f32, tag};
}

std::int64_t count_of(const memory::dims& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

float glorot(std::int64_t in, std::int64_t out) {
  return std::sqrt(6 / static_cast<float>(in + out));
}

}  // namespace

void Parameter::adam(float rate, int step) {
  constexpr float kBeta1 = 0.9F;
  constexpr float kBeta2 = 0.999F;
  constexpr float kEpsilon = 1e-8F;
  const float correction1 = 1 - std::pow(kBeta1, static_cast<float>(step));
  const float correction2 = 1 - std::pow(kBeta2, static_cast<float>(step));
  float* const w = data_of(value);
  const float* const g = data_of(gradient);
  for (std::size_t i = 0; i < first.size(); ++i) {
    first[i] = kBeta1 * first[i] + (1 - kBeta1) * g[i];
    second[i] = kBeta2 * second[i] + (1 - kBeta2) * g[i] * g[i];
    w[i] -= rate * (first[i] / correction1) / (std::sqrt(second[i] / correction2) + kEpsilon);
  }
}

Net::Net() {
  x_ = tensor(floats({kBatch, 1, 28, 28}, memory::format_tag::nchw));
  memory y = add_conv(0, x_, 1, 8, 28);
  y = add_conv(1, y, 8, 16, 14);
  add_linear(y);
  for (int i = 1; i >= 0; --i) add_conv_backward(i);
}

memory Net::tensor(const memory::desc& desc) {
  memory made(desc, engine_);
  std::memset(made.get_data_handle(), 0, desc.get_size());
  return made;
}

memory Net::in_layout(Pass& pass, const memory& from, const memory::desc& wanted) {
  if (from.get_desc() == wanted) return from;
  const memory to = tensor(wanted);
  pass.push_back({dnnl::reorder(from, to), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}});
  return to;
}

memory Net::drawn(const memory::desc& desc, const memory::dims& shape, memory::format_tag plain,
                  float limit) {
  memory source = tensor(floats(shape, plain));
  std::uniform_real_distribution<float> uniform(-limit, limit);
  std::generate_n(data_of(source), count_of(shape), [&] { return uniform(random_); });
  memory made = tensor(desc);
  dnnl::reorder(source, made).execute(stream_, source, made);
  stream_.wait();
  parameter_count_ += count_of(shape);
  return made;
}

memory Net::add_conv(int index, const memory& given, std::int64_t in, std::int64_t out,
                     std::int64_t image) {
  Conv& c = convs_[index];
  c.given = given;
  c.w_shape = {out, in, 3, 3};
  c.conv = {{dnnl::prop_kind::forward_training,
             dnnl::algorithm::convolution_direct,
             index == 0 ? given.get_desc() : floats({kBatch, in, image, image}),
             floats(c.w_shape),
             floats({out}),
             floats({kBatch, out, image, image}),
             {1, 1},
             {1, 1},
             {1, 1}},
            engine_};
  c.x = in_layout(forward_, given, c.conv.src_desc());
  c.y = tensor(c.conv.dst_desc());
  constexpr std::int64_t kPlaces = 9;
  c.w = drawn(c.conv.weights_desc(), c.w_shape, memory::format_tag::oihw,
              glorot(in * kPlaces, out * kPlaces));
  c.b = bias(c.conv.bias_desc(), out);
  forward_.push_back(
      {dnnl::convolution_forward(c.conv),
       {{DNNL_ARG_SRC, c.x}, {DNNL_ARG_WEIGHTS, c.w}, {DNNL_ARG_BIAS, c.b}, {DNNL_ARG_DST, c.y}}});
  c.pool = {{dnnl::prop_kind::forward_training,
             dnnl::algorithm::pooling_max,
             c.y.get_desc(),
             floats({kBatch, out, image / 2, image / 2}),
             {2, 2},
             {2, 2},
             {0, 0},
             {0, 0}},
            engine_};
  c.pooled = tensor(c.pool.dst_desc());
  c.places = tensor(c.pool.workspace_desc());
  forward_.push_back(
      {dnnl::pooling_forward(c.pool),
       {{DNNL_ARG_SRC, c.y}, {DNNL_ARG_DST, c.pooled}, {DNNL_ARG_WORKSPACE, c.places}}});
  return c.pooled;
}

void Net::add_linear(const memory& x) {
  const memory::dims w_shape{kClasses, 16, 7, 7};
  const dnnl::inner_product_forward::primitive_desc forward(
      {dnnl::prop_kind::forward_training, x.get_desc(), floats(w_shape), floats({kClasses}),
       floats({kBatch, kClasses}, memory::format_tag::nc)},
      engine_);
  const memory w = drawn(forward.weights_desc(), w_shape, memory::format_tag::oihw,
                         glorot(count_of(w_shape) / kClasses, kClasses));
  const memory b = bias(forward.bias_desc(), kClasses);
  logits_ = tensor(forward.dst_desc());
  dlogits_ = tensor(forward.dst_desc());
  forward_.push_back(
      {dnnl::inner_product_forward(forward),
       {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_BIAS, b}, {DNNL_ARG_DST, logits_}}});

  const dnnl::inner_product_backward_weights::primitive_desc of_w(
      {x.get_desc(), floats(w_shape), floats({kClasses}), dlogits_.get_desc()}, engine_, forward);
  const memory dw = tensor(of_w.diff_weights_desc());
  const memory db = tensor(of_w.diff_bias_desc());
  backward_.push_back({dnnl::inner_product_backward_weights(of_w),
                       {{DNNL_ARG_SRC, x},
                        {DNNL_ARG_DIFF_DST, dlogits_},
                        {DNNL_ARG_DIFF_WEIGHTS, dw},
                        {DNNL_ARG_DIFF_BIAS, db}}});
  learn(w, in_layout(backward_, dw, w.get_desc()));
  learn(b, db);

  const dnnl::inner_product_backward_data::primitive_desc of_x(
      {x.get_desc(), floats(w_shape), dlogits_.get_desc()}, engine_, forward);
  gradient_ = tensor(x.get_desc());
  backward_.push_back({dnnl::inner_product_backward_data(of_x),
                       {{DNNL_ARG_DIFF_DST, dlogits_},
                        {DNNL_ARG_WEIGHTS, in_layout(backward_, w, of_x.weights_desc())},
                        {DNNL_ARG_DIFF_SRC, gradient_}}});
}

void Net::add_conv_backward(int index) {
  const Conv& c = convs_[index];
  const dnnl::pooling_backward::primitive_desc pool({dnnl::algorithm::pooling_max,
                                                     c.y.get_desc(),
                                                     c.pooled.get_desc(),
                                                     {2, 2},
                                                     {2, 2},
                                                     {0, 0},
                                                     {0, 0}},
                                                    engine_, c.pool);
  const memory dpooled = in_layout(backward_, gradient_, pool.diff_dst_desc());
  const memory dy = tensor(pool.diff_src_desc());
  backward_.push_back(
      {dnnl::pooling_backward(pool),
       {{DNNL_ARG_DIFF_DST, dpooled}, {DNNL_ARG_WORKSPACE, c.places}, {DNNL_ARG_DIFF_SRC, dy}}});

  const memory::desc x_any = index == 0 ? c.x.get_desc() : floats(c.x.get_desc().dims());
  const memory::desc y_any = floats(c.y.get_desc().dims());
  const dnnl::convolution_backward_weights::primitive_desc of_w(
      {dnnl::algorithm::convolution_direct,
       x_any,
       floats(c.w_shape),
       floats({c.w_shape[0]}),
       y_any,
       {1, 1},
       {1, 1},
       {1, 1}},
      engine_, c.conv);
  const memory dw = tensor(of_w.diff_weights_desc());
  const memory db = tensor(of_w.diff_bias_desc());
  const memory x = in_layout(backward_, c.x, of_w.src_desc());
  const memory dy_for_w = in_layout(backward_, dy, of_w.diff_dst_desc());
  backward_.push_back({dnnl::convolution_backward_weights(of_w),
                       {{DNNL_ARG_SRC, x},
                        {DNNL_ARG_DIFF_DST, dy_for_w},
                        {DNNL_ARG_DIFF_WEIGHTS, dw},
                        {DNNL_ARG_DIFF_BIAS, db}}});
  learn(c.w, in_layout(backward_, dw, c.w.get_desc()));
  learn(c.b, db);
  if (index == 0) return;

  const dnnl::convolution_backward_data::primitive_desc of_x({dnnl::algorithm::convolution_direct,
                                                              x_any,
                                                              floats(c.w_shape),
                                                              y_any,
                                                              {1, 1},
                                                              {1, 1},
                                                              {1, 1}},
                                                             engine_, c.conv);
  const memory w = in_layout(backward_, c.w, of_x.weights_desc());
  const memory dy_for_x = in_layout(backward_, dy, of_x.diff_dst_desc());
  const memory dx = tensor(of_x.diff_src_desc());
  backward_.push_back(
      {dnnl::convolution_backward_data(of_x),
       {{DNNL_ARG_DIFF_DST, dy_for_x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DIFF_SRC, dx}}});
  gradient_ = in_layout(backward_, dx, c.given.get_desc());
}

void Net::run(Pass& pass) {
  for (auto& [primitive, arguments] : pass) primitive.execute(stream_, arguments);
  stream_.wait();
}

memory Net::bias(const memory::desc& desc, std::int64_t n) {
  return drawn(desc, {n}, memory::format_tag::x, std::sqrt(3 / static_cast<float>(n)));
}

}  // namespace lockstep::peer_onednn
