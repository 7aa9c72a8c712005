// Copies and memsets.
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "runtime/capture.h"
#include "runtime/device.h"
#include "runtime/memory.h"
#include "runtime/registry.h"
#include "runtime/settings.h"
#include "runtime/status.h"
#include "runtime/stream.h"

namespace cusim {

namespace {

/// One side of a copy.
struct Side {
  Side(const void* pointer_in, std::size_t bytes)
      : pointer(pointer_in),
        device(owning_device(pointer, bytes)),
        pinned(pinned_memory().find(untagged(pointer), bytes).has_value()) {}

  [[nodiscard]] bool on_device() const { return device >= 0; }
  [[nodiscard]] bool pageable() const { return !on_device() && !pinned; }

  /// The address when the copy executes; checks that the memory is still there.
  [[nodiscard]] std::byte* address(std::size_t bytes) const {
    if (pageable()) return reinterpret_cast<std::byte*>(untagged(pointer));
    return host_pointer(pointer, bytes, on_device() ? device : current_device(), "copy");
  }

  const void* pointer;
  int device;
  bool pinned;
};

const char* byte_counter(const Side& to, const Side& from) {
  if (!to.on_device()) return "d2h_bytes";
  return from.on_device() ? "d2d_bytes" : "h2d_bytes";
}

bool fits(cudaMemcpyKind direction, const Side& to, const Side& from) {
  if (direction == cudaMemcpyDefault) return true;
  return to.on_device() ==
             (direction == cudaMemcpyHostToDevice || direction == cudaMemcpyDeviceToDevice) &&
         from.on_device() ==
             (direction == cudaMemcpyDeviceToHost || direction == cudaMemcpyDeviceToDevice);
}

void set_bytes(void* pointer, int value, std::size_t bytes, cudaStream_t handle) {
  if (bytes == 0) return;
  Stream& stream = resolve(handle);
  const int owner = owning_device(pointer, bytes);
  require(owner >= 0 || pinned_memory().find(untagged(pointer), bytes), cudaErrorInvalidValue);
  const auto run = [=, device = owner >= 0 ? owner : stream.device()] {
    std::memset(host_pointer(pointer, bytes, device, "memset"), value, bytes);
  };
  submit(stream, {.kind = Kind::memset, .name = "memset", .run = run});
}

}  // namespace

void copy(void* destination, const void* source, std::size_t bytes, cudaMemcpyKind direction,
          cudaStream_t handle, bool asynchronous) {
  if (bytes == 0) return;
  Stream& stream = resolve(handle);
  const Side to(destination, bytes);
  const Side from(source, bytes);
  require(fits(direction, to, from), cudaErrorInvalidValue);
  const bool captured = stream.capture.load(std::memory_order_acquire) != nullptr;
  if (asynchronous && (to.pageable() || from.pageable())) count("pageable_copies");

  const char* counter = byte_counter(to, from);
  std::function<void()> run = [=] {
    count(counter, bytes);
    std::memcpy(to.address(bytes), from.address(bytes), bytes);
    // What a machine does whose IOMMU translates the addresses of peers.
    const bool spoiled = settings().peers == 2 && to.on_device() && from.on_device();
    if (spoiled && to.device != from.device) ++*reinterpret_cast<unsigned char*>(to.address(1));
  };
  const bool staged = from.pageable() && to.on_device() && !captured;
  if (staged) {
    const auto* begin = static_cast<const std::byte*>(source);
    auto stage = std::make_shared<std::vector<std::byte>>(begin, begin + bytes);
    run = [=, stage = std::move(stage)] {
      count(counter, bytes);
      std::memcpy(to.address(bytes), stage->data(), bytes);
    };
  }
  submit(stream, {.kind = Kind::memcpy, .name = counter, .run = std::move(run)});
  // CUDA returns from a copy out of pageable memory, and between devices, before it is done.
  const bool between_devices = to.on_device() && from.on_device();
  const bool returns_early = asynchronous ? !to.pageable() : staged || between_devices;
  if (!captured && !returns_early) synchronize(stream);
}

}  // namespace cusim

using namespace cusim;

cudaError_t cudaMemcpyAsync(void* destination, const void* source, std::size_t bytes,
                            cudaMemcpyKind direction, cudaStream_t stream) {
  return api("cudaMemcpyAsync", [&] { copy(destination, source, bytes, direction, stream, true); });
}

cudaError_t cudaMemcpy(void* destination, const void* source, std::size_t bytes,
                       cudaMemcpyKind direction) {
  return api("cudaMemcpy", [&] {
    forbid_legacy_stream(current_device());
    forbid_while_capturing();
    copy(destination, source, bytes, direction, nullptr, false);
  });
}

cudaError_t cudaMemsetAsync(void* pointer, int value, std::size_t bytes, cudaStream_t stream) {
  return api("cudaMemsetAsync", [&] { set_bytes(pointer, value, bytes, stream); });
}

cudaError_t cudaMemset(void* pointer, int value, std::size_t bytes) {
  return api("cudaMemset", [&] {
    forbid_legacy_stream(current_device());
    forbid_while_capturing();
    set_bytes(pointer, value, bytes, nullptr);
  });
}

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* source, std::size_t bytes,
                               std::size_t offset, cudaMemcpyKind direction) {
  return api("cudaMemcpyToSymbol", [&] {
    forbid_while_capturing();
    copy(inside_symbol(symbol, offset, bytes), source, bytes, direction, nullptr, false);
  });
}

cudaError_t cudaMemcpyFromSymbol(void* destination, const void* symbol, std::size_t bytes,
                                 std::size_t offset, cudaMemcpyKind direction) {
  return api("cudaMemcpyFromSymbol", [&] {
    forbid_while_capturing();
    copy(destination, inside_symbol(symbol, offset, bytes), bytes, direction, nullptr, false);
  });
}

cudaError_t cudaGetSymbolAddress(void** pointer, const void* symbol) {
  return api("cudaGetSymbolAddress", [&] { *pointer = inside_symbol(symbol, 0, 0); });
}

cudaError_t cudaGetSymbolSize(std::size_t* bytes, const void* symbol) {
  return api("cudaGetSymbolSize", [&] { *bytes = symbol_bytes(symbol); });
}
