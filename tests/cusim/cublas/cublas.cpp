// The simulated libcublas: products of float matrices on the streams of simulated devices.
//
// Stricter than the real library where that finds mistakes: a handle works only while its device is
// current and on a stream of that device, one that was destroyed is refused, and a workspace is
// overwritten with NaN.
//
// Counters: gemms, gemvs, and captures_without_workspace (products captured while the handle has no
// workspace of the user: the real library then allocates one per graph).
// Faults: each function is a point by its name without suffix ("cublasSgemm@3=13").
#include <algorithm>
#include <memory>

#include <cublas_v2.h>

#include "cublas/gemm.h"
#include "cublas/library.h"
#include "runtime/device_api.h"
#include "runtime/live.h"

struct cublasContext {
  cusim::HandleMemory memory;
  int device = cusim::current_device();
  cudaStream_t stream = nullptr;
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
  cublasMath_t math = CUBLAS_DEFAULT_MATH;
  cublasPointerMode_t pointer_mode = CUBLAS_POINTER_MODE_HOST;
  cublasAtomicsMode_t atomics = CUBLAS_ATOMICS_NOT_ALLOWED;
};

namespace {

using cusim::ConstMatrix;
using cusim::host_pointer;
using cusim::Index;

/// alpha or beta: read at the call, or on the device where the handle's pointer mode says so.
class Scalar {
 public:
  Scalar(const float* pointer, cublasPointerMode_t mode)
      : pointer_(mode == CUBLAS_POINTER_MODE_DEVICE ? pointer : nullptr),
        value_(mode == CUBLAS_POINTER_MODE_DEVICE ? 0 : *pointer) {}

  [[nodiscard]] float value(int device) const {
    return pointer_ ? *host_pointer(pointer_, 1, device, "cublas scalar") : value_;
  }

 private:
  const float* pointer_;
  float value_;
};

/// Products c = alpha * op(a) * op(b) + beta * c of equal shape, at fixed distances in memory.
struct Products {
  bool transpose_a, transpose_b;
  Index m, n, k;
  const float* a;
  Index lda, stride_a;
  const float* b;
  Index ldb, stride_b;
  float* c;
  Index ldc, stride_c;
  Index count;

  [[nodiscard]] Index rows_a() const { return transpose_a ? k : m; }
  [[nodiscard]] Index rows_b() const { return transpose_b ? n : k; }

