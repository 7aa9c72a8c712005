// Output extents and SAME padding.
#include "lockstep/kernels/window.h"

#include "support/catch.h"

namespace lockstep {
namespace {

TEST_CASE("the output counts the places where the kernel fits") {
  const Window window{
      .kernel_h = 3, .kernel_w = 2, .stride_h = 2, .stride_w = 3, .pad_top = 1, .pad_right = 2};
  CHECK(window.output_h(7) == 3);
  CHECK(window.output_h(2) == 1);
  CHECK(window.output_h(1) <= 0);
  CHECK(window.output_w(6) == 3);
}

TEST_CASE("SAME puts the larger half of an odd border below and right") {
  // Kernel 3: one on each side. Kernel 2: only below and right. Kernel 5 with stride 2 on 6: 3 in
  // all.
  CHECK(same_window(28, 14, 3, 3, 1, 1) == Window{.kernel_h = 3,
                                                  .kernel_w = 3,
                                                  .pad_top = 1,
                                                  .pad_left = 1,
                                                  .pad_bottom = 1,
                                                  .pad_right = 1});
  CHECK(same_window(5, 5, 2, 2, 1, 1) ==
        Window{.kernel_h = 2, .kernel_w = 2, .pad_bottom = 1, .pad_right = 1});
  CHECK(same_window(6, 7, 5, 5, 2, 2) == Window{.kernel_h = 5,
                                                .kernel_w = 5,
                                                .stride_h = 2,
                                                .stride_w = 2,
                                                .pad_top = 1,
                                                .pad_left = 2,
                                                .pad_bottom = 2,
                                                .pad_right = 2});
}

TEST_CASE("SAME outputs are the extents divided by the stride, rounded up") {
  for (std::int64_t extent = 1; extent <= 12; ++extent) {
    for (std::int64_t kernel = 1; kernel <= 5; ++kernel) {
      for (std::int64_t stride = 1; stride <= 4; ++stride) {
        const Window window = same_window(extent, extent, kernel, kernel, stride, stride);
        INFO("extent " << extent << ", kernel " << kernel << ", stride " << stride);
        CHECK(window.output_h(extent) == (extent + stride - 1) / stride);
        CHECK(window.output_w(extent) == (extent + stride - 1) / stride);
        CHECK(window.pad_bottom - window.pad_top >= 0);
        CHECK(window.pad_bottom - window.pad_top <= 1);
      }
    }
  }
}

}  // namespace
}  // namespace lockstep
