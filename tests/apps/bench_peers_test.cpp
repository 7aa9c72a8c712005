// lockstep_bench peers: options, figures and reports from fixed times, and short runs beside a
// peer that is a shell script.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "lockstep/core/error.h"

#include "apps/golden.h"
#include "apps/lockstep_bench/child_process.h"
#include "apps/lockstep_bench/other_load.h"
#include "apps/lockstep_bench/peers.h"
#include "apps/process.h"
#include "apps/training_run.h"
#include "support/catch.h"
#include "support/throws.h"

namespace lockstep::apps {

using test::contains;
using test::json_lines;
using test::message_of;
using test::run_process;
using test::ScratchFolder;

namespace {

PeersRow row(const char* system, int cores, std::vector<double> epochs) {
  return {.system = system,
          .version = "1",
          .cores = cores,
          .epochs = std::move(epochs),
          .first_steps = {0.5, 0.25, 1},
          .peak_rss = 64e6,
          .loss = 0.25,
          .others = 0.5};
}

PeersReport report() {
  PeersReport report{
      .processor = "avx2",
      .cores = 2,
      .dataset = "synthetic",
      .rounds = 3,
      .models = {{.model = "article",
                  .samples = 55000,
                  .warm_up = 0,
                  .epochs = 1,
                  .rows = {row(kOurs, 1, {1, 3, 2}), row("PyTorch", 1, {2, 9, 6}),
                           row(kOurs, 2, {0.5, 1, 1}), row("PyTorch", 2, {4, 4, 4})}},
                 {.model = "lenet5",
                  .samples = 500,
                  .warm_up = 1,
                  .epochs = 3,
                  .rows = {row(kOurs, 1, {1, 1, 1})}}},
      .notes = {"oneDNN: not measured, because it rains"}};
  derive(report);
  return report;
}

/// A program in `folder` that does `commands` in place of the Python that was asked for.
std::string fake_python(const ScratchFolder& folder, const std::string& commands) {
  const std::string path = folder / "python";
  std::ofstream(path) << "#!/bin/sh\n" << commands;
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path;
}

test::ProcessResult run_small(const std::string& python, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments{"peers", "--models",  "article", "--cores",  "1",   "--rounds",
                                     "2",     "--samples", "200",     "--python", python};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_process("lockstep_bench", arguments);
}

/// What a peer prints for the article's net, in seconds an epoch.
std::string figures(const std::string& seconds) {
  return R"(echo '{"version": "7.1", "parameters": 9098, "first_step_seconds": 0.5, )"
         R"("epoch_seconds": [)" +
         seconds + R"(], "peak_rss_bytes": 1000000, "loss": 0.5}')" + '\n';
}

}  // namespace

TEST_CASE("peers: medians, spread, and ratios of the same round and cores", "[apps]") {
  const PeersModel model = report().models[0];
  CHECK(model.rows[0].epoch.median == 2);
  CHECK(model.rows[0].ratio_rounds.empty());
  CHECK(model.rows[0].first_step == 0.5);
  CHECK(model.rows[1].epoch.median == 6);
  CHECK(model.rows[1].epoch.lowest == 2);
  CHECK(model.rows[1].epoch.highest == 9);
  CHECK(model.rows[1].ratio_rounds == std::vector<double>{2, 3, 3});
  CHECK(model.rows[1].ratio.lowest == 2);
  CHECK(model.rows[3].ratio_rounds == std::vector<double>{8, 4, 4});
  CHECK(model.rows[3].ratio.median == 4);
}

TEST_CASE("peers: the tables", "[apps]") {
  std::ostringstream out;
  write_peers(out, report());
  test::check_golden("peers_report.txt", out.str());
}

TEST_CASE("peers: the JSON", "[apps]") {
  const Json event = peers_event(report());
  CHECK(event["schema"] == 1);
  CHECK(event["event"] == "peers");
  CHECK(event["not_measured"][0] == "oneDNN: not measured, because it rains");
  const Json& rows = event["models"][0]["rows"];
  REQUIRE(rows.size() == 4);
  CHECK_FALSE(rows[0].contains("ratio"));
  CHECK(rows[1]["system"] == "PyTorch");
  CHECK(rows[1]["version"] == "1");
  CHECK(rows[1]["ratio"]["median"] == 3);
  CHECK(rows[1]["epoch_seconds"]["highest"] == 9);
  CHECK(rows[1]["rounds"].size() == 3);
  CHECK(rows[1]["peak_rss_bytes"] == 64e6);
  CHECK(rows[1]["other_processes_cores"] == 0.5);
  CHECK(event["models"][1]["warm_up_epochs"] == 1);
}

TEST_CASE("peers: options", "[apps]") {
  const auto plain = std::get<PeersOptions>(parse_bench({"peers"}));
  CHECK(plain.models == std::vector<std::string>{"article", "lenet5", "wide_cnn"});
  CHECK(plain.cores.empty());
  CHECK(plain.rounds == 3);
  CHECK_FALSE(plain.samples.has_value());
  CHECK(plain.python == "python3");
  CHECK(plain.data.dataset == "synthetic");
  const auto all = std::get<PeersOptions>(parse_bench({"peers",    "--models",  "wide_cnn,article",
                                                       "--cores",  "2,1",       "--rounds",
                                                       "4",        "--samples", "100",
                                                       "--python", "py",        "--blas",
                                                       "/b",       "--dataset", "mnist",
                                                       "--data",   "d",         "--json",
                                                       "f",        "--quiet"}));
  CHECK(all.models == std::vector<std::string>{"wide_cnn", "article"});
  CHECK(all.cores == std::vector<int>{2, 1});
  CHECK(all.rounds == 4);
  CHECK(all.samples == 100);
  CHECK(all.python == "py");
  CHECK(all.blas == "/b");
  CHECK(all.data.dataset == "mnist");
  CHECK(all.data.folder == "d");
  CHECK(all.json == "f");
  CHECK(all.quiet);
  for (const char* models : {"", "article,", "mlp", "article,article"}) {
    CAPTURE(models);
    const std::string text = message_of<UsageError>([&] {
      (void)parse_bench({"peers", "--models", models});
    });
    CHECK(contains(text, "want different ones of article, lenet5, wide_cnn"));
  }
  test::check_golden("peers_help.txt", std::get<PrintText>(parse_bench({"peers", "--help"})).text);
  const auto one = std::get<PeerOptions>(
      parse_bench({"peer", "--model", "lenet5", "--cores", "2", "--file", "f", "--samples", "9",
                   "--epochs", "3", "--warm-up", "1", "--started", "5"}));
  CHECK(one.model == "lenet5");
  CHECK(one.cores == 2);
  CHECK(one.file == "f");
  CHECK(one.samples == 9);
  CHECK(one.epochs == 3);
  CHECK(one.warm_up == 1);
  CHECK(one.started == 5);
  CHECK_THROWS_AS(parse_bench({"peer", "--samples", "9"}), UsageError);
}

TEST_CASE("peers: another program's output, exit code and environment", "[apps]") {
  setenv("LOCKSTEP_PEER_KEPT", "kept", 1);
  setenv("LOCKSTEP_PEER_TEST", "old", 1);
  const ChildResult shell =
      run_child({"sh", "-c",
                 "echo $LOCKSTEP_PEER_KEPT $LOCKSTEP_PEER_TEST; echo first >&2; echo last >&2; "
                 "env | grep -c '^LOCKSTEP_PEER_TEST='; exit 3"},
                {{"LOCKSTEP_PEER_TEST", "a value"}});
  unsetenv("LOCKSTEP_PEER_KEPT");
  unsetenv("LOCKSTEP_PEER_TEST");
  CHECK(shell.code == 3);
  CHECK(shell.out == "kept a value\n1\n");
  CHECK(last_line(shell.err) == "last");
  const ChildResult missing = run_child({"/no/such/program"});
  CHECK(missing.code == 127);
  CHECK(contains(missing.err, "No such file"));
  CHECK(run_child({"sh", "-c", "kill -9 $$"}).code == 137);
  CHECK(last_line("").empty());
  CHECK(last_line("a\nb\n\n") == "b");
}

TEST_CASE("peers: processor time that was not idle", "[apps]") {
  std::istringstream stat("cpu  1 20 300 4000 50000 600000 7000000 80000000 5 5\ncpu0 1 1 1 1\n");
  CHECK(busy_ticks(stat) == 87600321);
  std::istringstream other("nothing like it");
  CHECK(busy_ticks(other) == 0);
  CHECK(OtherLoad().cores() >= 0);
}

TEST_CASE("peers: a peer that prints the figures is measured beside us", "[apps]") {
  const ScratchFolder folder;
  // The samples are there, 784 bytes and a class each; 'best' alone has malloc's settings.
  const std::string python = fake_python(
      folder, "echo \"$@ $OMP_NUM_THREADS $MALLOC_TOP_PAD_\" >> '" + (folder / "calls") + "'\n" +
                  "while [ $# -gt 0 ]; do [ $1 = --file ] && wc -c < $2 >> '" + (folder / "sizes") +
                  "'; shift; done\n" + figures("3, 1, 2"));
  const auto run = run_small(python, {"--json", "-"});
  REQUIRE(run.code == 0);
  CHECK(run.err.empty());
  const auto event = json_lines(run.out).at(0);
  const auto& model = event["models"][0];
  CHECK(model["samples"] == 200);
  CHECK(model["warm_up_epochs"] == 1);
  REQUIRE(model["rows"].size() >= 3);
  const auto& ours = model["rows"][0];
  CHECK(ours["system"] == "Lockstep");
  CHECK(ours["epoch_seconds"]["median"].get<double>() > 0);
  CHECK(ours["first_step_seconds"].get<double>() > 0);
  CHECK(ours["peak_rss_bytes"].get<double>() > 1e6);
  CHECK(ours["loss"].get<double>() > 0);
  const auto& peer = model["rows"][1];
  CHECK(peer["system"] == "PyTorch default");
  CHECK(peer["version"] == "7.1");
  CHECK(peer["rounds"] == std::vector<double>{2, 2});
  CHECK(peer["ratio_rounds"][1].get<double>() == Approx(2 / ours["rounds"][1].get<double>()));
  CHECK(model["rows"][2]["system"] == "PyTorch best");

  const std::string calls = test::read_text(folder / "calls");
  std::istringstream lines(calls);
  std::vector<std::string> call;
  for (std::string line; std::getline(lines, line);) call.push_back(line);
  REQUIRE(call.size() == 4);
  CHECK(contains(call[0], "peer_torch.py --setting default --model article --cores 1"));
  CHECK(contains(call[0], "--samples 200 --epochs 3 --warm-up 1"));
  CHECK(call[0].ends_with(" 1 "));
  CHECK(contains(call[1], "--setting best"));
  CHECK(call[1].ends_with(" 1 67108864"));
  CHECK(contains(call[2], "--setting default"));
  CHECK(test::read_text(folder / "sizes").starts_with("157000\n"));
}

TEST_CASE("peers: without its Python a peer is named in one line, and we are measured", "[apps]") {
  const auto run = run_small("/no/such/python");
  CHECK(run.code == 0);
  CHECK(contains(run.out, "PyTorch: not measured, because /no/such/python cannot be run: No such"));
  CHECK(contains(run.out, "\nLockstep "));
  CHECK_FALSE(contains(run.out, "\nPyTorch best "));
}

TEST_CASE("peers: what a peer says or does wrong keeps it out of the table", "[apps]") {
  const ScratchFolder folder;
  const auto note = [&](const std::string& commands) {
    const auto run = run_small(fake_python(folder, commands), {"--json", "-"});
    REQUIRE(run.code == 0);
    const auto event = json_lines(run.out).at(0);
    for (const auto& row : event["models"][0]["rows"]) {
      CHECK_FALSE(contains(row["system"].get<std::string>(), "PyTorch"));
    }
    return event["not_measured"][0].get<std::string>();
  };
  CHECK(note(R"(echo '{"missing": "no torch here"}')") ==
        "PyTorch: not measured, because no torch here");
  CHECK(note(R"(echo '{"model_missing": "no such net"}')") ==
        "PyTorch default: not measured with article, because no such net");
  CHECK(contains(note("echo 'what went wrong' >&2; exit 5"), "ended with 5: what went wrong"));
  CHECK(contains(note("echo nonsense"), "printed no measurement"));
  CHECK(contains(note(figures("")), "no epoch was measured"));
  CHECK(contains(note(figures("0")), "an epoch of 0 s was measured"));
  CHECK(contains(note("echo '{}'"), "printed no measurement"));
  CHECK(contains(note(R"(echo '{"version": "1", "parameters": 5, "first_step_seconds": 1, )"
                      R"("epoch_seconds": [1], "peak_rss_bytes": 1, "loss": 1}')"),
                 "its model has 5 parameters, ours 9098"));
}

TEST_CASE("peers: what cannot work is refused", "[apps]") {
  CHECK(run_process("lockstep_bench", {"peers", "--cores", "1000"}).code == 2);
  CHECK(run_process("lockstep_bench", {"peers", "--dataset", "mnist", "--data", "/nowhere"}).code ==
        3);
  const auto file = run_process("lockstep_bench", {"peer", "--file", "/nowhere", "--samples", "5"});
  CHECK(file.code == 3);
  CHECK(contains(file.err, "/nowhere: not 5 samples"));
}

}  // namespace lockstep::apps
