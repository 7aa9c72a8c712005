#include "apps/program.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <new>

#include <fcntl.h>

#include "lockstep/core/error.h"

#include "apps/json_events.h"
#include "apps/text.h"

namespace lockstep::apps {

namespace {

/// Opens /dev/null on standard descriptors that the caller closed: the next file opened would get
/// the number, and what is printed would end up in it.
void fill_standard_descriptors() {
  for (int descriptor = 0; descriptor <= 2; ++descriptor) {
    if (fcntl(descriptor, F_GETFD) == -1) (void)open("/dev/null", O_RDWR);
  }
}

void set_nccl_defaults() {
  constexpr int kKeep = 0;
  for (const auto& [name, value] : kNcclDefaults) setenv(name, value, kKeep);
}

}  // namespace

int run_program(int argc, char** argv, const std::string& json_flag,
                const std::function<ExitCode(const Arguments&)>& body) {
  fill_standard_descriptors();
  set_nccl_defaults();
  // A reader that goes away, or a file size limit, is a failed write: it must not end a training.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  const Arguments arguments(argv + std::min(argc, 1), argv + argc);
  try {
    const ExitCode code = body(arguments);
    std::cout.flush();
    if (!std::cout) throw IoError("stdout: not everything could be written; is the disk full?");
    return static_cast<int>(code);
  } catch (const std::exception& error) {
    const ExitCode code = exit_code_of(error);
    const std::string text =
        dynamic_cast<const std::bad_alloc*>(&error) != nullptr
            ? "out of memory; use a smaller batch, fewer replicas or less data (--limit-train)"
            : error.what();
    std::cerr << "error: " << shown(text) << '\n';
    if (std::find(arguments.begin(), arguments.end(), json_flag) != arguments.end()) {
      write_event(std::cout, error_event(name_of(code), static_cast<int>(code), text));
    }
    return static_cast<int>(code);
  }
}

}  // namespace lockstep::apps
