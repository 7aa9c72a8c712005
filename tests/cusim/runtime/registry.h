// Kernels and variables: those that the program registers (nvcc's host stubs), and their
// implementations in modules, joined by their mangled names.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

#include "runtime/kernel_api.h"

namespace cusim {

/// A module with its variables on every device.
struct Module {
  const ModuleInfo* info;
  std::vector<std::byte*> variables;  ///< by device; null without variables
};

/// A kernel of the program.
struct Kernel {
  std::string name;
  const KernelInfo* info;
  const Module* module;
  /// By device: what cudaFuncSetAttribute allows, 0 for the default.
  std::vector<std::atomic<int>> dynamic_shared_limit;
};

/// The kernel of a host stub. Throws Failure 98 when the program registered none or no module has
/// it, 209 when the program holds no code for the simulated architecture; loads CUSIM_KERNELS at
/// its first call.
Kernel& find_kernel(const void* stub);

/// The address on the current device of `bytes` at `offset` of a variable; throws Failure 13 for no
/// variable, 1 for bytes outside it.
void* inside_symbol(const void* symbol, std::size_t offset, std::size_t bytes);
std::size_t symbol_bytes(const void* symbol);

}  // namespace cusim
