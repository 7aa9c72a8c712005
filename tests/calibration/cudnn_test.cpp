// cuDNN: handles, descriptors, what is refused. Statuses are those of the cuDNN manual's lists for
// each function; where it only says that something must hold, the cases ask for a failure.
#include <cstring>
#include <string>

#include "calibration/support.h"
#include "cusim/tests/cudnn_support.h"

namespace lockstep::calibration {
namespace {

using cusim::test::ActivationDescriptor;
using cusim::test::ConvolutionDescriptor;
using cusim::test::CudnnHandle;
using cusim::test::FilterDescriptor;
using cusim::test::PoolingDescriptor;
using cusim::test::TensorDescriptor;

constexpr float kOne = 1;
constexpr float kZero = 0;

/// Four extents.
using Shape = std::vector<int>;

}  // namespace

TEST_CASE("cudnnGetVersion and cudnnGetCudartVersion") {
  CHECK(cudnnGetVersion() >= 90000);
  CHECK(cudnnGetVersion() / 10000 == CUDNN_VERSION / 10000);
  CHECK(cudnnGetCudartVersion() / 1000 == CUDART_VERSION / 1000);
}

TEST_CASE("cudnnGetErrorString names a status, cudnnGetLastErrorString ends its text") {
  CHECK(std::string(cudnnGetErrorString(CUDNN_STATUS_SUCCESS)) == "CUDNN_STATUS_SUCCESS");
  CHECK(std::string(cudnnGetErrorString(CUDNN_STATUS_BAD_PARAM)) == "CUDNN_STATUS_BAD_PARAM");
  CHECK(cudnnSetStream(nullptr, nullptr) != CUDNN_STATUS_SUCCESS);
  char text[16];
  std::memset(text, 'x', sizeof text);
  cudnnGetLastErrorString(text, sizeof text);
  CHECK(std::memchr(text, '\0', sizeof text) != nullptr);
}

TEST_CASE("cudnnCreate, cudnnDestroy, cudnnSetStream and cudnnGetStream") {
  cudnnHandle_t handle = nullptr;
  REQUIRE(cudnnCreate(&handle) == CUDNN_STATUS_SUCCESS);
  const Stream stream;
  cudaStream_t got = stream;
  REQUIRE(cudnnGetStream(handle, &got) == CUDNN_STATUS_SUCCESS);
  CHECK(got == nullptr);
  REQUIRE(cudnnSetStream(handle, stream) == CUDNN_STATUS_SUCCESS);
  REQUIRE(cudnnGetStream(handle, &got) == CUDNN_STATUS_SUCCESS);
  CHECK(got == stream);
  CHECK(cudnnDestroy(handle) == CUDNN_STATUS_SUCCESS);
  CHECK(cudnnSetStream(nullptr, stream) == CUDNN_STATUS_BAD_PARAM);
}

TEST_CASE("cudnnCreateTensorDescriptor, cudnnSetTensor4dDescriptor, ...Ex, ...Destroy") {
  cudnnTensorDescriptor_t tensor = nullptr;
  REQUIRE(cudnnCreateTensorDescriptor(&tensor) == CUDNN_STATUS_SUCCESS);
  CHECK(cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 2, 3, 4, 5) ==
        CUDNN_STATUS_SUCCESS);
  CHECK(cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, 2, 3, 4, 5) ==
        CUDNN_STATUS_SUCCESS);
  CHECK(cudnnSetTensor4dDescriptorEx(tensor, CUDNN_DATA_FLOAT, 2, 3, 4, 5, 60, 1, 15, 3) ==
        CUDNN_STATUS_SUCCESS);
  CHECK(cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, -2, 3, 4, 5) ==
        CUDNN_STATUS_BAD_PARAM);
  CHECK(cudnnSetTensor4dDescriptorEx(tensor, CUDNN_DATA_FLOAT, 2, -3, 4, 5, 60, 20, 5, 1) ==
        CUDNN_STATUS_BAD_PARAM);
  CHECK(cudnnDestroyTensorDescriptor(tensor) == CUDNN_STATUS_SUCCESS);
}

TEST_CASE("cudnnCreateFilterDescriptor, cudnnSetFilter4dDescriptor, cudnnDestroyFilterDescriptor") {
  cudnnFilterDescriptor_t filter = nullptr;
  REQUIRE(cudnnCreateFilterDescriptor(&filter) == CUDNN_STATUS_SUCCESS);
  CHECK(cudnnSetFilter4dDescriptor(filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 8, 3, 5, 5) ==
        CUDNN_STATUS_SUCCESS);
  CHECK(cudnnSetFilter4dDescriptor(filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, -8, 3, 5, 5) ==
        CUDNN_STATUS_BAD_PARAM);
  CHECK(cudnnDestroyFilterDescriptor(filter) == CUDNN_STATUS_SUCCESS);
}

