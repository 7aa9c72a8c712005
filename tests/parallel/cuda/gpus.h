// Worlds of GPUs, real or simulated, and what the simulation counted.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <dlfcn.h>

#include "lockstep/parallel/trainer.h"

#include "cusim/cusim.h"
#include "support/catch.h"
#include "support/tiny_data.h"

namespace lockstep::test {

/// GPUs of this machine.
inline int gpu_count() {
  return static_cast<int>(parse_devices("cuda").list.size());
}

/// The first `count` GPUs.
inline Devices gpus(int count) {
  return parse_devices("cuda:0-" + std::to_string(count - 1));
}

/// Numbers of replicas out of `wanted` that this machine has GPUs for; a real machine may have one.
inline std::vector<int> possible(const std::vector<int>& wanted) {
  std::vector<int> counts;
  for (const int count : wanted) {
    if (count <= gpu_count()) counts.push_back(count);
  }
  return counts;
}

/// A function of the simulated CUDA; null on a real GPU.
template <class F>
F* simulated(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_DEFAULT, name));
}

inline bool is_simulated() {
  return simulated<decltype(cusim_counter)>("cusim_counter") != nullptr;
}

inline std::uint64_t counted(const char* name) {
  return simulated<decltype(cusim_counter)>("cusim_counter")(name);
}

/// Lets the fault happen, see cusim_set_fault; nothing on a real GPU.
inline void plant_fault(const char* spec) {
  if (auto* set = simulated<decltype(cusim_set_fault)>("cusim_set_fault")) set(spec);
}

/// A net with all kinds of layers.
inline Sequential small_net() {
  return {Conv2d{.in = 1, .out = 5, .kernel = 3, .padding = same},
          ReLU{},
          MaxPool2d{.kernel = 2},
          Conv2d{.in = 5, .out = 6, .kernel = 3, .padding = same},
          MaxPool2d{.kernel = 2},
          Flatten{},
          Linear{.in = 24, .out = 24},
          ReLU{},
          Dropout{.rate = 0.3F},
          Linear{.in = 24, .out = 5}};
}

/// A net whose plan takes all shards of a rank at once: nothing in it is a library's.
inline Sequential spanning_net() {
  return {Conv2d{.in = 1, .out = 5, .kernel = 3, .padding = same},
          ReLU{},
          MaxPool2d{.kernel = 2},
          Dropout{.rate = 0.2F},
          Conv2d{.in = 5, .out = 6, .kernel = 3, .padding = same},
          MaxPool2d{.kernel = 2},
          Flatten{},
          Linear{.in = 24, .out = 5}};
}

/// Five full batches of 64 and one of 37.
inline Dataset small_data(std::uint64_t seed = 1) {
  return striped_images(5 * 64 + 37, 8, 5, seed);
}

struct Outcome {
  std::vector<float> weights;
  std::vector<EpochStats> epochs;
};

/// Trains a small net for `epochs` epochs with batches of 64.
inline Outcome train_small(const Devices& devices, const TrainerOptions& options, int epochs = 2,
                           const Sequential& model = small_net()) {
  World world({.devices = devices});
  Trainer trainer(world, model, SoftmaxCrossEntropy{}, Adam{.lr = 0.005F}, options);
  Outcome outcome;
  trainer.on_epoch([&](const EpochStats& epoch) { outcome.epochs.push_back(epoch); });
  trainer.fit(small_data(), striped_images(300, 8, 5, 2), {.epochs = epochs, .batch_size = 64});
  outcome.weights = trainer.model().arena();
  return outcome;
}

/// |a - b| / |b|.
inline double relative_difference(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = double{a[i]} - double{b[i]};
    difference += d * d;
    norm += double{b[i]} * double{b[i]};
  }
  return std::sqrt(difference / norm);
}

}  // namespace lockstep::test
