// The CPU kernels of one instruction set, as tables of plain functions.
//
// Every file kernels/cpu/*.cpp but table.cpp is compiled once per instruction set, inside the
// namespace lockstep::cpu::LOCKSTEP_CPU_SET; `kernels(set)` picks the table. Kernels trust their
// input: the functions in kernels/*.h have checked it. Activations are in Layout::n16: [groups of
// 16 samples][...][16].
//
// The per-set files include this header, so it includes nothing that has inline functions: the
// linker would keep one set's copy of such a function for all of them, and a processor without
// AVX-512 would meet AVX-512 code.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep {
enum class CpuSet;
}

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

struct LinearKernels {
  void (*forward)(std::int64_t groups, std::int64_t d, std::int64_t o, const float* x,
                  const float* w, const float* b, float* y);
  void (*backward_data)(std::int64_t groups, std::int64_t d, std::int64_t o, const float* dy,
                        const float* w, float* dx);
  void (*backward_parameters)(std::int64_t groups, std::int64_t d, std::int64_t o, const float* x,
                              const float* dy, float* dw, float* db, bool accumulate);
};

/// All kernels of one instruction set. References, so that set.cpp can tie the tables of the
/// per-set files together without code that runs before main.
struct Kernels {
  const LinearKernels& linear;
};

/// The kernels for `set`, which the processor must support. `set` is that of a Context, which has
/// checked it.
[[nodiscard]] const Kernels& kernels(CpuSet set);

}  // namespace lockstep::cpu
