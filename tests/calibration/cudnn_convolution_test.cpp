// cuDNN's convolutions: results against plain sums, workspaces, mismatched shapes, capture.
#include <algorithm>
#include <cstddef>
#include <limits>

#include "calibration/support.h"
#include "cusim/tests/cudnn_support.h"

namespace lockstep::calibration {
namespace {

using cusim::test::ActivationDescriptor;
using cusim::test::ConvolutionDescriptor;
using cusim::test::CudnnHandle;
using cusim::test::FilterDescriptor;
using cusim::test::TensorDescriptor;

constexpr float kOne = 1;
constexpr float kZero = 0;
constexpr auto kForward = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
constexpr auto kData = CUDNN_CONVOLUTION_BWD_DATA_ALGO_1;
constexpr auto kFilter = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1;
/// fp32 sums of a few hundred terms, in whatever order and by whatever algorithm.
constexpr double kTolerance = 1e-5;

constexpr int kN = 4, kC = 3, kK = 8, kSide = 10, kR = 3;
constexpr std::size_t kX = kN * kC * kSide * kSide;
constexpr std::size_t kY = kN * kK * kSide * kSide;
constexpr std::size_t kW = kK * kC * kR * kR;

/// Calls visit(index in x, index in w, index in y) for every product of a 3 x 3 convolution with
/// one place of padding, as machine learning has it: the filter is not flipped.
template <class Visit>
void for_each_product(Visit visit) {
  for (int n = 0; n < kN; ++n)
    for (int k = 0; k < kK; ++k)
      for (int c = 0; c < kC; ++c)
        for (int h = 0; h < kSide; ++h)
          for (int w = 0; w < kSide; ++w)
            for (int r = 0; r < kR; ++r)
              for (int s = 0; s < kR; ++s) {
                const int from_h = h + r - 1;
                const int from_w = w + s - 1;
                if (from_h < 0 || from_h >= kSide || from_w < 0 || from_w >= kSide) continue;
                visit(static_cast<std::size_t>(((n * kC + c) * kSide + from_h) * kSide + from_w),
                      static_cast<std::size_t>(((k * kC + c) * kR + r) * kR + s),
                      static_cast<std::size_t>(((n * kK + k) * kSide + h) * kSide + w));
              }
}

/// A convolution in true fp32, everything it needs, and a handle on a stream.
struct Layer {
  std::vector<float> host_x = values(kX, 1), host_w = values(kW, 2), host_y = values(kY, 3);
  Buffer<float> x{host_x}, w{host_w}, y{host_y};
  TensorDescriptor x_shape{kN, kC, kSide, kSide}, y_shape{kN, kK, kSide, kSide},
      bias_shape{1, kK, 1, 1};
  FilterDescriptor w_shape{kK, kC, kR, kR};
  ConvolutionDescriptor convolution{1, 1, CUDNN_CROSS_CORRELATION};
  Stream stream;
  CudnnHandle handle;

  Layer() {
    REQUIRE(cudnnSetConvolutionMathType(convolution, CUDNN_FMA_MATH) == CUDNN_STATUS_SUCCESS);
    REQUIRE(cudnnSetStream(handle, stream) == CUDNN_STATUS_SUCCESS);
  }

