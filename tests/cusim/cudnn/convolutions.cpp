// Convolution calls of the simulated libcudnn.
//
// Algorithms known: forward IMPLICIT_GEMM, IMPLICIT_PRECOMP_GEMM and GEMM; data gradient 0 and 1;
// filter gradient 0, 1 and 3. All of them compute the same sums; data gradient 0 and filter
// gradients 0 and 3 add in a random order. Workspace sizes are made up, but differ by algorithm and
// shape, and a smaller workspace is refused. What a workspace holds is lost at each call.
#include "cudnn/convolution.h"
#include "cudnn/handles.h"

namespace cusim {
namespace {

bool known(cudnnConvolutionFwdAlgo_t algorithm) {
  return algorithm == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM ||
         algorithm == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM ||
         algorithm == CUDNN_CONVOLUTION_FWD_ALGO_GEMM;
}

bool known(cudnnConvolutionBwdDataAlgo_t algorithm) {
  return algorithm == CUDNN_CONVOLUTION_BWD_DATA_ALGO_0 ||
         algorithm == CUDNN_CONVOLUTION_BWD_DATA_ALGO_1;
}

bool known(cudnnConvolutionBwdFilterAlgo_t algorithm) {
  return algorithm == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0 ||
         algorithm == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1 ||
         algorithm == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3;
}

/// The shape of y that x, w and the convolution make.
Tensor output_shape(const cudnnConvolutionStruct& conv, const Tensor& x,
                    const cudnnFilterStruct& w) {
  return packed_tensor(x.n(), w.k,
                       output_extent(x.h(), conv.pad_h, w.r, conv.stride_h, conv.dilation_h),
                       output_extent(x.w(), conv.pad_w, w.s, conv.stride_w, conv.dilation_w));
}

/// A call's descriptors, checked against each other.
struct Checked {
  cudnnStatus_t status;
  Convolution conv;
  std::size_t workspace = 0;  ///< bytes that the call needs
};

template <class Algorithm>
Checked check(const char* call, cudnnHandle_t handle, cudnnConvolutionDescriptor_t descriptor,
              cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w, cudnnTensorDescriptor_t y,
              Algorithm algorithm) {
  const auto no = [&](cudnnStatus_t status, const char* why) {
    return Checked{refuse(status, std::string(call) + ": " + why), {}};
  };
  if (!live_handles().contains(handle)) return no(CUDNN_STATUS_NOT_INITIALIZED, "no such handle");
  if (!all_set(descriptor, x, w, y)) return no(CUDNN_STATUS_BAD_PARAM, "a descriptor is not set");
  if (x->tensor.c() != w->c) return no(CUDNN_STATUS_BAD_PARAM, "channels of x and w differ");
  if (!output_shape(*descriptor, x->tensor, *w).same_extents(y->tensor)) {
    return no(CUDNN_STATUS_BAD_PARAM, "y has not the shape that x, w and the convolution make");
  }
  if (!known(algorithm)) return no(CUDNN_STATUS_NOT_SUPPORTED, "algorithm not supported");

  const bool tf32 = descriptor->math != CUDNN_FMA_MATH && has_tf32(handle->device);
  const Convolution conv{.x = x->tensor,
                         .y = y->tensor,
                         .r = w->r,
                         .s = w->s,
                         .pad_h = descriptor->pad_h,
                         .pad_w = descriptor->pad_w,
                         .stride_h = descriptor->stride_h,
                         .stride_w = descriptor->stride_w,
                         .dilation_h = descriptor->dilation_h,
                         .dilation_w = descriptor->dilation_w,
                         .flipped = descriptor->flipped,
                         .precision = tf32 ? Precision::kTf32 : Precision::kFloat};
  constexpr Index kGranularity = 256;
  const Index columns = conv.taps() * conv.places() * Index{sizeof(float)};
  const Index blocks = (columns + kGranularity - 1) / kGranularity + algorithm + 1;
  return {CUDNN_STATUS_SUCCESS, conv, static_cast<std::size_t>(blocks * kGranularity)};
}

cudnnStatus_t report(const char* call, const Checked& checked, size_t* bytes) {
  if (const cudnnStatus_t status = pass(call)) return status;
  if (checked.status != CUDNN_STATUS_SUCCESS) return checked.status;
  if (!bytes) return refuse(CUDNN_STATUS_BAD_PARAM, "workspace size: null pointer");
  *bytes = checked.workspace;
  return CUDNN_STATUS_SUCCESS;
}

Tensor filter_shape(const Convolution& conv) {
  return packed_tensor(conv.y.c(), conv.x.c(), conv.r, conv.s);
}

/// Enqueues `run(conv, blend, device)` after the checks that all convolutions share.
template <class Run>
cudnnStatus_t enqueue_convolution(const char* call, cudnnHandle_t handle, const Checked& checked,
                                  const void* alpha, const void* beta, void* workspace,
                                  std::size_t bytes, Run run) {
  if (const cudnnStatus_t status = ready(call, handle)) return status;
  if (checked.status != CUDNN_STATUS_SUCCESS) return checked.status;
  if (!alpha || !beta) return refuse(CUDNN_STATUS_BAD_PARAM, "alpha or beta: null pointer");
  if (!workspace || bytes < checked.workspace) {
    return refuse(CUDNN_STATUS_BAD_PARAM, std::string(call) + ": needs a workspace of " +
                                              std::to_string(checked.workspace) + " bytes, got " +
                                              std::to_string(workspace ? bytes : 0));
  }
  count("convolutions");
  return enqueue_call(call, handle,
                      [conv = checked.conv, blend = read_blend(alpha, beta), workspace,
                       needed = checked.workspace, device = handle->device, run] {
                        overwrite_workspace(workspace, needed, device, "cudnn workspace");
                        run(conv, blend, device);
                      });
}

}  // namespace
}  // namespace cusim

