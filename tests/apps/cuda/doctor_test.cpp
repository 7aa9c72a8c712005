// `mnist_multi_gpu doctor` on GPUs, and what it says of simulated ones that are out of order.
#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/core/diagnostics.h"

#include "apps/cuda/environment.h"
#include "apps/process.h"
#include "apps/training_run.h"
#include "parallel/cuda/gpus.h"
#include "support/catch.h"
#include "support/throws.h"

namespace lockstep {

using test::contains;
using test::EnvironmentVariable;
using test::json_lines;
using test::run_process;
using test::ScratchFolder;

namespace {

struct Doctor {
  int code = 0;
  std::vector<nlohmann::json> events;

  /// The event of a check.
  [[nodiscard]] nlohmann::json check(const std::string& name) const {
    for (const auto& event : events) {
      if (event["event"] == "check" && event["check"] == name) return event;
    }
    FAIL("no check " << name);
    return {};
  }
};

Doctor doctor(const std::string& devices) {
  const ScratchFolder folder;
  const auto run = run_process("mnist_multi_gpu",
                               {"doctor", "--dataset", "synthetic", "--devices", devices, "--json"},
                               {.folder = folder.path()});
  INFO(run.err);
  return {run.code, json_lines(run.out)};
}

/// --devices for two GPUs, or the one that there is.
std::string two() {
  return test::gpu_count() > 1 ? "cuda:0,1" : "cuda:0";
}

void check_failure(const Doctor& run, int code, const std::string& check, const std::string& text,
                   const std::string& remedy) {
  CHECK(run.code == code);
  const auto event = run.check(check);
  INFO(event.dump());
  CHECK(event["verdict"] == "fail");
  CHECK(contains(event["text"].get<std::string>(), text));
  CHECK(contains(event["remedy"].get<std::string>(), remedy));
}

}  // namespace

TEST_CASE("doctor: GPUs in order") {
  const Doctor run = doctor(two());
  CHECK(run.code == 0);
  CHECK(run.check("driver")["verdict"] == "pass");
  const auto gpus = run.check("GPUs");
  CHECK(gpus["verdict"] == "pass");
  REQUIRE(gpus["details"]["devices"].size() == (test::gpu_count() > 1 ? 2 : 1));
  const auto& first = gpus["details"]["devices"][0];
  CHECK(first["device"] == "cuda:0");
  CHECK(first["architecture"].get<std::string>().starts_with("sm_"));
  CHECK(first["memory"].get<double>() >= first["free"].get<double>());
  CHECK(first["free"].get<double>() > 0);
  CHECK(first["flaw"] == "");
  CHECK_FALSE(gpus["details"]["architectures"].get<std::string>().empty());
  const auto libraries = run.check("libraries")["details"];
  for (const char* name : {"CUDA runtime", "cuBLAS", "cuDNN", "NCCL"}) {
    if (!libraries.contains(name)) continue;  // not built in
    INFO(name);
    CHECK(libraries[name]["built"].is_string());
    CHECK_FALSE(libraries[name]["loaded"].get<std::string>().empty());
    REQUIRE_FALSE(libraries[name]["files"].empty());
    CHECK(std::filesystem::exists(libraries[name]["files"][0].get<std::string>()));
  }
  CHECK(libraries.contains("CUDA runtime"));
  CHECK(libraries.contains("cuBLAS"));
  if (test::gpu_count() < 2) return;
  const auto pairs = run.check("peer copies")["details"]["pairs"];
  REQUIRE(pairs.size() == 2);
  for (const auto& pair : pairs) CHECK(pair["flaw"] == "");
}

TEST_CASE("doctor: a GPU that is not there") {
  check_failure(doctor("cuda:0,99"), 4, "GPUs", "there is no GPU 99", "nvidia-smi");
}

TEST_CASE("doctor: simulated GPUs that cannot be used") {
  if (!test::is_simulated()) return;  // a real machine stays what it is
  {
    const EnvironmentVariable driver("CUSIM_DRIVER", "12040");
    check_failure(doctor("cuda"), 4, "GPUs", "no GPU: the NVIDIA driver is too old", "driver");
    const Doctor automatic = doctor("auto");
    CHECK(automatic.code == 0);
    CHECK(automatic.check("GPUs")["verdict"] == "warn");
  }
  {
    const EnvironmentVariable mode("CUSIM_COMPUTE_MODE", "2");
    check_failure(doctor("cuda:0"), 4, "GPUs", "prohibited", "-c DEFAULT");
  }
  {
    const EnvironmentVariable fault("CUSIM_FAULT", "cudaFuncGetAttributes@1=209");
    const Doctor run = doctor(two());
    check_failure(run, 4, "GPUs", "this build has no code for Simulated device 0", "has code for ");
    CHECK(run.check("GPUs")["details"]["devices"][0]["flaw"] != "");
  }
}

TEST_CASE("doctor: simulated GPUs that do not reach each other as they should") {
  if (!test::is_simulated() || test::gpu_count() < 2) return;
  {
    const auto pairs = doctor("cuda:0,1").check("peer copies");
    CHECK(pairs["verdict"] == "warn");  // through the host
    CHECK(contains(pairs["text"].get<std::string>(), "2 of 2 ways"));
    CHECK(contains(pairs["text"].get<std::string>(), "0 of them directly"));
  }
  const EnvironmentVariable peers("CUSIM_PEERS", "1");
  {
    const Doctor run = doctor("cuda:0,1");
    CHECK(run.code == 0);
    CHECK(run.check("peer copies")["verdict"] == "pass");
    CHECK(run.check("peer copies")["details"]["pairs"][0]["direct"] == true);
  }
  {
    const EnvironmentVariable fault("CUSIM_FAULT", "cudaDeviceEnablePeerAccess@1=217");
    const Doctor run = doctor("cuda:0,1");
    check_failure(run, 5, "peer copies", "peer access from cuda:0 to cuda:1", "NCCL_P2P_DISABLE=1");
    CHECK(contains(run.check("peer copies")["text"].get<std::string>(), "1 of 2 ways"));
  }
  const EnvironmentVariable spoiled("CUSIM_PEERS", "2");
  check_failure(doctor("cuda:0,1"), 5, "peer copies", "the data came back changed", "IOMMU");
}

TEST_CASE("doctor: parts of a library from two places") {
  if (!test::is_simulated()) return;
  const ScratchFolder folder;
  const std::string other = folder / "libcublas_other.so";
  // Any library will do that does not take the place of cuBLAS by its soname.
  std::filesystem::copy_file(mapped_files("libgcc_s.so").at(0), other);
  const EnvironmentVariable preload("LD_PRELOAD", other);
  check_failure(doctor("cuda:0"), 4, "libraries", other,
                "parts of cuBLAS come from several places");
}

}  // namespace lockstep