  [[nodiscard]] std::size_t workspace_bytes() const {
    std::size_t forward = 0;
    std::size_t data = 0;
    std::size_t filter = 0;
    REQUIRE(cudnnGetConvolutionForwardWorkspaceSize(handle, x_shape, w_shape, convolution, y_shape,
                                                    kForward, &forward) == CUDNN_STATUS_SUCCESS);
    REQUIRE(cudnnGetConvolutionBackwardDataWorkspaceSize(handle, w_shape, y_shape, convolution,
                                                         x_shape, kData,
                                                         &data) == CUDNN_STATUS_SUCCESS);
    REQUIRE(cudnnGetConvolutionBackwardFilterWorkspaceSize(handle, x_shape, y_shape, convolution,
                                                           w_shape, kFilter,
                                                           &filter) == CUDNN_STATUS_SUCCESS);
    return std::max({forward, data, filter, std::size_t{256}});
  }
  [[nodiscard]] cudnnStatus_t forward(void* workspace, std::size_t bytes,
                                      const float* beta = &kZero) const {
    return cudnnConvolutionForward(handle, &kOne, x_shape, x.get(), w_shape, w.get(), convolution,
                                   kForward, workspace, bytes, beta, y_shape, y.get());
  }
  [[nodiscard]] std::vector<float> read(const Buffer<float>& buffer) const {
    REQUIRE(stream.wait() == cudaSuccess);
    return buffer.read();
  }
  [[nodiscard]] std::vector<double> wanted_y(double beta = 0) const {
    std::vector<double> result(kY);
    for (std::size_t i = 0; i < kY; ++i) result[i] = beta == 0 ? 0 : beta * host_y[i];
    for_each_product([&](std::size_t from, std::size_t by, std::size_t to) {
      result[to] += double{host_x[from]} * double{host_w[by]};
    });
    return result;
  }
};

}  // namespace

TEST_CASE("cudnnConvolutionForward, with beta and without reading y where beta is 0") {
  const Layer layer;
  const std::size_t needed = layer.workspace_bytes();
  const Buffer<std::byte> workspace(needed);
  const float two = 2;
  REQUIRE(layer.forward(workspace.get(), needed, &two) == CUDNN_STATUS_SUCCESS);
  CHECK(difference(layer.read(layer.y), layer.wanted_y(2)) < kTolerance);
  const std::vector<float> nan(kY, std::numeric_limits<float>::quiet_NaN());
  REQUIRE(cudaMemcpy(layer.y.get(), nan.data(), kY * 4, cudaMemcpyHostToDevice) == cudaSuccess);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  REQUIRE(layer.forward(workspace.get(), needed) == CUDNN_STATUS_SUCCESS);
  CHECK(difference(layer.read(layer.y), layer.wanted_y()) < kTolerance);
}

TEST_CASE("cudnnConvolutionBackwardData") {
  const Layer layer;
  const std::size_t needed = layer.workspace_bytes();
  const Buffer<std::byte> workspace(needed);
  const Buffer<float> dx(kX);
  REQUIRE(cudnnConvolutionBackwardData(layer.handle, &kOne, layer.w_shape, layer.w.get(),
                                       layer.y_shape, layer.y.get(), layer.convolution, kData,
                                       workspace.get(), needed, &kZero, layer.x_shape,
                                       dx.get()) == CUDNN_STATUS_SUCCESS);
  std::vector<double> wanted(kX);
  for_each_product([&](std::size_t to, std::size_t by, std::size_t from) {
    wanted[to] += double{layer.host_y[from]} * double{layer.host_w[by]};
  });
  CHECK(difference(layer.read(dx), wanted) < kTolerance);
}

TEST_CASE("cudnnConvolutionBackwardFilter, added to with beta 1") {
  const Layer layer;
  const std::size_t needed = layer.workspace_bytes();
  const Buffer<std::byte> workspace(needed);
  const Buffer<float> dw(layer.host_w);
  REQUIRE(cudnnConvolutionBackwardFilter(layer.handle, &kOne, layer.x_shape, layer.x.get(),
                                         layer.y_shape, layer.y.get(), layer.convolution, kFilter,
                                         workspace.get(), needed, &kOne, layer.w_shape,
                                         dw.get()) == CUDNN_STATUS_SUCCESS);
  std::vector<double> wanted(layer.host_w.begin(), layer.host_w.end());
  for_each_product([&](std::size_t with, std::size_t to, std::size_t from) {
    wanted[to] += double{layer.host_x[with]} * double{layer.host_y[from]};
  });
  CHECK(difference(layer.read(dw), wanted) < kTolerance);
}

TEST_CASE("cudnnConvolutionBackwardBias sums over images and places") {
  const Layer layer;
  const Buffer<float> db(kK);
  REQUIRE(cudnnConvolutionBackwardBias(layer.handle, &kOne, layer.y_shape, layer.y.get(), &kZero,
                                       layer.bias_shape, db.get()) == CUDNN_STATUS_SUCCESS);
  std::vector<double> wanted(kK);
  for (std::size_t i = 0; i < kY; ++i) wanted[i / (kSide * kSide) % kK] += layer.host_y[i];
  CHECK(difference(layer.read(db), wanted) < kTolerance);
  CHECK(cudnnConvolutionBackwardBias(layer.handle, &kOne, layer.y_shape, layer.y.get(), &kZero,
                                     layer.x_shape, db.get()) == CUDNN_STATUS_BAD_PARAM);
}

TEST_CASE("cudnnConvolutionBiasActivationForward: convolution, bias and relu in one") {
  const Layer layer;
  const std::size_t needed = layer.workspace_bytes();
  const Buffer<std::byte> workspace(needed);
  const std::vector<float> host_bias = values(kK, 9);
  const Buffer<float> bias(host_bias);
  const ActivationDescriptor relu(CUDNN_ACTIVATION_RELU);
  REQUIRE(cudnnConvolutionBiasActivationForward(
              layer.handle, &kOne, layer.x_shape, layer.x.get(), layer.w_shape, layer.w.get(),
              layer.convolution, kForward, workspace.get(), needed, &kZero, layer.y_shape,
              layer.y.get(), layer.bias_shape, bias.get(), relu, layer.y_shape,
              layer.y.get()) == CUDNN_STATUS_SUCCESS);
  std::vector<double> wanted = layer.wanted_y();
  for (std::size_t i = 0; i < kY; ++i) {
    wanted[i] = std::max(0.0, wanted[i] + host_bias[i / (kSide * kSide) % kK]);
  }
  CHECK(difference(layer.read(layer.y), wanted) < kTolerance);
}

TEST_CASE("convolutions refuse shapes that do not fit together") {
  const Layer layer;
  const std::size_t needed = layer.workspace_bytes();
  const Buffer<std::byte> workspace(needed);
  const TensorDescriptor other_y(kN, kK, kSide - 1, kSide);
  CHECK(cudnnConvolutionForward(layer.handle, &kOne, layer.x_shape, layer.x.get(), layer.w_shape,
                                layer.w.get(), layer.convolution, kForward, workspace.get(), needed,
                                &kZero, other_y, layer.y.get()) == CUDNN_STATUS_BAD_PARAM);
  const TensorDescriptor other_x(kN, kC + 1, kSide, kSide);
  std::size_t bytes_needed = 0;
  CHECK(cudnnGetConvolutionForwardWorkspaceSize(layer.handle, other_x, layer.w_shape,
                                                layer.convolution, layer.y_shape, kForward,
                                                &bytes_needed) == CUDNN_STATUS_BAD_PARAM);
  CHECK(layer.read(layer.y) == layer.host_y);
}

TEST_CASE("without the workspace that it asks for a convolution fails, or is right all the same") {
  // The manual does not say which: implementations may take an algorithm that needs none.
  const Layer layer;
  if (layer.forward(nullptr, 0) == CUDNN_STATUS_SUCCESS) {
    CHECK(difference(layer.read(layer.y), layer.wanted_y()) < kTolerance);
  } else {
    CHECK(layer.read(layer.y) == layer.host_y);
  }
}

TEST_CASE("convolutions are captured once their kernels are loaded") {
  const Layer layer;
  const std::size_t needed = layer.workspace_bytes();
  const Buffer<std::byte> workspace(needed);
  REQUIRE(layer.forward(workspace.get(), needed) == CUDNN_STATUS_SUCCESS);
  const std::vector<float> eager = layer.read(layer.y);
  REQUIRE(cudaMemsetAsync(layer.y.get(), 0, kY * 4, layer.stream) == cudaSuccess);
  const Graph graph(layer.stream, [&] {
    REQUIRE(layer.forward(workspace.get(), needed) == CUDNN_STATUS_SUCCESS);
  });
  CHECK(layer.read(layer.y) == std::vector<float>(kY, 0.0F));
  REQUIRE(graph.launch(layer.stream) == cudaSuccess);
  CHECK(layer.read(layer.y) == eager);
}

}  // namespace lockstep::calibration
