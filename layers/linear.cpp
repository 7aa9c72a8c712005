// Linear: the description and its layer.
#include "lockstep/kernels/linear.h"

#include "lockstep/core/error.h"
#include "lockstep/layers/descriptions.h"

namespace lockstep {

namespace {

class LinearLayer final : public Layer {
 public:
  explicit LinearLayer(const Binding& binding)
      : tensors_(binding), weight_(binding.parameters.at(0)) {
    if (binding.parameters.size() > 1) bias_ = binding.parameters[1];
  }

  void forward(Context& context, const Pass&) override {
    linear_forward(context, tensors_.x, weight_.value, bias_.value, tensors_.y);
  }

  void backward(Context& context, const Pass&, bool first_block) override {
    linear_backward_parameters(context, tensors_.x, tensors_.dy, weight_.grad, bias_.grad,
                               !first_block);
    if (tensors_.dx.data == nullptr) return;
    linear_backward_data(context, tensors_.dy, weight_.value, tensors_.dx);
  }

 private:
  Binding tensors_;
  BoundParameter weight_;
  BoundParameter bias_;  // null data without a bias
};

}  // namespace

Shape Linear::output_shape(const Shape& in_shape) const {
  if (in < 1 || out < 1) {
    throw UsageError(
        message("linear: in is ", in, " and out is ", out, "; both must be 1 or more"));
  }
  if (in_shape.rank() != 1 || in_shape[0] != in) {
    throw ShapeError(message("linear: a sample is ", in_shape, ", want (", in, ")",
                             in_shape.rank() > 1 ? "; put Flatten{} in front of it" : ""));
  }
  return {out};
}

std::vector<ParameterSpec> Linear::parameters() const {
  std::vector<ParameterSpec> specs{{.name = "weight",
                                    .shape = {out, in},
                                    .initializer = weight_init,
                                    .fan_in = in,
                                    .fan_out = out,
                                    .decays = true}};
  if (bias) {
    specs.push_back(
        {.name = "bias", .shape = {out}, .initializer = bias_init, .fan_in = out, .fan_out = out});
  }
  return specs;
}

std::string Linear::summary() const {
  return message("linear ", in, "->", out, bias ? "" : ", no bias");
}

std::unique_ptr<Layer> Linear::bind(const Binding& binding) const {
  return std::make_unique<LinearLayer>(binding);
}

}  // namespace lockstep
