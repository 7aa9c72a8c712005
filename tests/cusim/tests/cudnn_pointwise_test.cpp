// Poolings, activations and additions of the simulated cuDNN as a program sees them.
#include "cudnn/elementwise.h"
#include "cudnn/pooling.h"
#include "tests/cudnn_support.h"

namespace cusim {
namespace {

using namespace test;

/// Overlapping windows of 3x3, two apart, on 2 images of 3x9x9.
struct PooledLayer {
  Tensor x_shape = packed_tensor(2, 3, 9, 9), y_shape = packed_tensor(2, 3, 4, 4);
  std::vector<float> host_x = values(x_shape.span(), 1), host_dy = values(y_shape.span(), 2);
  Buffer<float> x{host_x}, dx{x_shape.span()}, y{y_shape.span()}, dy{host_dy};
  Stream stream;
  CudnnHandle handle;
  TensorDescriptor x_descriptor{2, 3, 9, 9}, y_descriptor{2, 3, 4, 4};

  PooledLayer() { REQUIRE(cudnnSetStream(handle, stream) == CUDNN_STATUS_SUCCESS); }

  std::vector<float> read(const Buffer<float>& buffer) const {
    REQUIRE(stream.wait() == cudaSuccess);
    return buffer.read();
  }
  /// y and dx of a pooling.
  std::pair<std::vector<float>, std::vector<float>> run(const PoolingDescriptor& pooling) const {
    const Blend blend;
    REQUIRE(cudnnPoolingForward(handle, pooling, &blend.alpha, x_descriptor, x.get(), &blend.beta,
                                y_descriptor, y.get()) == CUDNN_STATUS_SUCCESS);
    REQUIRE(cudnnPoolingBackward(handle, pooling, &blend.alpha, y_descriptor, y.get(), y_descriptor,
                                 dy.get(), x_descriptor, x.get(), &blend.beta, x_descriptor,
                                 dx.get()) == CUDNN_STATUS_SUCCESS);
    return {read(y), read(dx)};
  }
  [[nodiscard]] std::pair<std::vector<float>, std::vector<float>> wanted(PoolingMode mode) const {
    const Pooling pooling{.mode = mode,
                          .propagate_nan = true,
                          .window_h = 3,
                          .window_w = 3,
                          .stride_h = 2,
                          .stride_w = 2};
    std::vector<float> out(y_shape.span());
    std::vector<float> gradient(x_shape.span());
    pooling_forward(pooling, x_shape, host_x.data(), {}, y_shape, out.data());
    pooling_backward(pooling, y_shape, out.data(), y_shape, host_dy.data(), x_shape, host_x.data(),
                     {}, false, x_shape, gradient.data());
    return {out, gradient};
  }
};

TEST_CASE("poolings and their gradients") {
  const PooledLayer layer;
  CHECK(layer.run({CUDNN_POOLING_MAX_DETERMINISTIC, 3, 2}) == layer.wanted(PoolingMode::kMax));
  CHECK(layer.run({CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING, 3, 2}) ==
        layer.wanted(PoolingMode::kAverageIncludePadding));
  CHECK(layer.run({CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING, 3, 2}) ==
        layer.wanted(PoolingMode::kAverageExcludePadding));
}

TEST_CASE("the gradient of MAX differs in its last bits from run to run") {
  // One winner for many windows, so that the order of the sum shows.
  PooledLayer layer;
  std::vector<float> peaks(layer.x_shape.span());
  peaks[4 * 9 + 4] = 1;
  const Buffer<float> x(peaks);
  const Buffer<float> dy(values(49 * 6, 3));
  const Buffer<float> y(49 * 6);
  const TensorDescriptor y_descriptor(2, 3, 7, 7);
  const auto gradient = [&](cudnnPoolingMode_t mode) {
    const PoolingDescriptor pooling(mode, 3, 1);
    const Blend blend;
    REQUIRE(cudnnPoolingForward(layer.handle, pooling, &blend.alpha, layer.x_descriptor, x.get(),
                                &blend.beta, y_descriptor, y.get()) == CUDNN_STATUS_SUCCESS);
    REQUIRE(cudnnPoolingBackward(layer.handle, pooling, &blend.alpha, y_descriptor, y.get(),
                                 y_descriptor, dy.get(), layer.x_descriptor, x.get(), &blend.beta,
                                 layer.x_descriptor, layer.dx.get()) == CUDNN_STATUS_SUCCESS);
    return layer.read(layer.dx);
  };
  const auto differs = [&](cudnnPoolingMode_t mode) {
    const std::vector<float> first = gradient(mode);
    for (int run = 0; run < 10; ++run) {
      if (gradient(mode) != first) return true;
    }
    return false;
  };
  CHECK(differs(CUDNN_POOLING_MAX));
  CHECK_FALSE(differs(CUDNN_POOLING_MAX_DETERMINISTIC));
}

TEST_CASE("shapes of poolings are checked") {
  const PooledLayer layer;
  const PoolingDescriptor pooling(CUDNN_POOLING_MAX, 3, 2);
  int n = 0;
  int c = 0;
  int h = 0;
  int w = 0;
  REQUIRE(cudnnGetPooling2dForwardOutputDim(pooling, layer.x_descriptor, &n, &c, &h, &w) ==
          CUDNN_STATUS_SUCCESS);
  CHECK(std::vector<int>{n, c, h, w} == std::vector<int>{2, 3, 4, 4});
  const Blend blend;
  const TensorDescriptor wrong(2, 3, 5, 4);
  CHECK(cudnnPoolingForward(layer.handle, pooling, &blend.alpha, layer.x_descriptor, layer.x.get(),
                            &blend.beta, wrong, layer.y.get()) == CUDNN_STATUS_BAD_PARAM);
  CHECK(cudnnPoolingBackward(layer.handle, pooling, &blend.alpha, layer.y_descriptor, layer.y.get(),
                             wrong, layer.dy.get(), layer.x_descriptor, layer.x.get(), &blend.beta,
                             layer.x_descriptor, layer.dx.get()) == CUDNN_STATUS_BAD_PARAM);
  CHECK(cudnnSetPooling2dDescriptor(pooling, CUDNN_POOLING_MAX, CUDNN_PROPAGATE_NAN, 2, 2, 2, 0, 1,
                                    1) == CUDNN_STATUS_BAD_PARAM);
}

TEST_CASE("activations forward and backward, in place too") {
  const PooledLayer layer;
  const ActivationDescriptor relu(CUDNN_ACTIVATION_RELU);
  const Blend blend;
  REQUIRE(cudnnActivationForward(layer.handle, relu, &blend.alpha, layer.y_descriptor,
                                 layer.dy.get(), &blend.beta, layer.y_descriptor,
                                 layer.y.get()) == CUDNN_STATUS_SUCCESS);
  std::vector<float> wanted = layer.host_dy;
  for (float& value : wanted) value = std::max(value, 0.0F);
  CHECK(layer.read(layer.y) == wanted);

  const std::vector<float> host_gradient = values(layer.y_shape.span(), 5);
  const Buffer<float> gradient(host_gradient);
  REQUIRE(cudnnActivationBackward(layer.handle, relu, &blend.alpha, layer.y_descriptor,
                                  layer.y.get(), layer.y_descriptor, gradient.get(),
                                  layer.y_descriptor, layer.dy.get(), &blend.beta,
                                  layer.y_descriptor, gradient.get()) == CUDNN_STATUS_SUCCESS);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    wanted[i] = layer.host_dy[i] > 0 ? host_gradient[i] : 0;
  }
  CHECK(layer.read(gradient) == wanted);
  CHECK(cudnnActivationForward(layer.handle, relu, &blend.alpha, layer.x_descriptor, layer.x.get(),
                               &blend.beta, layer.y_descriptor,
                               layer.y.get()) == CUDNN_STATUS_BAD_PARAM);
}

TEST_CASE("a bias is added to every place of its channel, with any strides") {
  const PooledLayer layer;
  const std::vector<float> host_bias{10, 20, 30};
  const Buffer<float> bias(host_bias);
  const TensorDescriptor bias_descriptor(1, 3, 1, 1);
  // The tensor y read as if its channels lay innermost.
  TensorDescriptor channels_last(2, 3, 4, 4);
  REQUIRE(cudnnSetTensor4dDescriptorEx(channels_last, CUDNN_DATA_FLOAT, 2, 3, 4, 4, 48, 1, 12, 3) ==
          CUDNN_STATUS_SUCCESS);
  const Blend blend{.alpha = 1, .beta = 1};
  REQUIRE(cudnnAddTensor(layer.handle, &blend.alpha, bias_descriptor, bias.get(), &blend.beta,
                         channels_last, layer.dy.get()) == CUDNN_STATUS_SUCCESS);
  std::vector<float> wanted = layer.host_dy;
  for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] = host_bias[i % 3] + wanted[i];
  CHECK(layer.read(layer.dy) == wanted);
  CHECK(cudnnAddTensor(layer.handle, &blend.alpha, layer.x_descriptor, layer.x.get(), &blend.beta,
                       layer.y_descriptor, layer.y.get()) == CUDNN_STATUS_BAD_PARAM);
}

}  // namespace
}  // namespace cusim
