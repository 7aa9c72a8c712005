#include "nccl/reduction.h"

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace cusim {
namespace {

template <class T>
T combine(ncclRedOp_t operation, T a, T b) {
  switch (operation) {
    case ncclProd:
      return static_cast<T>(a * b);
    case ncclMax:
      return std::max(a, b);
    case ncclMin:
      return std::min(a, b);
    default:
      return static_cast<T>(a + b);
  }
}

template <class T>
void reduce(ncclRedOp_t operation, std::span<const std::byte* const> sources, std::size_t first,
            std::size_t count, std::byte* result) {
  const std::size_t ranks = sources.size();
  const bool scaled = operation == ncclAvg && std::is_floating_point_v<T>;
  const T scale = static_cast<T>(1) / static_cast<T>(ranks);
  T* out = reinterpret_cast<T*>(result);
  for (std::size_t step = 0; step < ranks; ++step) {
    const T* in = reinterpret_cast<const T*>(sources[(first + step) % ranks]);
    for (std::size_t i = 0; i < count; ++i) {
      const T term = scaled ? static_cast<T>(in[i] * scale) : in[i];
      out[i] = step == 0 ? term : combine(operation, out[i], term);
    }
  }
  if (operation == ncclAvg && !scaled) {
    for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<T>(out[i] / static_cast<T>(ranks));
  }
}

}  // namespace

std::size_t element_bytes(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
    case ncclFloat8e4m3:
    case ncclFloat8e5m2:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32:
      return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
      return 8;
    default:
      return 0;
  }
}

bool can_reduce(ncclDataType_t type, ncclRedOp_t operation) {
  const std::size_t bytes = element_bytes(type);
  const bool short_float = type == ncclFloat8e4m3 || type == ncclFloat8e5m2;
  return operation >= ncclSum && operation < ncclNumOps && bytes != 0 && bytes != 2 && !short_float;
}

void reduce_around_ring(ncclDataType_t type, ncclRedOp_t operation,
                        std::span<const std::byte* const> sources, std::size_t first,
                        std::size_t count, std::byte* result) {
  switch (type) {
    case ncclInt8:
      return reduce<std::int8_t>(operation, sources, first, count, result);
    case ncclUint8:
      return reduce<std::uint8_t>(operation, sources, first, count, result);
    case ncclInt32:
      return reduce<std::int32_t>(operation, sources, first, count, result);
    case ncclUint32:
      return reduce<std::uint32_t>(operation, sources, first, count, result);
    case ncclInt64:
      return reduce<std::int64_t>(operation, sources, first, count, result);
    case ncclUint64:
      return reduce<std::uint64_t>(operation, sources, first, count, result);
    case ncclFloat64:
      return reduce<double>(operation, sources, first, count, result);
    default:
      return reduce<float>(operation, sources, first, count, result);
  }
}

void reduce_in_pieces(ncclDataType_t type, ncclRedOp_t operation,
                      std::span<const std::byte* const> sources, std::size_t count,
                      std::byte* result) {
  const std::size_t ranks = sources.size();
  const std::size_t piece = (count + ranks - 1) / ranks;
  const std::size_t bytes = element_bytes(type);
  std::vector<const std::byte*> moved(ranks);
  for (std::size_t p = 0; p * piece < count; ++p) {
    const std::size_t start = p * piece * bytes;
    std::transform(sources.begin(), sources.end(), moved.begin(),
                   [&](const std::byte* source) { return source + start; });
    reduce_around_ring(type, operation, moved, p + 1, std::min(piece, count - p * piece),
                       result + start);
  }
}

}  // namespace cusim
