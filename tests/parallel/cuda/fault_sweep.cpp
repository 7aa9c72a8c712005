#include "parallel/cuda/fault_sweep.h"

#include <algorithm>

#include "lockstep/io/weights.h"

#include "io/scratch.h"
#include "parallel/cuda/gpus.h"

namespace lockstep::test {
namespace {

constexpr std::string_view kKernel = "kernel:";

/// Some of every kind: layers that are fused where that is asked for and some that never are, one
/// of them with a border that is wider on one side.
Sequential net() {
  return {Conv2d{.in = 1, .out = 3, .kernel = 3, .padding = same},
          ReLU{},
          MaxPool2d{.kernel = 2},
          Conv2d{.in = 3, .out = 3, .kernel = 2, .padding = same},
          ReLU{},
          Flatten{},
          Dropout{.rate = 0.2F},
          Linear{.in = 12, .out = 6},
          ReLU{},
          Linear{.in = 6, .out = 4}};
}

/// An error that the function really returns and that leaves the device alive.
int code_for(const std::string& point) {
  constexpr int kCudaInvalidValue = 1;
  constexpr int kCudaMemoryAllocation = 2;
  constexpr int kCudaUnknown = 999;
  constexpr int kCublasInternalError = 14;
  constexpr int kCudnnInternalError = 4000;
  constexpr int kNcclSystemError = 2;
  if (point.starts_with(kKernel)) return kCudaInvalidValue;
  if (point.starts_with("cublas")) return kCublasInternalError;
  if (point.starts_with("cudnn")) return kCudnnInternalError;
  if (point.starts_with("nccl")) return kNcclSystemError;
  const bool allocates = point == "cudaMalloc" || point == "cudaHostAlloc";
  return allocates ? kCudaMemoryAllocation : kCudaUnknown;
}

/// The passages to try of a point that is passed `count` times. What is asked over and over while
/// somebody waits is passed thousands of times: then with growing gaps.
std::vector<std::int64_t> numbers(std::int64_t count, Passages passages) {
  if (passages == Passages::middle) return {(count + 1) / 2};
  constexpr std::int64_t kMost = 500;
  std::vector<std::int64_t> all;
  for (std::int64_t at = 1; at<count; at += count> kMost ? 1 + at / 4 : 1) all.push_back(at);
  all.push_back(count);
  return all;
}

/// GPUs 1, 2, ...: not those that a thread begins with, so that the library has to change to them.
Devices later_gpus(int count) {
  return parse_devices("cuda:1-" + std::to_string(count));
}

}  // namespace

Ending run_to_the_end(const SweptTraining& training) {
  Ending ending;
  const auto log = [&](LogLevel, std::string_view line) { ending.records.emplace_back(line); };
  const Scratch scratch;
  const Dataset data = striped_images(60, 4, 4);
  try {
    World world({.devices = later_gpus(training.gpus), .log = log});
    Trainer trainer(world, net(), SoftmaxCrossEntropy{}, Adam{.lr = 0.005F}, training.options);
    trainer.begin(data, {.batch_size = 24});
    trainer.run_steps(2);
    trainer.restore(trainer.checkpoint());  // its files: io/checkpoint_fault_test
    trainer.begin(data, {.batch_size = 24});
    trainer.run_steps(1);
    trainer.evaluate(striped_images(20, 4, 4, 2));
    const Model model = trainer.model();
    save_weights(model, scratch / "weights.safetensors");
    ending.weights = model.arena();
  } catch (const Error& error) {
    ending.error = error.what();
  }
  return ending;
}

Points count_points(const SweptTraining& training) {
  simulated<decltype(cusim_reset_points)>("cusim_reset_points")();
  static_cast<void>(run_to_the_end(training));
  auto* list = simulated<decltype(cusim_points)>("cusim_points");
  std::vector<cusim_tally> all(list(nullptr, 0));
  list(all.data(), all.size());
  Points points;
  for (const cusim_tally& entry : all) {
    // A rank whose call is lost is no call that fails: dead_gpu_test.
    const bool lost = std::string_view(entry.name).ends_with(":lost");
    if (entry.value > 0 && !lost) points[entry.name] = entry.value;
  }
  return points;
}

std::string PlannedFault::spec() const {
  return point + "@" + std::to_string(at) + "=" + std::to_string(code);
}

std::string PlannedFault::named() const {
  if (kills) return "cudaErrorIllegalAddress";
  if (point == "ncclCommGetAsyncError") return "nccl";  // the call that it answers for
  return point.starts_with(kKernel) ? "cudaLaunchKernel" : point;
}

std::vector<PlannedFault> plan_faults(const Points& points, Passages passages) {
  constexpr int kIllegalAddress = 700;
  std::vector<PlannedFault> faults;
  for (const auto& [point, count] : points) {
    for (const std::int64_t at : numbers(count, passages)) {
      faults.push_back({point, at, code_for(point)});
      if (point.starts_with(kKernel)) faults.push_back({point, at, kIllegalAddress, true});
    }
  }
  return faults;
}

}  // namespace lockstep::test
