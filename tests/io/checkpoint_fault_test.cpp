// Saving a checkpoint, with every system call failing once and the process ending at every one.
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <system_error>

#include <sys/wait.h>
#include <unistd.h>

#include "lockstep/core/error.h"
#include "lockstep/io/checkpoint_folder.h"
#include "lockstep/io/run_folder.h"

#include "io/checkpoint_cases.h"
#include "io/scratch.h"
#include "support/catch.h"
#include "support/system_faults.h"
#include "support/throws.h"

namespace lockstep {
namespace {

using test::Fault;
using test::names_in;
using test::Refusal;
using test::RefusingFileSystem;
using test::Scratch;
using test::small_checkpoint;
using test::SystemFault;

/// What there is when the fault comes: a run that goes on from step 3 and forgets step 0 next.
void make_run(const std::filesystem::path& folder) {
  const SystemFault none(-1, Fault::refused, 0);  // only for its quick fsync
  CheckpointFolder checkpoints(folder, 2);
  checkpoints.save(small_checkpoint(0));
  checkpoints.save(small_checkpoint(3));
}

/// Opens the run and saves step 6.
void go_on_and_save(const std::filesystem::path& folder) {
  const auto from = newest_checkpoint(folder);
  CheckpointFolder checkpoints(folder, 2, &*from);
  checkpoints.save(small_checkpoint(6));
}

std::ptrdiff_t count_of(const std::filesystem::path& folder, const char* begin) {
  const std::vector<std::string> names = names_in(folder);
  return std::count_if(names.begin(), names.end(),
                       [&](const std::string& name) { return name.starts_with(begin); });
}

/// Whatever happened: the newest can be read, the next process goes on and leaves what it should.
void check_sound(const std::filesystem::path& folder, bool saved) {
  const SystemFault none(-1, Fault::refused, 0);
  const auto newest = newest_checkpoint(folder);
  REQUIRE(newest);
  CHECK(newest->damaged.empty());
  const std::uint64_t step = newest->checkpoint.step.step;
  CHECK((step == 6 || (!saved && step == 3)));
  CHECK(newest->checkpoint.weights[0].values.values().back() == static_cast<float>(step));
  CheckpointFolder checkpoints(folder, 2, &*newest);
  checkpoints.save(small_checkpoint(9));
  CHECK(newest_checkpoint(folder)->checkpoint.step.step == 9);
  CHECK(count_of(folder, "step-") == 2);
  CHECK(count_of(folder, "aside-") == 0);
  CHECK(count_of(folder, ".") == 0);
}

TEST_CASE("every system call may fail once: an error or a checkpoint, never half of one") {
  for (const Fault fault : {Fault::refused, Fault::short_write}) {
    for (const int error : {ENOSPC, EIO}) {
      int failures = 0;
      for (int at = 0;; ++at) {
        INFO("call " << at << ", errno " << error << ", fault " << static_cast<int>(fault));
        const Scratch scratch;
        make_run(scratch.path());
        bool saved = false;
        bool happened = false;
        {
          const SystemFault planted(at, fault, error);
          try {
            go_on_and_save(scratch.path());
            saved = true;
          } catch (const IoError& thrown) {
            ++failures;
            CHECK(std::string(thrown.what()).find(scratch.path().string()) != std::string::npos);
          }
          happened = SystemFault::happened();
        }
        if (!happened) {
          CHECK(saved);
          CHECK(at > 40);  // all that saving does was reached
          break;
        }
        check_sound(scratch.path(), saved);
      }
      CHECK(failures > 30);
    }
  }
}

TEST_CASE("a process may end at every system call: the next one goes on") {
  for (const Fault fault : {Fault::dies_before, Fault::dies_after}) {
    for (int at = 0;; ++at) {
      INFO("call " << at << ", " << (fault == Fault::dies_before ? "before" : "after") << " it");
      const Scratch scratch;
      make_run(scratch.path());
      const pid_t child = fork();
      REQUIRE(child >= 0);
      if (child == 0) {
        const SystemFault planted(at, fault, 0);
        try {
          go_on_and_save(scratch.path());
        } catch (...) {
          _exit(1);
        }
        _exit(0);
      }
      int status = 0;
      REQUIRE(waitpid(child, &status, 0) == child);
      REQUIRE(WIFEXITED(status));
      const int code = WEXITSTATUS(status);
      REQUIRE((code == 9 || code == 0));
      check_sound(scratch.path(), code == 0);
      if (code == 0) {
        CHECK(at > 40);
        break;
      }
    }
  }
}

TEST_CASE("a checkpoint that cannot be read just now is named, stays, and is used the next time") {
  for (const int error : {EIO, EACCES, EMFILE}) {
    int unread = 0;
    for (int at = 0;; ++at) {
      INFO("call " << at << ", errno " << error);
      const Scratch scratch;
      make_run(scratch.path());
      std::optional<FoundCheckpoint> found;
      bool happened = false;
      {
        const SystemFault planted(at, Fault::refused, error);
        found = newest_checkpoint(scratch.path());
        happened = SystemFault::happened();
      }
      REQUIRE(found);
      CHECK(found->damaged.empty());
      const bool older = found->checkpoint.step.step == 0;
      CHECK(found->unread.size() == (older ? 1 : 0));
      if (older) {
        ++unread;
        CHECK(found->unread[0].path == scratch / "step-00000003");
        CHECK(test::contains(found->unread[0].reason, scratch / "step-00000003"));
        CHECK(test::contains(found->unread[0].reason, std::generic_category().message(error)));
      }
      CheckpointFolder checkpoints(scratch.path(), 1, &*found);
      checkpoints.save(small_checkpoint(2));
      CHECK(std::filesystem::exists(scratch / "step-00000003") == older);
      CHECK(newest_checkpoint(scratch.path())->checkpoint.step.step == (older ? 3U : 2U));
      if (!happened) break;
    }
    CHECK(unread > 5);
  }
}

TEST_CASE("the best checkpoint stays while its manifest cannot be read") {
  const Scratch scratch;
  {
    CheckpointFolder checkpoints(scratch.path(), 1);
    Checkpoint best = small_checkpoint(9);
    best.fit.best_epoch = 0;
    checkpoints.save(best);
    best.step.step = 11;
    best.step.step_in_epoch = 2;
    checkpoints.save(best);
  }
  REQUIRE(names_in(scratch.path()).size() == 2);
  const auto found = newest_checkpoint(scratch.path());
  int kept = 0;
  for (int at = 0;; ++at) {
    INFO("call " << at);
    bool happened = false;
    std::optional<CheckpointFolder> checkpoints;
    {
      const SystemFault planted(at, Fault::refused, EIO);
      try {
        checkpoints.emplace(scratch.path(), 1, &*found);
      } catch (const IoError&) {
        continue;
      }
      happened = SystemFault::happened();
    }
    Checkpoint next = small_checkpoint(12);
    next.fit.best_epoch = 0;
    checkpoints->save(next);
    REQUIRE(std::filesystem::exists(scratch / "step-00000009"));
    std::filesystem::remove_all(checkpoints->newest());
    if (!happened) break;
    ++kept;
  }
  CHECK(kept > 1);
}

TEST_CASE("a place that cannot hold a run is found at once, with a way out, and nothing is left") {
  const struct {
    Refusal what;
    int error;
  } cases[] = {{Refusal::make_file, EACCES},   {Refusal::make_file, EROFS},
               {Refusal::make_folder, EACCES}, {Refusal::make_folder, EDQUOT},
               {Refusal::rename, EPERM},       {Refusal::rename, EOPNOTSUPP}};
  for (const auto& [what, error] : cases) {
    const std::string reason = std::generic_category().message(error);
    INFO(static_cast<int>(what) << ", " << reason);
    const Scratch scratch;
    std::filesystem::create_directory(scratch / "empty");
    for (const std::filesystem::path& out :
         {scratch / "a" / "b", scratch / "empty", std::filesystem::path()}) {
      const RefusingFileSystem refusing(what, error);
      const std::string text = test::message_of<IoError>(
          [&] { static_cast<void>(RunFolder::create(out, scratch / "runs")); });
      CHECK(test::contains(text, reason));
      CHECK(test::contains(text, scratch.path().string()));
      CHECK(test::contains(text, "name a"));
      CHECK(names_in(scratch.path()) == std::vector<std::string>{"empty"});
      CHECK(names_in(scratch / "empty").empty());
    }
    std::filesystem::create_directory(scratch / "checkpoints");
    {
      const RefusingFileSystem refusing(what, error);
      const std::string text = test::message_of<IoError>(
          [&] { const CheckpointFolder checkpoints(scratch / "checkpoints"); });
      CHECK(test::contains(text, reason));
      CHECK(test::contains(text, (scratch / "checkpoints").string()));
      CHECK(test::contains(text, "name a"));
    }
    CHECK(names_in(scratch / "checkpoints").empty());
  }
}

TEST_CASE("a folder that cannot be opened is refused with a way out") {
  const Scratch scratch;
  const SystemFault planted(0, Fault::refused, EACCES);
  const std::string text =
      test::message_of<IoError>([&] { static_cast<void>(RunFolder::open(scratch.path())); });
  CHECK(test::contains(text, scratch.path().string() + ": cannot open the folder: "));
  CHECK(test::contains(text, "; name a folder that you may read and write"));
}

TEST_CASE("a system call that fails once when a run begins leaves nothing behind") {
  for (const int error : {EIO, ENOSPC}) {
    int failures = 0;
    for (int at = 0;; ++at) {
      INFO("call " << at << ", errno " << error);
      const Scratch scratch;
      bool happened = false;
      bool failed = false;
      {
        const SystemFault planted(at, Fault::refused, error);
        try {
          static_cast<void>(RunFolder::create(scratch / "run"));
        } catch (const IoError&) {
          failed = true;
        }
        happened = SystemFault::happened();
      }
      CHECK(std::filesystem::exists(scratch / "run") != failed);
      failures += failed ? 1 : 0;
      // The same call may do well the next time.
      if (failed) CHECK_NOTHROW(RunFolder::create(scratch / "run"));
      CHECK(names_in(scratch / "run").empty());
      if (!happened) break;
    }
    CHECK(failures > 15);
  }
}

}  // namespace
}  // namespace lockstep
