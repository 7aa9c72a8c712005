// cuBLAS. Statuses are those of the cuBLAS manual's tables for each function.
#include <cstring>
#include <limits>
#include <string>

#include <cublas_v2.h>

#include "calibration/support.h"

namespace lockstep::calibration {
namespace {

class Handle {
 public:
  Handle() { REQUIRE(cublasCreate(&handle_) == CUBLAS_STATUS_SUCCESS); }
  ~Handle() { cublasDestroy(handle_); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  operator cublasHandle_t() const { return handle_; }  // NOLINT: it is the handle in all but name

 private:
  cublasHandle_t handle_ = nullptr;
};

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kOne = 1;
constexpr float kZero = 0;

/// alpha * op(a) * op(b) + beta * c, all column-major and packed, as a plain sum.
std::vector<double> product(bool transpose_a, bool transpose_b, int m, int n, int k, double alpha,
                            const float* a, const float* b, double beta, const float* c) {
  std::vector<double> result;
  for (int column = 0; column < n; ++column) {
    for (int row = 0; row < m; ++row) {
      double sum = 0;
      for (int i = 0; i < k; ++i) {
        const float left = transpose_a ? a[row * k + i] : a[i * m + row];
        const float right = transpose_b ? b[i * n + column] : b[column * k + i];
        sum += double{left} * double{right};
      }
      result.push_back(alpha * sum + (beta == 0 ? 0 : beta * c[column * m + row]));
    }
  }
  return result;
}

constexpr int kM = 37;
constexpr int kN = 11;
constexpr int kK = 53;

/// A product's matrices, and a handle on a stream.
struct Product {
  std::vector<float> host_a = values(kM * kK, 1);
  std::vector<float> host_b = values(kK * kN, 2);
  std::vector<float> host_c = values(kM * kN, 3);
  Buffer<float> a{host_a};
  Buffer<float> b{host_b};
  Buffer<float> c{host_c};
  Stream stream;
  Handle handle;

  Product() { REQUIRE(cublasSetStream(handle, stream) == CUBLAS_STATUS_SUCCESS); }

