// The main of test executables that need a GPU, real or simulated. Without one they say so and end
// with kSkipped, which ctest reports as skipped; with LOCKSTEP_REQUIRE_GPU=1 they fail.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "lockstep/core/device.h"

#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

namespace {

constexpr int kSkipped = 4;

}  // namespace

int main(int argc, char** argv) {
  const std::string reason = lockstep::why_no_gpu();
  if (reason.empty()) return Catch::Session().run(argc, argv);
  const char* required = std::getenv("LOCKSTEP_REQUIRE_GPU");
  if (required != nullptr && std::string(required) == "1") {
    std::fprintf(stderr, "FAILED: %s; LOCKSTEP_REQUIRE_GPU=1 asks for a GPU\n", reason.c_str());
    return EXIT_FAILURE;
  }
  std::fprintf(stderr, "SKIPPED, no GPU: %s\n", reason.c_str());
  return kSkipped;
}
