// The fully connected layer by cuBLAS. A row-major matrix [rows][columns] is to cuBLAS, which reads
// columns, its transpose with `columns` as the leading dimension; so each product is written as the
// transpose of the one wanted.
#include "lockstep/core/cuda/runtime.h"
#include "lockstep/kernels/cuda/bias.h"
#include "lockstep/kernels/cuda/extents.h"
#include "lockstep/kernels/cuda/handles.h"
#include "lockstep/kernels/cuda/kernels.h"

namespace lockstep::cuda {
namespace {

struct Sizes {
  int n, d, o;
};

Sizes sizes_of(const Shape& x, const Shape& w) {
  return {int_extent(x[0]), int_extent(w[1]), int_extent(w[0])};
}

constexpr float kOne = 1;
constexpr float kZero = 0;

}  // namespace

void linear_forward(Context& context, ConstFloatView x, ConstFloatView w, ConstFloatView b,
                    FloatView y) {
  const auto [n, d, o] = sizes_of(x.shape, w.shape);
  check(cublasSgemm(handles_of(context).cublas(), CUBLAS_OP_T, CUBLAS_OP_N, o, n, d, &kOne, w.data,
                    d, x.data, d, &kZero, y.data, o),
        context.device(), "linear_forward: cublasSgemm");
  if (b.data != nullptr) add_bias(context, {n, o, 1}, b.data, y.data);
}

void linear_backward_data(Context& context, ConstFloatView dy, ConstFloatView w, FloatView dx) {
  const auto [n, d, o] = sizes_of(dx.shape, w.shape);
  check(cublasSgemm(handles_of(context).cublas(), CUBLAS_OP_N, CUBLAS_OP_N, d, n, o, &kOne, w.data,
                    d, dy.data, o, &kZero, dx.data, d),
        context.device(), "linear_backward_data: cublasSgemm");
}

void linear_backward_parameters(Context& context, ConstFloatView x, ConstFloatView dy, FloatView dw,
                                FloatView db, bool accumulate) {
  const auto [n, d, o] = sizes_of(x.shape, dw.shape);
  check(cublasSgemm(handles_of(context).cublas(), CUBLAS_OP_N, CUBLAS_OP_T, d, o, n, &kOne, x.data,
                    d, dy.data, o, accumulate ? &kOne : &kZero, dw.data, d),
        context.device(), "linear_backward_parameters: cublasSgemm");
  if (db.data != nullptr) sum_bias_gradient(context, {n, o, 1}, dy.data, db.data, accumulate);
}

}  // namespace lockstep::cuda
