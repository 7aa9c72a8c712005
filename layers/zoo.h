// Models that come with the library.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lockstep/layers/sequential.h"

namespace lockstep::zoo {

/// The article's CNN for (1, 28, 28): conv 3x3 1->8 SAME, maxpool 2, conv 3x3 8->16 SAME, maxpool
/// 2, fc 784->10; no activation functions; Glorot uniform for weights and biases.
[[nodiscard]] Sequential article();

/// LeNet-5 in today's form for (1, 28, 28): conv 5x5 1->6 SAME, relu, maxpool 2, conv 5x5 6->16,
/// relu, maxpool 2, fc 400->120, relu, fc 120->84, relu, fc 84->10. He normal weights, zero biases.
/// After LeCun et al., Proc. IEEE 1998.
[[nodiscard]] Sequential lenet5();

/// A wider CNN for (1, 28, 28): conv 3x3 1->32, relu, conv 3x3 32->64, relu, maxpool 2, dropout
/// 0.25, fc 9216->128, relu, dropout 0.5, fc 128->10. He normal weights, zero biases.
[[nodiscard]] Sequential wide_cnn();

/// A multilayer perceptron for (1, 28, 28): flatten, fc 784->128, relu, fc 128->10. He normal
/// weights, zero biases.
[[nodiscard]] Sequential mlp();

/// "article", "lenet5", "wide_cnn", "mlp".
[[nodiscard]] std::vector<std::string> names();

/// The model of that name; UsageError lists the names when there is none.
[[nodiscard]] Sequential by_name(std::string_view name);

}  // namespace lockstep::zoo
