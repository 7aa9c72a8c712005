// The convolutions of the simulated cuDNN as a program sees them.
#include <algorithm>
#include <cmath>

#include "cudnn/convolution.h"
#include "cudnn/elementwise.h"
#include "tests/cudnn_support.h"

namespace cusim {
namespace {

using namespace test;

/// 8 filters of 3x3 on 4 images of 2x6x5, with everything a call needs.
struct Layer {
  Convolution shape{.x = packed_tensor(4, 2, 6, 5),
                    .y = packed_tensor(4, 8, 6, 5),
                    .r = 3,
                    .s = 3,
                    .pad_h = 1,
                    .pad_w = 1};
  std::vector<float> host_x = values(shape.x.span(), 1);
  std::vector<float> host_w = values(8 * 2 * 9, 2);
  std::vector<float> host_y = values(shape.y.span(), 3);
  Buffer<float> x{host_x}, w{host_w}, y{host_y};
  Buffer<float> workspace{std::vector<float>(1 << 16, 1.0F)};
  Stream stream;
  CudnnHandle handle;
  TensorDescriptor x_descriptor{4, 2, 6, 5}, y_descriptor{4, 8, 6, 5}, bias_descriptor{1, 8, 1, 1};
  FilterDescriptor w_descriptor{8, 2, 3, 3};
  ConvolutionDescriptor convolution{1, 1, CUDNN_CROSS_CORRELATION};

  explicit Layer(cudnnMathType_t math = CUDNN_FMA_MATH) {
    REQUIRE(cudnnSetStream(handle, stream) == CUDNN_STATUS_SUCCESS);
    REQUIRE(cudnnSetConvolutionMathType(convolution, math) == CUDNN_STATUS_SUCCESS);
    if (math != CUDNN_FMA_MATH && device_has_tf32()) shape.precision = Precision::kTf32;
  }

