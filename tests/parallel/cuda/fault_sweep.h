// One fault at each place where a short training calls CUDA, cuDNN, cuBLAS or NCCL.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "lockstep/parallel/trainer.h"

namespace lockstep::test {

/// A training to sweep: building a world, warm-up, recording, steps, a checkpoint, going on from
/// it, an evaluation, saved weights, and the end of it all.
struct SweptTraining {
  std::string name;
  int gpus = 1;
  TrainerOptions options{};
};

/// What came of a training.
struct Ending {
  std::string error;                 ///< what was thrown; empty: nothing
  std::vector<std::string> records;  ///< what was logged
  std::vector<float> weights;
};

/// Runs the training. Throws what is no lockstep::Error.
[[nodiscard]] Ending run_to_the_end(const SweptTraining& training);

/// How often each point of the simulation is passed (cusim_points): calls by function, launches by
/// kernel as "kernel:NAME".
using Points = std::map<std::string, std::int64_t>;
[[nodiscard]] Points count_points(const SweptTraining& training);

/// A fault to plant: the `at`-th passage of a point ends with `code`.
struct PlannedFault {
  std::string point;
  std::int64_t at = 1;
  int code = 0;
  bool kills = false;  ///< the device, for good

  [[nodiscard]] std::string spec() const;
  /// What a message must say of it.
  [[nodiscard]] std::string named() const;
};

/// Which passages of a point are tried.
enum class Passages { middle, all };

/// The faults of all points, those of a point together.
[[nodiscard]] std::vector<PlannedFault> plan_faults(const Points& points, Passages passages);

/// What the sweep of one training found.
struct SweepCounts {
  std::int64_t points = 0;         ///< functions and kernels
  std::int64_t calls = 0;          ///< of them in the training undisturbed
  std::int64_t failed = 0;         ///< calls that were let fail
  std::int64_t exceptions = 0;     ///< ends by an exception
  std::int64_t records = 0;        ///< ends by a record in the log
  std::set<std::string> recorded;  ///< functions whose failure ended so
  std::int64_t not_reached =
      0;  ///< the call was not made: waits ask more often some times than others
};

}  // namespace lockstep::test
