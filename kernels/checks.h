// Internal. What the operations check before they dispatch, each with one wording of its message.
#pragma once

#include <cstdint>
#include <string_view>

#include "lockstep/core/context.h"
#include "lockstep/core/error.h"
#include "lockstep/core/tensor.h"

namespace lockstep::checks {

/// Throws ShapeError unless `a` and `b` have one shape and one layout.
template <class A, class B>
void same_shape(std::string_view operation, std::string_view name_a, const View<A>& a,
                std::string_view name_b, const View<B>& b) {
  if (a.shape != b.shape) {
    throw ShapeError(message(operation, ": ", name_a, " is ", a.shape, " and ", name_b, " is ",
                             b.shape, "; they must have one shape"));
  }
  if (a.layout != b.layout) {
    throw ShapeError(message(operation, ": ", name_a, " has layout ", name_of(a.layout), " and ",
                             name_b, " has ", name_of(b.layout), "; they must have one layout"));
  }
}

/// Throws ShapeError unless `view` has the layout that activations have on the context's device.
template <class T>
void layout(std::string_view operation, const Context& context, std::string_view name,
            const View<T>& view) {
  const Layout wanted = context.on_cpu() ? Layout::n16 : Layout::canonical;
  if (view.layout != wanted) {
    throw ShapeError(message(operation, ": ", name, " has layout ", name_of(view.layout), "; on ",
                             context.device().to_string(), " it must be ", name_of(wanted)));
  }
}

/// Throws ShapeError unless `view` has samples and elements, the layout that activations have on
/// the context's device, and in Layout::n16 whole groups of samples.
template <class T>
void activation(std::string_view operation, const Context& context, std::string_view name,
                const View<T>& view) {
  if (view.shape.rank() == 0)
    throw ShapeError(message(operation, ": ", name, " is a scalar; it must be (N, ...)"));
  layout(operation, context, name, view);
  if (view.shape.count() < 1)
    throw ShapeError(message(operation, ": ", name, " is ", view.shape, "; it must not be empty"));
  if (view.layout == Layout::n16 && view.shape[0] % kN16 != 0) {
    throw ShapeError(message(operation, ": ", name, " is ", view.shape,
                             "; in layout n16 the first extent must be a ", "multiple of ", kN16));
  }
}

/// Throws ShapeError for a negative number of elements.
inline void count(std::string_view operation, std::int64_t count) {
  if (count < 0)
    throw ShapeError(message(operation, ": count is ", count, "; it must be 0 or more"));
}

}  // namespace lockstep::checks
