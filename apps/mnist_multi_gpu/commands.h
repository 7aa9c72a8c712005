// The commands of mnist_multi_gpu. They print on stdout and stderr and throw Lockstep's errors.
#pragma once

#include "apps/exit_codes.h"
#include "apps/options.h"

namespace lockstep::apps {

[[nodiscard]] ExitCode run_train(const TrainOptions& options);
[[nodiscard]] ExitCode run_eval(const EvalOptions& options);
[[nodiscard]] ExitCode run_predict(const PredictOptions& options);
/// failure when weights or moments differ.
[[nodiscard]] ExitCode run_replay(const ReplayOptions& options);
/// The code of the first check that failed.
[[nodiscard]] ExitCode run_doctor(const DoctorOptions& options);
/// failure when the weights differ.
[[nodiscard]] ExitCode run_parity(const ParityOptions& options);

}  // namespace lockstep::apps
