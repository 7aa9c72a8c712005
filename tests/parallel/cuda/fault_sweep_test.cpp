// Every call of CUDA, cuDNN, cuBLAS and NCCL in a short training fails once. Each time training
// ends with one exception that names the call, or, where only destructors are left to notice, with
// one record in the log that does; all threads come back, nothing is lost, and the same training,
// tried after every eighth fault, works in the same process with the same bits.
//
// By day one call of every function and one launch of every kernel fails, on one GPU and on
// several; LOCKSTEP_SWEEP=all takes all of them. docs/reliability.md has the counts.
#include "parallel/cuda/fault_sweep.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>
#include <thread>

#include <unistd.h>

#include "parallel/cuda/gpus.h"
#include "support/throws.h"

namespace lockstep {
namespace {

using test::contains;
using test::Ending;
using test::PlannedFault;
using test::SweptTraining;

/// Ends the process with the name of a fault that nothing comes back from.
class Watchdog {
 public:
  explicit Watchdog(const std::string& what) {
    constexpr unsigned kSeconds = 120;
    std::snprintf(text_, sizeof text_, "FAILED: training hangs: %s\n", what.c_str());
    std::signal(SIGALRM, [](int) {
      static_cast<void>(!write(STDERR_FILENO, text_, std::strlen(text_)));
      _exit(EXIT_FAILURE);
    });
    alarm(kSeconds);
  }
  ~Watchdog() { alarm(0); }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  static inline char text_[512];
};

/// Threads of this process.
std::ptrdiff_t thread_count() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                       std::filesystem::directory_iterator());
}

/// Whether the threads are no more than before. One that was joined is on the list for a moment
/// longer.
bool threads_are_back(std::ptrdiff_t before) {
  constexpr int kLooks = 100000;
  for (int look = 0; look < kLooks; ++look) {
    if (thread_count() <= before) return true;
    std::this_thread::yield();
  }
  return false;
}

/// What is alive on the simulated devices, as text; empty when nothing is.
std::string alive() {
  auto* list = test::simulated<decltype(cusim_ledger)>("cusim_ledger");
  std::vector<cusim_tally> all(list(nullptr, 0));
  list(all.data(), all.size());
  std::string text;
  for (const cusim_tally& entry : all) {
    if (entry.value != 0) text += std::to_string(entry.value) + " " + entry.name + " ";
  }
  return text;
}

/// Whether a message begins with the device, and with its rank where a rank failed. Some calls
/// concern no device.
bool names_device(const std::string& text, const std::string& point) {
  for (const char* of_no_device : {"cudaGetDeviceCount", "cudaGetDevice", "ncclGetVersion"}) {
    if (point == of_no_device) return true;
  }
  for (int rank = 0; rank < 8; ++rank) {
    const std::string number = std::to_string(rank);
    const std::string device = std::to_string(rank + 1);
    if (text.starts_with("rank " + number + " (cuda:" + device + "): ")) return true;
  }
  return text.starts_with("cuda:1: ");
}

/// A fault has happened: how the training has ended is how it should end.
void check_ending(const PlannedFault& fault, const Ending& ending,
                  const std::vector<float>& expected, test::SweepCounts& counts) {
  ++counts.failed;
  if (!ending.error.empty()) {
    ++counts.exceptions;
    INFO(ending.error);
    CHECK(contains(ending.error, fault.named()));
    CHECK(names_device(ending.error, fault.point));
    if (!fault.kills) CHECK(ending.records.empty());
    return;
  }
  ++counts.records;
  counts.recorded.insert(fault.point);
  CHECK(ending.weights == expected);
  REQUIRE(ending.records.size() == 1);
  INFO(ending.records[0]);
  CHECK(contains(ending.records[0], fault.named()));
}

/// The points that no earlier sweep of one, or of several GPUs has tried.
test::Points untried(const test::Points& points, int gpus) {
  static std::set<std::string> tried[2];
  test::Points left;
  for (const auto& entry : points) {
    if (tried[gpus > 1 ? 1 : 0].insert(entry.first).second) left.insert(entry);
  }
  return left;
}

