// Kernel launches.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/capture.h"
#include "runtime/device.h"
#include "runtime/registry.h"
#include "runtime/settings.h"
#include "runtime/status.h"
#include "runtime/stream.h"

namespace cusim {

namespace {

/// Copies of a kernel's arguments: the caller may change his after the launch.
class Arguments {
 public:
  Arguments(const KernelInfo& kernel, void* const* values) {
    std::size_t bytes = 0;
    for (int i = 0; i < kernel.parameter_count; ++i) bytes += slots(kernel.parameter_bytes[i]);
    storage_.resize(bytes);
    Slot* place = storage_.data();
    for (int i = 0; i < kernel.parameter_count; ++i) {
      std::memcpy(place, values[i], kernel.parameter_bytes[i]);
      pointers_.push_back(place);
      place += slots(kernel.parameter_bytes[i]);
    }
  }

  [[nodiscard]] void* const* pointers() const { return pointers_.data(); }

 private:
  struct alignas(16) Slot {
    std::byte bytes[16];
  };

  static std::size_t slots(std::size_t bytes) { return (bytes + sizeof(Slot) - 1) / sizeof(Slot); }

  std::vector<Slot> storage_;
  std::vector<void*> pointers_;
};

void check_shape(dim3 grid, dim3 block) {
  constexpr unsigned kMaxGrid = 65535;  // of y and z
  constexpr unsigned kMaxThreads = kMaxThreadsPerBlock;
  constexpr unsigned kMaxBlockDepth = 64;
  require(grid.x > 0 && grid.y > 0 && grid.z > 0 && grid.x <= 2147483647u && grid.y <= kMaxGrid &&
              grid.z <= kMaxGrid,
          cudaErrorInvalidConfiguration);
  require(block.x > 0 && block.y > 0 && block.z > 0 && block.x <= kMaxThreads &&
              block.y <= kMaxThreads && block.z <= kMaxBlockDepth &&
              block.x * block.y * block.z <= kMaxThreads,
          cudaErrorInvalidConfiguration);
}

std::size_t dynamic_shared_limit(const Kernel& kernel, int device) {
  const int set = kernel.dynamic_shared_limit[static_cast<std::size_t>(device)];
  if (set > 0) return static_cast<std::size_t>(set);
  const std::size_t fixed = kernel.info->static_shared_bytes;
  return fixed < kDefaultSharedBytes ? kDefaultSharedBytes - fixed : 0;
}

/// The code an injected fault gives this launch, 0 for none.
int launch_fault(const std::string& kernel) {
  int code = 0;
  return fault(("kernel:" + kernel).c_str(), &code) ? code : 0;
}

void launch(const void* stub, dim3 grid, dim3 block, void** values, std::size_t dynamic_shared,
            cudaStream_t handle) {
  // Smaller codes are those that a launch itself returns.
  constexpr int kFirstExecutionError = 100;
  const Kernel& kernel = find_kernel(stub);
  Stream& stream = resolve(handle);
  const int device = stream.device();
  require(device == current_device(), cudaErrorInvalidResourceHandle);
  check_shape(grid, block);
  require(dynamic_shared <= dynamic_shared_limit(kernel, device), cudaErrorInvalidValue);
  const int injected = launch_fault(kernel.name);
  require(injected == 0 || injected >= kFirstExecutionError, static_cast<cudaError_t>(injected));

  // Moved on: a copy kept here would be dropped after the launch, in sight of ThreadSanitizer,
  // which takes the counts of shared pointers for synchronisation with the stream.
  auto run = [=, &kernel, arguments = std::make_shared<const Arguments>(*kernel.info, values)] {
    count("kernels_run");
    if (injected != 0) throw KernelError{injected, "injected fault"};
    kernel.info->run({.grid = {grid.x, grid.y, grid.z},
                      .block = {block.x, block.y, block.z},
                      .dynamic_shared_bytes = dynamic_shared,
                      .device = device,
                      .arguments = arguments->pointers(),
                      .variables = kernel.module->variables[static_cast<std::size_t>(device)],
                      .kernel = kernel.name.c_str(),
                      .seed = settings().seed,
                      .check = settings().check});
  };
  submit(stream, {.kind = Kind::kernel, .name = kernel.name, .run = std::move(run)});
}

/// The launch between <<< and >>>, until the kernel's stub takes it.
struct Configuration {
  dim3 grid;
  dim3 block;
  std::size_t dynamic_shared;
  cudaStream_t stream;
};

thread_local std::vector<Configuration> configurations;

}  // namespace

}  // namespace cusim

