// Every run gets a folder of its own and never another's.
#include "lockstep/io/run_folder.h"

#include "lockstep/core/error.h"

#include "io/scratch.h"
#include "support/catch.h"
#include "support/throws.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using test::names_in;
using test::Scratch;

/// 2025-01-31 23:59:58 UTC.
const auto kTime = std::chrono::system_clock::from_time_t(1738367998);

TEST_CASE("a named folder is made with its parents") {
  const Scratch scratch;
  const RunFolder run = RunFolder::create(scratch / "a" / "b");
  CHECK(run.path() == scratch / "a" / "b");
  CHECK(fs::is_directory(run.path()));
  CHECK(run.file("x.txt") == run.path() / "x.txt");
  CHECK(names_in(scratch.path()) == std::vector<std::string>{"a"});
  CHECK_THROWS_AS(RunFolder::create(scratch / "a" / "b"), IoError);  // somebody has it
  // Nothing is in it, so nothing would be overwritten.
  fs::create_directory(scratch / "empty");
  CHECK(RunFolder::create(scratch / "empty").path() == scratch / "empty");
  CHECK(fs::is_directory(RunFolder::create(scratch / "c" / "").path()));
}

TEST_CASE("a folder with something in it is refused and left as it is") {
  const Scratch scratch;
  test::put(scratch / "file", "text");
  const std::string error =
      test::message_of<IoError>([&] { static_cast<void>(RunFolder::create(scratch.path())); });
  CHECK(test::contains(error, scratch.path().string()));
  CHECK(test::contains(error, "not empty"));
  CHECK(test::contains(error, "name another folder"));
  CHECK(names_in(scratch.path()) == std::vector<std::string>{"file"});
}

TEST_CASE("a place where no folder can be is refused") {
  const Scratch scratch;
  test::put(scratch / "file", "text");
  for (const fs::path& path : {scratch / "file", scratch / "file" / "run"}) {
    CHECK(test::contains(
        test::message_of<IoError>([&] { static_cast<void>(RunFolder::create(path)); }),
        path.string()));
  }
  CHECK(test::contains(test::message_of<IoError>([&] {
                         static_cast<void>(RunFolder::create({}, scratch / "file" / "runs"));
                       }),
                       "Not a directory"));
  CHECK(test::read_text(scratch / "file") == "text");
}

TEST_CASE("without a name the UTC time is taken, with numbers behind it while it is in use") {
  const Scratch scratch;
  const fs::path root = scratch / "runs";
  test::put(scratch / "marker", "");
  std::error_code ignored;
  const char* expected[] = {"20250131-235958", "20250131-235958-2", "20250131-235958-3"};
  for (const char* name : expected) {
    RunFolder run = RunFolder::create({}, root, kTime);
    CHECK(run.path() == root / name);
    CHECK(fs::is_directory(run.path()));
    // The link stays with the run before until this one has something.
    CHECK_FALSE(fs::equivalent(root / "latest", run.path(), ignored));
    run.become_latest();
    CHECK(fs::read_symlink(root / "latest") == fs::path(name));
    run.become_latest();
    CHECK(fs::equivalent(root / "latest", run.path()));
  }
  // A file counts as taken as well.
  test::put(root / "20250131-235959", "");
  const RunFolder next = RunFolder::create({}, root, kTime + std::chrono::seconds(1));
  CHECK(next.path() == root / "20250131-235959-2");
  CHECK(names_in(root) == std::vector<std::string>{"20250131-235958", "20250131-235958-2",
                                                   "20250131-235958-3", "20250131-235959",
                                                   "20250131-235959-2", "latest"});
}

TEST_CASE("a link to a run that is gone is replaced, a folder called latest is not") {
  const Scratch scratch;
  fs::create_symlink("gone", scratch / "latest");
  RunFolder run = RunFolder::create({}, scratch.path(), kTime);
  run.become_latest();
  CHECK(fs::equivalent(scratch / "latest", run.path()));
  fs::remove(scratch / "latest");
  fs::create_directory(scratch / "latest");
  test::put(scratch / "latest" / "precious", "text");
  const std::string error = test::message_of<IoError>(
      [&] { static_cast<void>(RunFolder::create({}, scratch.path(), kTime)); });
  CHECK(test::contains(error, "latest"));
  CHECK(test::contains(error, "move away"));
  CHECK(test::read_text(scratch / "latest" / "precious") == "text");
  CHECK(names_in(scratch.path()) ==
        std::vector<std::string>{run.path().filename().string(), "latest"});
}

TEST_CASE("a run with a name of its own does not become the latest") {
  const Scratch scratch;
  RunFolder run = RunFolder::create(scratch / "run", scratch.path());
  run.become_latest();
  CHECK(names_in(scratch.path()) == std::vector<std::string>{"run"});
}

TEST_CASE("a run is opened again, through a link too, but not while somebody has it") {
  const Scratch scratch;
  {
    RunFolder run = RunFolder::create({}, scratch.path(), kTime);
    run.become_latest();
    CHECK(test::contains(
        test::message_of<IoError>([&] { static_cast<void>(RunFolder::open(run.path())); }),
        "another process trains in this folder"));
  }
  const RunFolder again = RunFolder::open(scratch / "latest");
  CHECK(again.path() == scratch / "20250131-235958");
  CHECK_THROWS_AS(RunFolder::open(scratch / "20250131-235958"), IoError);
}

TEST_CASE("what is no folder of a run is refused with what it is and what to name") {
  const Scratch scratch;
  test::put(scratch / "file", "text");
  fs::create_symlink("loop", scratch / "loop");
  fs::create_symlink("gone", scratch / "latest");
  const std::pair<fs::path, const char*> cases[] = {
      {"none", ": there is no such run folder"},
      {"latest", ": there is no such run folder"},
      {"file", ": this is no folder of a run, but a file"},
      {"loop", ": cannot be looked at (Too many levels of symbolic links)"},
      {std::string(300, 'n'), ": cannot be looked at (File name too long)"}};
  for (const auto& [name, reason] : cases) {
    const fs::path path = scratch.path() / name;
    CHECK(test::message_of<IoError>([&] { static_cast<void>(RunFolder::open(path)); }) ==
          message(path.string(), reason, "; name the folder of a run, such as runs/latest"));
  }
}

TEST_CASE("a run that is opened becomes the latest when its name is a time") {
  const Scratch scratch;
  const auto latest_after = [&](const fs::path& run) {
    fs::create_directories(run.has_filename() ? run : run.parent_path());
    fs::remove(scratch / "latest");
    RunFolder::open(run).become_latest();
    return fs::is_symlink(scratch / "latest") ? fs::read_symlink(scratch / "latest") : "none";
  };
  for (const char* name : {"20250131-235958", "20250131-235958-12"}) {
    CHECK(latest_after(scratch / name) == name);
    CHECK(latest_after(scratch / name / "") == name);
  }
  for (const char* name : {"mine", "20250131-23595", "20250131-2359580", "20250131-235958-x"}) {
    CHECK(latest_after(scratch / name) == "none");
  }
  // What is no link stays, and so does the run.
  fs::create_directory(scratch / "latest");
  test::put(scratch / "latest" / "precious", "text");
  RunFolder::open(scratch / "20250131-235958").become_latest();
  CHECK(test::read_text(scratch / "latest" / "precious") == "text");
}

}  // namespace
}  // namespace lockstep
