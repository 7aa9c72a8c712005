// Saving a checkpoint, with every system call failing once and the process ending at every one.
#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include <sys/wait.h>
#include <unistd.h>

#include "lockstep/core/error.h"
#include "lockstep/io/checkpoint_folder.h"

#include "io/checkpoint_cases.h"
#include "io/scratch.h"
#include "support/catch.h"
#include "support/system_faults.h"

namespace lockstep {
namespace {

using test::Fault;
using test::names_in;
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

}  // namespace
}  // namespace lockstep
