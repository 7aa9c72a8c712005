// Conv2d: the description and its layer.
#include "lockstep/core/error.h"
#include "lockstep/kernels/conv.h"
#include "lockstep/layers/descriptions.h"
#include "lockstep/layers/spatial.h"

namespace lockstep {

namespace {

class Conv2dLayer final : public Layer {
 public:
  Conv2dLayer(const Window& window, const Binding& binding)
      : window_(window), tensors_(binding), weight_(binding.parameters.at(0)) {
    if (binding.parameters.size() > 1) bias_ = binding.parameters[1];
  }

  void forward(Context& context, const Pass&) override {
    conv2d_forward(context, window_, tensors_.x, weight_.value, bias_.value, tensors_.y);
  }

  void backward(Context& context, const Pass&, bool first_block) override {
    conv2d_backward_parameters(context, window_, tensors_.x, tensors_.dy, weight_.grad, bias_.grad,
                               !first_block);
    if (tensors_.dx.data == nullptr) return;
    conv2d_backward_data(context, window_, tensors_.dy, weight_.value, tensors_.dx);
  }

 private:
  Window window_;
  Binding tensors_;
  BoundParameter weight_;
  BoundParameter bias_;  // null data without a bias
};

}  // namespace

Window Conv2d::window(const Shape& in_shape) const {
  if (in < 1 || out < 1) {
    throw UsageError(
        message("conv2d: in is ", in, " and out is ", out, "; both must be 1 or more"));
  }
  if (in_shape.rank() != 3 || in_shape[0] != in) {
    throw ShapeError(message("conv2d: a sample is ", in_shape, ", want (", in, ", H, W)"));
  }
  return make_window("conv2d", in_shape, kernel, stride, padding);
}

Shape Conv2d::output_shape(const Shape& in_shape) const {
  const Window w = window(in_shape);
  return {out, w.output_h(in_shape[1]), w.output_w(in_shape[2])};
}

std::vector<ParameterSpec> Conv2d::parameters() const {
  const std::int64_t places = kernel.h * kernel.w;
  std::vector<ParameterSpec> specs{{.name = "weight",
                                    .shape = {out, in, kernel.h, kernel.w},
                                    .initializer = weight_init,
                                    .fan_in = in * places,
                                    .fan_out = out * places,
                                    .decays = true}};
  if (bias) {
    specs.push_back(
        {.name = "bias", .shape = {out}, .initializer = bias_init, .fan_in = out, .fan_out = out});
  }
  return specs;
}

std::string Conv2d::summary() const {
  return message("conv ", kernel.h, "x", kernel.w, ", ", in, "->", out, ", ",
                 stride_and_padding(stride, padding), bias ? "" : ", no bias");
}

std::size_t Conv2d::workspace_bytes(Context& context, const Shape& x) const {
  return conv2d_workspace_bytes(context, window(x.without_first()), x,
                                {out, in, kernel.h, kernel.w});
}

std::unique_ptr<Layer> Conv2d::bind(const Binding& binding) const {
  return std::make_unique<Conv2dLayer>(window(binding.x.shape.without_first()), binding);
}

}  // namespace lockstep
