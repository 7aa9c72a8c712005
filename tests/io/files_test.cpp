// Files appear whole or not at all.
#include "lockstep/io/files.h"

#include <unistd.h>

#include "lockstep/core/error.h"

#include "io/file_limit.h"
#include "io/scratch.h"
#include "support/catch.h"
#include "support/throws.h"

namespace lockstep {
namespace {

using test::FileLimit;
using test::names_in;
using test::read_text;
using test::Scratch;

using Names = std::vector<std::string>;

TEST_CASE("a file holds its parts in order and nothing else is left in the folder") {
  const Scratch scratch;
  const std::string_view parts[] = {"one ", "", std::string_view("t\0wo", 4)};
  write_file(scratch / "file", parts);
  CHECK(read_text(scratch / "file") == std::string("one t\0wo", 8));
  write_text_file(scratch / "file", "short");
  CHECK(read_text(scratch / "file") == "short");
  write_text_file(scratch / "empty", "");
  CHECK(read_text(scratch / "empty").empty());
  CHECK(names_in(scratch.path()) == Names{"empty", "file"});
}

TEST_CASE("a bare name is written to the current folder") {
  const Scratch scratch;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(scratch.path());
  try {
    write_text_file("bare", "text");
  } catch (...) {
    std::filesystem::current_path(before);
    throw;
  }
  std::filesystem::current_path(before);
  CHECK(read_text(scratch / "bare") == "text");
}

TEST_CASE("temporary files of others are left alone") {
  const Scratch scratch;
  const std::string taken = message(".lockstep-", ::getpid(), "-0.tmp");
  test::put(scratch / taken, "of a process that crashed");
  write_text_file(scratch / "file", "text");
  CHECK(names_in(scratch.path()) == Names{taken, "file"});
  CHECK(read_text(scratch / taken) == "of a process that crashed");
}

TEST_CASE("a full disk leaves the old file and no rest of the new one") {
  const Scratch scratch;
  write_text_file(scratch / "file", "the old text");
  const std::string error = test::message_of<IoError>([&] {
    const FileLimit limit(1000);
    write_text_file(scratch / "file", std::string(5000, 'x'));
  });
  CHECK(test::contains(error, scratch.path().string()));
  CHECK(test::contains(error, "cannot write: File too large"));
  CHECK(read_text(scratch / "file") == "the old text");
  CHECK(names_in(scratch.path()) == Names{"file"});
}

TEST_CASE("places where no file can be are errors with path and reason") {
  const Scratch scratch;
  test::put(scratch / "file", "text");
  const std::string under_file =
      test::message_of<IoError>([&] { write_text_file(scratch / "file" / "below", "x"); });
  CHECK(test::contains(under_file, (scratch / "file").string()));
  CHECK(test::contains(under_file, "Not a directory"));
  CHECK(test::contains(
      test::message_of<IoError>([&] { write_text_file(scratch / "none" / "file", "x"); }),
      "No such file or directory"));
  std::filesystem::create_directory(scratch / "folder");
  CHECK(test::contains(test::message_of<IoError>([&] { write_text_file(scratch / "folder", "x"); }),
                       "Is a directory"));
  CHECK_THROWS_AS(write_text_file("", "x"), IoError);
  CHECK(names_in(scratch.path()) == Names{"file", "folder"});
}

}  // namespace
}  // namespace lockstep