using namespace cusim;

extern "C" {

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t dynamic_shared,
                                     cudaStream_t stream) {
  configurations.push_back({grid, block, dynamic_shared, stream});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* dynamic_shared,
                                       void* stream) {
  if (configurations.empty()) return record_error(cudaErrorMissingConfiguration);
  const Configuration& last = configurations.back();
  *grid = last.grid;
  *block = last.block;
  *dynamic_shared = last.dynamic_shared;
  *static_cast<cudaStream_t*>(stream) = last.stream;
  configurations.pop_back();
  return cudaSuccess;
}

/// A kernel's handle is its stub.
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* stub) {
  *kernel = static_cast<cudaKernel_t>(const_cast<void*>(stub));
  return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               std::size_t dynamic_shared, cudaStream_t stream) {
  return cudaLaunchKernel(kernel, grid, block, arguments, dynamic_shared, stream);
}

}  // extern "C"

cudaError_t cudaLaunchKernel(const void* stub, dim3 grid, dim3 block, void** arguments,
                             std::size_t dynamic_shared, cudaStream_t stream) {
  return api("cudaLaunchKernel",
             [&] { launch(stub, grid, block, arguments, dynamic_shared, stream); });
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* stub,
                                void** arguments) {
  return api("cudaLaunchKernelExC", [&] {
    for (unsigned i = 0; i < config->numAttrs; ++i) {
      // Programmatic launch only loosens an order that the simulator keeps.
      const cudaLaunchAttributeID id = config->attrs[i].id;
      require(id == cudaLaunchAttributeProgrammaticStreamSerialization ||
                  id == cudaLaunchAttributePriority || id == cudaLaunchAttributeIgnore,
              cudaErrorNotSupported);
    }
    launch(stub, config->gridDim, config->blockDim, arguments, config->dynamicSmemBytes,
           config->stream);
  });
}

cudaError_t cudaFuncSetAttribute(const void* stub, cudaFuncAttribute attribute, int value) {
  return api("cudaFuncSetAttribute", [&] {
    Kernel& kernel = find_kernel(stub);
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return;
    const std::size_t fixed = kernel.info->static_shared_bytes;
    require(value >= 0 && value + fixed <= static_cast<std::size_t>(max_shared_bytes()),
            cudaErrorInvalidValue);
    kernel.dynamic_shared_limit[static_cast<std::size_t>(current_device())] = value;
  });
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* stub) {
  return api("cudaFuncGetAttributes", [&] {
    const Kernel& kernel = find_kernel(stub);
    *attributes = {};
    attributes->sharedSizeBytes = kernel.info->static_shared_bytes;
    attributes->maxThreadsPerBlock = kMaxThreadsPerBlock;
    attributes->numRegs = 32;
    attributes->ptxVersion = attributes->binaryVersion = settings().compute_capability;
    attributes->maxDynamicSharedSizeBytes =
        static_cast<int>(dynamic_shared_limit(kernel, current_device()));
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* stub,
                                                                   int block_size,
                                                                   std::size_t dynamic_shared,
                                                                   unsigned) {
  return api("cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", [&] {
    require(block_size > 0, cudaErrorInvalidValue);
    const Kernel& kernel = find_kernel(stub);
    const int shared = static_cast<int>(kernel.info->static_shared_bytes + dynamic_shared);
    const int by_threads =
        block_size > kMaxThreadsPerBlock ? 0 : kThreadsPerMultiprocessor / block_size;
    *blocks = shared > 0 ? std::min(by_threads, max_shared_bytes() / shared) : by_threads;
  });
}
