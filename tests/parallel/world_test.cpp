// A world's threads: every rank runs, the first failure is the outcome, and the world can be used
// again.
#include "lockstep/parallel/world.h"

#include <atomic>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/pinned_thread.h"

#include "support/catch.h"
#include "support/throws.h"

namespace lockstep {
namespace {

WorldOptions cpus(int count) {
  WorldOptions options;
  options.devices = {};
  for (int i = 0; i < count; ++i) options.devices.list.push_back({DeviceKind::cpu, i});
  return options;
}

/// Counts the ranks that one barrier brings together.
int ranks_that_ran(World& world, int replicas) {
  std::atomic<int> ran{0};
  world.run(replicas, [&](Communicator& communicator) {
    communicator.barrier();
    if (communicator.size() == replicas) ++ran;
  });
  return ran;
}

TEST_CASE("a world runs ranks 0 to replicas - 1, rank 0 on the caller's thread") {
  World world(cpus(4));
  CHECK(world.max_replicas() == 4);
  for (const int replicas : {1, 4, 2, 3, 1, 4}) {
    std::vector<std::thread::id> ids(static_cast<std::size_t>(replicas));
    world.run(replicas, [&](Communicator& communicator) {
      ids[static_cast<std::size_t>(communicator.rank())] = std::this_thread::get_id();
    });
    CHECK(ids[0] == std::this_thread::get_id());
    CHECK(std::set<std::thread::id>(ids.begin(), ids.end()).size() == ids.size());
    CHECK(ranks_that_ran(world, replicas) == replicas);
  }
}

TEST_CASE("asked to, a world keeps every rank on one core while it works") {
  WorldOptions options = cpus(3);
  options.pin_threads = true;
  World world(options);
  const std::vector<int> before = PinnedThread::allowed();
  REQUIRE_FALSE(before.empty());
  std::vector<std::vector<int>> cores(3);
  for (int run = 0; run < 2; ++run) {
    world.run(3, [&](Communicator& communicator) {
      cores[static_cast<std::size_t>(communicator.rank())] = PinnedThread::allowed();
    });
    for (std::size_t rank = 0; rank < cores.size(); ++rank) {
      CHECK(cores[rank] == std::vector<int>{before[rank % before.size()]});
    }
    CHECK(PinnedThread::allowed() == before);
  }
  World free(cpus(2));
  free.run(2, [&](Communicator& communicator) {
    cores[static_cast<std::size_t>(communicator.rank())] = PinnedThread::allowed();
  });
  CHECK(cores[0] == before);
  CHECK(cores[1] == before);
}

TEST_CASE("threads are kept between runs") {
  World world(cpus(3));
  std::vector<std::thread::id> first(3);
  std::vector<std::thread::id> second(3);
  world.run(3, [&](Communicator& c) {
    first[static_cast<std::size_t>(c.rank())] = std::this_thread::get_id();
  });
  world.run(3, [&](Communicator& c) {
    second[static_cast<std::size_t>(c.rank())] = std::this_thread::get_id();
  });
  CHECK(first == second);
}

/// `thrower` throws E while the others wait for it; the error must come out as an E with rank and
/// device in front.
template <class E>
void check_failure(int replicas, int thrower) {
  World world(cpus(replicas));
  const std::string error = test::message_of<E>([&] {
    world.run(replicas, [&](Communicator& communicator) {
      communicator.barrier();
      if (communicator.rank() == thrower) throw E("it broke");
      for (;;) communicator.barrier();
    });
  });
  CHECK(error == message("rank ", thrower, " (cpu:", thrower, "): it broke"));
  CHECK(ranks_that_ran(world, replicas) == replicas);
}

TEST_CASE("a rank that throws ends the run with its error, whichever rank it is") {
  for (const int replicas : {1, 2, 4, 8}) {
    for (int thrower = 0; thrower < replicas; ++thrower) {
      check_failure<ShapeError>(replicas, thrower);
    }
  }
}

TEST_CASE("the other ranks' calls end as aborted when one throws") {
  World world(cpus(4));
  std::atomic<int> aborted{0};
  CHECK_THROWS_AS(world.run(4,
                            [&](Communicator& communicator) {
                              if (communicator.rank() == 2) throw DataError("the cause");
                              try {
                                communicator.barrier();
                              } catch (const CommAborted&) {
                                ++aborted;
                                throw;
                              }
                            }),
                  DataError);
  CHECK(aborted == 3);
}

TEST_CASE("errors of the library keep their type") {
  check_failure<Error>(2, 1);
  check_failure<UsageError>(2, 1);
  check_failure<ShapeError>(2, 1);
  check_failure<DataError>(2, 1);
  check_failure<IoError>(2, 1);
  check_failure<DeviceError>(2, 1);
  check_failure<CommError>(2, 1);
  check_failure<NonFiniteError>(2, 1);
}

TEST_CASE("other exceptions become an Error with rank and device") {
  World world(cpus(2));
  const std::string error = test::message_of<Error>([&] {
    world.run(2, [](Communicator& communicator) {
      if (communicator.rank() == 1) throw std::out_of_range("beyond");
      communicator.barrier();
    });
  });
  CHECK(error == "rank 1 (cpu:1): beyond");
  CHECK(test::message_of<Error>([&] {
          world.run(2, [](Communicator&) { throw 5; });
        }).find("no std::exception") != std::string::npos);
}

TEST_CASE("an aborted call of another rank never hides the cause") {
  World world(cpus(2));
  for (int repeat = 0; repeat < 100; ++repeat) {
    std::atomic<bool> other_is_out{false};
    const std::string error = test::message_of<DeviceError>([&] {
      world.run(2, [&](Communicator& communicator) {
        if (communicator.rank() == 0) {
          communicator.abort();
          while (!other_is_out) std::this_thread::yield();
          throw DeviceError("the cause");
        }
        try {
          communicator.barrier();
        } catch (...) {
          other_is_out = true;
          throw;
        }
      });
    });
    CHECK(error == "rank 0 (cpu:0): the cause");
  }
}

TEST_CASE("a rank that returns while others wait for it ends the run") {
  World world(cpus(3));
  const std::string error = test::message_of<CommError>([&] {
    world.run(3, [](Communicator& communicator) {
      if (communicator.rank() != 1) communicator.barrier();
    });
  });
  CHECK(test::contains(error, "rank 1 is done"));
  CHECK(ranks_that_ran(world, 3) == 3);
}

TEST_CASE("a world refuses what cannot be") {
  CHECK(test::contains(test::message_of<UsageError>([] { const World none(cpus(0)); }), "empty"));
  World world(cpus(2));
  for (const int replicas : {-1, 0, 3}) {
    CHECK(test::contains(
        test::message_of<UsageError>([&] { world.run(replicas, [](Communicator&) {}); }),
        "1 to 2"));
  }
  CHECK_THROWS_AS(world.run(1, nullptr), UsageError);
}

TEST_CASE("a run inside a run of the same world is refused, on every rank") {
  for (const int rank : {0, 1}) {
    World world(cpus(2));
    const std::string error = test::message_of<UsageError>([&] {
      world.run(2, [&](Communicator& communicator) {
        if (communicator.rank() == rank) world.run(1, [](Communicator&) {});
        communicator.barrier();
      });
    });
    CHECK(test::contains(error, "one after another"));
    CHECK(ranks_that_ran(world, 2) == 2);
  }
}

TEST_CASE("a run inside a run of another world works") {
  World outer(cpus(2));
  std::atomic<int> ran{0};
  outer.run(2, [&](Communicator&) {
    World inner(cpus(2));
    ran += ranks_that_ran(inner, 2);
  });
  CHECK(ran == 4);
}

TEST_CASE("worlds that never ran and worlds after an error end quietly") {
  const World unused(cpus(4));
  World failed(cpus(4));
  CHECK_THROWS_AS(failed.run(4, [](Communicator&) { throw UsageError("all at once"); }),
                  UsageError);
}

}  // namespace
}  // namespace lockstep