  cudnnStatus_t forward(Blend blend = {}, std::size_t bytes = 1 << 18,
                        cudnnConvolutionFwdAlgo_t algorithm =
                            CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM) const {
    return cudnnConvolutionForward(handle, &blend.alpha, x_descriptor, x.get(), w_descriptor,
                                   w.get(), convolution, algorithm, workspace.get(), bytes,
                                   &blend.beta, y_descriptor, y.get());
  }
  cudnnStatus_t backward_data(cudnnConvolutionBwdDataAlgo_t algorithm, Blend blend = {}) const {
    return cudnnConvolutionBackwardData(handle, &blend.alpha, w_descriptor, w.get(), y_descriptor,
                                        y.get(), convolution, algorithm, workspace.get(), 1 << 18,
                                        &blend.beta, x_descriptor, x.get());
  }
  cudnnStatus_t backward_filter(cudnnConvolutionBwdFilterAlgo_t algorithm, Blend blend = {}) const {
    return cudnnConvolutionBackwardFilter(handle, &blend.alpha, x_descriptor, x.get(), y_descriptor,
                                          y.get(), convolution, algorithm, workspace.get(), 1 << 18,
                                          &blend.beta, w_descriptor, w.get());
  }
  std::vector<float> read(const Buffer<float>& buffer) const {
    REQUIRE(stream.wait() == cudaSuccess);
    return buffer.read();
  }
};

TEST_CASE("the three convolutions compute and accumulate") {
  const Blend blend{.alpha = 2, .beta = 1};
  {
    const Layer layer;
    REQUIRE(layer.forward(blend) == CUDNN_STATUS_SUCCESS);
    std::vector<float> wanted = layer.host_y;
    convolution_forward(layer.shape, layer.host_x.data(), layer.host_w.data(), blend,
                        wanted.data());
    CHECK(layer.read(layer.y) == wanted);
  }
  {
    const Layer layer;
    REQUIRE(layer.backward_data(CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, blend) == CUDNN_STATUS_SUCCESS);
    std::vector<float> wanted = layer.host_x;
    convolution_backward_data(layer.shape, layer.host_w.data(), layer.host_y.data(), blend, false,
                              wanted.data());
    CHECK(layer.read(layer.x) == wanted);
  }
  {
    const Layer layer;
    REQUIRE(layer.backward_filter(CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, blend) ==
            CUDNN_STATUS_SUCCESS);
    std::vector<float> wanted = layer.host_w;
    convolution_backward_filter(layer.shape, layer.host_x.data(), layer.host_y.data(), blend, false,
                                wanted.data());
    CHECK(layer.read(layer.w) == wanted);
  }
}

TEST_CASE("CUDNN_CONVOLUTION flips the filter") {
  Layer layer;
  const ConvolutionDescriptor flipped(1, 1, CUDNN_CONVOLUTION);
  REQUIRE(cudnnSetConvolutionMathType(flipped, CUDNN_FMA_MATH) == CUDNN_STATUS_SUCCESS);
  const Blend blend;
  REQUIRE(cudnnConvolutionForward(layer.handle, &blend.alpha, layer.x_descriptor, layer.x.get(),
                                  layer.w_descriptor, layer.w.get(), flipped,
                                  CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, layer.workspace.get(),
                                  1 << 18, &blend.beta, layer.y_descriptor,
                                  layer.y.get()) == CUDNN_STATUS_SUCCESS);
  layer.shape.flipped = true;
  std::vector<float> wanted = layer.host_y;
  convolution_forward(layer.shape, layer.host_x.data(), layer.host_w.data(), blend, wanted.data());
  CHECK(layer.read(layer.y) == wanted);
}

TEST_CASE("math types other than FMA round to TF32 on devices that can") {
  const Layer exact;
  REQUIRE(exact.forward() == CUDNN_STATUS_SUCCESS);
  for (const auto math : {CUDNN_DEFAULT_MATH, CUDNN_TENSOR_OP_MATH}) {
    const Layer layer(math);
    REQUIRE(layer.forward() == CUDNN_STATUS_SUCCESS);
    CHECK((layer.read(layer.y) == exact.read(exact.y)) == !device_has_tf32());
    std::vector<float> wanted = layer.host_y;
    convolution_forward(layer.shape, layer.host_x.data(), layer.host_w.data(), {}, wanted.data());
    CHECK(layer.read(layer.y) == wanted);
  }
  CHECK(ConvolutionDescriptor(1, 1, CUDNN_CROSS_CORRELATION).math() == CUDNN_DEFAULT_MATH);
}

TEST_CASE("algorithms with atomics give other bits each time, the others the same") {
  const auto data_runs_differ = [](cudnnConvolutionBwdDataAlgo_t algorithm) {
    const Layer a;
    const Layer b;
    REQUIRE(a.backward_data(algorithm) == CUDNN_STATUS_SUCCESS);
    REQUIRE(b.backward_data(algorithm) == CUDNN_STATUS_SUCCESS);
    return a.read(a.x) != b.read(b.x);
  };
  const auto filter_runs_differ = [](cudnnConvolutionBwdFilterAlgo_t algorithm) {
    const Layer a;
    const Layer b;
    REQUIRE(a.backward_filter(algorithm) == CUDNN_STATUS_SUCCESS);
    REQUIRE(b.backward_filter(algorithm) == CUDNN_STATUS_SUCCESS);
    return a.read(a.w) != b.read(b.w);
  };
  CHECK(data_runs_differ(CUDNN_CONVOLUTION_BWD_DATA_ALGO_0));
  CHECK_FALSE(data_runs_differ(CUDNN_CONVOLUTION_BWD_DATA_ALGO_1));
  CHECK(filter_runs_differ(CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0));
  CHECK_FALSE(filter_runs_differ(CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1));
  CHECK(filter_runs_differ(CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3));
}

TEST_CASE("workspaces: sizes by algorithm and shape, too small ones refused, contents lost") {
  const Layer layer;
  const auto size = [&](const TensorDescriptor& x, const TensorDescriptor& y,
                        cudnnConvolutionFwdAlgo_t algorithm) {
    std::size_t bytes = 0;
    REQUIRE(cudnnGetConvolutionForwardWorkspaceSize(layer.handle, x, layer.w_descriptor,
                                                    layer.convolution, y, algorithm,
                                                    &bytes) == CUDNN_STATUS_SUCCESS);
    return bytes;
  };
  const TensorDescriptor larger_x(4, 2, 12, 10);
  const TensorDescriptor larger_y(4, 8, 12, 10);
  const std::size_t needed = size(layer.x_descriptor, layer.y_descriptor,
                                  CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM);
  CHECK(needed > 0);
  CHECK(needed !=
        size(layer.x_descriptor, layer.y_descriptor, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM));
  CHECK(needed < size(larger_x, larger_y, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM));

  CHECK(layer.forward({}, needed - 1) == CUDNN_STATUS_BAD_PARAM);
  CHECK(layer.read(layer.y) == layer.host_y);
  CHECK(layer.forward({}, needed) == CUDNN_STATUS_SUCCESS);
  const std::vector<float> left = layer.read(layer.workspace);
  const auto lost = std::count_if(left.begin(), left.end(), [](float v) { return std::isnan(v); });
  CHECK(static_cast<std::size_t>(lost) == needed / sizeof(float));
}

TEST_CASE("descriptors that do not fit together are refused, and the last error says why") {
  Layer layer;
  int n = 0;
  int c = 0;
  int h = 0;
  int w = 0;
  REQUIRE(cudnnGetConvolution2dForwardOutputDim(layer.convolution, layer.x_descriptor,
                                                layer.w_descriptor, &n, &c, &h,
                                                &w) == CUDNN_STATUS_SUCCESS);
  CHECK(std::vector<int>{n, c, h, w} == std::vector<int>{4, 8, 6, 5});

  REQUIRE(cudnnSetTensor4dDescriptor(layer.y_descriptor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 4, 8,
                                     5, 5) == CUDNN_STATUS_SUCCESS);
  CHECK(layer.forward() == CUDNN_STATUS_BAD_PARAM);
  char text[200] = {};
  cudnnGetLastErrorString(text, sizeof text);
  CHECK(std::string(text).find("y has not the shape") != std::string::npos);
  cudnnGetLastErrorString(text, sizeof text);
  CHECK(text[0] == '\0');

  const TensorDescriptor other_channels(4, 3, 6, 5);
  CHECK(cudnnGetConvolution2dForwardOutputDim(layer.convolution, other_channels, layer.w_descriptor,
                                              &n, &c, &h, &w) == CUDNN_STATUS_BAD_PARAM);
  CHECK(cudnnSetTensor4dDescriptor(layer.y_descriptor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 0, 8, 6,
                                   5) == CUDNN_STATUS_BAD_PARAM);
  CHECK(cudnnSetTensor4dDescriptor(layer.y_descriptor, CUDNN_TENSOR_NCHW, CUDNN_DATA_HALF, 4, 8, 6,
                                   5) == CUDNN_STATUS_NOT_SUPPORTED);
  CHECK(cudnnSetConvolutionGroupCount(layer.convolution, 2) == CUDNN_STATUS_NOT_SUPPORTED);
  CHECK(cudnnSetConvolutionGroupCount(layer.convolution, 1) == CUDNN_STATUS_SUCCESS);
  CHECK(layer.backward_filter(CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT) != CUDNN_STATUS_SUCCESS);
}

TEST_CASE("algorithms that are not simulated are not supported") {
  const Layer layer;
  CHECK(layer.forward({}, 1 << 18, CUDNN_CONVOLUTION_FWD_ALGO_DIRECT) ==
        CUDNN_STATUS_NOT_SUPPORTED);
  CHECK(layer.backward_filter(CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT) == CUDNN_STATUS_NOT_SUPPORTED);
}

TEST_CASE("a handle works on its own device and stream only") {
  const Layer layer;
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  CHECK(layer.forward() == CUDNN_STATUS_EXECUTION_FAILED);
  {
    const Stream elsewhere;
    CHECK(cudnnSetStream(layer.handle, elsewhere) == CUDNN_STATUS_BAD_PARAM);
  }
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
  CHECK(layer.forward() == CUDNN_STATUS_SUCCESS);
  REQUIRE(layer.stream.wait() == cudaSuccess);
}

TEST_CASE(
    "handles and descriptors that were destroyed are refused, and none is made in a capture") {
  const std::int64_t descriptors = alive("cudnn_descriptors");
  cudnnTensorDescriptor_t tensor = nullptr;
  REQUIRE(cudnnCreateTensorDescriptor(&tensor) == CUDNN_STATUS_SUCCESS);
  CHECK(alive("cudnn_descriptors") == descriptors + 1);
  REQUIRE(cudnnDestroyTensorDescriptor(tensor) == CUDNN_STATUS_SUCCESS);
  CHECK(alive("cudnn_descriptors") == descriptors);
  CHECK(cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 1, 1) ==
        CUDNN_STATUS_BAD_PARAM);
  CHECK(cudnnDestroyTensorDescriptor(tensor) == CUDNN_STATUS_BAD_PARAM);

