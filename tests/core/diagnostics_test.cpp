// Facts about the machine, as far as one without a GPU has them.
#include "lockstep/core/diagnostics.h"

#include <filesystem>

#include "lockstep/config.h"
#include "lockstep/core/error.h"

#include "support/catch.h"
#include "support/throws.h"

namespace lockstep {
namespace {

constexpr Device kGpu{DeviceKind::cuda, 0};

TEST_CASE("mapped files: this program is one, by the begin of its name and once only") {
  const auto self = std::filesystem::read_symlink("/proc/self/exe");
  const std::string name = self.filename().string();
  CHECK(mapped_files(name) == std::vector<std::string>{self.string()});
  CHECK(mapped_files(name.substr(1)).empty());
  CHECK(mapped_files("libc.so").size() == 1);
  CHECK_FALSE(mapped_files("lib").size() < 3);
}

TEST_CASE("without a GPU everything says so") {
  CHECK_FALSE(why_gpu_unusable(kGpu).empty());
  CHECK_THROWS_AS(device_state(kGpu), DeviceError);
  CHECK_THROWS_AS(device_state(Device{}), UsageError);
  const PeerCopy copy = check_peer_copy(kGpu, {DeviceKind::cuda, 1});
  CHECK_FALSE(copy.direct);
  CHECK(copy.flaw == why_no_gpu());
  CHECK(core_libraries().size() == (kHasCuda ? 1 : 0));
}

}  // namespace
}  // namespace lockstep
