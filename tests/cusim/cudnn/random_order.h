// The order in which an algorithm with floating-point atomics happens to add.
#pragma once

#include <vector>

#include "cublas/gemm.h"

namespace cusim {

/// 0..count-1 in their own order.
[[nodiscard]] std::vector<Index> fixed_order(Index count);

/// 0..count-1 shuffled by CUSIM_SEED and the number of the call in this process: two runs of the
/// same operation add in different orders, as on a GPU.
[[nodiscard]] std::vector<Index> random_order(Index count);

}  // namespace cusim
