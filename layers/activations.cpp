// The layers without parameters that keep the number of values: ReLU, Flatten, Dropout.
#include "lockstep/core/error.h"
#include "lockstep/kernels/dropout.h"
#include "lockstep/kernels/reduce.h"
#include "lockstep/kernels/relu.h"
#include "lockstep/layers/descriptions.h"

namespace lockstep {

namespace {

class ReLULayer final : public Layer {
 public:
  explicit ReLULayer(const Binding& binding) : tensors_(binding) {}

  void forward(Context& context, const Pass&) override {
    relu_forward(context, tensors_.x, tensors_.y);
  }

  void backward(Context& context, const Pass&, bool) override {
    if (tensors_.dx.data == nullptr) return;
    relu_backward(context, tensors_.y, tensors_.dy, tensors_.dx);
  }

 private:
  Binding tensors_;
};

/// y is x and dx is dy (LayerTraits::Output::is_x).
class FlattenLayer final : public Layer {
 public:
  void forward(Context&, const Pass&) override {}
  void backward(Context&, const Pass&, bool) override {}
};

class DropoutLayer final : public Layer {
 public:
  DropoutLayer(float rate, const Binding& binding)
      : rate_(rate),
        key_{.seed = binding.seed, .layer = binding.number},
        tensors_(binding),
        mask_(binding.saved, binding.x.shape, binding.x.layout) {}

  void forward(Context& context, const Pass& pass) override {
    if (pass.training) {
      dropout_forward(context, rate_, key_, pass.state, pass.sample_index, tensors_.x, tensors_.y,
                      mask_);
    } else if (tensors_.y.data != tensors_.x.data) {
      copy_into(context, tensors_.y.data, tensors_.x.data, tensors_.x.shape.count());
    }
  }

  void backward(Context& context, const Pass&, bool) override {
    if (tensors_.dx.data == nullptr) return;
    dropout_backward(context, rate_, mask_, tensors_.dy, tensors_.dx);
  }

 private:
  float rate_;
  DropoutKey key_;
  Binding tensors_;
  View<std::uint8_t> mask_;
};

}  // namespace

std::string ReLU::summary() const {
  return "relu";
}

std::unique_ptr<Layer> ReLU::bind(const Binding& binding) const {
  return std::make_unique<ReLULayer>(binding);
}

std::string Flatten::summary() const {
  return "flatten";
}

std::unique_ptr<Layer> Flatten::bind(const Binding&) const {
  return std::make_unique<FlattenLayer>();
}

Shape Dropout::output_shape(const Shape& in_shape) const {
  if (!(rate >= 0 && rate < 1)) {
    throw UsageError(message("dropout: a rate of ", rate, "; want 0 or more and less than 1"));
  }
  return in_shape;
}

std::string Dropout::summary() const {
  return message("dropout ", rate);
}

std::unique_ptr<Layer> Dropout::bind(const Binding& binding) const {
  return std::make_unique<DropoutLayer>(rate, binding);
}

}  // namespace lockstep