  [[nodiscard]] cublasStatus_t gemm(const float* alpha, const float* beta, int lda = kM,
                                    cublasOperation_t transa = CUBLAS_OP_N,
                                    cublasOperation_t transb = CUBLAS_OP_N, int ldb = kK,
                                    int ldc = kM, int m = kM) const {
    return cublasSgemm(handle, transa, transb, m, kN, kK, alpha, a.get(), lda, b.get(), ldb, beta,
                       c.get(), ldc);
  }
  [[nodiscard]] std::vector<float> result() const {
    REQUIRE(stream.wait() == cudaSuccess);
    return c.read();
  }
};

/// fp32 sums of some dozens of terms, in whatever order.
constexpr double kTolerance = 1e-6;

}  // namespace

TEST_CASE("cublasCreate and cublasDestroy: without a handle a call is not initialised") {
  cublasHandle_t handle = nullptr;
  REQUIRE(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  CHECK(cublasDestroy(handle) == CUBLAS_STATUS_SUCCESS);
  CHECK(cublasDestroy(nullptr) == CUBLAS_STATUS_NOT_INITIALIZED);
  CHECK(cublasSetStream(nullptr, nullptr) == CUBLAS_STATUS_NOT_INITIALIZED);
  CHECK(cublasSetMathMode(nullptr, CUBLAS_DEFAULT_MATH) == CUBLAS_STATUS_NOT_INITIALIZED);
  CHECK(cublasSgemm(nullptr, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &kOne, nullptr, 1, nullptr, 1,
                    &kZero, nullptr, 1) == CUBLAS_STATUS_NOT_INITIALIZED);
}

TEST_CASE("cublasGetVersion, cublasGetStatusName and cublasGetStatusString") {
  const Handle handle;
  int version = 0;
  REQUIRE(cublasGetVersion(handle, &version) == CUBLAS_STATUS_SUCCESS);
  CHECK(version / 10000 == CUBLAS_VERSION / 10000);
  CHECK(std::string(cublasGetStatusName(CUBLAS_STATUS_INVALID_VALUE)) ==
        "CUBLAS_STATUS_INVALID_VALUE");
  CHECK(std::strlen(cublasGetStatusString(CUBLAS_STATUS_NOT_SUPPORTED)) > 0);
}

TEST_CASE("cublasGetProperty gives the parts of the version, without a handle") {
  int major = 0;
  int minor = -1;
  int patch = -1;
  REQUIRE(cublasGetProperty(MAJOR_VERSION, &major) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cublasGetProperty(MINOR_VERSION, &minor) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cublasGetProperty(PATCH_LEVEL, &patch) == CUBLAS_STATUS_SUCCESS);
  CHECK(major == CUBLAS_VER_MAJOR);
  CHECK(minor >= 0);
  CHECK(patch >= 0);
  CHECK(cublasGetProperty(MAJOR_VERSION, nullptr) == CUBLAS_STATUS_INVALID_VALUE);
}

TEST_CASE("cublasSetStream and cublasGetStream; at first the default stream") {
  const Handle handle;
  const Stream stream;
  cudaStream_t got = stream;
  REQUIRE(cublasGetStream(handle, &got) == CUBLAS_STATUS_SUCCESS);
  CHECK(got == nullptr);
  REQUIRE(cublasSetStream(handle, stream) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cublasGetStream(handle, &got) == CUBLAS_STATUS_SUCCESS);
  CHECK(got == stream);
}

TEST_CASE("cublasSetMathMode and cublasGetMathMode; at first the default mode") {
  const Handle handle;
  cublasMath_t mode = CUBLAS_PEDANTIC_MATH;
  REQUIRE(cublasGetMathMode(handle, &mode) == CUBLAS_STATUS_SUCCESS);
  CHECK(mode == CUBLAS_DEFAULT_MATH);
  REQUIRE(cublasSetMathMode(handle, CUBLAS_TF32_TENSOR_OP_MATH) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cublasGetMathMode(handle, &mode) == CUBLAS_STATUS_SUCCESS);
  CHECK(mode == CUBLAS_TF32_TENSOR_OP_MATH);
}

TEST_CASE("cublasSetAtomicsMode and cublasGetAtomicsMode; at first none are allowed") {
  const Handle handle;
  cublasAtomicsMode_t mode = CUBLAS_ATOMICS_ALLOWED;
  REQUIRE(cublasGetAtomicsMode(handle, &mode) == CUBLAS_STATUS_SUCCESS);
  CHECK(mode == CUBLAS_ATOMICS_NOT_ALLOWED);
  REQUIRE(cublasSetAtomicsMode(handle, CUBLAS_ATOMICS_ALLOWED) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cublasGetAtomicsMode(handle, &mode) == CUBLAS_STATUS_SUCCESS);
  CHECK(mode == CUBLAS_ATOMICS_ALLOWED);
}

TEST_CASE("cublasSetWorkspace wants 256 bytes of alignment") {
  const Product product;
  const Buffer<float> workspace(1 << 20);
  REQUIRE(cublasSetWorkspace(product.handle, workspace.get(), 4 << 20) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(product.gemm(&kOne, &kZero) == CUBLAS_STATUS_SUCCESS);
  CHECK(difference(product.result(),
                   calibration::product(false, false, kM, kN, kK, 1, product.host_a.data(),
                                        product.host_b.data(), 0, nullptr)) < kTolerance);
  CHECK(cublasSetWorkspace(product.handle, workspace.get() + 1, 1 << 20) ==
        CUBLAS_STATUS_INVALID_VALUE);
}

TEST_CASE("cublasSgemm: all transpositions, alpha and beta") {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      const Product product;
      const float alpha = 0.5F;
      const float beta = -2;
      REQUIRE(product.gemm(&alpha, &beta, transpose_a ? kK : kM,
                           transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N,
                           transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N,
                           transpose_b ? kN : kK) == CUBLAS_STATUS_SUCCESS);
      INFO(transpose_a << transpose_b);
      CHECK(difference(product.result(),
                       calibration::product(transpose_a, transpose_b, kM, kN, kK, 0.5,
                                            product.host_a.data(), product.host_b.data(), -2,
                                            product.host_c.data())) < kTolerance);
    }
  }
}

TEST_CASE("cublasSgemm does not read C where beta is 0") {
  Product product;
  const std::vector<float> nan(kM * kN, kNan);
  REQUIRE(cudaMemcpy(product.c.get(), nan.data(), nan.size() * 4, cudaMemcpyHostToDevice) ==
          cudaSuccess);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  REQUIRE(product.gemm(&kOne, &kZero) == CUBLAS_STATUS_SUCCESS);
  CHECK(difference(product.result(),
                   calibration::product(false, false, kM, kN, kK, 1, product.host_a.data(),
                                        product.host_b.data(), 0, nullptr)) < kTolerance);
}

TEST_CASE("cublasSgemm refuses sizes, leading dimensions and pointers that cannot be") {
  const Product product;
  CHECK(product.gemm(&kOne, &kZero, kM - 1) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(product.gemm(&kOne, &kZero, kM, CUBLAS_OP_T) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(product.gemm(&kOne, &kZero, kM, CUBLAS_OP_N, CUBLAS_OP_N, kK - 1) ==
        CUBLAS_STATUS_INVALID_VALUE);
  CHECK(product.gemm(&kOne, &kZero, kM, CUBLAS_OP_N, CUBLAS_OP_N, kK, kM - 1) ==
        CUBLAS_STATUS_INVALID_VALUE);
  CHECK(product.gemm(&kOne, &kZero, kM, CUBLAS_OP_N, CUBLAS_OP_N, kK, kM, -1) ==
        CUBLAS_STATUS_INVALID_VALUE);
  CHECK(product.gemm(nullptr, &kZero) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(product.gemm(&kOne, nullptr) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(product.result() == product.host_c);
}

TEST_CASE("cublasSetPointerMode and cublasGetPointerMode: alpha and beta on the host at first") {
  const Product product;
  cublasPointerMode_t mode = CUBLAS_POINTER_MODE_DEVICE;
  REQUIRE(cublasGetPointerMode(product.handle, &mode) == CUBLAS_STATUS_SUCCESS);
  CHECK(mode == CUBLAS_POINTER_MODE_HOST);
  const Buffer<float> scalars(std::vector<float>{2, 0});
  REQUIRE(cublasSetPointerMode(product.handle, CUBLAS_POINTER_MODE_DEVICE) ==
          CUBLAS_STATUS_SUCCESS);
  REQUIRE(product.gemm(scalars.get(), scalars.get() + 1) == CUBLAS_STATUS_SUCCESS);
  CHECK(difference(product.result(),
                   calibration::product(false, false, kM, kN, kK, 2, product.host_a.data(),
                                        product.host_b.data(), 0, nullptr)) < kTolerance);
}

TEST_CASE("cublasSgemmStridedBatched: products at fixed distances") {
  constexpr int kCount = 3;
  const Stream stream;
  const Handle handle;
  REQUIRE(cublasSetStream(handle, stream) == CUBLAS_STATUS_SUCCESS);
  const std::vector<float> host_a = values(kCount * kM * kK, 4);
  const std::vector<float> host_b = values(kCount * kK * kN, 5);
  const Buffer<float> a(host_a);
  const Buffer<float> b(host_b);
  const Buffer<float> c(kCount * kM * kN);
  const auto run = [&](int lda) {
    return cublasSgemmStridedBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, kM, kN, kK, &kOne, a.get(),
                                     lda, kM * kK, b.get(), kK, kK * kN, &kZero, c.get(), kM,
                                     kM * kN, kCount);
  };
  REQUIRE(run(kM) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(stream.wait() == cudaSuccess);
  std::vector<double> wanted;
  for (int i = 0; i < kCount; ++i) {
    const auto one = product(false, false, kM, kN, kK, 1, host_a.data() + i * kM * kK,
                             host_b.data() + i * kK * kN, 0, nullptr);
    wanted.insert(wanted.end(), one.begin(), one.end());
  }
  CHECK(difference(c.read(), wanted) < kTolerance);
  CHECK(run(kM - 1) == CUBLAS_STATUS_INVALID_VALUE);
}

TEST_CASE("cublasSgemv: y of A and of A transposed, with steps") {
  const Product product;
  const Buffer<float> y(std::vector<float>(2 * kM, 1));
  const auto run = [&](cublasOperation_t transpose, int step) {
    return cublasSgemv(product.handle, transpose, kM, kK, &kOne, product.a.get(), kM,
                       product.b.get(), 1, &kZero, y.get(), step);
  };
  REQUIRE(run(CUBLAS_OP_N, 2) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(product.stream.wait() == cudaSuccess);
  const std::vector<float> all = y.read();
  std::vector<float> every_second;
  for (int i = 0; i < kM; ++i) {
    every_second.push_back(all[static_cast<std::size_t>(2 * i)]);
    CHECK(all[static_cast<std::size_t>(2 * i + 1)] == 1);
  }
  CHECK(difference(every_second,
                   calibration::product(false, false, kM, 1, kK, 1, product.host_a.data(),
                                        product.host_b.data(), 0, nullptr)) < kTolerance);
  CHECK(run(CUBLAS_OP_T, 1) == CUBLAS_STATUS_SUCCESS);
  CHECK(run(CUBLAS_OP_N, 0) == CUBLAS_STATUS_INVALID_VALUE);
  REQUIRE(product.stream.wait() == cudaSuccess);
}

TEST_CASE("products are captured, with the scalars of the call") {
  const Product product;
  const Buffer<float> workspace(8 << 20);
  REQUIRE(cublasSetWorkspace(product.handle, workspace.get(), 32 << 20) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(product.gemm(&kZero, &kOne) == CUBLAS_STATUS_SUCCESS);  // loads the kernel
  REQUIRE(product.result() == product.host_c);
  {
    float alpha = 1;
    const Graph graph(product.stream,
                      [&] { REQUIRE(product.gemm(&alpha, &kZero) == CUBLAS_STATUS_SUCCESS); });
    alpha = 100;
    CHECK(product.result() == product.host_c);
    REQUIRE(graph.launch(product.stream) == cudaSuccess);
    CHECK(difference(product.result(),
                     calibration::product(false, false, kM, kN, kK, 1, product.host_a.data(),
                                          product.host_b.data(), 0, nullptr)) < kTolerance);
  }
}

}  // namespace lockstep::calibration
