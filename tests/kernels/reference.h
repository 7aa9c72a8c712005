// Convolution, max-pooling and the fully connected layer as plain loops in double precision over
// canonical tensors, written from the formulas in kernels/*.h.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "lockstep/kernels/window.h"

namespace lockstep::reference {

using Doubles = std::vector<double>;
using Floats = std::vector<float>;

/// Extents of a convolution or pooling (then k == c).
struct Extents {
  std::int64_t n, c, h, w, k;
};

/// Calls visit(n, k, c, y index, x index, w index) for every product of a convolution that lies
/// inside x.
template <class Visit>
void for_each_product(const Extents& e, const Window& window, Visit visit) {
  const std::int64_t out_h = window.output_h(e.h), out_w = window.output_w(e.w);
  for (std::int64_t n = 0; n < e.n; ++n)
    for (std::int64_t k = 0; k < e.k; ++k)
      for (std::int64_t p = 0; p < out_h; ++p)
        for (std::int64_t q = 0; q < out_w; ++q)
          for (std::int64_t c = 0; c < e.c; ++c)
            for (std::int64_t r = 0; r < window.kernel_h; ++r)
              for (std::int64_t s = 0; s < window.kernel_w; ++s) {
                const std::int64_t h = p * window.stride_h + r - window.pad_top;
                const std::int64_t w = q * window.stride_w + s - window.pad_left;
                if (h < 0 || h >= e.h || w < 0 || w >= e.w) continue;
                visit(static_cast<std::size_t>(((n * e.k + k) * out_h + p) * out_w + q),
                      static_cast<std::size_t>(((n * e.c + c) * e.h + h) * e.w + w),
                      static_cast<std::size_t>(
                          ((k * e.c + c) * window.kernel_h + r) * window.kernel_w + s));
              }
}

/// `b` may be empty.
inline Doubles conv_forward(const Extents& e, const Window& window, const Floats& x,
                            const Floats& w, const Floats& b) {
  const std::int64_t positions = window.output_h(e.h) * window.output_w(e.w);
  Doubles y(static_cast<std::size_t>(e.n * e.k * positions), 0.0);
  for (std::size_t i = 0; i < y.size() && !b.empty(); ++i) {
    y[i] = b[i / static_cast<std::size_t>(positions) % static_cast<std::size_t>(e.k)];
  }
  for_each_product(e, window, [&](std::size_t yi, std::size_t xi, std::size_t wi) {
    y[yi] += double{x[xi]} * w[wi];
  });
  return y;
}

inline Doubles conv_backward_data(const Extents& e, const Window& window, const Floats& dy,
                                  const Floats& w) {
  Doubles dx(static_cast<std::size_t>(e.n * e.c * e.h * e.w), 0.0);
  for_each_product(e, window, [&](std::size_t yi, std::size_t xi, std::size_t wi) {
    dx[xi] += double{dy[yi]} * w[wi];
  });
  return dx;
}

inline Doubles conv_weight_gradient(const Extents& e, const Window& window, const Floats& x,
                                    const Floats& dy) {
  Doubles dw(static_cast<std::size_t>(e.k * e.c * window.kernel_h * window.kernel_w), 0.0);
  for_each_product(e, window, [&](std::size_t yi, std::size_t xi, std::size_t wi) {
    dw[wi] += double{dy[yi]} * x[xi];
  });
  return dw;
}

/// Sums of dy (n, k, positions) over all but k.
inline Doubles bias_gradient(std::int64_t n, std::int64_t k, std::int64_t positions,
                             const Floats& dy) {
  Doubles db(static_cast<std::size_t>(k), 0.0);
  for (std::int64_t i = 0; i < n * k * positions; ++i) {
    db[static_cast<std::size_t>(i / positions % k)] += dy[static_cast<std::size_t>(i)];
  }
  return db;
}

struct Pooled {
  Floats y;
  std::vector<std::uint8_t> argmax;
  std::vector<std::size_t> winner;  ///< index into x
};

inline Pooled pool_forward(const Extents& e, const Window& window, const Floats& x) {
  Pooled out;
  for (std::int64_t plane = 0; plane < e.n * e.c; ++plane)
    for (std::int64_t p = 0; p < window.output_h(e.h); ++p)
      for (std::int64_t q = 0; q < window.output_w(e.w); ++q) {
        bool found = false;
        float best = 0;
        std::size_t place = 0, winner = 0;
        for (std::int64_t r = 0; r < window.kernel_h; ++r)
          for (std::int64_t s = 0; s < window.kernel_w; ++s) {
            const std::int64_t h = p * window.stride_h + r - window.pad_top;
            const std::int64_t w = q * window.stride_w + s - window.pad_left;
            if (h < 0 || h >= e.h || w < 0 || w >= e.w) continue;
            const auto index = static_cast<std::size_t>((plane * e.h + h) * e.w + w);
            const float value = x[index];
            if (!found || (!std::isnan(best) && (std::isnan(value) || value > best))) {
              best = value;
              place = static_cast<std::size_t>(r * window.kernel_w + s);
              winner = index;
            }
            found = true;
          }
        out.y.push_back(best);
        out.argmax.push_back(static_cast<std::uint8_t>(place));
        out.winner.push_back(winner);
      }
  return out;
}

inline Doubles pool_backward(std::size_t x_count, const Pooled& pooled, const Floats& dy) {
  Doubles dx(x_count, 0.0);
  for (std::size_t i = 0; i < dy.size(); ++i) dx[pooled.winner[i]] += dy[i];
  return dx;
}

/// `b` may be empty.
inline Doubles linear_forward(std::int64_t n, std::int64_t d, std::int64_t o, const Floats& x,
                              const Floats& w, const Floats& b) {
  return conv_forward({n, d, 1, 1, o}, {}, x, w, b);
}

inline Doubles linear_backward_data(std::int64_t n, std::int64_t d, std::int64_t o,
                                    const Floats& dy, const Floats& w) {
  return conv_backward_data({n, d, 1, 1, o}, {}, dy, w);
}

inline Doubles linear_weight_gradient(std::int64_t n, std::int64_t d, std::int64_t o,
                                      const Floats& x, const Floats& dy) {
  return conv_weight_gradient({n, d, 1, 1, o}, {}, x, dy);
}

}  // namespace lockstep::reference
