// The message of the error that a call must throw.
#pragma once

#include <string>
#include <utility>

#include "lockstep/core/error.h"

#include "support/catch.h"

namespace lockstep::test {

/// Runs `call` and returns what() of the lockstep::Error of type E that it throws; fails the test
/// when it throws none.
template <class E = Error, class F>
std::string message_of(F&& call) {
  try {
    std::forward<F>(call)();
  } catch (const E& error) {
    return error.what();
  }
  FAIL("the call threw nothing");
  return {};
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace lockstep::test
