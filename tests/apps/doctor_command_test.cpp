// `mnist_multi_gpu doctor` on a machine without a GPU: what it says, and every check failing once.
#include <fstream>
#include <regex>
#include <span>

#include "lockstep/core/sha256.h"

#include "apps/cuda/environment.h"
#include "apps/doctor/checks.h"
#include "apps/golden.h"
#include "apps/process.h"
#include "apps/read_text.h"
#include "apps/training_run.h"
#include "data/idx_files.h"
#include "io/file_limit.h"
#include "support/catch.h"
#include "support/throws.h"

namespace lockstep {

using test::contains;
using test::EnvironmentVariable;
using test::json_lines;
using test::ProcessResult;
using test::run_process;
using test::ScratchFolder;

namespace fs = std::filesystem;

namespace {

/// doctor with what a scratch folder can satisfy.
ProcessResult doctor(const ScratchFolder& folder, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments{"doctor", "--dataset", "synthetic"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_process("mnist_multi_gpu", arguments, {.folder = folder.path()});
}

/// What the machine decides becomes '#': whole checks, and the room on the disk.
std::string masked(std::string text) {
  text = std::regex_replace(text, std::regex("lockstep [0-9.]+"), "lockstep #");
  for (const char* check : {"cores", "instructions", "GPUs", "shared memory", "environment"}) {
    text = std::regex_replace(
        text, std::regex(std::string("(pass|warn)  (") + check + " *) [^\n]*\n( {18,}[^\n]*\n)*"),
        "#     $2 #\n");
  }
  text = std::regex_replace(text, std::regex("[0-9.]+ [kMGT]?B free"), "# free");
  return std::regex_replace(text, std::regex("[0-9] passed, [0-9] warned"), "# passed, # warned");
}

/// Four files in the format of MNIST that are not MNIST.
void write_set(const fs::path& folder, bool packed) {
  fs::create_directory(folder);
  for (const auto& [name, extents] :
       {std::pair<const char*, std::vector<std::uint32_t>>{"train-images-idx3-ubyte", {9, 28, 28}},
        {"train-labels-idx1-ubyte", {9}},
        {"t10k-images-idx3-ubyte", {4, 28, 28}},
        {"t10k-labels-idx1-ubyte", {4}}}) {
    const test::Bytes bytes = test::idx_bytes(extents, 10);
    test::write_file(folder / (std::string(name) + (packed ? ".gz" : "")),
                     packed ? test::gzip(bytes) : bytes);
  }
}

}  // namespace

TEST_CASE("doctor: human output", "[apps]") {
  const ScratchFolder folder;
  const auto run = doctor(folder);
  CHECK(run.code == 0);
  CHECK(run.err.empty());
  test::check_golden("doctor_output.txt", masked(run.out));
  CHECK(contains(run.out, "no GPU: "));
  CHECK(fs::is_empty(folder.path()));
  const auto quiet = doctor(folder, {"--quiet"});
  CHECK(quiet.code == 0);
  CHECK(quiet.out.empty());
}

TEST_CASE("doctor: --json prints one object a line, the result last", "[apps]") {
  const ScratchFolder folder;
  const auto run = doctor(folder, {"--json", "--out", folder / "a/b/run"});
  CHECK(run.code == 0);
  const auto events = json_lines(run.out);
  REQUIRE(events.size() == 8);
  std::vector<std::string> checks;
  int passed = 0;
  for (std::size_t i = 0; i + 1 < events.size(); ++i) {
    const auto& event = events[i];
    CHECK(event["event"] == "check");
    CHECK(event["schema"] == 1);
    const auto verdict = event["verdict"].get<std::string>();
    CHECK((verdict == "pass" || verdict == "warn"));
    CHECK(event["text"].is_string());
    CHECK(event["remedy"].get<std::string>().empty() == (verdict == "pass"));
    CHECK(event["details"].is_object());
    passed += verdict == "pass";
    checks.push_back(event["check"]);
  }
  CHECK(checks == std::vector<std::string>{"cores", "instructions", "GPUs", "shared memory", "data",
                                           "run folder", "environment"});
  CHECK(events[0]["details"]["allowed"].get<int>() >= 1);
  CHECK(events[5]["details"]["folder"] == folder / "a/b/run");
  CHECK(events[5]["details"]["free"].get<double>() > 0);
  const auto& result = events.back();
  CHECK(result["event"] == "result");
  CHECK(result["command"] == "doctor");
  CHECK(result["passed"] == passed);
  CHECK(result["warned"] == 7 - passed);
  CHECK(result["failed"] == 0);
  CHECK(result["exit_code"] == 0);
  CHECK(fs::is_empty(folder.path()));  // the folders that it made are gone
}

TEST_CASE("doctor: no GPU is a failure only where one is asked for", "[apps]") {
  const ScratchFolder folder;
  for (const char* devices : {"cuda", "cuda:0"}) {
    const auto run = doctor(folder, {"--devices", devices});
    CHECK(run.code == 4);
    CHECK(contains(run.out, "fail  GPUs            no GPU: "));
    CHECK(contains(run.out, "-> "));
    CHECK(contains(run.out, "1 failed"));
  }
  const auto cpu = doctor(folder, {"--devices", "cpu:2"});
  CHECK(cpu.code == 0);
  CHECK(contains(cpu.out, "not looked at: --devices cpu:2"));
  CHECK(doctor(folder, {"--devices", "cuda:x"}).code == 2);
}

TEST_CASE("doctor: data that is missing, damaged or other data", "[apps]") {
  const ScratchFolder folder;
  apps::DataOptions data{
      .folder = folder / "set", .limit_train = {}, .limit_validation = {}, .limit_test = {}};
  const auto failing = [&](const std::string& part) {
    const apps::Finding finding = apps::check_data(data);
    INFO(finding.text << "\n" << finding.remedy);
    CHECK(finding.verdict == apps::Verdict::fail);
    CHECK(finding.code == apps::ExitCode::data);
    CHECK(contains(finding.text, part));
    CHECK(contains(finding.remedy, "scripts/fetch_mnist.sh " + data.folder.string()));
    return finding;
  };
  failing("there is no such folder");
  for (const bool packed : {false, true}) {
    fs::remove_all(data.folder);
    write_set(data.folder, packed);
    const apps::Finding other = failing("expected " + std::string(apps::known_digests("mnist")[0]));
    // The digest is that of the raw file, whatever lies on the disk.
    const test::Bytes images = test::idx_bytes({9, 28, 28}, 10);
    CHECK(other.details["files"][0]["sha256"] == sha256(std::as_bytes(std::span(images))));
  }
  test::write_file(data.folder / "train-images-idx3-ubyte",
                   test::joined(test::idx_header({9, 28, 28}), {1, 2, 3}));
  failing("truncated");
  const auto run = doctor(folder, {"--dataset", "mnist", "--data", folder / "set"});
  CHECK(run.code == 2);  // an option that is given twice
  const auto mnist = run_process("mnist_multi_gpu", {"doctor", "--data", folder / "set", "--json"},
                                 {.folder = folder.path()});
  CHECK(mnist.code == 3);
  CHECK(json_lines(mnist.out).back()["exit_code"] == 3);
}

TEST_CASE("doctor: the digests are those of scripts/fetch_mnist.sh", "[apps]") {
  const std::string script =
      test::read_text(LOCKSTEP_GOLDEN_DIR "/../../../scripts/fetch_mnist.sh");
  const std::array<const char*, 4> names = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                            "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};
  std::size_t from = script.find("mnist_sums=(");
  for (const char* dataset : {"mnist", "fashion-mnist"}) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::string line =
          std::string("[") + names[i] + "]=" + apps::known_digests(dataset)[i] + "\n";
      INFO(line);
      from = script.find(line, from);
      REQUIRE(from != std::string::npos);
    }
  }
}

