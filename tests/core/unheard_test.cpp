// What fails in destructors is kept for a log.
#include "lockstep/core/unheard.h"

#include <thread>
#include <vector>

#include "support/catch.h"

namespace lockstep {
namespace {

TEST_CASE("failures of destructors are kept by the innermost scope of their thread", "[core]") {
  UnheardErrors::add("nobody keeps this");
  const UnheardErrors outer;
  CHECK(outer.text().empty());
  {
    const UnheardErrors inner;
    UnheardErrors::add("cuda:", 1, ": cudaFree");
    CHECK(inner.text() == "cuda:1: cudaFree");
    UnheardErrors::add("second");
    UnheardErrors::add("third");
    CHECK(inner.text() == "cuda:1: cudaFree (and 2 more)");
    std::thread([] { UnheardErrors::add("another thread's"); }).join();
    CHECK(inner.text() == "cuda:1: cudaFree (and 2 more)");
  }
  CHECK(outer.text().empty());
  UnheardErrors::add("behind the inner scope");
  CHECK(outer.text() == "behind the inner scope");
}

TEST_CASE("what was kept is one warning at the end of a scope, unless an exception tells",
          "[core]") {
  std::vector<std::string> lines;
  const LogSink log = [&](LogLevel level, std::string_view line) {
    CHECK(level == LogLevel::warning);
    lines.emplace_back(line);
  };
  { const LoggedErrors nothing(log, "trainer"); }
  CHECK(lines.empty());
  {
    const LoggedErrors logged(log, "trainer");
    UnheardErrors::add("first");
    UnheardErrors::add("second");
  }
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].starts_with("trainer: first (and 1 more)"));
  try {
    const LoggedErrors logged(log, "trainer");
    UnheardErrors::add("a consequence");
    throw DeviceError("the cause");
  } catch (const DeviceError&) {
  }
  CHECK(lines.size() == 1);
  {
    const LogSink none;
    const LoggedErrors logged(none, "trainer");
    UnheardErrors::add("for nobody");
  }
}

}  // namespace
}  // namespace lockstep
