#include "parallel/reference_trainer.h"

#include <cmath>
#include <limits>

namespace lockstep::test {

namespace {

using Values = std::vector<double>;

/// Activations of one stage, kept for its backward pass.
struct Stage {
  int channels = 0, height = 0, width = 0;  // of the input
  Values input;
  std::vector<std::size_t> winner;  // for every pooled value its place before pooling
  Values pooled;
};

std::size_t at(int channel, int y, int x, int height, int width) {
  return (static_cast<std::size_t>(channel) * height + y) * width + x;
}

Values convolve(const Stage& stage, const Values& w, const Values& b, int out) {
  const int h = stage.height, wd = stage.width;
  Values result(static_cast<std::size_t>(out) * h * wd);
  for (int k = 0; k < out; ++k)
    for (int y = 0; y < h; ++y)
      for (int x = 0; x < wd; ++x) {
        double sum = b[k];
        for (int c = 0; c < stage.channels; ++c)
          for (int r = 0; r < 3; ++r)
            for (int s = 0; s < 3; ++s) {
              const int yy = y + r - 1, xx = x + s - 1;
              if (yy < 0 || yy >= h || xx < 0 || xx >= wd) continue;
              sum +=
                  w[((k * stage.channels + c) * 3 + r) * 3 + s] * stage.input[at(c, yy, xx, h, wd)];
            }
        result[at(k, y, x, h, wd)] = sum;
      }
  return result;
}

void pool(Stage& stage, const Values& before, int out) {
  const int h = stage.height / 2, w = stage.width / 2;
  stage.pooled.resize(static_cast<std::size_t>(out) * h * w);
  stage.winner.resize(stage.pooled.size());
  for (int k = 0; k < out; ++k)
    for (int y = 0; y < h; ++y)
      for (int x = 0; x < w; ++x) {
        std::size_t best = at(k, 2 * y, 2 * x, stage.height, stage.width);
        for (int place = 1; place < 4; ++place) {
          const std::size_t other =
              at(k, 2 * y + place / 2, 2 * x + place % 2, stage.height, stage.width);
          if (before[other] > before[best]) best = other;
        }
        stage.winner[at(k, y, x, h, w)] = best;
        stage.pooled[at(k, y, x, h, w)] = before[best];
      }
}

}  // namespace

ReferenceTrainer::ReferenceTrainer(const Model& model, std::vector<ReferenceConv> convs, int height,
                                   int width, int classes)
    : convs_(std::move(convs)), height_(height), width_(width), classes_(classes) {
  for (const Parameter& parameter : model.layout().parameters()) {
    const std::vector<float>& values = model.parameter(parameter.name).values();
    parameters_.emplace_back(values.begin(), values.end());
    gradients_.emplace_back(values.size());
  }
  first_moments_ = gradients_;
  second_moments_ = gradients_;
}

double ReferenceTrainer::sample_gradient(const Values& image, int label, double weight) {
  std::vector<Stage> stages(convs_.size());
  Values current = image;
  int height = height_, width = width_;
  for (std::size_t i = 0; i < convs_.size(); ++i) {
    Stage& stage = stages[i];
    stage.channels = convs_[i].in;
    stage.height = height;
    stage.width = width;
    stage.input = current;
    pool(stage, convolve(stage, parameters_[2 * i], parameters_[2 * i + 1], convs_[i].out),
         convs_[i].out);
    current = stage.pooled;
    height /= 2;
    width /= 2;
  }

  const Values& fc_w = parameters_[2 * convs_.size()];
  const Values& fc_b = parameters_[2 * convs_.size() + 1];
  const std::size_t features = current.size();
  Values logits(fc_b);
  for (int o = 0; o < classes_; ++o)
    for (std::size_t i = 0; i < features; ++i) logits[o] += fc_w[o * features + i] * current[i];
  double largest = logits[0];
  for (const double logit : logits) largest = std::max(largest, logit);
  double total = 0;
  for (const double logit : logits) total += std::exp(logit - largest);
  const double loss = std::log(total) + largest - logits[label];

  Values gradient(features);
  for (int o = 0; o < classes_; ++o) {
    const double d = (std::exp(logits[o] - largest) / total - (o == label ? 1 : 0)) * weight;
    gradients_[2 * convs_.size() + 1][o] += d;
    for (std::size_t i = 0; i < features; ++i) {
      gradients_[2 * convs_.size()][o * features + i] += d * current[i];
      gradient[i] += d * fc_w[o * features + i];
    }
  }
  for (std::size_t i = convs_.size(); i-- > 0;) {
    const Stage& stage = stages[i];
    const int h = stage.height, w = stage.width;
    Values before(static_cast<std::size_t>(convs_[i].out) * h * w);
    for (std::size_t j = 0; j < gradient.size(); ++j) before[stage.winner[j]] += gradient[j];
    Values input_gradient(stage.input.size());
    for (int k = 0; k < convs_[i].out; ++k)
      for (int y = 0; y < h; ++y)
        for (int x = 0; x < w; ++x) {
          const double d = before[at(k, y, x, h, w)];
          if (d == 0) continue;
          gradients_[2 * i + 1][k] += d;
          for (int c = 0; c < stage.channels; ++c)
            for (int r = 0; r < 3; ++r)
              for (int s = 0; s < 3; ++s) {
                const int yy = y + r - 1, xx = x + s - 1;
                if (yy < 0 || yy >= h || xx < 0 || xx >= w) continue;
                const std::size_t tap =
                    static_cast<std::size_t>(((k * stage.channels + c) * 3 + r) * 3 + s);
                gradients_[2 * i][tap] += d * stage.input[at(c, yy, xx, h, w)];
                input_gradient[at(c, yy, xx, h, w)] += d * parameters_[2 * i][tap];
              }
        }
    gradient = input_gradient;
  }
  return loss;
}

double ReferenceTrainer::step(const Dataset& data, const std::vector<std::int32_t>& order,
                              std::int64_t first, std::int64_t count, double learning_rate,
                              Rule rule) {
  for (Values& gradient : gradients_) gradient.assign(gradient.size(), 0);
  double loss = 0;
  for (std::int64_t i = first; i < first + count; ++i) {
    const std::int32_t sample = order[static_cast<std::size_t>(i)];
    const std::vector<float>& pixels = data.tensor(sample, 1).values();
    loss += sample_gradient(Values(pixels.begin(), pixels.end()), data.classes()[sample],
                            1.0 / static_cast<double>(count));
  }
  const double t = static_cast<double>(++updates_);
  const double correction1 = 1 - std::pow(0.9, t), correction2 = 1 - std::pow(0.999, t);
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    for (std::size_t i = 0; i < parameters_[p].size(); ++i) {
      const double g = gradients_[p][i];
      if (rule == Rule::sgd) {
        parameters_[p][i] -= learning_rate * g;
        continue;
      }
      double& m = first_moments_[p][i];
      double& v = second_moments_[p][i];
      m = 0.9 * m + 0.1 * g;
      v = 0.999 * v + 0.001 * g * g;
      parameters_[p][i] -=
          rule == Rule::adam_tensorflow
              ? learning_rate * std::sqrt(correction2) / correction1 * m / (std::sqrt(v) + 1e-8)
              : learning_rate * (m / correction1) / (std::sqrt(v / correction2) + 1e-8);
    }
  }
  return loss / static_cast<double>(count);
}

double relative_difference(const std::vector<float>& a, const Values& b) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    const double d = static_cast<double>(a[i]) - b[i];
    if (!std::isfinite(d)) return std::numeric_limits<double>::infinity();
    difference += d * d;
    norm += b[i] * b[i];
  }
  return std::sqrt(difference / norm);
}

}  // namespace lockstep::test
