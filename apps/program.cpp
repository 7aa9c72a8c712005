#include "apps/program.h"

#include <algorithm>
#include <iostream>

#include "lockstep/core/error.h"

#include "apps/json_events.h"

namespace lockstep::apps {

int run_program(int argc, char** argv, const std::string& json_flag,
                const std::function<ExitCode(const Arguments&)>& body) {
  const Arguments arguments(argv + std::min(argc, 1), argv + argc);
  try {
    const ExitCode code = body(arguments);
    std::cout.flush();
    if (!std::cout) throw IoError("stdout: not everything could be written; is the disk full?");
    return static_cast<int>(code);
  } catch (const std::exception& error) {
    const ExitCode code = exit_code_of(error);
    std::cerr << "error: " << error.what() << '\n';
    if (std::find(arguments.begin(), arguments.end(), json_flag) != arguments.end()) {
      write_event(std::cout, error_event(name_of(code), static_cast<int>(code), error.what()));
    }
    return static_cast<int>(code);
  }
}

}  // namespace lockstep::apps
