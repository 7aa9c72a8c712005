// Our max-pooling against cuDNN's, for windows that both take: without NaN, equal values, or a
// border that is wider on one side.
#include <cudnn.h>

#include "lockstep/core/cuda/runtime.h"
#include "lockstep/kernels/pool.h"

#include "kernels/pool_cases.h"
#include "support/cuda_device.h"

namespace lockstep {
namespace {

using namespace test;

void check(cudnnStatus_t status) {
  INFO(cudnnGetErrorString(status));
  REQUIRE(status == CUDNN_STATUS_SUCCESS);
}

/// cuDNN's pooling of one shape, its deterministic kind.
class CudnnPool {
 public:
  CudnnPool(const Context& context, const Window& window, const Shape& x, const Shape& y) {
    check(cudnnCreate(&handle_));
    check(cudnnSetStream(handle_, cuda::stream_of(context)));
    check(cudnnCreateTensorDescriptor(&x_));
    check(cudnnCreateTensorDescriptor(&y_));
    check(cudnnCreatePoolingDescriptor(&pool_));
    describe(x_, x);
    describe(y_, y);
    check(cudnnSetPooling2dDescriptor(
        pool_, CUDNN_POOLING_MAX_DETERMINISTIC, CUDNN_PROPAGATE_NAN,
        static_cast<int>(window.kernel_h), static_cast<int>(window.kernel_w),
        static_cast<int>(window.pad_top), static_cast<int>(window.pad_left),
        static_cast<int>(window.stride_h), static_cast<int>(window.stride_w)));
  }
  ~CudnnPool() {
    cudnnDestroyPoolingDescriptor(pool_);
    cudnnDestroyTensorDescriptor(y_);
    cudnnDestroyTensorDescriptor(x_);
    cudnnDestroy(handle_);
  }
  CudnnPool(const CudnnPool&) = delete;
  CudnnPool& operator=(const CudnnPool&) = delete;

  void forward(const float* x, float* y) const {
    check(cudnnPoolingForward(handle_, pool_, &kOne, x_, x, &kZero, y_, y));
  }
  void backward(const float* x, const float* y, const float* dy, float* dx) const {
    check(cudnnPoolingBackward(handle_, pool_, &kOne, y_, y, y_, dy, x_, x, &kZero, x_, dx));
  }

 private:
  static constexpr float kOne = 1;
  static constexpr float kZero = 0;

  static void describe(cudnnTensorDescriptor_t tensor, const Shape& shape) {
    check(cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT,
                                     static_cast<int>(shape[0]), static_cast<int>(shape[1]),
                                     static_cast<int>(shape[2]), static_cast<int>(shape[3])));
  }

  cudnnHandle_t handle_ = nullptr;
  cudnnTensorDescriptor_t x_ = nullptr;
  cudnnTensorDescriptor_t y_ = nullptr;
  cudnnPoolingDescriptor_t pool_ = nullptr;
};

bool both_take(const Window& window) {
  return window.pad_top == window.pad_bottom && window.pad_left == window.pad_right;
}

TEST_CASE("maxpool2d agrees with cuDNN's pooling, forward and backward") {
  Gpu gpu;
  int compared = 0;
  for (const PoolCase& c : pool_cases()) {
    if (!both_take(c.window)) continue;
    const Shape x_shape{c.e.n, c.e.c, c.e.h, c.e.w};
    const Shape y_shape{c.e.n, c.e.c, c.window.output_h(c.e.h), c.window.output_w(c.e.w)};
    INFO("x " << x_shape << ", kernel " << c.window.kernel_h << " x " << c.window.kernel_w);
    const std::vector<float> values = random_values(x_shape.count(), 7);
    const DeviceArray<float> x(gpu.context, values),
        dy(gpu.context, random_values(y_shape.count(), 8));
    const DeviceArray<float> y(gpu.context, y_shape.count()), dx(gpu.context, x_shape.count());
    const DeviceArray<float> theirs(gpu.context, y_shape.count());
    const DeviceArray<float> their_dx(gpu.context, x_shape.count());
    const DeviceArray<std::uint8_t> argmax(gpu.context, y_shape.count());
    maxpool2d_forward(gpu.context, c.window, x.view(x_shape), y.view(y_shape),
                      argmax.view(y_shape));
    maxpool2d_backward(gpu.context, c.window, dy.view(y_shape), argmax.view(y_shape),
                       dx.view(x_shape));
    const CudnnPool cudnn(gpu.context, c.window, x_shape, y_shape);
    cudnn.forward(x.data(), theirs.data());
    cudnn.backward(x.data(), theirs.data(), dy.data(), their_dx.data());
    CHECK(y.download() == theirs.download());
    const std::vector<float> expected = their_dx.download();
    close(dx.download(), std::vector<double>(expected.begin(), expected.end()), 1e-6);
    ++compared;
  }
  CHECK(compared > 0);
}

}  // namespace
}  // namespace lockstep
