// Addresses, loads, stores and atomic updates. Every access is checked: alignment always, shared
// memory against its size, global memory against the device of its tag and, with CUSIM_CHECK=1,
// against the live allocations.
#pragma once

#include <cstddef>
#include <cstring>

#include "ptx/ptx_bits.h"
#include "ptx/ptx_frame.h"
#include "ptx/ptx_types.h"

namespace cusim::ptx {

/// State spaces. Shared addresses count from the start of the block's shared memory; all others are
/// addresses of the host, those of global memory perhaps with a tag.
enum Space { space_generic, space_global, space_const, space_shared, space_local, space_param };

/// Elements of a vector access.
inline constexpr std::size_t v1 = 1;
inline constexpr std::size_t v2 = 2;
inline constexpr std::size_t v4 = 4;
inline constexpr std::size_t v8 = 8;

[[noreturn]] inline void refuse(const Frame& frame, int code, const char* what, u64 address,
                                std::size_t bytes) {
  char text[128];
  std::snprintf(text, sizeof text, "%s at %#llx, %zu bytes, in ", what,
                static_cast<unsigned long long>(address), bytes);
  throw KernelError{code, text + where(frame)};
}

/// Looks global memory [address, address + bytes) up; remembers the allocation.
[[gnu::noinline]] inline void look_up(const Frame& frame, u64 address, std::size_t bytes) {
  Launch& launch = frame.launch;
  AddressRange& range = launch.known[launch.next++ % Launch::kKnown];
  if (!find_allocation(address, bytes, launch.context.device, &range)) {
    range = {};
    refuse(frame, kIllegalAddress, "illegal access", address, bytes);
  }
}

inline u64 global_address(const Frame& frame, u64 tagged, std::size_t bytes) {
  const LaunchContext& context = frame.launch.context;
  if ((tagged & kTag) != 0 && tagged_device(tagged) != context.device)
    refuse(frame, kIllegalAddress, "access to memory of another device", tagged, bytes);
  const u64 address = tagged & kAddressMask;
  if (!context.check) return address;
  for (const AddressRange& range : frame.launch.known) {
    if (address >= range.begin && address + bytes <= range.end) return address;
  }
  look_up(frame, address, bytes);
  return address;
}

inline u64 shared_address(const Frame& frame, u64 offset, std::size_t bytes) {
  offset = static_cast<u32>(offset);
  if (offset + bytes > frame.block.shared_bytes)
    refuse(frame, kIllegalAddress, "illegal access to shared memory", offset, bytes);
  return address_of(frame.block.shared) + offset;
}

/// Generic addresses of shared memory and of local arrays are addresses of the host.
template <Space S>
inline bool is_in(const Frame& frame, u64 address) {
  constexpr u64 kStackBytes = u64{1} << 17;
  const bool in_shared = address - address_of(frame.block.shared) < frame.block.shared_bytes;
  const u64 here = address_of(__builtin_frame_address(0));
  const bool in_local = address - (here - kStackBytes) < 2 * kStackBytes;
  if constexpr (S == space_shared) return in_shared;
  if constexpr (S == space_local) return in_local;
  return !in_shared && !in_local;
}
template <Space S>
inline u64 to_generic(const Frame& frame, u64 address) {
  return S == space_shared ? address + address_of(frame.block.shared) : address;
}
template <Space S>
inline u64 from_generic(const Frame& frame, u64 address) {
  return S == space_shared ? address - address_of(frame.block.shared) : address;
}

/// The host's pointer to kCount elements at `address` of a state space.
template <Space S, class T, std::size_t kCount>
inline T* access(const Frame& frame, u64 address) {
  constexpr std::size_t kBytes = sizeof(T) * kCount;
  if constexpr (S != space_param) {
    if ((address & (kBytes - 1)) != 0)
      refuse(frame, kMisalignedAddress, "misaligned access", address, kBytes);
  }
  if constexpr (S == space_shared) {
    address = shared_address(frame, address, kBytes);
  } else if constexpr (S == space_global || S == space_const) {
    address = global_address(frame, address, kBytes);
  } else if constexpr (S == space_generic) {
    if (is_in<space_shared>(frame, address)) {
      address = shared_address(frame, address - address_of(frame.block.shared), kBytes);
    } else if (!is_in<space_local>(frame, address)) {
      address = global_address(frame, address, kBytes);
    }
  }
  return reinterpret_cast<T*>(address);
}

template <class T>
inline T load_plain(const T* from) {
  return *from;
}
template <class T>
inline void store_plain(T* to, T value) {
  *to = value;
}
/// The bits of a T as an integer that the host has atomic operations for.
template <class T>
using Bits = unsigned_of_size<sizeof(T)>;
template <class T>
inline Bits<T>* bits_of(T* pointer) {
  return reinterpret_cast<Bits<T>*>(pointer);
}
template <class T>
inline T load_atomic(T* from) {
  return as<T>(__atomic_load_n(bits_of(from), __ATOMIC_SEQ_CST));
}
template <class T>
inline void store_atomic(T* to, T value) {
  __atomic_store_n(bits_of(to), as<Bits<T>>(value), __ATOMIC_SEQ_CST);
}
inline void fence() {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/// Sets *at to Update(*at, value) and returns what was there.
template <class Update, class T>
inline T update(T* at, T value) {
  Bits<T> old = __atomic_load_n(bits_of(at), __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(
      bits_of(at), &old, std::bit_cast<Bits<T>>(Update{}(std::bit_cast<T>(old), value)), true,
      __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return std::bit_cast<T>(old);
}
template <class T>
inline T compare_and_swap(T* at, T expected, T value) {
  Bits<T> old = std::bit_cast<Bits<T>>(expected);
  __atomic_compare_exchange_n(bits_of(at), &old, std::bit_cast<Bits<T>>(value), false,
                              __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return std::bit_cast<T>(old);
}

/// cp.async, done at once.
template <u64 kBytes>
inline void copy_async(const Frame& frame, u64 shared, u64 global) {
  using Chunk = unsigned_of_size<kBytes == 4 ? 4 : 8>;
  constexpr std::size_t kChunks = kBytes / sizeof(Chunk);
  std::memcpy(access<space_shared, Chunk, kChunks>(frame, shared),
              access<space_global, Chunk, kChunks>(frame, global), kBytes);
}

}  // namespace cusim::ptx
