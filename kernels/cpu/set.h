// The tables that the files of one instruction set define; set.cpp ties them together.
#pragma once

#include "lockstep/kernels/cpu/kernels.h"

namespace lockstep::cpu::LOCKSTEP_CPU_SET {

extern const ConvKernels conv_kernels;
extern const PoolKernels pool_kernels;
extern const ConvPoolKernels conv_pool_kernels;
extern const LinearKernels linear_kernels;
extern const GatherKernels gather_kernels;
extern const ReluKernels relu_kernels;
extern const DropoutKernels dropout_kernels;
extern const OptimizeKernels optimize_kernels;
extern const ReduceKernels reduce_kernels;

extern const Kernels kernels_table;

}  // namespace lockstep::cpu::LOCKSTEP_CPU_SET
