// The CPU kernels of one instruction set, as tables of plain functions.
//
// The files kernels/cpu/*.cpp are compiled once per instruction set, inside the namespace
// lockstep::cpu::LOCKSTEP_CPU_SET; `kernels(set)` picks the table. Those that plain.h declares and
// table.cpp are compiled once. Kernels trust their input: the functions in kernels/*.h have checked
// it. Activations are in Layout::n16: [groups of 16 samples][...][16].
//
// The per-set files include this header, so it includes nothing that has inline functions: the
// linker would keep one set's copy of such a function for all of them, and a processor without
// AVX-512 would meet AVX-512 code.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep {
enum class CpuSet;
struct StepState;
}  // namespace lockstep

namespace lockstep::cpu {

/// Shapes of a convolution or pooling over `groups` groups of 16 samples.
struct WindowGeometry {
  std::int64_t groups, c, h, w;  // input; pooling: k == c
  std::int64_t k, p, q;          // output
  std::int64_t kernel_h, kernel_w, stride_h, stride_w, pad_top, pad_left;
};

struct ConvKernels {
  void (*forward)(const WindowGeometry& g, const float* x, const float* w, const float* b, float* y,
                  void* workspace);
  void (*backward_data)(const WindowGeometry& g, const float* dy, const float* w, float* dx,
                        void* workspace);
  void (*backward_parameters)(const WindowGeometry& g, const float* x, const float* dy, float* dw,
                              float* db, bool accumulate, void* workspace);
  std::size_t (*workspace_bytes)(const WindowGeometry& g);
};

struct PoolKernels {
  void (*forward)(const WindowGeometry& g, const float* x, float* y, std::uint8_t* argmax);
  void (*backward)(const WindowGeometry& g, const float* dy, const std::uint8_t* argmax, float* dx);
};

/// Convolution [+ ReLU] + pooling: `pool` is the pooling's geometry, whose input is the
/// convolution's output. Kernels of 3 x 3 or 5 x 5 with stride 1, windows of 2 x 2 or 3 x 3 side by
/// side and inside the image, and no more places than 32-bit numbers hold (conv_pool_is_fused).
struct ConvPoolKernels {
  void (*forward)(const WindowGeometry& conv, const WindowGeometry& pool, bool relu, const float* x,
                  const float* w, const float* b, float* y, std::uint8_t* argmax, void* workspace);
  void (*backward)(const WindowGeometry& conv, const WindowGeometry& pool, bool relu,
                   const float* x, const float* w, const float* y, const std::uint8_t* argmax,
                   const float* dy, float* dw, float* db, bool accumulate, float* dx,
                   void* workspace);
  std::size_t (*workspace_bytes)(const WindowGeometry& conv, const WindowGeometry& pool);
};

struct LinearKernels {
  void (*forward)(std::int64_t groups, std::int64_t d, std::int64_t o, const float* x,
                  const float* w, const float* b, float* y);
  void (*backward_data)(std::int64_t groups, std::int64_t d, std::int64_t o, const float* dy,
                        const float* w, float* dx);
  void (*backward_parameters)(std::int64_t groups, std::int64_t d, std::int64_t o, const float* x,
                              const float* dy, float* dw, float* db, bool accumulate);
};

struct GatherKernels {
  void (*bytes)(std::int64_t groups, std::int64_t features, const std::int32_t* sample_index,
                const std::uint8_t* samples, float scale, float* x);
  void (*floats)(std::int64_t groups, std::int64_t features, const std::int32_t* sample_index,
                 const float* samples, float* x);
};

/// `count` floats in any layout.
struct ReluKernels {
  void (*forward)(std::int64_t count, const float* x, float* y);
  void (*backward)(std::int64_t count, const float* y, const float* dy, float* dx);
};

/// The random numbers of one dropout layer in one epoch; `tag` is the last counter word of
/// random_block.
struct DropoutStream {
  std::uint64_t seed;
  std::uint32_t epoch, tag;
};

/// A word is kept when its upper 24 bits are at least `threshold`; what is kept is multiplied by
/// `scale`.
struct DropoutKernels {
  void (*forward)(std::int64_t groups, std::int64_t features, const DropoutStream& stream,
                  const std::int32_t* sample_index, std::uint32_t threshold, float scale,
                  const float* x, float* y, std::uint8_t* mask);
  void (*backward)(std::int64_t count, float scale, const std::uint8_t* mask, const float* dy,
                   float* dx);
};

struct AdamSettings {
  float beta1, beta2, epsilon;
  bool epsilon_inside;
  float weight_decay;
};

struct OptimizeKernels {
  void (*adam)(const AdamSettings& adam, const StepState* state, const float* grads,
               const float* decay_mask, float* params, float* first_moment, float* second_moment,
               std::int64_t count);
  void (*sgd)(float momentum, bool nesterov, const StepState* state, const float* grads,
              float* params, float* velocity, std::int64_t count);
  void (*add_l2_gradient)(const float* factor, const float* params, float* grads,
                          std::int64_t count);
};

/// `scratch` has a double for each chunk of `chunk` floats.
struct ReduceKernels {
  void (*sum_of_squares)(const float* x, std::int64_t count, std::int64_t chunk, double* scratch,
                         double* result);
  void (*l2_term)(const float* factor, const float* x, std::int64_t count, std::int64_t chunk,
                  double* scratch, double* result);
  void (*add_into)(float* dst, const float* src, std::int64_t count);
  void (*sum_tree)(const float* parts, int count, std::int64_t stride, std::int64_t floats,
                   float* sum);
};

/// All kernels of one instruction set. References, so that set.cpp can tie the tables of the
/// per-set files together without code that runs before main.
struct Kernels {
  const ConvKernels& conv;
  const PoolKernels& pool;
  const ConvPoolKernels& conv_pool;
  const LinearKernels& linear;
  const GatherKernels& gather;
  const ReluKernels& relu;
  const DropoutKernels& dropout;
  const OptimizeKernels& optimize;
  const ReduceKernels& reduce;
};

/// The kernels for `set`, which the processor must support. `set` is that of a Context, which has
/// checked it.
[[nodiscard]] const Kernels& kernels(CpuSet set);

}  // namespace lockstep::cpu
