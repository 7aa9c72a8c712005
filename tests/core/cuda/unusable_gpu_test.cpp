// Why GPUs cannot be used, in one clear message each. Every case runs in a process of its own, on
// simulated CUDA in the state that its tag names: see CMakeLists.txt.
#include <functional>

#include "lockstep/core/buffer.h"
#include "lockstep/core/context.h"
#include "lockstep/core/device.h"

#include "support/catch.h"
#include "support/throws.h"

namespace lockstep {
namespace {

using test::contains;
using test::message_of;

constexpr Device kFirst{DeviceKind::cuda, 0};

/// `auto` trains on the CPU and says why in one line.
void check_fallback(const std::string& why) {
  for (const Devices& devices : {available_devices(), parse_devices("auto")}) {
    REQUIRE_FALSE(devices.list.empty());
    CHECK(devices.list.front().kind == DeviceKind::cpu);
    CHECK(devices.automatic);
    CHECK(contains(devices.notice, why));
    CHECK(contains(devices.notice, "training on the CPU"));
    CHECK_FALSE(contains(devices.notice, "\n"));
  }
  CHECK(parse_devices("cpu").notice.empty());
}

/// Whoever asks for a GPU gets an error that says why, never a CPU.
void check_refusal(const std::string& why) {
  CHECK(why_no_gpu() == why);
  for (const char* text : {"cuda", "cuda:0", "cuda:0-3"}) {
    const std::string error = message_of<DeviceError>([&] { (void)parse_devices(text); });
    INFO(error);
    CHECK(contains(error, why));
    CHECK(contains(error, std::string("'") + text + "'"));
    CHECK(contains(error, "--devices cpu"));
  }
  const std::function<void()> uses[] = {[] { const Context context(kFirst); },
                                        [] { (void)device_info(kFirst); }};
  for (const auto& use : uses) {
    const std::string error = message_of<DeviceError>(use);
    INFO(error);
    CHECK(error == "cuda:0: " + why);
  }
  CHECK_THROWS_AS(Buffer(kFirst, 16, "a test"), DeviceError);
  CHECK_THROWS_AS(HostBuffer(kFirst, 16, "a test"), DeviceError);
  CHECK_THROWS_AS(parse_devices("cuda:x"), UsageError);  // a slip is told first
}

TEST_CASE("without a driver", "[no_driver]") {
  check_refusal("there is no NVIDIA driver on this machine");
  check_fallback("no GPU is used: there is no NVIDIA driver on this machine");
}

TEST_CASE("with a driver that is too old", "[old_driver]") {
  check_refusal(
      "the NVIDIA driver is too old: it serves CUDA 12.0, this build needs 13.0; update the "
      "driver");
  check_fallback("no GPU is used: the NVIDIA driver is too old");
}

TEST_CASE("without a GPU", "[no_gpu]") {
  check_refusal("the driver finds no NVIDIA GPU (CUDA_VISIBLE_DEVICES may hide them)");
  check_fallback("no GPU is used: the driver finds no NVIDIA GPU");
}

TEST_CASE("with GPUs that this build has no code for", "[no_code]") {
  CHECK(why_no_gpu().empty());
  const std::string why =
      "cuda:0: this build has no code for Simulated device 0 (sm_50); build with "
      "CMAKE_CUDA_ARCHITECTURES=50";
  CHECK(message_of<DeviceError>([] { const Context context(kFirst); }) == why);
  CHECK(parse_devices("cuda").list.front() == kFirst);  // it is asked for, and refused when used
  check_fallback("no GPU is used: " + why);
}

}  // namespace
}  // namespace lockstep
