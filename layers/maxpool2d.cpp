// MaxPool2d: the description and its layer.
#include "lockstep/core/error.h"
#include "lockstep/kernels/pool.h"
#include "lockstep/layers/descriptions.h"
#include "lockstep/layers/spatial.h"

namespace lockstep {

namespace {

class MaxPool2dLayer final : public Layer {
 public:
  MaxPool2dLayer(const Window& window, const Binding& binding)
      : window_(window),
        tensors_(binding),
        argmax_(binding.saved, binding.y.shape, binding.y.layout) {}

  void forward(Context& context, const Pass&) override {
    maxpool2d_forward(context, window_, tensors_.x, tensors_.y, argmax_);
  }

  void backward(Context& context, const Pass&, bool) override {
    if (tensors_.dx.data == nullptr) return;
    maxpool2d_backward(context, window_, tensors_.dy, argmax_, tensors_.dx);
  }

 private:
  Window window_;
  Binding tensors_;
  View<std::uint8_t> argmax_;
};

Extent2d effective_stride(const MaxPool2d& pool) {
  return {pool.stride.h == 0 ? pool.kernel.h : pool.stride.h,
          pool.stride.w == 0 ? pool.kernel.w : pool.stride.w};
}

}  // namespace

Window MaxPool2d::window(const Shape& in_shape) const {
  if (in_shape.rank() != 3) {
    throw ShapeError(message("maxpool2d: a sample is ", in_shape, ", want (C, H, W)"));
  }
  if (kernel.h > 256 || kernel.w > 256 || kernel.h * kernel.w > 256) {
    throw UsageError(message("maxpool2d: a kernel of ", kernel.h, "x", kernel.w,
                             " has more than 256 places; use a smaller one"));
  }
  const Window w = make_window("maxpool2d", in_shape, kernel, effective_stride(*this), padding);
  // With less padding than kernel on every side, no window lies in the padding alone.
  if (w.pad_top >= w.kernel_h || w.pad_left >= w.kernel_w) {
    throw ShapeError(message("maxpool2d: a window of ", kernel.h, "x", kernel.w, " over ", in_shape,
                             " with padding ", padding.places.h, "x", padding.places.w,
                             " lies in the padding alone; use less padding"));
  }
  return w;
}

Shape MaxPool2d::output_shape(const Shape& in_shape) const {
  const Window w = window(in_shape);
  return {in_shape[0], w.output_h(in_shape[1]), w.output_w(in_shape[2])};
}

std::string MaxPool2d::summary() const {
  return message("maxpool ", kernel.h, "x", kernel.w, ", ",
                 stride_and_padding(effective_stride(*this), padding));
}

std::size_t MaxPool2d::saved_bytes(const Shape&, const Shape& y) const {
  return static_cast<std::size_t>(y.count());
}

std::unique_ptr<Layer> MaxPool2d::bind(const Binding& binding) const {
  return std::make_unique<MaxPool2dLayer>(window(binding.x.shape.without_first()), binding);
}

}  // namespace lockstep