TEST_CASE("cudnnCreateConvolutionDescriptor, cudnnSetConvolution2dDescriptor and its settings") {
  cudnnConvolutionDescriptor_t convolution = nullptr;
  REQUIRE(cudnnCreateConvolutionDescriptor(&convolution) == CUDNN_STATUS_SUCCESS);
  const auto set = [&](int pad, int stride, int dilation) {
    return cudnnSetConvolution2dDescriptor(convolution, pad, pad, stride, stride, dilation,
                                           dilation, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT);
  };
  CHECK(set(1, 1, 1) == CUDNN_STATUS_SUCCESS);
  cudnnMathType_t math = CUDNN_FMA_MATH;
  REQUIRE(cudnnGetConvolutionMathType(convolution, &math) == CUDNN_STATUS_SUCCESS);
  CHECK(math == CUDNN_DEFAULT_MATH);
  REQUIRE(cudnnSetConvolutionMathType(convolution, CUDNN_FMA_MATH) == CUDNN_STATUS_SUCCESS);
  REQUIRE(cudnnGetConvolutionMathType(convolution, &math) == CUDNN_STATUS_SUCCESS);
  CHECK(math == CUDNN_FMA_MATH);
  CHECK(cudnnSetConvolutionGroupCount(convolution, 1) == CUDNN_STATUS_SUCCESS);
  CHECK(set(-1, 1, 1) == CUDNN_STATUS_BAD_PARAM);
  CHECK(set(1, 0, 1) == CUDNN_STATUS_BAD_PARAM);
  CHECK(set(1, 1, 0) == CUDNN_STATUS_BAD_PARAM);
  CHECK(cudnnDestroyConvolutionDescriptor(convolution) == CUDNN_STATUS_SUCCESS);
}

TEST_CASE(
    "cudnnCreatePoolingDescriptor, cudnnSetPooling2dDescriptor, cudnnDestroyPoolingDescriptor") {
  cudnnPoolingDescriptor_t pooling = nullptr;
  REQUIRE(cudnnCreatePoolingDescriptor(&pooling) == CUDNN_STATUS_SUCCESS);
  const auto set = [&](int window, int stride) {
    return cudnnSetPooling2dDescriptor(pooling, CUDNN_POOLING_MAX_DETERMINISTIC,
                                       CUDNN_PROPAGATE_NAN, window, window, 0, 0, stride, stride);
  };
  CHECK(set(2, 2) == CUDNN_STATUS_SUCCESS);
  CHECK(set(-2, 2) == CUDNN_STATUS_BAD_PARAM);
  CHECK(set(2, -2) == CUDNN_STATUS_BAD_PARAM);
  CHECK(cudnnDestroyPoolingDescriptor(pooling) == CUDNN_STATUS_SUCCESS);
}

TEST_CASE("cudnnCreateActivationDescriptor, cudnnSetActivationDescriptor and ...Destroy") {
  cudnnActivationDescriptor_t activation = nullptr;
  REQUIRE(cudnnCreateActivationDescriptor(&activation) == CUDNN_STATUS_SUCCESS);
  CHECK(cudnnSetActivationDescriptor(activation, CUDNN_ACTIVATION_RELU, CUDNN_NOT_PROPAGATE_NAN,
                                     0) == CUDNN_STATUS_SUCCESS);
  CHECK(cudnnSetActivationDescriptor(activation, static_cast<cudnnActivationMode_t>(7),
                                     CUDNN_NOT_PROPAGATE_NAN, 0) != CUDNN_STATUS_SUCCESS);
  CHECK(cudnnDestroyActivationDescriptor(activation) == CUDNN_STATUS_SUCCESS);
}

TEST_CASE("cudnnGetConvolution2dForwardOutputDim: 1 + (in + 2 pad - dilated filter) / stride") {
  const TensorDescriptor x(4, 3, 9, 12);
  const FilterDescriptor w(8, 3, 5, 5);
  const ConvolutionDescriptor convolution(2, 2, CUDNN_CROSS_CORRELATION);
  Shape y(4);
  REQUIRE(cudnnGetConvolution2dForwardOutputDim(convolution, x, w, &y[0], &y[1], &y[2], &y[3]) ==
          CUDNN_STATUS_SUCCESS);
  CHECK(y == Shape{4, 8, 5, 6});
  const TensorDescriptor other_channels(4, 5, 9, 12);
  CHECK(cudnnGetConvolution2dForwardOutputDim(convolution, other_channels, w, &y[0], &y[1], &y[2],
                                              &y[3]) == CUDNN_STATUS_BAD_PARAM);
}

TEST_CASE("cudnnGetPooling2dForwardOutputDim: 1 + (in + 2 pad - window) / stride") {
  const TensorDescriptor x(2, 3, 9, 8);
  const PoolingDescriptor pooling(CUDNN_POOLING_MAX, 3, 2);
  Shape y(4);
  REQUIRE(cudnnGetPooling2dForwardOutputDim(pooling, x, &y[0], &y[1], &y[2], &y[3]) ==
          CUDNN_STATUS_SUCCESS);
  CHECK(y == Shape{2, 3, 4, 3});
}

