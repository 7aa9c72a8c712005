// The bias of convolutions and fully connected layers. Internal.
#pragma once

#include <cstdint>

#include "lockstep/core/context.h"

namespace lockstep::cuda {

/// y as [samples][channels][places]: the places are P*Q of a convolution, 1 of a fully connected
/// layer. None is 0.
struct BiasShape {
  std::int64_t samples, channels, places;
};

/// y[n,k,i] += b[k]
void add_bias(Context& context, const BiasShape& shape, const float* b, float* y);

/// db[k] = sum over n and i of dy[n,k,i], added to what is there when `accumulate`. Always in the
/// same order.
void sum_bias_gradient(Context& context, const BiasShape& shape, const float* dy, float* db,
                       bool accumulate);

}  // namespace lockstep::cuda
