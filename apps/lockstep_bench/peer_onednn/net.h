// The article's net in oneDNN 2.
//
// Layouts are oneDNN's choice throughout, with reorders where two primitives want different ones;
// weights stay in the layout of the forward pass.
#pragma once

#include <cstdint>
#include <random>
#include <unordered_map>
#include <utility>
#include <vector>

#include <dnnl.hpp>

namespace lockstep::peer_onednn {

using dnnl::memory;

inline constexpr std::int64_t kBatch = 128;
inline constexpr std::int64_t kPixels = std::int64_t{28} * 28;
inline constexpr std::int64_t kClasses = 10;

inline float* data_of(const memory& tensor) {
  return static_cast<float*>(tensor.get_data_handle());
}

/// A parameter in whatever layout, its gradient in the same, and Adam's moments. Padding of the
/// layout is 0 and has gradient 0, so it stays.
struct Parameter {
  memory value;
  memory gradient;
  std::vector<float> first;
  std::vector<float> second;

  void adam(float rate, int step);
};

/// The article's net: twice convolution 3x3 SAME and max-pooling by 2, then fully connected.
class Net {
 public:
  Net();

  [[nodiscard]] float* x() const { return data_of(x_); }
  [[nodiscard]] float* logits() const { return data_of(logits_); }
  [[nodiscard]] float* dlogits() const { return data_of(dlogits_); }
  [[nodiscard]] std::int64_t parameter_count() const { return parameter_count_; }
  void forward() { run(forward_); }
  void backward() { run(backward_); }
  void update(float rate, int step) {
    for (Parameter& parameter : parameters_) parameter.adam(rate, step);
  }

 private:
  using Arguments = std::unordered_map<int, memory>;
  using Pass = std::vector<std::pair<dnnl::primitive, Arguments>>;

  struct Conv {
    dnnl::convolution_forward::primitive_desc conv;
    dnnl::pooling_forward::primitive_desc pool;
    memory given, x, y, pooled, places;  ///< `given` in the layout of the layer before, x in ours
    memory w, b;
    memory::dims w_shape;
  };

  memory tensor(const memory::desc& desc);

  /// `from` in the layout `wanted`: itself, or what `pass` copies it to.
  memory in_layout(Pass& pass, const memory& from, const memory::desc& wanted);

  /// Uniform in [-limit, limit], by way of a plain layout.
  memory drawn(const memory::desc& desc, const memory::dims& shape, memory::format_tag plain,
               float limit);
  memory bias(const memory::desc& desc, std::int64_t n);

  void learn(const memory& value, const memory& gradient) {
    const std::size_t values = value.get_desc().get_size() / sizeof(float);
    parameters_.push_back(
        {value, gradient, std::vector<float>(values), std::vector<float>(values)});
  }

  memory add_conv(int index, const memory& given, std::int64_t in, std::int64_t out,
                  std::int64_t image);

  void add_linear(const memory& x);

  /// From the gradient of what was pooled to that of what was given; the first layer's is not
  /// needed.
  void add_conv_backward(int index);

  void run(Pass& pass);

  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  std::mt19937 random_{1};
  Pass forward_;
  Pass backward_;
  Conv convs_[2];
  memory x_, logits_, dlogits_;
  memory gradient_;  ///< that the next part of the backward pass begins with
  std::vector<Parameter> parameters_;
  std::int64_t parameter_count_ = 0;
};

}  // namespace lockstep::peer_onednn
