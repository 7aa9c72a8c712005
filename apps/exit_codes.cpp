#include "apps/exit_codes.h"

#include <filesystem>
#include <new>

#include "lockstep/core/error.h"

namespace lockstep::apps {

namespace {

template <class E>
bool is(const std::exception& error) {
  return dynamic_cast<const E*>(&error) != nullptr;
}

}  // namespace

ExitCode exit_code_of(const std::exception& error) {
  if (is<UsageError>(error)) return ExitCode::usage;
  // Shapes that do not fit come from the user's choice of data and model.
  if (is<DataError>(error) || is<ShapeError>(error)) return ExitCode::data;
  if (is<DeviceError>(error)) return ExitCode::device;
  if (is<CommError>(error)) return ExitCode::communication;
  if (is<NonFiniteError>(error)) return ExitCode::non_finite;
  if (is<DivergenceError>(error)) return ExitCode::diverged;
  if (is<IoError>(error) || is<std::filesystem::filesystem_error>(error)) return ExitCode::io;
  if (is<std::bad_alloc>(error)) return ExitCode::device;
  return ExitCode::failure;
}

const char* name_of(ExitCode code) {
  switch (code) {
    case ExitCode::ok:
      return "ok";
    case ExitCode::failure:
      return "failure";
    case ExitCode::usage:
      return "usage";
    case ExitCode::data:
      return "data";
    case ExitCode::device:
      return "device";
    case ExitCode::communication:
      return "communication";
    case ExitCode::non_finite:
      return "non_finite";
    case ExitCode::io:
      return "io";
    case ExitCode::diverged:
      return "diverged";
    case ExitCode::interrupted:
      return "interrupted";
  }
  return "failure";
}

}  // namespace lockstep::apps
