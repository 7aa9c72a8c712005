// Exit codes and messages of the real programs when something is wrong.
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "lockstep/core/error.h"
#include "lockstep/io/weights.h"
#include "lockstep/layers/zoo.h"

#include "apps/cuda/environment.h"
#include "apps/exit_codes.h"
#include "apps/process.h"
#include "apps/training_run.h"
#include "support/catch.h"
#include "support/throws.h"

namespace lockstep {

using test::contains;
using test::json_lines;
using test::run_process;
using test::ScratchFolder;

TEST_CASE("exit codes: every kind of error has its own", "[apps]") {
  using apps::exit_code_of;
  using apps::ExitCode;
  CHECK(exit_code_of(UsageError("")) == ExitCode::usage);
  CHECK(exit_code_of(DataError("")) == ExitCode::data);
  CHECK(exit_code_of(ShapeError("")) == ExitCode::data);
  CHECK(exit_code_of(DeviceError("")) == ExitCode::device);
  CHECK(exit_code_of(CommError("")) == ExitCode::communication);
  CHECK(exit_code_of(NonFiniteError("")) == ExitCode::non_finite);
  CHECK(exit_code_of(DivergenceError("")) == ExitCode::diverged);
  CHECK(exit_code_of(IoError("")) == ExitCode::io);
  CHECK(exit_code_of(std::bad_alloc()) == ExitCode::device);
  CHECK(exit_code_of(std::filesystem::filesystem_error("", std::error_code())) == ExitCode::io);
  CHECK(exit_code_of(std::runtime_error("")) == ExitCode::failure);
}

TEST_CASE("errors: usage, data and device of the real program", "[apps]") {
  const ScratchFolder folder;
  const auto failure = [&](std::vector<std::string> arguments) {
    return run_process("mnist_multi_gpu", arguments, {.folder = folder.path()});
  };
  const auto usage = failure({"--epochs", "none"});
  CHECK(usage.code == 2);
  CHECK(usage.err.starts_with("error: --epochs: 'none'; want a whole number"));
  CHECK(usage.out.empty());
  const auto data = failure({"--data", folder / "nowhere"});
  CHECK(data.code == 3);
  CHECK(contains(data.err, "nowhere"));
  CHECK(contains(data.err, "fetch_mnist.sh"));
  CHECK(failure({"--devices", "cpu:x"}).code == 2);
  CHECK(failure({"--devices", "cuda"}).code == 4);
  CHECK(failure({"parity", "--kind", "cuda"}).code == 4);
  const auto precision = failure({"--devices", "cpu", "--precision", "tf32"});
  CHECK(precision.code == 2);
  CHECK(contains(precision.err, "--precision fp32"));
  CHECK(failure({"--reduce", "invariant", "--devices", "cpu:3", "--dataset", "synthetic"}).code ==
        2);
  // Nothing of a run is left by options that cannot work.
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("errors: the JSON has them as an event", "[apps]") {
  const auto run =
      run_process("mnist_multi_gpu", {"--json", "--devices", "cpu", "--data", "/nowhere/at/all"});
  CHECK(run.code == 3);
  const auto event = json_lines(run.out).at(0);
  CHECK(event["event"] == "error");
  CHECK(event["kind"] == "data");
  CHECK(event["exit_code"] == 3);
  CHECK(contains(event["message"].get<std::string>(), "/nowhere/at/all"));
  CHECK(run.err.starts_with("error: "));
}

TEST_CASE("errors: a gradient that is not finite ends with its own code and good weights",
          "[apps]") {
  const ScratchFolder folder;
  const auto run = run_process(
      "mnist_multi_gpu",
      test::small_training(
          folder / "run", {"--optimizer", "sgd", "--lr", "1000000", "--lr-decay", "1", "--quiet"}));
  CHECK(run.code == 6);
  CHECK(contains(run.err, "not finite"));
  CHECK(std::filesystem::exists(folder / "run/weights.safetensors"));
}

TEST_CASE("errors: a place that cannot be written", "[apps]") {
  const ScratchFolder folder;
  std::ofstream(folder / "file") << "in the way";
  const auto run = run_process("mnist_multi_gpu", test::small_training(folder / "file/run"));
  CHECK(run.code == 7);
}

TEST_CASE("errors: names that are no UTF-8 are written, and read back by eval", "[apps]") {
  const ScratchFolder folder;
  const std::string out = folder / "r\xFFn";
  const auto run =
      run_process("mnist_multi_gpu", test::small_training(out, {"--json", "--epochs", "1"}));
  INFO(run.err);
  CHECK(run.code == 0);
  CHECK(json_lines(run.out).back()["event"] == "result");
  CHECK(std::filesystem::exists(out + "/weights.safetensors"));
  CHECK(run_process("mnist_multi_gpu", {"eval", "--weights", out, "--limit", "10"}).code == 0);
}

TEST_CASE("errors: parity needs no file and so leaves none, whatever ends it", "[apps]") {
  const ScratchFolder folder;
  const auto parity = [&](const char* steps, bool interrupt) {
    bool sent = false;
    return run_process("mnist_multi_gpu",
                       {"parity", "--dataset", "synthetic", "--replicas", "1,2", "--steps", steps},
                       {.folder = folder.path(), .on_output = [&](const std::string&, int pid) {
                          if (interrupt && !sent) kill(pid, SIGTERM);
                          sent = true;
                        }});
  };
  {
    const test::EnvironmentVariable nowhere("TMPDIR", folder / "nowhere");
    CHECK(parity("50", false).code == 0);
  }
  const test::EnvironmentVariable here("TMPDIR", folder.path().string());
  CHECK(parity("100000000", true).code == 128 + SIGTERM);
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("errors: paths that cannot be looked at", "[apps]") {
  const ScratchFolder folder;
  for (const std::string& path : {std::string(5000, 'x'), folder / std::string(300, 'x')}) {
    for (const char* command : {"eval", "predict"}) {
      const auto run =
          run_process("mnist_multi_gpu", {command, "--weights", path, "--quiet", "picture.png"});
      CHECK(run.code == (command == std::string("eval") ? 2 : 7));
      CHECK_FALSE(contains(run.err, "filesystem error"));
    }
    const auto eval = run_process("mnist_multi_gpu", {"eval", "--weights", path});
    CHECK(eval.code == 7);
    CHECK(contains(eval.err, "cannot be looked at"));
    CHECK_FALSE(contains(eval.err, "filesystem error"));
  }
}

TEST_CASE("errors: a closed stdout and a reader that goes away harm no run", "[apps]") {
  const ScratchFolder folder;
  const std::string program =
      (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "mnist_multi_gpu").string();
  const auto shell = [&](const std::string& redirection, const std::string& name) {
    const std::string command = "'" + program +
                                "' --dataset synthetic --limit-train 2000 --limit-validation 64 "
                                "--limit-test 64 --epochs 3 --devices cpu:1 --out '" +
                                (folder / name) + "' 2>/dev/null " + redirection;
    return std::system(command.c_str());
  };
  CHECK(shell(">&-", "closed") == 0);
  std::ifstream metrics(folder / "closed/metrics.csv");
  std::string line;
  int lines = 0;
  while (std::getline(metrics, line)) {
    CHECK(line.starts_with(lines == 0 ? "epoch," : std::to_string(lines - 1) + ","));
    ++lines;
  }
  CHECK(lines == 4);

  (void)shell("| true", "left");
  CHECK(std::filesystem::exists(folder / "left/weights.safetensors"));
}

TEST_CASE("errors: weights that are not finite evaluate and predict nothing", "[apps]") {
  const ScratchFolder folder;
  Model model(zoo::article(), {1, 28, 28});
  model.set_arena(std::vector<float>(model.arena().size(), std::nanf("")));
  save_weights(model, folder / "nan.safetensors");
  std::ofstream(folder / "digit.pgm", std::ios::binary) << "P5 2 2 255\n"
                                                        << "\x10\xF0\xF0\x20";
  const std::vector<std::string> weights{"--weights", folder / "nan.safetensors"};
  std::vector<std::string> eval{"eval", "--dataset", "synthetic", "--limit", "10"};
  std::vector<std::string> predict{"predict", folder / "digit.pgm"};
  for (std::vector<std::string>* arguments : {&eval, &predict}) {
    arguments->insert(arguments->end(), weights.begin(), weights.end());
    const auto result = run_process("mnist_multi_gpu", *arguments);
    CHECK(result.code == 6);
    CHECK(contains(result.err, "nan.safetensors"));
    CHECK(result.out.empty());
  }
}

TEST_CASE("errors: options of another optimizer are refused", "[apps]") {
  const auto result = run_process("mnist_multi_gpu", {"--weight-decay", "0.5"});
  CHECK(result.code == 2);
  CHECK(contains(result.err, "--weight-decay belongs to --optimizer adamw"));
}

TEST_CASE("errors: help and version of the real programs end with 0", "[apps]") {
  for (const char* program : {"mnist_multi_gpu", "lockstep_bench"}) {
    for (const char* flag : {"--help", "--version"}) {
      const auto run = run_process(program, {flag});
      CHECK(run.code == 0);
      CHECK_FALSE(run.out.empty());
      CHECK(run.err.empty());
    }
  }
}

}  // namespace lockstep