  const Stream stream;
  cudnnHandle_t handle = nullptr;
  REQUIRE(cudnnCreate(&handle) == CUDNN_STATUS_SUCCESS);
  REQUIRE(cudnnDestroy(handle) == CUDNN_STATUS_SUCCESS);
  CHECK(cudnnSetStream(handle, stream) == CUDNN_STATUS_BAD_PARAM);
  CHECK(cudnnDestroy(handle) == CUDNN_STATUS_NOT_INITIALIZED);

  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  CHECK(cudnnCreate(&handle) == CUDNN_STATUS_NOT_INITIALIZED);
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated);
  cudaGetLastError();
}

TEST_CASE("every call of a convolution can be made to fail, and what it owns ends all the same") {
  const std::int64_t descriptors = alive("cudnn_descriptors");
  const std::int64_t handles = alive("cudnn_handles");
  cusim_set_fault(
      "cudnnCreateFilterDescriptor@1=4000,cudnnSetFilter4dDescriptor@1=4000,"
      "cudnnSetTensor4dDescriptor@1=4000,cudnnSetConvolution2dDescriptor@1=4000,"
      "cudnnSetConvolutionMathType@1=4000,cudnnGetConvolutionForwardWorkspaceSize@1=4000,"
      "cudnnDestroyFilterDescriptor@1=4000,cudnnSetStream@1=4000,cudnnDestroy@1=4000");
  const Stream stream;
  cudnnFilterDescriptor_t filter = nullptr;
  CHECK(cudnnCreateFilterDescriptor(&filter) == CUDNN_STATUS_INTERNAL_ERROR);
  REQUIRE(cudnnCreateFilterDescriptor(&filter) == CUDNN_STATUS_SUCCESS);
  CHECK(cudnnSetFilter4dDescriptor(filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 1, 1, 1, 1) ==
        CUDNN_STATUS_INTERNAL_ERROR);
  cudnnTensorDescriptor_t tensor = nullptr;
  REQUIRE(cudnnCreateTensorDescriptor(&tensor) == CUDNN_STATUS_SUCCESS);
  CHECK(cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 1, 1) ==
        CUDNN_STATUS_INTERNAL_ERROR);
  cudnnConvolutionDescriptor_t convolution = nullptr;
  REQUIRE(cudnnCreateConvolutionDescriptor(&convolution) == CUDNN_STATUS_SUCCESS);
  CHECK(cudnnSetConvolution2dDescriptor(convolution, 0, 0, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION,
                                        CUDNN_DATA_FLOAT) == CUDNN_STATUS_INTERNAL_ERROR);
  CHECK(cudnnSetConvolutionMathType(convolution, CUDNN_FMA_MATH) == CUDNN_STATUS_INTERNAL_ERROR);
  cudnnHandle_t handle = nullptr;
  REQUIRE(cudnnCreate(&handle) == CUDNN_STATUS_SUCCESS);
  CHECK(cudnnSetStream(handle, stream) == CUDNN_STATUS_INTERNAL_ERROR);
  std::size_t bytes = 0;
  CHECK(cudnnGetConvolutionForwardWorkspaceSize(handle, tensor, filter, convolution, tensor,
                                                CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
                                                &bytes) == CUDNN_STATUS_INTERNAL_ERROR);
  CHECK(cudnnDestroyFilterDescriptor(filter) == CUDNN_STATUS_INTERNAL_ERROR);
  CHECK(cudnnDestroyTensorDescriptor(tensor) == CUDNN_STATUS_SUCCESS);
  CHECK(cudnnDestroyConvolutionDescriptor(convolution) == CUDNN_STATUS_SUCCESS);
  CHECK(cudnnDestroy(handle) == CUDNN_STATUS_INTERNAL_ERROR);
  CHECK(cusim_faults_happened() == 9);
  CHECK(alive("cudnn_descriptors") == descriptors);
  CHECK(alive("cudnn_handles") == handles);
  cusim_set_fault("");
}