TEST_CASE("doctor: places where no run can be written", "[apps]") {
  const ScratchFolder folder;
  std::ofstream(folder / "file") << "in the way";
  for (const std::string& place :
       {folder / "file", folder / "file/run", std::string("/proc/run")}) {
    const apps::Finding finding = apps::check_run_folder(place);
    INFO(place << ": " << finding.text);
    CHECK(finding.verdict == apps::Verdict::fail);
    CHECK(finding.code == apps::ExitCode::io);
    CHECK(contains(finding.text, place));
    CHECK(contains(finding.remedy, "--out"));
  }
  CHECK(doctor(folder, {"--out", folder / "file/run"}).code == 7);
  {
    const test::FileLimit full(1000);
    const apps::Finding finding = apps::check_run_folder(folder / "new/run");
    CHECK(finding.verdict == apps::Verdict::fail);
    CHECK(contains(finding.text, "cannot write"));
  }
  CHECK_FALSE(fs::exists(folder / "new"));
  // A folder that holds something is no place for a run, but not one for runs.
  CHECK(apps::check_run_folder(folder.path()).verdict == apps::Verdict::warn);
  CHECK(test::read_text(folder / "file") == "in the way");
  CHECK(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 1);
}

TEST_CASE("doctor: an instruction set that cannot be used", "[apps]") {
  const EnvironmentVariable set("LOCKSTEP_CPU_ISA", "mmx");
  const ScratchFolder folder;
  const auto run = doctor(folder, {"--json"});
  CHECK(run.code == 2);
  const auto event = json_lines(run.out).at(1);
  CHECK(event["verdict"] == "fail");
  CHECK(contains(event["text"].get<std::string>(), "LOCKSTEP_CPU_ISA=mmx"));
  CHECK(contains(event["remedy"].get<std::string>(), "unset LOCKSTEP_CPU_ISA"));
  const auto variables = json_lines(run.out).at(6)["details"]["variables"];
  CHECK(variables["LOCKSTEP_CPU_ISA"] == "mmx");
  CHECK_FALSE(variables.contains("PATH"));
}

TEST_CASE("doctor: small shared memory matters with several GPUs", "[apps]") {
  const apps::Finding one = apps::check_shared_memory(1);
  CHECK(one.verdict == apps::Verdict::pass);
  const apps::Finding two = apps::check_shared_memory(2);
  const bool small = two.details["free"].get<std::uint64_t>() < (std::uint64_t{1} << 30);
  CHECK((two.verdict == apps::Verdict::pass) == !small);
  CHECK(two.remedy.empty() == !small);
}

}  // namespace lockstep
