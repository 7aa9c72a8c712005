// Which checkpoints of a run are kept, and which one is gone on from.
#include "lockstep/io/checkpoint_folder.h"

#include <nlohmann/json.hpp>

#include "lockstep/core/error.h"

#include "io/checkpoint_cases.h"
#include "io/file_limit.h"
#include "io/scratch.h"
#include "support/catch.h"
#include "support/throws.h"

namespace lockstep {
namespace {

using test::contains;
using test::message_of;
using test::names_in;
using test::put;
using test::read_text;
using test::Scratch;
using test::small_checkpoint;

using Names = std::vector<std::string>;

/// The end of epoch `epoch` (9 steps each), the lowest validation loss being that of `best`.
Checkpoint epoch_end(int epoch, int best) {
  Checkpoint checkpoint = small_checkpoint(static_cast<std::uint64_t>(9 * (epoch + 1)));
  checkpoint.fit.best_epoch = best;
  return checkpoint;
}

void damage(const std::filesystem::path& checkpoint) {
  put(checkpoint / "weights.safetensors", read_text(checkpoint / "weights.safetensors") + "x");
}

TEST_CASE("the last K are kept and the best, and each names the one before it") {
  const Scratch scratch;
  const auto folder = scratch / "checkpoints";
  CheckpointFolder checkpoints(folder, 2);
  CHECK(names_in(folder).empty());
  CHECK(checkpoints.newest().empty());
  checkpoints.save(small_checkpoint(0));
  CHECK(checkpoints.save(epoch_end(0, 0)) == folder / "step-00000009");
  CHECK(checkpoints.best() == folder / "step-00000009");
  checkpoints.save(small_checkpoint(12));
  CHECK(names_in(folder) == Names{"step-00000009", "step-00000012"});
  checkpoints.save(epoch_end(1, 0));
  CHECK(names_in(folder) == Names{"step-00000009", "step-00000012", "step-00000018"});
  checkpoints.save(epoch_end(2, 0));
  CHECK(names_in(folder) == Names{"step-00000009", "step-00000018", "step-00000027"});
  checkpoints.save(epoch_end(3, 3));
  CHECK(names_in(folder) == Names{"step-00000027", "step-00000036"});
  CHECK(checkpoints.best() == folder / "step-00000036");
  CHECK(checkpoints.newest() == folder / "step-00000036");

  const auto found = newest_checkpoint(folder);
  REQUIRE(found);
  CHECK(found->path == folder / "step-00000036");
  CHECK(found->damaged.empty());
  CHECK(found->checkpoint.step.step == 36);
  CHECK(found->checkpoint.parent.name == "step-00000027");
}

TEST_CASE("a second process goes on: the best stays the best, the parent is the one gone on from") {
  const Scratch scratch;
  const auto folder = scratch / "checkpoints";
  {
    CheckpointFolder first(folder, 2);
    first.save(epoch_end(0, 0));
    first.save(epoch_end(1, 0));
    first.save(epoch_end(2, 0));
  }
  put(folder / ".lockstep-1-0.tmp", "of a process that was killed");
  std::filesystem::create_directory(folder / ".lockstep-1-1.tmp");
  put(folder / ".lockstep-1-1.tmp" / "weights.safetensors", "half");
  put(folder / "notes.txt", "of the user");
  const auto found = newest_checkpoint(folder);
  REQUIRE(found);
  CheckpointFolder second(folder, 2, &*found);
  CHECK(names_in(folder) == Names{"notes.txt", "step-00000009", "step-00000018", "step-00000027"});
  CHECK(second.best() == folder / "step-00000009");
  CHECK(second.save(epoch_end(2, 0)) == folder / "step-00000027");  // it stands there already
  second.save(epoch_end(3, 0));
  CHECK(names_in(folder) == Names{"notes.txt", "step-00000009", "step-00000027", "step-00000036"});
  const auto newest = newest_checkpoint(folder);
  CHECK(newest->checkpoint.parent.name == "step-00000027");
  CHECK(newest->checkpoint.parent.sha256 == found->manifest_sha256);
}

TEST_CASE("damaged newest ones are named, the one before is used, and none is overwritten") {
  const Scratch scratch;
  const auto folder = scratch / "checkpoints";
  {
    CheckpointFolder checkpoints(folder);
    for (const std::uint64_t step : {3, 6, 9}) checkpoints.save(small_checkpoint(step));
  }
  damage(folder / "step-00000009");
  std::filesystem::create_directory(folder / "step-00000012");
  const auto found = newest_checkpoint(folder);
  REQUIRE(found);
  CHECK(found->path == folder / "step-00000006");
  REQUIRE(found->damaged.size() == 2);
  CHECK(contains(found->damaged[0], "step-00000012"));
  CHECK(contains(found->damaged[1], "step-00000009/weights.safetensors: its SHA-256"));

  CheckpointFolder checkpoints(folder, 1, &*found);
  CHECK(names_in(folder) ==
        Names{"aside-step-00000009", "aside-step-00000012", "step-00000003", "step-00000006"});
  CHECK(checkpoints.save(small_checkpoint(9)) == folder / "step-00000009");
  CHECK(names_in(folder) == Names{"aside-step-00000009", "aside-step-00000012", "step-00000009"});
  damage(folder / "step-00000009");
  const std::string none = message_of<IoError>([&] { (void)newest_checkpoint(folder); });
  CHECK(contains(none, "none of the 1 checkpoints can be read"));
  CHECK(contains(none, "step-00000009/weights.safetensors"));
}

TEST_CASE("no folder and no checkpoint are none; names that are no checkpoint do not count") {
  const Scratch scratch;
  CHECK_FALSE(newest_checkpoint(scratch / "none"));
  CHECK_FALSE(newest_checkpoint(scratch.path()));
  for (const char* name : {"step-", "step-9", "step-00000009x", "step-00000009-", "step-000000009",
                           "step--0000009", "aside-step-00000009", "step-00000009-1"}) {
    std::filesystem::create_directory(scratch / name);
  }
  CHECK_FALSE(newest_checkpoint(scratch.path()));
  CheckpointFolder checkpoints(scratch.path());
  Checkpoint large = small_checkpoint(1234567890123);
  checkpoints.save(large);
  large.step.step_in_epoch += 1;  // as many steps, at another place
  CHECK(checkpoints.save(large) == scratch / "step-1234567890123-2");
  CHECK(newest_checkpoint(scratch.path())->path == scratch / "step-1234567890123-2");
}

TEST_CASE("what cannot work is found before there is anything to lose") {
  const Scratch scratch;
  CHECK_THROWS_AS(CheckpointFolder(scratch.path(), 0), UsageError);
  put(scratch / "file", "text");
  CHECK(contains(message_of<IoError>([&] { CheckpointFolder checkpoints(scratch / "file"); }),
                 (scratch / "file").string()));
  CHECK(contains(
      message_of<IoError>([&] { CheckpointFolder checkpoints(scratch / std::string(300, 'x')); }),
      "File name too long"));
  {
    const test::FileLimit full(1);
    CHECK(contains(message_of<IoError>([&] { CheckpointFolder checkpoints(scratch / "full"); }),
                   "File too large"));
  }
  CHECK(names_in(scratch / "full").empty());
}

TEST_CASE("a full disk is an error that leaves the checkpoints that there are") {
  const Scratch scratch;
  CheckpointFolder checkpoints(scratch.path(), 1);
  checkpoints.save(small_checkpoint(3));
  {
    const test::FileLimit full(200);
    CHECK(contains(message_of<IoError>([&] { checkpoints.save(small_checkpoint(6)); }),
                   "File too large"));
  }
  CHECK(names_in(scratch.path()) == Names{"step-00000003"});
  CHECK(checkpoints.newest() == scratch / "step-00000003");
  checkpoints.save(small_checkpoint(9));
  CHECK(names_in(scratch.path()) == Names{"step-00000009"});
  CHECK(newest_checkpoint(scratch.path())->checkpoint.parent.name == "step-00000003");
}

}  // namespace
}  // namespace lockstep
