#include "lockstep/layers/spatial.h"

#include "lockstep/core/error.h"

namespace lockstep {

Window make_window(const char* operation, const Shape& sample, Extent2d kernel, Extent2d stride,
                   const Padding& padding) {
  if (kernel.h < 1 || kernel.w < 1 || stride.h < 1 || stride.w < 1 || padding.places.h < 0 ||
      padding.places.w < 0) {
    throw UsageError(message(operation, ": kernel ", kernel.h, "x", kernel.w, ", stride ", stride.h,
                             "x", stride.w, ", padding ", padding.places.h, "x", padding.places.w,
                             "; kernel and stride must be 1 or more, padding 0 or more"));
  }
  const std::int64_t h = sample[1];
  const std::int64_t w = sample[2];
  Window window;
  if (padding.is_same) {
    window = same_window(h, w, kernel.h, kernel.w, stride.h, stride.w);
  } else {
    window = {.kernel_h = kernel.h,
              .kernel_w = kernel.w,
              .stride_h = stride.h,
              .stride_w = stride.w,
              .pad_top = padding.places.h,
              .pad_left = padding.places.w,
              .pad_bottom = padding.places.h,
              .pad_right = padding.places.w};
  }
  if (h < 1 || w < 1 || window.output_h(h) < 1 || window.output_w(w) < 1) {
    throw ShapeError(message(operation, ": a kernel of ", kernel.h, "x", kernel.w,
                             " does not fit a sample of ", sample, " with padding ",
                             padding.places.h, "x", padding.places.w,
                             "; use a smaller kernel or more padding"));
  }
  return window;
}

namespace {
std::string short_extent(Extent2d extent) {
  return extent.h == extent.w ? message(extent.h) : message(extent.h, "x", extent.w);
}
}  // namespace

std::string stride_and_padding(Extent2d stride, const Padding& padding) {
  std::string text = "stride " + short_extent(stride);
  if (padding.is_same) return text + ", same";
  if (padding.places == Extent2d{0}) return text;
  return text + ", padding " + short_extent(padding.places);
}

}  // namespace lockstep
