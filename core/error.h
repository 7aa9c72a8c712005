// Typed exceptions and the one way messages are put together.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace lockstep {

/// Base of everything the library throws. A message says what was wrong, what was expected and what
/// to do; it starts with the operation, layer or file it is about.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// An option or argument has a value that cannot work (a batch of 0, an illegal number of
/// replicas).
class UsageError : public Error {
 public:
  using Error::Error;
};

/// Shapes of tensors, layers or data do not fit together.
class ShapeError : public Error {
 public:
  using Error::Error;
};

/// A data set or data file is missing, damaged or of another kind than expected.
class DataError : public Error {
 public:
  using Error::Error;
};

/// A file that Lockstep writes or reads back (weights, run folders) cannot be written or read.
class IoError : public Error {
 public:
  using Error::Error;
};

/// A file of Lockstep's is there and cannot be read now (a failing disk, no right to, too many open
/// files): nobody knows what is in it.
class ReadError : public IoError {
 public:
  using IoError::IoError;
};

/// A device is missing, out of memory or failed.
class DeviceError : public Error {
 public:
  using Error::Error;
};

/// A collective failed, timed out or was aborted.
class CommError : public Error {
 public:
  using Error::Error;
};

/// A loss or gradient is not finite.
class NonFiniteError : public Error {
 public:
  using Error::Error;
};

/// Replicas that should be equal are not.
class DivergenceError : public Error {
 public:
  using Error::Error;
};

/// Concatenates its arguments as text: `throw ShapeError(message("linear: x is ", x.shape))`.
template <class... Parts>
[[nodiscard]] std::string message(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

}  // namespace lockstep
