#include "cudnn/convolution.h"

#include <algorithm>
#include <vector>

#include "cudnn/random_order.h"

namespace cusim {
namespace {

std::vector<float> floats(Index count) {
  return std::vector<float>(static_cast<std::size_t>(count));
}

/// The part of an output row that a tap finds inside of the image, and where it starts there.
struct Overlap {
  Index first, last;  ///< outputs first..last-1
  Index from;         ///< place in the image that output `first` meets
};

/// `shift` is the place in the image (maybe outside) that output 0 meets.
Overlap overlap(Index extent, Index outputs, Index shift, Index stride) {
  const Index first = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
  const Index last = extent <= shift ? 0 : std::min(outputs, (extent - shift - 1) / stride + 1);
  return {first, std::max(first, last), shift + first * stride};
}

/// Calls `visit(row of outputs, elements of x, overlap)` for every output row of tap number `tap`;
/// the elements are those of image `n` that output `overlap.first` and the next ones meet, at
/// distances of stride_w.
template <class Visit>
void for_each_row(const Convolution& conv, Index n, Index tap, Visit visit) {
  const Index c = tap / (conv.r * conv.s);
  const Index row = tap / conv.s % conv.r;
  const Index column = tap % conv.s;
  const Index r = conv.flipped ? conv.r - 1 - row : row;
  const Index s = conv.flipped ? conv.s - 1 - column : column;
  const Overlap inside =
      overlap(conv.x.w(), conv.y.w(), s * conv.dilation_w - conv.pad_w, conv.stride_w);
  for (Index oh = 0; oh < conv.y.h(); ++oh) {
    const Index h = oh * conv.stride_h - conv.pad_h + r * conv.dilation_h;
    const bool outside = h < 0 || h >= conv.x.h();
    visit(oh, conv.x.offset(n, c, outside ? 0 : h, inside.from),
          outside ? Overlap{0, 0, 0} : inside);
  }
}

/// The columns of image `n`, as [tap][place].
void fill_columns(const Convolution& conv, const float* x, Index n, float* columns) {
  const Index step = conv.stride_w * conv.x.steps[3];
  for (Index tap = 0; tap < conv.taps(); ++tap) {
    for_each_row(conv, n, tap, [&](Index oh, Index offset, Overlap inside) {
      float* to = columns + tap * conv.places() + oh * conv.y.w();
      std::fill(to, to + inside.first, 0.0F);
      const float* from = x + offset;
      const Index count = inside.last - inside.first;
      if (step == 1) {
        std::copy_n(from, count, to + inside.first);
      } else {
        for (Index i = 0; i < count; ++i) to[inside.first + i] = from[i * step];
      }
      std::fill(to + inside.last, to + conv.y.w(), 0.0F);
    });
  }
}

/// Image `n` of dy as [channel][place].
void pack_image(const Tensor& tensor, const float* data, Index n, float* packed) {
  for (Index c = 0; c < tensor.c(); ++c) {
    for (Index h = 0; h < tensor.h(); ++h) {
      const float* row = data + tensor.offset(n, c, h, 0);
      for (Index w = 0; w < tensor.w(); ++w) *packed++ = row[w * tensor.steps[3]];
    }
  }
}

}  // namespace

Index output_extent(Index extent, Index pad, Index window, Index stride, Index dilation) {
  const Index room = extent + 2 * pad - (dilation * (window - 1) + 1);
  return room < 0 ? 0 : room / stride + 1;
}

void convolution_forward(const Convolution& conv, const float* x, const float* w, Blend blend,
                         float* y) {
  const Index taps = conv.taps();
  const Index places = conv.places();
  std::vector<float> columns = floats(taps * places);
  std::vector<float> result = floats(conv.y.c() * places);
  for (Index n = 0; n < conv.x.n(); ++n) {
    fill_columns(conv, x, n, columns.data());
    multiply(places, conv.y.c(), taps, 1, {columns.data(), 1, places}, {w, 1, taps}, 0,
             result.data(), places, conv.precision);
    blend_image(conv.y, n, result.data(), blend, y);
  }
}

void convolution_backward_data(const Convolution& conv, const float* w, const float* dy,
                               Blend blend, bool any_order, float* dx) {
  const Index taps = conv.taps();
  const Index places = conv.places();
  const Tensor image = packed_tensor(1, conv.x.c(), conv.x.h(), conv.x.w());
  Convolution packed = conv;
  packed.x = image;
  std::vector<float> dy_image = floats(conv.y.c() * places);
  std::vector<float> columns = floats(taps * places);
  std::vector<float> result = floats(image.count());
  for (Index n = 0; n < conv.x.n(); ++n) {
    pack_image(conv.y, dy, n, dy_image.data());
    multiply(places, taps, conv.y.c(), 1, {dy_image.data(), 1, places}, {w, taps, 1}, 0,
             columns.data(), places, conv.precision);
    std::fill(result.begin(), result.end(), 0.0F);
    for (const Index tap : any_order ? random_order(taps) : fixed_order(taps)) {
      for_each_row(packed, 0, tap, [&](Index oh, Index offset, Overlap inside) {
        const float* from = columns.data() + tap * places + oh * conv.y.w() + inside.first;
        float* to = result.data() + offset;
        for (Index i = 0; i < inside.last - inside.first; ++i) to[i * conv.stride_w] += from[i];
      });
    }
    blend_image(conv.x, n, result.data(), blend, dx);
  }
}

void convolution_backward_filter(const Convolution& conv, const float* x, const float* dy,
                                 Blend blend, bool any_order, float* dw) {
  const Index taps = conv.taps();
  const Index places = conv.places();
  std::vector<float> dy_image = floats(conv.y.c() * places);
  std::vector<float> columns = floats(taps * places);
  std::vector<float> total = floats(conv.y.c() * taps);
  const Index images = conv.x.n();
  for (const Index n : any_order ? random_order(images) : fixed_order(images)) {
    fill_columns(conv, x, n, columns.data());
    pack_image(conv.y, dy, n, dy_image.data());
    multiply(taps, conv.y.c(), places, 1, {columns.data(), places, 1}, {dy_image.data(), 1, places},
             1, total.data(), taps, conv.precision);
  }
  for (std::size_t i = 0; i < total.size(); ++i) blend(total[i], dw[i]);
}

void convolution_backward_bias(const Tensor& dy_shape, const float* dy, Blend blend, float* db) {
  std::vector<double> sums(static_cast<std::size_t>(dy_shape.c()));
  for_each_place(dy_shape, [&](Index n, Index c, Index h, Index w) {
    sums[static_cast<std::size_t>(c)] += dy[dy_shape.offset(n, c, h, w)];
  });
  for (std::size_t c = 0; c < sums.size(); ++c) blend(static_cast<float>(sums[c]), db[c]);
}

}  // namespace cusim
