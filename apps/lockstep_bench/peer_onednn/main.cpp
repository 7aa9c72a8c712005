// Trains the article's net with oneDNN and prints one line of JSON: see peers.h. Run by
// `lockstep_bench peers`; shares no code with the library. Loss, Adam, shuffling and gathering are
// plain loops. Places without a sample in the last batch are zeros with gradient 0.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "apps/lockstep_bench/peer_onednn/net.h"

namespace {

using namespace lockstep::peer_onednn;
using Clock = std::chrono::steady_clock;

struct Samples {
  std::vector<float> images;
  std::vector<std::uint8_t> classes;
};

Samples read_samples(const std::string& path, std::int64_t count) {
  std::ifstream file(path, std::ios::binary);
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(count * (kPixels + 1)));
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!file) throw std::runtime_error(path + ": not so many samples");
  Samples samples;
  const auto pixels_end = bytes.begin() + count * kPixels;
  samples.images.reserve(static_cast<std::size_t>(count * kPixels));
  std::transform(bytes.begin(), pixels_end, std::back_inserter(samples.images),
                 [](std::uint8_t value) { return static_cast<float>(value) / 255; });
  samples.classes.assign(pixels_end, bytes.end());
  return samples;
}

/// The sum of the losses of the first `real` rows; all gradients, 0 in the other rows.
double softmax_cross_entropy(Net& net, const std::vector<std::int32_t>& order, std::int64_t from,
                             std::int64_t real, const Samples& samples) {
  double loss = 0;
  std::fill_n(net.dlogits(), kBatch * kClasses, 0.0F);
  for (std::int64_t row = 0; row < real; ++row) {
    const float* const z = net.logits() + row * kClasses;
    float* const dz = net.dlogits() + row * kClasses;
    const float highest = *std::max_element(z, z + kClasses);
    float sum = 0;
    for (std::int64_t k = 0; k < kClasses; ++k) sum += dz[k] = std::exp(z[k] - highest);
    const auto sample = static_cast<std::size_t>(order[static_cast<std::size_t>(from + row)]);
    const std::uint8_t label = samples.classes[sample];
    loss += std::log(sum) - (z[label] - highest);
    for (std::int64_t k = 0; k < kClasses; ++k) {
      dz[k] = (dz[k] / sum - (k == label ? 1.0F : 0.0F)) / static_cast<float>(real);
    }
  }
  return loss;
}

/// One epoch; its mean loss. `on_step` is called after every step.
template <class OnStep>
double run_epoch(Net& net, const Samples& samples, std::mt19937& random, int& step,
                 const OnStep& on_step) {
  const auto count = static_cast<std::int64_t>(samples.classes.size());
  std::vector<std::int32_t> order(samples.classes.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  double loss = 0;
  for (std::int64_t from = 0; from < count; from += kBatch) {
    const std::int64_t real = std::min(kBatch, count - from);
    for (std::int64_t row = 0; row < real; ++row) {
      std::copy_n(samples.images.begin() + order[static_cast<std::size_t>(from + row)] * kPixels,
                  kPixels, net.x() + row * kPixels);
    }
    std::fill_n(net.x() + real * kPixels, (kBatch - real) * kPixels, 0.0F);
    net.forward();
    loss += softmax_cross_entropy(net, order, from, real, samples);
    net.backward();
    constexpr float kRate = 0.01F;
    net.update(kRate, ++step);
    on_step();
  }
  return loss / static_cast<double>(count);
}

double peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    double kib = 0;
    if (word == "VmHWM:" && status >> kib) return 1024 * kib;
  }
  return 0;
}

int run(const std::map<std::string, std::string>& options) {
  if (options.at("--model") != "article") {
    std::cout << R"({"model_missing": "lockstep_peer_onednn has the article's net only"})" << '\n';
    return 0;
  }
  const Clock::time_point started{std::chrono::nanoseconds(std::stoll(options.at("--started")))};
  const int warm_up = std::stoi(options.at("--warm-up"));
  const int epochs = warm_up + std::stoi(options.at("--epochs"));
  const Samples samples = read_samples(options.at("--file"), std::stoll(options.at("--samples")));
  const auto since = [](Clock::time_point from) {
    return std::chrono::duration<double>(Clock::now() - from).count();
  };
  Net net;
  std::mt19937 random(1);
  double first = 0;
  double loss = 0;
  std::string seconds;
  int step = 0;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    const Clock::time_point start = Clock::now();
    loss = run_epoch(net, samples, random, step, [&] {
      if (first == 0) first = since(started);
    });
    if (epoch >= warm_up) seconds += (seconds.empty() ? "" : ", ") + std::to_string(since(start));
  }
  const dnnl_version_t& version = *dnnl_version();
  std::cout << R"({"version": ")" << version.major << '.' << version.minor << '.' << version.patch
            << R"(", "parameters": )" << net.parameter_count() << R"(, "first_step_seconds": )"
            << first << R"(, "epoch_seconds": [)" << seconds << R"(], "peak_rss_bytes": )"
            << static_cast<std::int64_t>(peak_memory()) << R"(, "loss": )" << loss << "}\n";
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  // Threads are OpenMP's: the caller sets OMP_NUM_THREADS.
  std::map<std::string, std::string> options;
  for (int i = 1; i + 1 < argc; i += 2) options[argv[i]] = argv[i + 1];
  try {
    return run(options);
  } catch (const std::exception& error) {
    std::cerr << "lockstep_peer_onednn: " << error.what()
              << " (it is run by 'lockstep_bench peers')\n";
    return 1;
  }
}