void sweep(const SweptTraining& training) {
  if (!test::is_simulated()) {
    WARN("skipped: no call of a real GPU fails at our wish");
    return;
  }
  for (const char* name : {"NCCL_NVLS_ENABLE", "NCCL_GRAPH_MIXING_SUPPORT"}) setenv(name, "0", 1);
  const char* asked = std::getenv("LOCKSTEP_SWEEP");
  const bool all = asked != nullptr && std::string(asked) == "all";
  const Ending undisturbed = test::run_to_the_end(training);
  REQUIRE(undisturbed.error.empty());
  REQUIRE(undisturbed.records.empty());
  REQUIRE(alive().empty());
  const std::ptrdiff_t threads = thread_count();
  const test::Points points = test::count_points(training);
  test::SweepCounts counts;
  counts.points = std::ssize(points);
  for (const auto& [point, count] : points) counts.calls += count;

  const std::vector<PlannedFault> faults =
      all ? test::plan_faults(points, test::Passages::all)
          : test::plan_faults(untried(points, training.gpus), test::Passages::middle);
  for (std::size_t i = 0; i < faults.size(); ++i) {
    const PlannedFault& fault = faults[i];
    const std::string what = training.name + ": " + fault.spec();
    INFO(what);
    const Watchdog watchdog(what);
    test::plant_fault(fault.spec().c_str());
    const Ending ending = test::run_to_the_end(training);
    const bool happened =
        test::simulated<decltype(cusim_faults_happened)>("cusim_faults_happened")() > 0;
    test::plant_fault("");
    if (happened) {
      check_ending(fault, ending, undisturbed.weights, counts);
    } else {
      ++counts.not_reached;
      CHECK(ending.weights == undisturbed.weights);
    }
    CHECK(alive() == "");
    CHECK(threads_are_back(threads));
    if (fault.kills) test::simulated<decltype(cusim_revive_devices)>("cusim_revive_devices")();
    if (i % 8 != 7 && i + 1 != faults.size()) continue;
    const Ending next = test::run_to_the_end(training);
    CHECK(next.error == "");
    CHECK(next.records.empty());
    CHECK(next.weights == undisturbed.weights);
  }
  CHECK(test::counted("nccl_hangs") == 0);
  std::printf(
      "%-28s %lld functions and kernels, %lld calls: %lld failed, %lld exceptions, "
      "%lld log records, %lld not reached\n",
      training.name.c_str(), static_cast<long long>(counts.points),
      static_cast<long long>(counts.calls), static_cast<long long>(counts.failed),
      static_cast<long long>(counts.exceptions), static_cast<long long>(counts.records),
      static_cast<long long>(counts.not_reached));
  std::printf("%-28s recorded:", "");
  for (const std::string& point : counts.recorded) std::printf(" %s", point.c_str());
  std::printf("\n");
}

TEST_CASE("every call fails once: fused on 1 GPU") {
  sweep({.name = "fused, 1 GPU", .gpus = 1});
}

TEST_CASE("every call fails once: cuDNN and cuBLAS on 1 GPU") {
  sweep({.name = "cuDNN and cuBLAS, 1 GPU", .gpus = 1, .options = {.fuse = false}});
}

TEST_CASE("every call fails once: cuDNN and cuBLAS on 3 GPUs") {
  sweep({.name = "cuDNN and cuBLAS, 3 GPUs", .gpus = 3, .options = {.fuse = false}});
}

TEST_CASE("every call fails once: fused on 3 GPUs") {
  sweep({.name = "fused, 3 GPUs", .gpus = 3});
}

TEST_CASE("every call fails once: invariant and streamed on 2 GPUs") {
  sweep({.name = "invariant, streamed, 2 GPUs",
         .gpus = 2,
         .options = {.reduce = Reduce::invariant,
                     .l2 = 0.01F,
                     .clip_norm = 1,
                     .residence = Residence::streamed,
                     .graph = false,
                     .fuse = false}});
}

}  // namespace
}  // namespace lockstep
