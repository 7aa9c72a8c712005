// The simulated cuBLAS as a program sees it: results, what it refuses, what it counts.
#include <algorithm>
#include <cmath>

#include <cublas_v2.h>

#include "cublas/gemm.h"
#include "tests/library_support.h"

namespace cusim {
namespace {

using namespace test;

class Handle {
 public:
  Handle() { REQUIRE(cublasCreate(&handle_) == CUBLAS_STATUS_SUCCESS); }
  ~Handle() { cublasDestroy(handle_); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  operator cublasHandle_t() const { return handle_; }  // NOLINT: it is the handle

 private:
  cublasHandle_t handle_ = nullptr;
};

/// A product of 5 x 7 by 7 x 3 on a stream.
struct Product {
  static constexpr int kM = 5, kN = 3, kK = 7;
  std::vector<float> host_a = values(kM * kK, 1), host_b = values(kK * kN, 2);
  Buffer<float> a{host_a}, b{host_b}, c{std::vector<float>(kM * kN, 1.0F)};
  Stream stream;
  Handle handle;

  Product() { REQUIRE(cublasSetStream(handle, stream) == CUBLAS_STATUS_SUCCESS); }

  cublasStatus_t run(float alpha = 1, float beta = 0) const {
    return cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, kM, kN, kK, &alpha, a.get(), kM, b.get(),
                       kK, &beta, c.get(), kM);
  }
  /// The result after waiting.
  [[nodiscard]] std::vector<float> result() const {
    REQUIRE(stream.wait() == cudaSuccess);
    return c.read();
  }
  [[nodiscard]] std::vector<float> wanted(float alpha, float beta,
                                          Precision precision = Precision::kFloat) const {
    std::vector<float> out(kM * kN, 1.0F);
    multiply(kM, kN, kK, alpha, {host_a.data(), 1, kM}, {host_b.data(), 1, kK}, beta, out.data(),
             kM, precision);
    return out;
  }
};

TEST_CASE("Sgemm multiplies on its stream") {
  const Product product;
  REQUIRE(product.run(2, -1) == CUBLAS_STATUS_SUCCESS);
  CHECK(product.result() == product.wanted(2, -1));
}

TEST_CASE("Sgemm takes row-major factors by transposition") {
  // Y (N x O) = X (N x I) * W' with W (O x I), all row-major.
  const std::vector<float> x = values(4 * 6, 3);
  const std::vector<float> w = values(2 * 6, 4);
  const Buffer<float> x_device(x);
  const Buffer<float> w_device(w);
  const Buffer<float> y_device(4 * 2);
  const Stream stream;
  const Handle handle;
  REQUIRE(cublasSetStream(handle, stream) == CUBLAS_STATUS_SUCCESS);
  const float one = 1;
  const float zero = 0;
  REQUIRE(cublasSgemm(handle, CUBLAS_OP_T, CUBLAS_OP_N, 2, 4, 6, &one, w_device.get(), 6,
                      x_device.get(), 6, &zero, y_device.get(), 2) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(stream.wait() == cudaSuccess);
  const std::vector<float> y = y_device.read();
  for (std::size_t n = 0; n < 4; ++n) {
    for (std::size_t o = 0; o < 2; ++o) {
      double sum = 0;
      for (std::size_t i = 0; i < 6; ++i) sum += double{x[n * 6 + i]} * w[o * 6 + i];
      CHECK(y[n * 2 + o] == Approx(sum).margin(1e-6));
    }
  }
}

TEST_CASE("the scaling factors of a captured product are those of the call") {
  const Product product;
  float alpha = 3;
  float beta = 0;
  const Graph graph(product.stream, [&] {
    REQUIRE(cublasSgemm(product.handle, CUBLAS_OP_N, CUBLAS_OP_N, Product::kM, Product::kN,
                        Product::kK, &alpha, product.a.get(), Product::kM, product.b.get(),
                        Product::kK, &beta, product.c.get(), Product::kM) == CUBLAS_STATUS_SUCCESS);
  });
  alpha = 0;
  beta = 5;
  CHECK(product.result() == std::vector<float>(Product::kM * Product::kN, 1.0F));  // not yet run
  REQUIRE(graph.launch(product.stream) == cudaSuccess);
  CHECK(product.result() == product.wanted(3, 0));
}

TEST_CASE("in device pointer mode the scaling factors are read when the product runs") {
  const Product product;
  const Buffer<float> factors(std::vector<float>{4, 0.5F});
  REQUIRE(cublasSetPointerMode(product.handle, CUBLAS_POINTER_MODE_DEVICE) ==
          CUBLAS_STATUS_SUCCESS);
  REQUIRE(cublasSgemm(product.handle, CUBLAS_OP_N, CUBLAS_OP_N, Product::kM, Product::kN,
                      Product::kK, factors.get(), product.a.get(), Product::kM, product.b.get(),
                      Product::kK, factors.get() + 1, product.c.get(),
                      Product::kM) == CUBLAS_STATUS_SUCCESS);
  CHECK(product.result() == product.wanted(4, 0.5F));
}

TEST_CASE("only the TF32 mode rounds the factors") {
  const Product product;
  REQUIRE(product.wanted(1, 0) != product.wanted(1, 0, Precision::kTf32));
  cublasMath_t mode{};
  REQUIRE(cublasGetMathMode(product.handle, &mode) == CUBLAS_STATUS_SUCCESS);
  CHECK(mode == CUBLAS_DEFAULT_MATH);
  for (const auto math : {CUBLAS_TF32_TENSOR_OP_MATH, CUBLAS_PEDANTIC_MATH, CUBLAS_DEFAULT_MATH}) {
    REQUIRE(cublasSetMathMode(product.handle, math) == CUBLAS_STATUS_SUCCESS);
    REQUIRE(product.run() == CUBLAS_STATUS_SUCCESS);
    const bool tf32 = math == CUBLAS_TF32_TENSOR_OP_MATH && device_has_tf32();
    CHECK(product.result() == product.wanted(1, 0, tf32 ? Precision::kTf32 : Precision::kFloat));
  }
}

TEST_CASE("what a product needs of its workspace is overwritten; setting the stream forgets it") {
  const Product product;
  const std::vector<float> ones(1024, 1.0F);
  const Buffer<float> workspace(ones);
  REQUIRE(cublasSetWorkspace(product.handle, workspace.get(), 4096) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(product.run() == CUBLAS_STATUS_SUCCESS);
  CHECK(product.result() == product.wanted(1, 0));
  const std::vector<float> left = workspace.read();
  CHECK(std::count_if(left.begin(), left.end(), [](float v) { return std::isnan(v); }) ==
        Product::kM * Product::kN);

  const Buffer<float> kept(ones);
  REQUIRE(cublasSetWorkspace(product.handle, kept.get(), 4096) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cublasSetStream(product.handle, product.stream) == CUBLAS_STATUS_SUCCESS);
  cusim_reset_counters();
  const Graph graph(product.stream, [&] { REQUIRE(product.run() == CUBLAS_STATUS_SUCCESS); });
  CHECK(cusim_counter("captures_without_workspace") == 1);
  REQUIRE(graph.launch(product.stream) == cudaSuccess);
  CHECK(product.result() == product.wanted(1, 0));
  CHECK(kept.read() == ones);
}

TEST_CASE("batches of products at fixed distances") {
  constexpr int kM = 3, kN = 2, kK = 4, kCount = 3;
  const std::vector<float> a = values(kM * kK * kCount, 5);
  const std::vector<float> b = values(kK * kN, 6);  // one factor for all: distance 0
  const Buffer<float> a_device(a);
  const Buffer<float> b_device(b);
  const Buffer<float> c_device(kM * kN * kCount);
  const Stream stream;
  const Handle handle;
  REQUIRE(cublasSetStream(handle, stream) == CUBLAS_STATUS_SUCCESS);
  const float one = 1;
  const float zero = 0;
  const auto run = [&](long long stride_c) {
    return cublasSgemmStridedBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, kM, kN, kK, &one,
                                     a_device.get(), kM, kM * kK, b_device.get(), kK, 0, &zero,
                                     c_device.get(), kM, stride_c, kCount);
  };
  REQUIRE(run(kM * kN) == CUBLAS_STATUS_SUCCESS);
  CHECK(run(kM * kN - 1) == CUBLAS_STATUS_INVALID_VALUE);  // outputs would overlap
  REQUIRE(stream.wait() == cudaSuccess);
  std::vector<float> wanted(kM * kN * kCount);
  for (int i = 0; i < kCount; ++i) {
    multiply(kM, kN, kK, 1, {a.data() + i * kM * kK, 1, kM}, {b.data(), 1, kK}, 0,
             wanted.data() + i * kM * kN, kM);
  }
  CHECK(c_device.read() == wanted);
}

TEST_CASE("Sgemv multiplies a matrix, transposed or not, by a vector with steps") {
  constexpr int kM = 3, kN = 4;
  const std::vector<float> a = values(kM * kN, 7);
  const Buffer<float> a_device(a);
  const Stream stream;
  const Handle handle;
  REQUIRE(cublasSetStream(handle, stream) == CUBLAS_STATUS_SUCCESS);
  for (const bool transposed : {false, true}) {
    const std::size_t inputs = transposed ? kM : kN;
    const std::size_t outputs = transposed ? kN : kM;
    const std::vector<float> x = values(inputs * 2, 8);
    const Buffer<float> x_device(x);
    const Buffer<float> y_device(std::vector<float>(outputs * 3, 1.0F));
    const float alpha = 2;
    const float beta = 10;
    REQUIRE(cublasSgemv(handle, transposed ? CUBLAS_OP_T : CUBLAS_OP_N, kM, kN, &alpha,
                        a_device.get(), kM, x_device.get(), 2, &beta, y_device.get(),
                        3) == CUBLAS_STATUS_SUCCESS);
    REQUIRE(stream.wait() == cudaSuccess);
    const std::vector<float> y = y_device.read();
    for (std::size_t i = 0; i < outputs * 3; ++i) {
      if (i % 3 != 0) {
        CHECK(y[i] == 1);
        continue;
      }
      double sum = 0;
      for (std::size_t j = 0; j < inputs; ++j) {
        const std::size_t row = transposed ? j : i / 3;
        const std::size_t column = transposed ? i / 3 : j;
        sum += double{a[column * kM + row]} * x[2 * j];
      }
      CHECK(y[i] == Approx(2 * sum + 10));
    }
  }
}

TEST_CASE("calls that a GPU would refuse, or answer with nonsense, are refused") {
  const Product product;
  const float one = 1;
  const auto gemm = [&](const float* alpha, int lda, int ldb, int ldc) {
    return cublasSgemm(product.handle, CUBLAS_OP_T, CUBLAS_OP_N, 5, 3, 7, alpha, product.a.get(),
                       lda, product.b.get(), ldb, &one, product.c.get(), ldc);
  };
  CHECK(gemm(&one, 7, 7, 5) == CUBLAS_STATUS_SUCCESS);
  CHECK(gemm(&one, 6, 7, 5) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(gemm(&one, 7, 6, 5) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(gemm(&one, 7, 7, 4) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(gemm(nullptr, 7, 7, 5) == CUBLAS_STATUS_INVALID_VALUE);
  REQUIRE(product.stream.wait() == cudaSuccess);

  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  CHECK(gemm(&one, 7, 7, 5) == CUBLAS_STATUS_EXECUTION_FAILED);
  {
    const Stream elsewhere;
    CHECK(cublasSetStream(product.handle, elsewhere) == CUBLAS_STATUS_INVALID_VALUE);
  }
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
  CHECK(cublasSetWorkspace(product.handle, product.c.get() + 1, 4) == CUBLAS_STATUS_INVALID_VALUE);
}

TEST_CASE("a handle cannot be made during a capture, and owns memory until it is destroyed") {
  const std::size_t before = cusim_live_bytes(0);
  {
    const Handle handle;
    CHECK(cusim_live_bytes(0) > before);
  }
  CHECK(cusim_live_bytes(0) == before);

  const Stream stream;
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  cublasHandle_t handle = nullptr;
  CHECK(cublasCreate(&handle) == CUBLAS_STATUS_NOT_INITIALIZED);
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated);
  cudaGetLastError();
}

TEST_CASE("a handle that was destroyed is refused") {
  const std::int64_t before = alive("cublas_handles");
  cublasHandle_t handle = nullptr;
  REQUIRE(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  CHECK(alive("cublas_handles") == before + 1);
  REQUIRE(cublasDestroy(handle) == CUBLAS_STATUS_SUCCESS);
  CHECK(alive("cublas_handles") == before);
  const Stream stream;
  CHECK(cublasSetStream(handle, stream) == CUBLAS_STATUS_NOT_INITIALIZED);
  CHECK(cublasSetMathMode(handle, CUBLAS_DEFAULT_MATH) == CUBLAS_STATUS_NOT_INITIALIZED);
  CHECK(cublasDestroy(handle) == CUBLAS_STATUS_NOT_INITIALIZED);
}

TEST_CASE("every call can be made to fail, and a handle ends all the same") {
  cusim_set_fault(
      "cublasCreate@1=14,cublasGetVersion@1=14,cublasSetStream@1=14,cublasGetStream@1=14,"
      "cublasSetWorkspace@1=14,cublasSetMathMode@1=14,cublasGetMathMode@1=14,"
      "cublasSetPointerMode@1=14,cublasSetAtomicsMode@1=14,cublasDestroy@1=14");
  const std::size_t before = cusim_live_bytes(0);
  const Stream stream;
  cublasHandle_t handle = nullptr;
  CHECK(cublasCreate(&handle) == CUBLAS_STATUS_INTERNAL_ERROR);
  CHECK(cusim_live_bytes(0) == before);
  REQUIRE(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  int version = 0;
  cudaStream_t its_stream = nullptr;
  cublasMath_t math{};
  CHECK(cublasGetVersion(handle, &version) == CUBLAS_STATUS_INTERNAL_ERROR);
  CHECK(cublasSetStream(handle, stream) == CUBLAS_STATUS_INTERNAL_ERROR);
  CHECK(cublasGetStream(handle, &its_stream) == CUBLAS_STATUS_INTERNAL_ERROR);
  CHECK(cublasSetWorkspace(handle, nullptr, 0) == CUBLAS_STATUS_INTERNAL_ERROR);
  CHECK(cublasSetMathMode(handle, CUBLAS_DEFAULT_MATH) == CUBLAS_STATUS_INTERNAL_ERROR);
  CHECK(cublasGetMathMode(handle, &math) == CUBLAS_STATUS_INTERNAL_ERROR);
  CHECK(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST) == CUBLAS_STATUS_INTERNAL_ERROR);
  CHECK(cublasSetAtomicsMode(handle, CUBLAS_ATOMICS_NOT_ALLOWED) == CUBLAS_STATUS_INTERNAL_ERROR);
  CHECK(cublasDestroy(handle) == CUBLAS_STATUS_INTERNAL_ERROR);
  CHECK(cusim_faults_happened() == 10);
  CHECK(cusim_live_bytes(0) == before);
  cusim_set_fault("");
}

TEST_CASE("products are counted, traced and can be made to fail") {
  const Product product;
  cusim_reset_counters();
  cusim_trace_start();
  REQUIRE(product.run() == CUBLAS_STATUS_SUCCESS);
  REQUIRE(product.stream.wait() == cudaSuccess);
  cusim_trace_stop();
  CHECK(cusim_counter("gemms") == 1);
  CHECK(cusim_counter("library_calls") == 1);
  CHECK(cusim_counter("calls") == 1);
  cusim_trace_entry entry{};
  REQUIRE(cusim_trace_get(0, &entry) == 1);
  CHECK(entry.kind == std::string("library"));
  CHECK(entry.name == std::string("cublasSgemm"));

  cusim_set_fault("cublasSgemm@2=13");
  CHECK(product.run() == CUBLAS_STATUS_SUCCESS);
  CHECK(product.run() == CUBLAS_STATUS_EXECUTION_FAILED);
  CHECK(product.run() == CUBLAS_STATUS_SUCCESS);
  cusim_set_fault("");
  REQUIRE(product.stream.wait() == cudaSuccess);
}

}  // namespace
}  // namespace cusim