TEST_CASE("cudnnPoolingForward and cudnnPoolingBackward: the largest of a window, and its place") {
  const std::vector<float> host_x = values(2 * 3 * 8 * 8, 1);
  const std::vector<float> host_dy = values(2 * 3 * 4 * 4, 2);
  const Buffer<float> x(host_x);
  const Buffer<float> y(host_dy.size());
  const Buffer<float> dy(host_dy);
  const Buffer<float> dx(host_x.size());
  const TensorDescriptor x_shape(2, 3, 8, 8);
  const TensorDescriptor y_shape(2, 3, 4, 4);
  const PoolingDescriptor pooling(CUDNN_POOLING_MAX_DETERMINISTIC, 2, 2);
  const CudnnHandle handle;
  REQUIRE(cudnnPoolingForward(handle, pooling, &kOne, x_shape, x.get(), &kZero, y_shape, y.get()) ==
          CUDNN_STATUS_SUCCESS);
  REQUIRE(cudnnPoolingBackward(handle, pooling, &kOne, y_shape, y.get(), y_shape, dy.get(), x_shape,
                               x.get(), &kZero, x_shape, dx.get()) == CUDNN_STATUS_SUCCESS);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  std::vector<float> wanted_y;
  std::vector<float> wanted_dx(host_x.size());
  for (std::size_t window = 0; window < host_dy.size(); ++window) {
    const std::size_t corner = window / 16 * 64 + window % 16 / 4 * 16 + window % 4 * 2;
    std::size_t best = corner;
    for (const std::size_t place : {corner + 1, corner + 8, corner + 9}) {
      if (host_x[place] > host_x[best]) best = place;
    }
    wanted_y.push_back(host_x[best]);
    wanted_dx[best] = host_dy[window];
  }
  CHECK(y.read() == wanted_y);
  CHECK(dx.read() == wanted_dx);
  const TensorDescriptor fewer(2, 2, 4, 4);
  CHECK(cudnnPoolingForward(handle, pooling, &kOne, x_shape, x.get(), &kZero, fewer, y.get()) ==
        CUDNN_STATUS_BAD_PARAM);
  const TensorDescriptor other(2, 3, 5, 4);
  CHECK(cudnnPoolingBackward(handle, pooling, &kOne, y_shape, y.get(), other, dy.get(), x_shape,
                             x.get(), &kZero, x_shape, dx.get()) != CUDNN_STATUS_SUCCESS);
}

TEST_CASE("cudnnActivationForward and cudnnActivationBackward: relu and its mask") {
  const std::vector<float> host_x = values(64, 1);
  const std::vector<float> host_dy = values(64, 2);
  const Buffer<float> x(host_x);
  const Buffer<float> y(64);
  const Buffer<float> dy(host_dy);
  const Buffer<float> dx(64);
  const TensorDescriptor shape(1, 4, 4, 4);
  const ActivationDescriptor relu(CUDNN_ACTIVATION_RELU);
  const CudnnHandle handle;
  REQUIRE(cudnnActivationForward(handle, relu, &kOne, shape, x.get(), &kZero, shape, y.get()) ==
          CUDNN_STATUS_SUCCESS);
  REQUIRE(cudnnActivationBackward(handle, relu, &kOne, shape, y.get(), shape, dy.get(), shape,
                                  x.get(), &kZero, shape, dx.get()) == CUDNN_STATUS_SUCCESS);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  std::vector<float> wanted_y = host_x;
  std::vector<float> wanted_dx = host_dy;
  for (std::size_t i = 0; i < host_x.size(); ++i) {
    if (host_x[i] > 0) continue;
    wanted_y[i] = 0;
    wanted_dx[i] = 0;
  }
  CHECK(y.read() == wanted_y);
  CHECK(dx.read() == wanted_dx);
  const TensorDescriptor other(1, 4, 4, 5);
  CHECK(cudnnActivationForward(handle, relu, &kOne, shape, x.get(), &kZero, other, y.get()) ==
        CUDNN_STATUS_BAD_PARAM);
}

TEST_CASE("cudnnAddTensor adds to every place of a channel") {
  const std::vector<float> host_c = values(2 * 3 * 4, 1);
  const std::vector<float> host_a{10, 20, 30};
  const Buffer<float> a(host_a);
  const Buffer<float> c(host_c);
  const TensorDescriptor a_shape(1, 3, 1, 1);
  const TensorDescriptor c_shape(2, 3, 2, 2);
  const CudnnHandle handle;
  REQUIRE(cudnnAddTensor(handle, &kOne, a_shape, a.get(), &kOne, c_shape, c.get()) ==
          CUDNN_STATUS_SUCCESS);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  std::vector<float> wanted = host_c;
  for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] += host_a[i / 4 % 3];
  CHECK(c.read() == wanted);
  const TensorDescriptor other(1, 2, 1, 1);
  CHECK(cudnnAddTensor(handle, &kOne, other, a.get(), &kOne, c_shape, c.get()) !=
        CUDNN_STATUS_SUCCESS);
}

}  // namespace lockstep::calibration