  [[nodiscard]] bool valid() const {
    return m >= 0 && n >= 0 && k >= 0 && count >= 0 && lda >= std::max<Index>(1, rows_a()) &&
           ldb >= std::max<Index>(1, rows_b()) && ldc >= std::max<Index>(1, m);
  }
};

/// Floats from the first to the last of `count` column-major matrices.
std::size_t span(Index rows, Index columns, Index ld, Index count, Index stride) {
  return static_cast<std::size_t>((count - 1) * stride + (columns - 1) * ld + rows);
}

ConstMatrix operand(const float* data, Index ld, bool transpose) {
  return transpose ? ConstMatrix{data, ld, 1} : ConstMatrix{data, 1, ld};
}

void compute(const Products& p, float alpha, float beta, cusim::Precision precision, int device) {
  float* c = host_pointer(p.c, span(p.m, p.n, p.ldc, p.count, p.stride_c), device, "cublas C");
  const float* a = nullptr;
  const float* b = nullptr;
  const bool factors = alpha != 0 && p.k > 0;
  if (factors) {
    const Index columns_a = p.transpose_a ? p.m : p.k;
    const Index columns_b = p.transpose_b ? p.k : p.n;
    a = host_pointer(p.a, span(p.rows_a(), columns_a, p.lda, p.count, p.stride_a), device,
                     "cublas A");
    b = host_pointer(p.b, span(p.rows_b(), columns_b, p.ldb, p.count, p.stride_b), device,
                     "cublas B");
  }
  for (Index i = 0; i < p.count; ++i) {
    const ConstMatrix from_a =
        operand(factors ? a + i * p.stride_a : nullptr, p.lda, p.transpose_a);
    const ConstMatrix from_b =
        operand(factors ? b + i * p.stride_b : nullptr, p.ldb, p.transpose_b);
    cusim::multiply(p.m, p.n, p.k, alpha, from_a, from_b, beta, c + i * p.stride_c, p.ldc,
                    precision);
  }
}

cusim::Precision precision_of(const cublasContext& handle) {
  const int mode = handle.math & ~CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
  const bool tf32 = mode == CUBLAS_TF32_TENSOR_OP_MATH || mode == CUBLAS_TENSOR_OP_MATH;
  return tf32 && cusim::has_tf32(handle.device) ? cusim::Precision::kTf32
                                                : cusim::Precision::kFloat;
}

cusim::LiveHandles<cublasHandle_t>& live_handles() {
  static auto& all = *new cusim::LiveHandles<cublasHandle_t>("cublas_handles");
  return all;
}

/// Success, or why a call with this handle fails at once: an injected fault, no such handle.
cublasStatus_t admit(const char* call, cublasHandle_t handle) {
  int code = 0;
  if (cusim::fault(call, &code)) return static_cast<cublasStatus_t>(code);
  return live_handles().contains(handle) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

/// Success, or why the handle cannot compute now: as admit(), or another device.
cublasStatus_t ready(const char* call, cublasHandle_t handle) {
  if (const cublasStatus_t status = admit(call, handle)) return status;
  const bool here = cusim::current_device() == handle->device &&
                    cusim::stream_device(handle->stream) == handle->device;
  return here ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

cublasStatus_t enqueue_products(const char* call, const char* counter, cublasHandle_t handle,
                                const float* alpha, const float* beta, const Products& products) {
  if (const cublasStatus_t status = ready(call, handle)) return status;
  if (!alpha || !beta || !products.valid()) return CUBLAS_STATUS_INVALID_VALUE;
  if (products.m == 0 || products.n == 0 || products.count == 0) return CUBLAS_STATUS_SUCCESS;

  cusim::count(counter);
  if (!handle->workspace && cusim::capturing(handle->stream)) {
    cusim::count("captures_without_workspace");
  }
  const std::size_t needed =
      static_cast<std::size_t>(products.m * products.n * products.count) * sizeof(float);
  const cudaError_t error = cusim::enqueue(
      handle->stream,
      {cusim::Kind::library, call,
       [products, device = handle->device, precision = precision_of(*handle),
        first = Scalar(alpha, handle->pointer_mode), second = Scalar(beta, handle->pointer_mode),
        workspace = handle->workspace, used = std::min(needed, handle->workspace_bytes)] {
         cusim::overwrite_workspace(workspace, used, device, "cublas workspace");
         compute(products, first.value(device), second.value(device), precision, device);
       }});
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

bool is_operation(cublasOperation_t operation) {
  return operation == CUBLAS_OP_N || operation == CUBLAS_OP_T || operation == CUBLAS_OP_C;
}

/// Sets or gets one property of a handle.
template <class Access>
cublasStatus_t with_handle(const char* call, cublasHandle_t handle, Access access) {
  if (const cublasStatus_t status = admit(call, handle)) return status;
  access(*handle);
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  int code = 0;
  if (cusim::fault("cublasCreate", &code)) return static_cast<cublasStatus_t>(code);
  if (!handle) return CUBLAS_STATUS_INVALID_VALUE;
  if (!cusim::may_allocate()) return CUBLAS_STATUS_NOT_INITIALIZED;
  auto made = std::make_unique<cublasContext>();
  if (!made->memory.ready()) return CUBLAS_STATUS_ALLOC_FAILED;
  *handle = live_handles().add(made.release());
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  int code = 0;
  const bool fails = cusim::fault("cublasDestroy", &code);
  if (!live_handles().remove(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  delete handle;
  return fails ? static_cast<cublasStatus_t>(code) : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t, int* version) {
  int code = 0;
  if (cusim::fault("cublasGetVersion", &code)) return static_cast<cublasStatus_t>(code);
  if (!version) return CUBLAS_STATUS_INVALID_VALUE;
  *version = CUBLAS_VERSION;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetProperty(libraryPropertyType type, int* value) {
  if (!value) return CUBLAS_STATUS_INVALID_VALUE;
  switch (type) {
    case MAJOR_VERSION:
      *value = CUBLAS_VER_MAJOR;
      return CUBLAS_STATUS_SUCCESS;
    case MINOR_VERSION:
      *value = CUBLAS_VER_MINOR;
      return CUBLAS_STATUS_SUCCESS;
    case PATCH_LEVEL:
      *value = CUBLAS_VER_PATCH;
      return CUBLAS_STATUS_SUCCESS;
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  if (const cublasStatus_t status = admit("cublasSetStream", handle)) return status;
  if (cusim::stream_device(stream) != handle->device) return CUBLAS_STATUS_INVALID_VALUE;
  handle->stream = stream;
  handle->workspace = nullptr;  // as the real one: back to its own pool
  handle->workspace_bytes = 0;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t* stream) {
  return with_handle("cublasGetStream", handle,
                     [&](cublasContext& context) { *stream = context.stream; });
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, std::size_t bytes) {
  constexpr std::uintptr_t kAlignment = 256;
  if (reinterpret_cast<std::uintptr_t>(workspace) % kAlignment != 0) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  return with_handle("cublasSetWorkspace", handle, [&](cublasContext& context) {
    context.workspace = workspace;
    context.workspace_bytes = workspace ? bytes : 0;
  });
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  return with_handle("cublasSetMathMode", handle,
                     [&](cublasContext& context) { context.math = mode; });
}

cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode) {
  return with_handle("cublasGetMathMode", handle,
                     [&](cublasContext& context) { *mode = context.math; });
}

cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode) {
  return with_handle("cublasSetPointerMode", handle,
                     [&](cublasContext& context) { context.pointer_mode = mode; });
}

cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t* mode) {
  return with_handle("cublasGetPointerMode", handle,
                     [&](cublasContext& context) { *mode = context.pointer_mode; });
}

cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode) {
  return with_handle("cublasSetAtomicsMode", handle,
                     [&](cublasContext& context) { context.atomics = mode; });
}

cublasStatus_t cublasGetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t* mode) {
  return with_handle("cublasGetAtomicsMode", handle,
                     [&](cublasContext& context) { *mode = context.atomics; });
}

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t transa,
                              cublasOperation_t transb, int m, int n, int k, const float* alpha,
                              const float* A, int lda, const float* B, int ldb, const float* beta,
                              float* C, int ldc) {
  if (!is_operation(transa) || !is_operation(transb)) return CUBLAS_STATUS_INVALID_VALUE;
  return enqueue_products("cublasSgemm", "gemms", handle, alpha, beta,
                          {.transpose_a = transa != CUBLAS_OP_N,
                           .transpose_b = transb != CUBLAS_OP_N,
                           .m = m,
                           .n = n,
                           .k = k,
                           .a = A,
                           .lda = lda,
                           .stride_a = 0,
                           .b = B,
                           .ldb = ldb,
                           .stride_b = 0,
                           .c = C,
                           .ldc = ldc,
                           .stride_c = 0,
                           .count = 1});
}

cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t transa,
                                         cublasOperation_t transb, int m, int n, int k,
                                         const float* alpha, const float* A, int lda,
                                         long long int strideA, const float* B, int ldb,
                                         long long int strideB, const float* beta, float* C,
                                         int ldc, long long int strideC, int batchCount) {
  if (!is_operation(transa) || !is_operation(transb)) return CUBLAS_STATUS_INVALID_VALUE;
  const bool overlapping = batchCount > 1 && n > 0 && strideC < Index{ldc} * (n - 1) + m;
  if (strideA < 0 || strideB < 0 || overlapping) return CUBLAS_STATUS_INVALID_VALUE;
  return enqueue_products("cublasSgemmStridedBatched", "gemms", handle, alpha, beta,
                          {.transpose_a = transa != CUBLAS_OP_N,
                           .transpose_b = transb != CUBLAS_OP_N,
                           .m = m,
                           .n = n,
                           .k = k,
                           .a = A,
                           .lda = lda,
                           .stride_a = strideA,
                           .b = B,
                           .ldb = ldb,
                           .stride_b = strideB,
                           .c = C,
                           .ldc = ldc,
                           .stride_c = strideC,
                           .count = batchCount});
}

/// y = alpha * op(A) * x + beta * y: a product with one column, transposed so that the steps of x
/// and y may take the place of leading dimensions: y' = x' * op(A)'.
cublasStatus_t cublasSgemv_v2(cublasHandle_t handle, cublasOperation_t trans, int m, int n,
                              const float* alpha, const float* A, int lda, const float* x, int incx,
                              const float* beta, float* y, int incy) {
  if (!is_operation(trans) || m < 0 || n < 0 || incx < 1 || incy < 1 || lda < std::max(1, m)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const bool transposed = trans != CUBLAS_OP_N;
  return enqueue_products("cublasSgemv", "gemvs", handle, alpha, beta,
                          {.transpose_a = false,
                           .transpose_b = !transposed,
                           .m = 1,
                           .n = transposed ? n : m,
                           .k = transposed ? m : n,
                           .a = x,
                           .lda = incx,
                           .stride_a = 0,
                           .b = A,
                           .ldb = lda,
                           .stride_b = 0,
                           .c = y,
                           .ldc = incy,
                           .stride_c = 0,
                           .count = 1});
}

const char* cublasGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_INTERNAL_ERROR:
      return "CUBLAS_STATUS_INTERNAL_ERROR";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
      return "CUBLAS_STATUS_UNKNOWN";
  }
}

const char* cublasGetStatusString(cublasStatus_t status) {
  return cublasGetStatusName(status);
}

}  // extern "C"
