// Arithmetic of the simulated collectives: plain functions on host memory.
#pragma once

#include <cstddef>
#include <span>

#include <nccl.h>

namespace cusim {

/// Bytes of one element; 0 for a type that NCCL does not know.
[[nodiscard]] std::size_t element_bytes(ncclDataType_t type);

/// Whether the simulated NCCL can reduce elements of this type by this operation: sum, product,
/// minimum, maximum and average of 32- and 64-bit numbers and bytes.
[[nodiscard]] bool can_reduce(ncclDataType_t type, ncclRedOp_t operation);

/// result[i] = x_first[i] op x_first+1[i] op ..., once around the ring of `sources`, for i <
/// `count`. An average of floating-point numbers scales each term before it adds, as NCCL does.
void reduce_around_ring(ncclDataType_t type, ncclRedOp_t operation,
                        std::span<const std::byte* const> sources, std::size_t first,
                        std::size_t count, std::byte* result);

/// The reduction of whole buffers in pieces, one per rank: piece p goes around the ring from rank
/// p + 1 to rank p. So the order of a sum depends on the place in the buffer, as it does on GPUs,
/// and is the same for all who receive it.
void reduce_in_pieces(ncclDataType_t type, ncclRedOp_t operation,
                      std::span<const std::byte* const> sources, std::size_t count,
                      std::byte* result);

}  // namespace cusim
