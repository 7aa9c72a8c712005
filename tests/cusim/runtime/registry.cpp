#include "runtime/registry.h"

#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <sstream>
#include <utility>

#include <dlfcn.h>

#include "ptx/fatbin_layout.h"
#include "runtime/device.h"
#include "runtime/memory.h"
#include "runtime/settings.h"
#include "runtime/status.h"

namespace cusim {

namespace {

/// Variables start at this alignment, as cudaMalloc's memory.
constexpr std::size_t kVariableAlignment = 256;

/// What a kernel was registered with.
struct Stub {
  std::string name;    ///< mangled
  const void* binary;  ///< the wrapper of the fat binary that holds its code; may be null
};

struct Registry {
  /// Lookups, once per launch, take it shared: see AllocationMap.
  std::shared_mutex mutex;
  std::map<const void*, Stub> stubs;
  std::map<const void*, std::string> symbols;              ///< mangled names of variables
  std::map<const void*, std::unique_ptr<Kernel>> kernels;  ///< stubs that were used
  std::deque<Module> modules;
};

Registry& registry() {
  static Registry& only = *new Registry;
  return only;
}

/// Whether a device that is simulated could run code of the fat binary: machine code of its
/// generation, or PTX for any that is not newer. One without a content holds code for all.
bool has_code(const void* binary) {
  const auto* wrapper = static_cast<const ptx::FatBinaryWrapper*>(binary);
  if (!wrapper || wrapper->magic != ptx::FatBinaryWrapper::kMagic) return true;
  ptx::FatBinaryHeader header{};
  std::memcpy(&header, wrapper->binary, sizeof header);
  const std::byte* at = wrapper->binary + header.header_bytes;
  const std::byte* const end = at + header.content_bytes;
  const auto capability = static_cast<unsigned>(settings().compute_capability);
  while (at < end) {
    ptx::EntryHeader entry{};
    std::memcpy(&entry, at, sizeof entry);
    const bool fits = entry.kind == ptx::kPtxEntry || entry.arch / 10 == capability / 10;
    if (fits && entry.arch <= capability) return true;
    at += entry.header_bytes + entry.content_bytes;
  }
  return false;
}

/// The module that implements a name, and where in it.
template <class Info>
std::pair<const Module*, const Info*> find_info(const std::string& name,
                                                const Info* ModuleInfo::*table,
                                                int ModuleInfo::*size) {
  for (const Module& module : registry().modules) {
    const Info* infos = module.info->*table;
    for (int i = 0; i < module.info->*size; ++i) {
      if (infos[i].name == name) return {&module, &infos[i]};
    }
  }
  return {};
}

std::byte* make_variables(const ModuleInfo& module, AllocationMap& allocations) {
  if (module.variable_bytes == 0) return nullptr;
  const std::size_t bytes =
      (module.variable_bytes + kVariableAlignment - 1) / kVariableAlignment * kVariableAlignment;
  auto* block = static_cast<std::byte*>(std::aligned_alloc(kVariableAlignment, bytes));
  std::memset(block, 0, bytes);
  for (int i = 0; i < module.variable_count; ++i) {
    const VariableInfo& variable = module.variables[i];
    std::byte* place = block + variable.offset;
    if (variable.initial) std::memcpy(place, variable.initial, variable.initial_bytes);
    allocations.insert(reinterpret_cast<std::uintptr_t>(place), variable.bytes);
  }
  return block;
}

void load_modules() {
  static std::once_flag once;
  std::call_once(once, [] {
    std::istringstream paths(settings().kernels);
    for (std::string path; std::getline(paths, path, ':');) {
      if (!dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) report(dlerror());
    }
  });
}

/// The variable of a symbol and its module. Throws Failure 13.
std::pair<const Module*, const VariableInfo*> find_variable(const void* symbol) {
  load_modules();
  const std::shared_lock lock(registry().mutex);
  const auto name = registry().symbols.find(symbol);
  require(name != registry().symbols.end(), cudaErrorInvalidSymbol);
  const auto found =
      find_info<VariableInfo>(name->second, &ModuleInfo::variables, &ModuleInfo::variable_count);
  if (!found.second) report("no module of CUSIM_KERNELS has the variable " + name->second);
  require(found.second != nullptr, cudaErrorInvalidSymbol);
  return found;
}

}  // namespace

Kernel& find_kernel(const void* stub) {
  {
    const std::shared_lock lock(registry().mutex);
    const auto used = registry().kernels.find(stub);
    if (used != registry().kernels.end()) return *used->second;
  }
  load_modules();
  const std::lock_guard lock(registry().mutex);
  const auto found = registry().stubs.find(stub);
  require(found != registry().stubs.end(), cudaErrorInvalidDeviceFunction);
  const auto& [name, binary] = found->second;
  require(has_code(binary), cudaErrorNoKernelImageForDevice);
  const auto [module, info] =
      find_info<KernelInfo>(name, &ModuleInfo::kernels, &ModuleInfo::kernel_count);
  if (!info) report("no module of CUSIM_KERNELS has the kernel " + name);
  require(info != nullptr, cudaErrorInvalidDeviceFunction);
  std::unique_ptr<Kernel>& kernel = registry().kernels[stub];
  if (!kernel) {
    const auto devices = static_cast<std::size_t>(settings().devices);
    kernel.reset(new Kernel{name, info, module, std::vector<std::atomic<int>>(devices)});
  }
  return *kernel;
}

void* inside_symbol(const void* symbol, std::size_t offset, std::size_t bytes) {
  const auto [module, variable] = find_variable(symbol);
  require(offset <= variable->bytes && bytes <= variable->bytes - offset, cudaErrorInvalidValue);
  std::byte* place = module->variables[static_cast<std::size_t>(current_device())];
  return device_pointer(reinterpret_cast<std::uintptr_t>(place + variable->offset + offset),
                        current_device());
}

std::size_t symbol_bytes(const void* symbol) {
  return find_variable(symbol).second->bytes;
}

}  // namespace cusim

using namespace cusim;

void cusim_register_module(const ModuleInfo* info) {
  Module module{info, {}};
  for (int index = 0; index < settings().devices; ++index) {
    module.variables.push_back(make_variables(*info, device(index).memory.variables));
  }
  const std::lock_guard lock(registry().mutex);
  registry().modules.push_back(std::move(module));
}

// What nvcc's objects call before main. Of the fat binary only the architectures are looked at:
// modules hold its kernels.
extern "C" {

/// A handle points to the wrapper.
void** __cudaRegisterFatBinary(void* wrapper) {
  static std::deque<void*>& wrappers = *new std::deque<void*>;
  const std::lock_guard lock(registry().mutex);
  return &wrappers.emplace_back(wrapper);
}

void __cudaRegisterFatBinaryEnd(void**) {}

void __cudaUnregisterFatBinary(void**) {}

char __cudaInitModule(void**) {
  return 1;
}

void __cudaRegisterFunction(void** handle, const char* stub, char*, const char* name, int, uint3*,
                            uint3*, dim3*, dim3*, int*) {
  const std::lock_guard lock(registry().mutex);
  registry().stubs[stub] = {name, *handle};
}

void __cudaRegisterVar(void**, char* symbol, char*, const char* name, int, std::size_t, int, int) {
  const std::lock_guard lock(registry().mutex);
  registry().symbols[symbol] = name;
}

}  // extern "C"
