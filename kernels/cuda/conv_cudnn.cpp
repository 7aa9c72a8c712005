// The products of a convolution by cuDNN's version 9 functions. The only file that includes cuDNN.
//
// The algorithms are fixed, deterministic and take any shape: the same ones run on every rank and
// in every run. cuDNN knows only borders of equal width on opposite sides; where SAME asks for
// others, x is copied with its border into the workspace, and its gradient comes out of there.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include <cudnn.h>

#include "lockstep/core/cuda/runtime.h"
#include "lockstep/core/error.h"
#include "lockstep/core/unheard.h"
#include "lockstep/kernels/cuda/conv_products.h"
#include "lockstep/kernels/cuda/extents.h"
#include "lockstep/kernels/cuda/handles.h"
#include "lockstep/kernels/cuda/libraries.h"
#include "lockstep/kernels/cuda/pad.h"

namespace lockstep::cuda::cudnn {
namespace {

constexpr cudnnConvolutionFwdAlgo_t kForward = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
constexpr cudnnConvolutionBwdDataAlgo_t kBackwardData = CUDNN_CONVOLUTION_BWD_DATA_ALGO_1;
constexpr cudnnConvolutionBwdFilterAlgo_t kBackwardWeights = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1;

constexpr float kOne = 1;
constexpr float kZero = 0;

void check(cudnnStatus_t status, const char* call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  char details[256] = {};
  cudnnGetLastErrorString(details, sizeof details);
  throw DeviceError(
      message(call, ": ", cudnnGetErrorString(status), " ", details, earlier_failure()));
}

/// The functions that make and end an object of cuDNN, and their names.
template <class T>
struct Functions;
template <>
struct Functions<cudnnHandle_t> {
  static constexpr auto create = cudnnCreate;
  static constexpr auto destroy = cudnnDestroy;
  static constexpr const char* create_name = "cudnnCreate";
  static constexpr const char* destroy_name = "cudnnDestroy";
};
template <>
struct Functions<cudnnTensorDescriptor_t> {
  static constexpr auto create = cudnnCreateTensorDescriptor;
  static constexpr auto destroy = cudnnDestroyTensorDescriptor;
  static constexpr const char* create_name = "cudnnCreateTensorDescriptor";
  static constexpr const char* destroy_name = "cudnnDestroyTensorDescriptor";
};
template <>
struct Functions<cudnnFilterDescriptor_t> {
  static constexpr auto create = cudnnCreateFilterDescriptor;
  static constexpr auto destroy = cudnnDestroyFilterDescriptor;
  static constexpr const char* create_name = "cudnnCreateFilterDescriptor";
  static constexpr const char* destroy_name = "cudnnDestroyFilterDescriptor";
};
template <>
struct Functions<cudnnConvolutionDescriptor_t> {
  static constexpr auto create = cudnnCreateConvolutionDescriptor;
  static constexpr auto destroy = cudnnDestroyConvolutionDescriptor;
  static constexpr const char* create_name = "cudnnCreateConvolutionDescriptor";
  static constexpr const char* destroy_name = "cudnnDestroyConvolutionDescriptor";
};

/// Owns a handle or a descriptor of cuDNN.
template <class T>
class Owner {
 public:
  Owner() { check(Functions<T>::create(&object_), Functions<T>::create_name); }
  ~Owner() {
    const cudnnStatus_t status = Functions<T>::destroy(object_);
    if (status == CUDNN_STATUS_SUCCESS) return;
    UnheardErrors::add(Functions<T>::destroy_name, ": ", cudnnGetErrorString(status));
  }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;

  [[nodiscard]] T get() const { return object_; }

 private:
  T object_ = nullptr;
};

using Handle = Owner<cudnnHandle_t>;
using TensorDescriptor = Owner<cudnnTensorDescriptor_t>;
using FilterDescriptor = Owner<cudnnFilterDescriptor_t>;
using ConvolutionDescriptor = Owner<cudnnConvolutionDescriptor_t>;

bool even_border(const Window& window) {
  return window.pad_top == window.pad_bottom && window.pad_left == window.pad_right;
}

/// The convolution of one shape: its descriptors, and how it uses the workspace.
class Convolution {
 public:
  Convolution(const Context& context, cudnnHandle_t handle, const Window& window, const Shape& x,
              const Shape& w);

  [[nodiscard]] bool is(const Window& window, const Shape& x, const Shape& w) const {
    return window == window_ && x == x_shape_ && w == w_shape_;
  }