TEST_CASE("convolutions are captured, counted and can be made to fail") {
  const Layer layer;
  cusim_reset_counters();
  {
    const Graph graph(layer.stream, [&] { REQUIRE(layer.forward() == CUDNN_STATUS_SUCCESS); });
    CHECK(layer.read(layer.y) == layer.host_y);
    REQUIRE(graph.launch(layer.stream) == cudaSuccess);
    CHECK(layer.read(layer.y) != layer.host_y);
  }
  CHECK(cusim_counter("convolutions") == 1);
  CHECK(cusim_counter("library_calls") == 1);
  CHECK(cusim_counter("calls") == 1);

  cusim_set_fault("cudnnConvolutionForward@1=5000");
  CHECK(layer.forward() == CUDNN_STATUS_EXECUTION_FAILED);
  cusim_set_fault("cudnnCreate@1=1001");
  cudnnHandle_t handle = nullptr;
  CHECK(cudnnCreate(&handle) == CUDNN_STATUS_NOT_INITIALIZED);
  cusim_set_fault("");
}

TEST_CASE("the bias gradient sums over images and places") {
  const Layer layer;
  const Buffer<float> db(8);
  const Blend blend;
  REQUIRE(cudnnConvolutionBackwardBias(layer.handle, &blend.alpha, layer.y_descriptor,
                                       layer.y.get(), &blend.beta, layer.bias_descriptor,
                                       db.get()) == CUDNN_STATUS_SUCCESS);
  std::vector<float> wanted(8);
  convolution_backward_bias(layer.shape.y, layer.host_y.data(), blend, wanted.data());
  CHECK(layer.read(db) == wanted);
  CHECK(cudnnConvolutionBackwardBias(layer.handle, &blend.alpha, layer.y_descriptor, layer.y.get(),
                                     &blend.beta, layer.x_descriptor,
                                     db.get()) == CUDNN_STATUS_BAD_PARAM);
}

