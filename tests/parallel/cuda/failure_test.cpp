// What a failing call does to training on several GPUs: it ends with the rank, the device and the
// cause, every thread comes back, nothing leaks, and training goes on as if nothing had happened.
// On a real GPU no call fails at our wish, and these cases check that training runs.
#include <chrono>
#include <functional>
#include <optional>

#include "parallel/cuda/gpus.h"
#include "support/throws.h"

namespace lockstep {
namespace {

using test::contains;
using test::counted;
using test::message_of;
using test::plant_fault;

constexpr int kEpochs = 2;

/// A call that fails, with a code that leaves the device alive, and what the error must say.
struct Point {
  std::string call;
  int code;
  std::string cause;
  std::string or_cause{};  ///< where a library makes the call
};

struct Outcome {
  std::vector<float> weights;
  std::string error;  ///< of the call that failed; empty when none did
};

/// Whether an error names a device, and the rank that it belongs to where a rank failed.
bool names_rank_and_device(const std::string& error) {
  for (int rank = 0; rank < 8; ++rank) {
    const std::string number = std::to_string(rank);
    if (error.starts_with("rank " + number + " (cuda:" + number + "): ")) return true;
  }
  return error.starts_with("cuda:0: ");  // what is called for no rank is called on the first
}

/// Trains and evaluates as fit does. What throws is called again: the planted fault comes once.
Outcome train_through(const Devices& devices, const TrainerOptions& options) {
  const Dataset data = test::striped_images(3 * 32 + 9, 8, 5);
  const Dataset validation = test::striped_images(40, 8, 5, 2);
  Outcome outcome;
  World world({.devices = devices});
  std::optional<Trainer> trainer;
  const auto attempt = [&](const std::function<void()>& call) {
    try {
      return call();
    } catch (const DeviceError& error) {
      REQUIRE(outcome.error.empty());
      outcome.error = error.what();
    } catch (const CommError& error) {
      REQUIRE(outcome.error.empty());
      outcome.error = error.what();
    }
    call();
  };
  attempt([&] {
    trainer.emplace(world, test::small_net(), SoftmaxCrossEntropy{}, Adam{.lr = 0.005F}, options);
  });
  attempt([&] { trainer->begin(data, {.batch_size = 32}); });
  while (trainer->epoch() < kEpochs) attempt([&] { trainer->run_epoch(); });
  attempt([&] { trainer->evaluate(validation); });
  attempt([&] { outcome.weights = trainer->model().arena(); });
  return outcome;
}

void check_nothing_leaks() {
  for (int device = 0; device < test::gpu_count(); ++device) {
    INFO("device " << device);
    CHECK(test::simulated<decltype(cusim_live_bytes)>("cusim_live_bytes")(device) == 0);
  }
  CHECK(counted("nccl_hangs") == 0);
}

/// Lets the first, the second, ... call fail until there are no more, later ones with growing gaps.
void fail_everywhere(const Point& point, const Devices& devices, const TrainerOptions& options,
                     const std::vector<float>& expected) {
  int failed = 0;
  for (int at = 1;; at = at < 3 ? at + 1 : 2 * at) {
    INFO(point.call << " number " << at << " on " << devices.list.size() << " GPUs");
    plant_fault((point.call + "@" + std::to_string(at) + "=" + std::to_string(point.code)).c_str());
    const Outcome outcome = train_through(devices, options);
    plant_fault("");
    CHECK(outcome.weights == expected);
    check_nothing_leaks();
    if (outcome.error.empty()) break;
    ++failed;
    INFO(outcome.error);
    CHECK(names_rank_and_device(outcome.error));
    CHECK((contains(outcome.error, point.cause) ||
           (!point.or_cause.empty() && contains(outcome.error, point.or_cause))));
  }
  INFO(point.call);
  CHECK(failed > 0);
}

/// Points for all of which training must go on with the bits of training undisturbed.
void check_points(const std::vector<Point>& points, int count, const TrainerOptions& options) {
  if (test::gpu_count() < count) {
    WARN("skipped: it takes " << count << " GPUs");
    return;
  }
  const Outcome undisturbed = train_through(test::gpus(count), options);
  CHECK(undisturbed.error.empty());
  if (!test::is_simulated()) return;
  for (const Point& point : points) {
    fail_everywhere(point, test::gpus(count), options, undisturbed.weights);
  }
}

const TrainerOptions kOptions{.seed = 11, .bucket_bytes = 1024};

TEST_CASE("memory that cannot be had is named, and training goes on when it can") {
  check_points(
      {{"cudaMalloc", 2, "no memory for ", "cublasCreate"}, {"cudaHostAlloc", 2, "no page-locked"}},
      4, kOptions);
}

TEST_CASE("a failing copy, launch or event ends training, which can go on") {
  const Point launch{"kernel:", 1, "cudaErrorInvalidValue"};
  check_points({launch}, 1, kOptions);
  check_points({launch,
                {"cudaMemcpyAsync", 1, "cudaErrorInvalidValue"},
                {"cudaEventQuery", 1, "cudaErrorInvalidValue"},
                {"cudaStreamCreateWithFlags", 2, "cudaErrorMemoryAllocation"}},
               4, kOptions);
}

TEST_CASE("a step that cannot be recorded or launched ends training, which can go on") {
  for (const int count : {1, 4}) {
    check_points({{"cudaStreamBeginCapture", 1, "cudaErrorInvalidValue"},
                  {"cudaStreamEndCapture", 1, "cudaErrorInvalidValue"},
                  {"cudaGraphInstantiate", 2, "cudaErrorMemoryAllocation"},
                  {"cudaGraphUpload", 1, "cudaErrorInvalidValue"},
                  {"cudaGraphLaunch", 1, "cudaErrorInvalidValue"}},
                 count, kOptions);
  }
}

TEST_CASE("a failing reduction or connection ends training, which can go on") {
  check_points({{"ncclGetUniqueId", 3, "internal error"},
                {"ncclCommInitRankConfig", 2, "unhandled system error"},
                {"ncclAllReduce", 1, "unhandled cuda error"},
                {"ncclCommGetAsyncError", 6, "remote process exited"}},
               4, kOptions);
}

TEST_CASE("failures in steps that are not recorded, and in ordered reductions") {
  TrainerOptions options = kOptions;
  options.graph = false;
  options.reduce = Reduce::invariant;
  check_points({{"ncclAllGather", 1, "unhandled cuda error"},
                {"kernel:", 1, "cudaErrorInvalidValue"},
                {"ncclCommGetAsyncError", 6, "remote process exited"}},
               4, options);
}

// As on a real GPU: NCCL says nothing of a rank that it waits for.
TEST_CASE("a rank that is lost in silence is waited for to the limit, and training can go on") {
  if (!test::is_simulated()) {
    WARN("skipped: a real rank is not lost at our wish");
    return;
  }
  for (const bool graph : {true, false}) {
    World world({.devices = test::gpus(4), .stall_limit = std::chrono::seconds(1)});
    // One reduction a step: of several the next one would come in place of the lost one.
    const TrainerOptions options{.seed = 11, .graph = graph};
    Trainer trainer(world, test::small_net(), SoftmaxCrossEntropy{}, Adam{.lr = 0.005F}, options);
    trainer.begin(test::small_data(), {.batch_size = 64});
    plant_fault("ncclAllReduce:lost@1=1");
    const std::string error = message_of<CommError>([&] { trainer.run_steps(4); });
    plant_fault("");
    INFO(error);
    CHECK(error.starts_with("rank "));
    CHECK(contains(error, "nothing heard of the GPU for 1 s"));
    CHECK(contains(error, "a rank that does not come"));
    CHECK(trainer.run_steps(2) == 2);
  }
}

TEST_CASE("ends that fail are quiet") {
  for (const char* call : {"ncclCommFinalize", "ncclCommDestroy", "cudaGraphExecDestroy",
                           "cudaEventDestroy", "cudaStreamDestroy", "cudaSetDevice"}) {
    INFO(call);
    World world({.devices = test::gpus(test::possible({4, 1}).front())});
    std::optional<Trainer> trainer;
    trainer.emplace(world, test::small_net(), SoftmaxCrossEntropy{}, Adam{.lr = 0.005F}, kOptions);
    trainer->fit(test::small_data(), {.epochs = 1, .batch_size = 64});
    plant_fault((std::string(call) + "@1=1").c_str());
    trainer.reset();
    plant_fault((std::string(call) + "@2=1").c_str());
    world.run(1, [](Communicator&) {});  // takes leave of the others
    plant_fault("");
  }
}

}  // namespace
}  // namespace lockstep
