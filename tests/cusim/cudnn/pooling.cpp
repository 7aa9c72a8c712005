#include "cudnn/pooling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "cudnn/random_order.h"

namespace cusim {
namespace {

/// The part of a window that lies in the image.
struct Inside {
  Index first_h, last_h, first_w, last_w;

  [[nodiscard]] Index count() const { return (last_h - first_h) * (last_w - first_w); }
};

Inside inside(const Pooling& pooling, const Tensor& x, Index oh, Index ow) {
  const Index h = oh * pooling.stride_h - pooling.pad_h;
  const Index w = ow * pooling.stride_w - pooling.pad_w;
  return {std::max<Index>(h, 0), std::min(h + pooling.window_h, x.h()), std::max<Index>(w, 0),
          std::min(w + pooling.window_w, x.w())};
}

template <class Visit>
void for_each_inside(const Inside& window, Visit visit) {
  for (Index h = window.first_h; h < window.last_h; ++h) {
    for (Index w = window.first_w; w < window.last_w; ++w) visit(h, w);
  }
}

float divisor(const Pooling& pooling, const Inside& window) {
  const bool all = pooling.mode == PoolingMode::kAverageIncludePadding;
  return static_cast<float>(all ? pooling.window_h * pooling.window_w : window.count());
}

}  // namespace

void pooling_forward(const Pooling& pooling, const Tensor& x_shape, const float* x, Blend blend,
                     const Tensor& y_shape, float* y) {
  for_each_place(y_shape, [&](Index n, Index c, Index oh, Index ow) {
    const Inside window = inside(pooling, x_shape, oh, ow);
    const bool maximum = pooling.mode == PoolingMode::kMax;
    float result = maximum ? -std::numeric_limits<float>::infinity() : 0.0F;
    for_each_inside(window, [&](Index h, Index w) {
      const float value = x[x_shape.offset(n, c, h, w)];
      if (!maximum) {
        result += value;
      } else if (value > result || (pooling.propagate_nan && std::isnan(value))) {
        result = value;
      }
    });
    if (!maximum) result /= divisor(pooling, window);
    blend(result, y[y_shape.offset(n, c, oh, ow)]);
  });
}

void pooling_backward(const Pooling& pooling, const Tensor& y_shape, const float* y,
                      const Tensor& dy_shape, const float* dy, const Tensor& x_shape,
                      const float* x, Blend blend, bool any_order, const Tensor& dx_shape,
                      float* dx) {
  const Tensor image = packed_tensor(1, x_shape.c(), x_shape.h(), x_shape.w());
  std::vector<float> result(static_cast<std::size_t>(image.count()));
  const Index windows = y_shape.c() * y_shape.h() * y_shape.w();
  for (Index n = 0; n < x_shape.n(); ++n) {
    std::fill(result.begin(), result.end(), 0.0F);
    for (const Index number : any_order ? random_order(windows) : fixed_order(windows)) {
      const Index c = number / (y_shape.h() * y_shape.w());
      const Index oh = number / y_shape.w() % y_shape.h();
      const Index ow = number % y_shape.w();
      const Inside window = inside(pooling, x_shape, oh, ow);
      const float gradient = dy[dy_shape.offset(n, c, oh, ow)];
      if (pooling.mode == PoolingMode::kMax) {
        const float winner = y[y_shape.offset(n, c, oh, ow)];
        bool found = false;
        for_each_inside(window, [&](Index h, Index w) {
          const float value = x[x_shape.offset(n, c, h, w)];
          if (found || (value != winner && !(std::isnan(value) && std::isnan(winner)))) return;
          found = true;
          result[static_cast<std::size_t>(image.offset(0, c, h, w))] += gradient;
        });
      } else {
        const float share = gradient / divisor(pooling, window);
        for_each_inside(window, [&](Index h, Index w) {
          result[static_cast<std::size_t>(image.offset(0, c, h, w))] += share;
        });
      }
    }
    blend_image(dx_shape, n, result.data(), blend, dx);
  }
}

}  // namespace cusim
