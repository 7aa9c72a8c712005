#include "lockstep/core/tensor.h"

#include <utility>

#include "lockstep/core/error.h"

namespace lockstep {

Tensor::Tensor(Shape shape) : shape_(shape), values_(static_cast<std::size_t>(shape.count())) {}

Tensor::Tensor(Shape shape, std::vector<float> values) : shape_(shape), values_(std::move(values)) {
  if (static_cast<std::int64_t>(values_.size()) != shape_.count()) {
    throw ShapeError(message("tensor: ", values_.size(), " values for shape ", shape_, ", want ",
                             shape_.count()));
  }
}

}  // namespace lockstep
