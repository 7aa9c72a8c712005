// All kernels of one instruction set.
#include "lockstep/kernels/cpu/set.h"

namespace lockstep::cpu::LOCKSTEP_CPU_SET {

const Kernels kernels_table = {
    .conv = conv_kernels,
    .pool = pool_kernels,
    .conv_pool = conv_pool_kernels,
    .linear = linear_kernels,
    .gather = gather_kernels,
    .relu = relu_kernels,
    .dropout = dropout_kernels,
    .optimize = optimize_kernels,
    .reduce = reduce_kernels,
};

}  // namespace lockstep::cpu::LOCKSTEP_CPU_SET