TEST_CASE("convolution, addition, bias and activation in one call") {
  const std::vector<float> host_bias = values(8, 9);
  const Buffer<float> bias(host_bias);
  for (const bool in_place : {true, false}) {
    const Layer layer;
    const std::vector<float> host_z = in_place ? layer.host_y : values(layer.host_y.size(), 10);
    const Buffer<float> apart(host_z);
    const auto run = [&](cudnnActivationMode_t mode, cudnnConvolutionFwdAlgo_t algorithm) {
      const float one = 1;
      const float half = 0.5F;
      return cudnnConvolutionBiasActivationForward(
          layer.handle, &one, layer.x_descriptor, layer.x.get(), layer.w_descriptor, layer.w.get(),
          layer.convolution, algorithm, layer.workspace.get(), 1 << 18, &half, layer.y_descriptor,
          in_place ? layer.y.get() : apart.get(), layer.bias_descriptor, bias.get(),
          ActivationDescriptor(mode), layer.y_descriptor, layer.y.get());
    };
    CHECK(run(CUDNN_ACTIVATION_IDENTITY, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM) ==
          CUDNN_STATUS_NOT_SUPPORTED);
    REQUIRE(run(CUDNN_ACTIVATION_RELU, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM) ==
            CUDNN_STATUS_SUCCESS);
    std::vector<float> wanted = host_z;
    convolution_forward(layer.shape, layer.host_x.data(), layer.host_w.data(),
                        {.alpha = 1, .beta = 0.5F}, wanted.data());
    add_tensor(packed_tensor(1, 8, 1, 1), host_bias.data(), {.alpha = 1, .beta = 1}, layer.shape.y,
               wanted.data());
    for (float& value : wanted) value = std::max(value, 0.0F);
    CHECK(layer.read(layer.y) == wanted);
  }
}

}  // namespace
}  // namespace cusim