using cusim::Blend;
using cusim::Convolution;
using cusim::elements;
using cusim::filter_shape;
using cusim::refuse;

extern "C" {

cudnnStatus_t cudnnGetConvolution2dForwardOutputDim(cudnnConvolutionDescriptor_t conv,
                                                    cudnnTensorDescriptor_t x,
                                                    cudnnFilterDescriptor_t w, int* n, int* c,
                                                    int* h, int* width) {
  if (const cudnnStatus_t status = cusim::pass(__func__)) return status;
  if (!cusim::all_set(conv, x, w) || x->tensor.c() != w->c) {
    return refuse(CUDNN_STATUS_BAD_PARAM,
                  "output shape: a descriptor is not set or channels differ");
  }
  const cusim::Tensor y = cusim::output_shape(*conv, x->tensor, *w);
  if (y.h() < 1 || y.w() < 1) {
    return refuse(CUDNN_STATUS_BAD_PARAM, "output shape: the filter does not fit into the image");
  }
  *n = static_cast<int>(y.n());
  *c = static_cast<int>(y.c());
  *h = static_cast<int>(y.h());
  *width = static_cast<int>(y.w());
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
    cudnnConvolutionDescriptor_t conv, cudnnTensorDescriptor_t y,
    cudnnConvolutionFwdAlgo_t algorithm, size_t* bytes) {
  return cusim::report(__func__, cusim::check(__func__, handle, conv, x, w, y, algorithm), bytes);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t handle, cudnnFilterDescriptor_t w, cudnnTensorDescriptor_t dy,
    cudnnConvolutionDescriptor_t conv, cudnnTensorDescriptor_t dx,
    cudnnConvolutionBwdDataAlgo_t algorithm, size_t* bytes) {
  return cusim::report(__func__, cusim::check(__func__, handle, conv, dx, w, dy, algorithm), bytes);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t dy,
    cudnnConvolutionDescriptor_t conv, cudnnFilterDescriptor_t dw,
    cudnnConvolutionBwdFilterAlgo_t algorithm, size_t* bytes) {
  return cusim::report(__func__, cusim::check(__func__, handle, conv, x, dw, dy, algorithm), bytes);
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha,
                                      cudnnTensorDescriptor_t x_descriptor, const void* x,
                                      cudnnFilterDescriptor_t w_descriptor, const void* w,
                                      cudnnConvolutionDescriptor_t conv,
                                      cudnnConvolutionFwdAlgo_t algorithm, void* workspace,
                                      size_t workspace_bytes, const void* beta,
                                      cudnnTensorDescriptor_t y_descriptor, void* y) {
  return cusim::enqueue_convolution(
      __func__, handle,
      cusim::check(__func__, handle, conv, x_descriptor, w_descriptor, y_descriptor, algorithm),
      alpha, beta, workspace, workspace_bytes,
      [x = static_cast<const float*>(x), w = static_cast<const float*>(w),
       y = static_cast<float*>(y)](const Convolution& shape, Blend blend, int device) {
        convolution_forward(shape, elements(x, shape.x, device, "convolution x"),
                            elements(w, filter_shape(shape), device, "convolution w"), blend,
                            elements(y, shape.y, device, "convolution y"));
      });
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void* alpha,
                                           cudnnFilterDescriptor_t w_descriptor, const void* w,
                                           cudnnTensorDescriptor_t dy_descriptor, const void* dy,
                                           cudnnConvolutionDescriptor_t conv,
                                           cudnnConvolutionBwdDataAlgo_t algorithm, void* workspace,
                                           size_t workspace_bytes, const void* beta,
                                           cudnnTensorDescriptor_t dx_descriptor, void* dx) {
  return cusim::enqueue_convolution(
      __func__, handle,
      cusim::check(__func__, handle, conv, dx_descriptor, w_descriptor, dy_descriptor, algorithm),
      alpha, beta, workspace, workspace_bytes,
      [w = static_cast<const float*>(w), dy = static_cast<const float*>(dy),
       dx = static_cast<float*>(dx), any_order = algorithm == CUDNN_CONVOLUTION_BWD_DATA_ALGO_0](
          const Convolution& shape, Blend blend, int device) {
        convolution_backward_data(shape, elements(w, filter_shape(shape), device, "convolution w"),
                                  elements(dy, shape.y, device, "convolution dy"), blend, any_order,
                                  elements(dx, shape.x, device, "convolution dx"));
      });
}

cudnnStatus_t cudnnConvolutionBackwardFilter(
    cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t x_descriptor, const void* x,
    cudnnTensorDescriptor_t dy_descriptor, const void* dy, cudnnConvolutionDescriptor_t conv,
    cudnnConvolutionBwdFilterAlgo_t algorithm, void* workspace, size_t workspace_bytes,
    const void* beta, cudnnFilterDescriptor_t dw_descriptor, void* dw) {
  return cusim::enqueue_convolution(
      __func__, handle,
      cusim::check(__func__, handle, conv, x_descriptor, dw_descriptor, dy_descriptor, algorithm),
      alpha, beta, workspace, workspace_bytes,
      [x = static_cast<const float*>(x), dy = static_cast<const float*>(dy),
       dw = static_cast<float*>(dw), any_order = algorithm != CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1](
          const Convolution& shape, Blend blend, int device) {
        convolution_backward_filter(shape, elements(x, shape.x, device, "convolution x"),
                                    elements(dy, shape.y, device, "convolution dy"), blend,
                                    any_order,
                                    elements(dw, filter_shape(shape), device, "convolution dw"));
      });
}

cudnnStatus_t cudnnConvolutionBackwardBias(cudnnHandle_t handle, const void* alpha,
                                           cudnnTensorDescriptor_t dy_descriptor, const void* dy,
                                           const void* beta, cudnnTensorDescriptor_t db_descriptor,
                                           void* db) {
  if (const cudnnStatus_t status = cusim::ready(__func__, handle)) return status;
  if (!alpha || !beta || !cusim::all_set(dy_descriptor, db_descriptor) ||
      !db_descriptor->tensor.same_extents(
          cusim::packed_tensor(1, dy_descriptor->tensor.c(), 1, 1))) {
    return refuse(CUDNN_STATUS_BAD_PARAM, "bias gradient: db must be 1, c, 1, 1");
  }
  return cusim::enqueue_call(
      __func__, handle,
      [shape = dy_descriptor->tensor, dy = static_cast<const float*>(dy),
       blend = cusim::read_blend(alpha, beta), db = static_cast<float*>(db),
       device = handle->device] {
        convolution_backward_bias(
            shape, elements(dy, shape, device, "bias gradient dy"), blend,
            elements(db, cusim::packed_tensor(1, shape.c(), 1, 1), device, "bias gradient db"));
      });
}

/// y = activation(alpha1 * conv(x, w) + alpha2 * z + bias). z may be y.
cudnnStatus_t cudnnConvolutionBiasActivationForward(
    cudnnHandle_t handle, const void* alpha1, cudnnTensorDescriptor_t x_descriptor, const void* x,
    cudnnFilterDescriptor_t w_descriptor, const void* w, cudnnConvolutionDescriptor_t conv,
    cudnnConvolutionFwdAlgo_t algorithm, void* workspace, size_t workspace_bytes,
    const void* alpha2, cudnnTensorDescriptor_t z_descriptor, const void* z,
    cudnnTensorDescriptor_t bias_descriptor, const void* bias,
    cudnnActivationDescriptor_t activation_descriptor, cudnnTensorDescriptor_t y_descriptor,
    void* y) {
  using cusim::Tensor;
  if (!cusim::all_set(z_descriptor, bias_descriptor, activation_descriptor, y_descriptor) ||
      !z_descriptor->tensor.same_extents(y_descriptor->tensor) ||
      !bias_descriptor->tensor.same_extents(
          cusim::packed_tensor(1, y_descriptor->tensor.c(), 1, 1))) {
    return refuse(CUDNN_STATUS_BAD_PARAM,
                  "fused convolution: z must have y's shape and the bias 1, c, 1, 1");
  }
  const cusim::Activation activation = activation_descriptor->activation;
  if (activation != cusim::Activation::kRelu &&
      (activation != cusim::Activation::kIdentity ||
       algorithm != CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM)) {
    return refuse(CUDNN_STATUS_NOT_SUPPORTED,
                  "fused convolution: relu, or identity with IMPLICIT_PRECOMP_GEMM only");
  }
  return cusim::enqueue_convolution(
      __func__, handle,
      cusim::check(__func__, handle, conv, x_descriptor, w_descriptor, y_descriptor, algorithm),
      alpha1, alpha2, workspace, workspace_bytes,
      [x = static_cast<const float*>(x), w = static_cast<const float*>(w),
       z_shape = z_descriptor->tensor, z = static_cast<const float*>(z),
       bias_shape = bias_descriptor->tensor, bias = static_cast<const float*>(bias), activation,
       propagate_nan = activation_descriptor->propagate_nan,
       y = static_cast<float*>(y)](const Convolution& shape, Blend blend, int device) {
        const Tensor& y_shape = shape.y;
        float* to = elements(y, y_shape, device, "fused convolution y");
        if (blend.beta != 0) {
          // The blend reads its output, so z goes there first.
          const float* from = elements(z, z_shape, device, "fused convolution z");
          if (from != to) add_tensor(z_shape, from, {.alpha = 1, .beta = 0}, y_shape, to);
        }
        convolution_forward(shape, elements(x, shape.x, device, "fused convolution x"),
                            elements(w, filter_shape(shape), device, "fused convolution w"), blend,
                            to);
        add_tensor(bias_shape, elements(bias, bias_shape, device, "fused convolution bias"),
                   {.alpha = 1, .beta = 1}, y_shape, to);
        activation_forward(activation, propagate_nan, y_shape, to, {}, y_shape, to);
      });
}

}  // extern "C"
