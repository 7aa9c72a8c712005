// Naming GPUs, and taking only those that work.
#include <dlfcn.h>

#include "lockstep/core/context.h"
#include "lockstep/core/cuda/backend.h"
#include "lockstep/core/device.h"

#include "cusim/cusim.h"
#include "support/catch.h"
#include "support/throws.h"

namespace lockstep {
namespace {

using test::contains;
using test::message_of;

int gpu_count() {
  return static_cast<int>(parse_devices("cuda").list.size());
}

std::vector<int> indices(const Devices& devices) {
  std::vector<int> all;
  for (const Device device : devices.list) {
    CHECK(device.kind == DeviceKind::cuda);
    all.push_back(device.index);
  }
  return all;
}

/// Null on a real GPU.
decltype(&cusim_set_fault) fault_setter() {
  return reinterpret_cast<decltype(&cusim_set_fault)>(dlsym(RTLD_DEFAULT, "cusim_set_fault"));
}

TEST_CASE("cuda and auto mean all GPUs, lists those that they name, in their order") {
  const int count = gpu_count();
  CHECK(parse_devices("cuda").automatic);
  CHECK(parse_devices("auto").automatic);
  CHECK(parse_devices("auto").list == parse_devices("cuda").list);
  CHECK(parse_devices("auto").notice.empty());
  CHECK_FALSE(parse_devices("cuda:0").automatic);
  CHECK(indices(parse_devices("cuda:0")) == std::vector<int>{0});
  CHECK(indices(parse_devices("cuda:0-0")) == std::vector<int>{0});
  if (count < 4) return;
  CHECK(indices(parse_devices("cuda:2,0")) == std::vector<int>{2, 0});
  CHECK(indices(parse_devices("cuda:0-3")) == std::vector<int>{0, 1, 2, 3});
  CHECK(indices(parse_devices("cuda:3,0-1")) == std::vector<int>{3, 0, 1});
}

TEST_CASE("a GPU that is not there is named, with those that are") {
  const int count = gpu_count();
  const std::string missing = std::to_string(count);
  for (const std::string& text : {"cuda:" + missing, "cuda:0," + missing, "cuda:0-" + missing}) {
    const std::string error = message_of<DeviceError>([&] { (void)parse_devices(text); });
    INFO(error);
    CHECK(contains(error, "'" + text + "'"));
    CHECK(contains(error, "there is no GPU " + missing));
    CHECK(contains(error, "this machine has cuda:0"));
    if (count > 1) CHECK(contains(error, "to cuda:" + std::to_string(count - 1)));
  }
  const Device beyond{DeviceKind::cuda, count};
  CHECK(contains(message_of<DeviceError>([&] { const Context context(beyond); }),
                 beyond.to_string() + ": there is no such GPU"));
}

TEST_CASE("lists that mean nothing are refused with what is legal") {
  for (const char* text :
       {"cuda:", "cuda:x", "cuda:0x", "cuda:-1", "cuda:0-", "cuda:1-0", "cuda:,", "cuda:0,",
        "cuda: 0", "cuda:0;1", "cuda:99999999999", "cuda:0-99999", "cuda0", "CUDA", "cuda:0-1-2"}) {
    INFO(text);
    const std::string error = message_of<UsageError>([&] { (void)parse_devices(text); });
    CHECK(contains(error, std::string("'") + text + "'"));
    CHECK(contains(error, "0-3"));
  }
  for (const char* text : {"cuda:0,0", "cuda:0-1,1"}) {
    INFO(text);
    const std::string error = message_of<UsageError>([&] { (void)parse_devices(text); });
    CHECK(contains(error, "is named twice"));
  }
}

TEST_CASE("a GPU has a name, a PCI address and a UUID") {
  const DeviceInfo info = device_info({DeviceKind::cuda, 0});
  CHECK_FALSE(info.name.empty());
  CHECK(info.pci.size() >= std::string("0000:00:00.0").size());
  CHECK(info.uuid.size() == std::string("GPU-00000000-0000-0000-0000-000000000000").size());
  CHECK(info.capability_major >= 5);
  CHECK(info.memory > 0);
  for (const std::string& part : {info.name, info.pci, info.uuid}) {
    CHECK(contains(info.to_string(), part));
  }
  CHECK_THROWS_AS(device_info({DeviceKind::cpu, 0}), UsageError);
}

TEST_CASE("auto leaves out a GPU that does not work and says so in a line") {
  const auto set_fault = fault_setter();
  if (set_fault == nullptr || gpu_count() < 3) {
    WARN("skipped: it takes several simulated GPUs");
    return;
  }
  constexpr const char* kNoCode = "cudaFuncGetAttributes@2=209";
  set_fault(kNoCode);
  const Devices devices = available_devices();
  set_fault("");
  CHECK(static_cast<int>(devices.list.size()) == gpu_count() - 1);
  CHECK(devices.list[1].index == 2);
  INFO(devices.notice);
  CHECK(contains(devices.notice, "cuda:1: this build has no code for"));
  // Busy, or fallen off the bus.
  const std::string busy = "cudaSetDevice@1=46";
  set_fault(busy.c_str());
  CHECK(contains(available_devices().notice, "cuda:1: CUDA cannot use it"));
  set_fault("");
}

TEST_CASE("a scope with another current device ends with the one before, errors or not") {
  const int before = cuda::current_device();
  const Device other{DeviceKind::cuda, gpu_count() - 1};
  {
    const CurrentDevice current(other);
    CHECK(cuda::current_device() == other.index);
    const CurrentDevice cpu{Device{}};
    CHECK(cuda::current_device() == other.index);
  }
  CHECK(cuda::current_device() == before);
  CHECK_THROWS_AS(CurrentDevice(Device{DeviceKind::cuda, gpu_count()}), DeviceError);
  CHECK(cuda::current_device() == before);
}

}  // namespace
}  // namespace lockstep
