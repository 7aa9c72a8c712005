// doctor: what would keep a training on this machine from going well.
#include <iostream>

#include "lockstep/config.h"

#include "apps/doctor/checks.h"
#include "apps/mnist_multi_gpu/commands.h"

namespace lockstep::apps {

namespace {

/// Prints findings when they are there: a check may take seconds.
class Report {
 public:
  explicit Report(const OutputOptions& output) : output_(output) {
    if (human()) std::cout << "mnist_multi_gpu doctor, lockstep " << kVersion << '\n' << std::flush;
  }

  void add(const Finding& finding) {
    findings_.push_back(finding);
    if (output_.json) write_event(std::cout, check_event(finding));
    if (human()) write_finding(std::cout, finding);
  }

  ExitCode end() const {
    if (output_.json) write_event(std::cout, doctor_event(findings_));
    if (human()) write_summary(std::cout, findings_);
    return exit_code_of(findings_);
  }

 private:
  [[nodiscard]] bool human() const { return !output_.quiet && !output_.json; }

  OutputOptions output_;
  Findings findings_;
};

}  // namespace

ExitCode run_doctor(const DoctorOptions& options) {
  Report report(options.output);
  report.add(check_cores());
  report.add(check_instruction_sets());
  Findings findings;
  const int gpus = check_gpus(options.devices, findings);
  for (const Finding& finding : findings) report.add(finding);
  report.add(check_shared_memory(gpus));
  report.add(check_data(options.data));
  report.add(check_run_folder(options.out));
  report.add(check_environment());
  return report.end();
}

}  // namespace lockstep::apps
