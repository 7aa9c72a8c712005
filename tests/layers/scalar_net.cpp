#include "layers/scalar_net.h"

#include <cmath>
#include <limits>

#include "lockstep/core/random.h"

#include "support/catch.h"

namespace lockstep::test {

namespace {

using Row = std::vector<double>;

std::size_t at(std::int64_t index) {
  return static_cast<std::size_t>(index);
}

/// One sample on its way through the layers.
class Walk {
 public:
  Walk(Row x, Shape shape, double& margin) : x_(std::move(x)), shape_(shape), margin_(margin) {}

  [[nodiscard]] const Row& x() const { return x_; }

  void conv(const Conv2d& layer, const double* w, const double* b) {
    const Window win = layer.window(shape_);
    const Shape out{layer.out, win.output_h(shape_[1]), win.output_w(shape_[2])};
    Row y;
    for (std::int64_t k = 0; k < out[0]; ++k) {
      for (std::int64_t p = 0; p < out[1]; ++p) {
        for (std::int64_t q = 0; q < out[2]; ++q) {
          double sum = b == nullptr ? 0 : b[k];
          for (std::int64_t c = 0; c < layer.in; ++c) {
            each_place(win, p, q, [&](std::int64_t r, std::int64_t s, std::int64_t place) {
              const std::int64_t filter =
                  ((k * layer.in + c) * win.kernel_h + r) * win.kernel_w + s;
              sum += w[filter] * x_[at(c * shape_[1] * shape_[2] + place)];
            });
          }
          y.push_back(sum);
        }
      }
    }
    become(y, out);
  }

  void pool(const MaxPool2d& layer) {
    const Window win = layer.window(shape_);
    const Shape out{shape_[0], win.output_h(shape_[1]), win.output_w(shape_[2])};
    Row y;
    for (std::int64_t c = 0; c < out[0]; ++c) {
      for (std::int64_t p = 0; p < out[1]; ++p) {
        for (std::int64_t q = 0; q < out[2]; ++q) {
          double best = -std::numeric_limits<double>::infinity();
          double second = best;
          each_place(win, p, q, [&](std::int64_t, std::int64_t, std::int64_t place) {
            const double here = x_[at(c * shape_[1] * shape_[2] + place)];
            second = std::max(second, std::min(best, here));
            best = std::max(best, here);
          });
          if (best != 0 || second != 0) margin_ = std::min(margin_, best - second);
          y.push_back(best);
        }
      }
    }
    become(y, out);
  }

  void linear(const Linear& layer, const double* w, const double* b) {
    Row y;
    for (std::int64_t o = 0; o < layer.out; ++o) {
      double sum = b == nullptr ? 0 : b[o];
      for (std::int64_t i = 0; i < layer.in; ++i) sum += w[o * layer.in + i] * x_[at(i)];
      y.push_back(sum);
    }
    become(y, {layer.out});
  }

  void relu() {
    for (double& value : x_) {
      if (value != 0) margin_ = std::min(margin_, std::abs(value));
      value = std::max(value, 0.0);
    }
  }

  void flatten() { shape_ = {shape_.count()}; }

  void dropout(const Dropout& layer, const RandomKey& key, std::uint32_t sample) {
    for (std::size_t i = 0; i < x_.size(); ++i) {
      const auto word = random_block(key, sample, static_cast<std::uint32_t>(i / 4))[i % 4];
      x_[i] = uniform_float(word) >= layer.rate ? x_[i] / (1.0 - layer.rate) : 0.0;
    }
  }

 private:
  template <class F>
  void each_place(const Window& win, std::int64_t p, std::int64_t q, F&& f) const {
    for (std::int64_t r = 0; r < win.kernel_h; ++r) {
      for (std::int64_t s = 0; s < win.kernel_w; ++s) {
        const std::int64_t h = p * win.stride_h + r - win.pad_top;
        const std::int64_t w = q * win.stride_w + s - win.pad_left;
        if (h >= 0 && h < shape_[1] && w >= 0 && w < shape_[2]) f(r, s, h * shape_[2] + w);
      }
    }
  }

  void become(Row y, Shape shape) {
    x_ = std::move(y);
    shape_ = shape;
  }

  Row x_;
  Shape shape_;
  double& margin_;
};

double cross_entropy(const Row& logits, const Batch& batch, std::int64_t sample) {
  double sum = 0;
  for (const double z : logits) sum += std::exp(z);
  if (batch.soft_classes == 0) return std::log(sum) - logits[at(batch.targets[at(sample)])];
  double loss = 0;
  for (std::size_t c = 0; c < logits.size(); ++c) {
    loss += batch.soft[at(sample) * logits.size() + c] * (std::log(sum) - logits[c]);
  }
  return loss;
}

}  // namespace

ScalarLoss scalar_loss(const Sequential& model, const ParameterLayout& layout,
                       const std::vector<double>& params, const Batch& batch, std::uint64_t seed) {
  ScalarLoss loss;
  for (std::int64_t n = 0; n < batch.count; ++n) {
    const float* sample = batch.x.data() + n * batch.sample.count();
    Walk walk(Row(sample, sample + batch.sample.count()), batch.sample, loss.margin);
    for (int i = 0; i < model.size(); ++i) {
      const AnyLayer& layer = model.layer(i);
      const std::vector<Parameter> own = layout.of_layer(i);
      const double* w = own.empty() ? nullptr : params.data() + own[0].place.offset;
      const double* b = own.size() < 2 ? nullptr : params.data() + own[1].place.offset;
      if (const auto* conv = layer.get_if<Conv2d>()) {
        walk.conv(*conv, w, b);
      } else if (const auto* pool = layer.get_if<MaxPool2d>()) {
        walk.pool(*pool);
      } else if (const auto* linear = layer.get_if<Linear>()) {
        walk.linear(*linear, w, b);
      } else if (layer.get_if<ReLU>() != nullptr) {
        walk.relu();
      } else if (layer.get_if<Flatten>() != nullptr) {
        walk.flatten();
      } else if (const auto* dropout = layer.get_if<Dropout>()) {
        const RandomKey key{
            .seed = seed, .purpose = RandomPurpose::dropout, .item = static_cast<std::uint32_t>(i)};
        walk.dropout(*dropout, key, static_cast<std::uint32_t>(n));
      } else {
        FAIL("a layer that the scalar net does not know");
      }
    }
    loss.mean += cross_entropy(walk.x(), batch, n) / static_cast<double>(batch.count);
  }
  return loss;
}

}  // namespace lockstep::test