  void forward(Context& context, const float* x, const float* w, float* y) const;
  void backward_data(Context& context, const float* dy, const float* w, float* dx) const;
  void backward_weights(Context& context, const float* x, const float* dy, float* dw,
                        bool accumulate) const;
  [[nodiscard]] std::size_t workspace_bytes() const {
    return padded_bytes_ + std::max({forward_bytes_, data_bytes_, weights_bytes_});
  }

 private:
  [[nodiscard]] bool padded() const { return padded_bytes_ > 0; }
  /// The workspace begins with x and its border, where there is one; the rest is cuDNN's.
  [[nodiscard]] static float* padded_x(const Context& context) {
    return reinterpret_cast<float*>(context.workspace());
  }
  [[nodiscard]] void* scratch(const Context& context) const {
    return context.workspace() + padded_bytes_;
  }
  /// x as the descriptors have it.
  [[nodiscard]] const float* input(Context& context, const float* x) const;

  cudnnHandle_t handle_;
  Window window_;
  Shape x_shape_, w_shape_;
  Frame frame_{};
  std::size_t padded_bytes_ = 0;  ///< 0: cuDNN makes the border itself
  TensorDescriptor x_, y_;
  FilterDescriptor w_;
  ConvolutionDescriptor convolution_;
  std::size_t forward_bytes_ = 0, data_bytes_ = 0, weights_bytes_ = 0;
};

Convolution::Convolution(const Context& context, cudnnHandle_t handle, const Window& window,
                         const Shape& x, const Shape& w)
    : handle_(handle), window_(window), x_shape_(x), w_shape_(w) {
  const Shape y{x[0], w[0], window.output_h(x[2]), window.output_w(x[3])};
  const WindowExtents e = window_extents(window, x, y);
  frame_ = {.planes = x[0] * x[1],
            .h = e.h,
            .w = e.w,
            .top = e.pad_top,
            .left = e.pad_left,
            .padded_h = int_extent(x[2] + window.pad_top + window.pad_bottom),
            .padded_w = int_extent(x[3] + window.pad_left + window.pad_right)};
  const bool own_border = !even_border(window);
  if (own_border) {
    const std::int64_t floats =
        frame_.planes * int_extent(std::int64_t{frame_.padded_h} * frame_.padded_w);
    constexpr std::int64_t kCudnnAlignment = 256;
    padded_bytes_ = static_cast<std::size_t>(
        round_up(floats * static_cast<std::int64_t>(sizeof(float)), kCudnnAlignment));
  }
  check(cudnnSetTensor4dDescriptor(x_.get(), CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, e.n, e.c,
                                   own_border ? frame_.padded_h : e.h,
                                   own_border ? frame_.padded_w : e.w),
        "conv2d: x: cudnnSetTensor4dDescriptor");
  check(
      cudnnSetTensor4dDescriptor(y_.get(), CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, e.n, e.k, e.p, e.q),
      "conv2d: y: cudnnSetTensor4dDescriptor");
  check(cudnnSetFilter4dDescriptor(w_.get(), CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, e.k, e.c,
                                   e.kernel_h, e.kernel_w),
        "conv2d: w: cudnnSetFilter4dDescriptor");
  check(cudnnSetConvolution2dDescriptor(convolution_.get(), own_border ? 0 : e.pad_top,
                                        own_border ? 0 : e.pad_left, e.stride_h, e.stride_w, 1, 1,
                                        CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
        "conv2d: cudnnSetConvolution2dDescriptor");
  // cuDNN's default allows TF32, and the workspace depends on it.
  check(cudnnSetConvolutionMathType(convolution_.get(), context.precision() == Precision::tf32
                                                            ? CUDNN_DEFAULT_MATH
                                                            : CUDNN_FMA_MATH),
        "conv2d: cudnnSetConvolutionMathType");
  check(cudnnGetConvolutionForwardWorkspaceSize(handle, x_.get(), w_.get(), convolution_.get(),
                                                y_.get(), kForward, &forward_bytes_),
        "conv2d_forward: cudnnGetConvolutionForwardWorkspaceSize");
  check(cudnnGetConvolutionBackwardDataWorkspaceSize(handle, w_.get(), y_.get(), convolution_.get(),
                                                     x_.get(), kBackwardData, &data_bytes_),
        "conv2d_backward_data: cudnnGetConvolutionBackwardDataWorkspaceSize");
  check(
      cudnnGetConvolutionBackwardFilterWorkspaceSize(handle, x_.get(), y_.get(), convolution_.get(),
                                                     w_.get(), kBackwardWeights, &weights_bytes_),
      "conv2d_backward_parameters: cudnnGetConvolutionBackwardFilterWorkspaceSize");
}

const float* Convolution::input(Context& context, const float* x) const {
  if (!padded()) return x;
  pad_images(context, frame_, x, padded_x(context));
  return padded_x(context);
}

void Convolution::forward(Context& context, const float* x, const float* w, float* y) const {
  check(cudnnConvolutionForward(handle_, &kOne, x_.get(), input(context, x), w_.get(), w,
                                convolution_.get(), kForward, scratch(context), forward_bytes_,
                                &kZero, y_.get(), y),
        "conv2d_forward: cudnnConvolutionForward");
}

void Convolution::backward_data(Context& context, const float* dy, const float* w,
                                float* dx) const {
  float* to = padded() ? padded_x(context) : dx;
  check(cudnnConvolutionBackwardData(handle_, &kOne, w_.get(), w, y_.get(), dy, convolution_.get(),
                                     kBackwardData, scratch(context), data_bytes_, &kZero, x_.get(),
                                     to),
        "conv2d_backward_data: cudnnConvolutionBackwardData");
  if (padded()) crop_images(context, frame_, to, dx);
}

void Convolution::backward_weights(Context& context, const float* x, const float* dy, float* dw,
                                   bool accumulate) const {
  check(cudnnConvolutionBackwardFilter(handle_, &kOne, x_.get(), input(context, x), y_.get(), dy,
                                       convolution_.get(), kBackwardWeights, scratch(context),
                                       weights_bytes_, accumulate ? &kOne : &kZero, w_.get(), dw),
        "conv2d_backward_parameters: cudnnConvolutionBackwardFilter");
}

/// The handle, and every shape met so far: a model has a few, so that a search costs less than a
/// map.
class Convolutions final : public BackendState {
 public:
  explicit Convolutions(const Context& context) {
    check(cudnnSetStream(handle_.get(), stream_of(context)), "cudnnSetStream");
  }

  [[nodiscard]] const Convolution& find(const Context& context, const Window& window,
                                        const Shape& x, const Shape& w) {
    for (const std::unique_ptr<Convolution>& known : known_) {
      if (known->is(window, x, w)) return *known;
    }
    known_.push_back(std::make_unique<Convolution>(context, handle_.get(), window, x, w));
    return *known_.back();
  }

 private:
  Handle handle_;
  std::vector<std::unique_ptr<Convolution>> known_;
};

const Convolution& convolution(Context& context, const Window& window, const Shape& x,
                               const Shape& w) {
  std::unique_ptr<BackendState>& place = handles_of(context).convolutions;
  if (place == nullptr) place = std::make_unique<Convolutions>(context);
  return static_cast<Convolutions&>(*place).find(context, window, x, w);
}

}  // namespace

void conv_forward(Context& context, const Window& window, ConstFloatView x, ConstFloatView w,
                  FloatView y) {
  convolution(context, window, x.shape, w.shape).forward(context, x.data, w.data, y.data);
}

void conv_backward_data(Context& context, const Window& window, ConstFloatView dy, ConstFloatView w,
                        FloatView dx) {
  convolution(context, window, dx.shape, w.shape).backward_data(context, dy.data, w.data, dx.data);
}

void conv_backward_weights(Context& context, const Window& window, ConstFloatView x,
                           ConstFloatView dy, FloatView dw, bool accumulate) {
  convolution(context, window, x.shape, dw.shape)
      .backward_weights(context, x.data, dy.data, dw.data, accumulate);
}

std::size_t conv_workspace_bytes(Context& context, const Window& window, const Shape& x,
                                 const Shape& w) {
  return convolution(context, window, x, w).workspace_bytes();
}

}  // namespace lockstep::cuda::cudnn

namespace lockstep::cuda {

LibraryVersion cudnn_library() {
  const auto text = [](std::size_t version) {
    return message(version / 10000, '.', version / 100 % 100, '.', version % 100);
  };
  return {.name = "cuDNN",
          .built = text(CUDNN_VERSION),
          .loaded = text(cudnnGetVersion()),
          .files = mapped_files("libcudnn")};
}

}  // namespace lockstep::cuda
