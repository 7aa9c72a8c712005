// The collectives of threads: exact sums, the order of the tree, and every way in which ranks can
// disagree or give up.
#include "lockstep/parallel/communicator.h"

#include <atomic>
#include <cstring>
#include <functional>
#include <numeric>
#include <thread>

#include "support/catch.h"
#include "support/throws.h"

namespace lockstep {
namespace {

using Work = std::function<void(Communicator&, Context&)>;

/// Runs `work` on `size` threads with a communicator each; returns what() of what every rank threw,
/// "" for nothing. A rank that throws does not abort the others, and communicators live until all
/// are done.
std::vector<std::string> run_ranks(int size, const Work& work) {
  const std::vector<std::unique_ptr<Communicator>> communicators = make_thread_communicators(size);
  std::vector<std::string> errors(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      const auto r = static_cast<std::size_t>(rank);
      Context context(Device{DeviceKind::cpu, rank});
      try {
        work(*communicators[r], context);
      } catch (const CommError& error) {
        errors[r] = error.what();
      } catch (const std::exception& error) {
        errors[r] = std::string("not a CommError: ") + error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

void check_no_errors(const std::vector<std::string>& errors) {
  for (const std::string& error : errors) CHECK(error.empty());
}

/// Small whole numbers: their sums are exact in any order.
float whole_number(int rank, std::int64_t i) {
  return static_cast<float>((i * 7 + rank * 13) % 101 - 50);
}

/// Pairs of neighbours, level by level; the odd one out goes up as it is. Another way to the same
/// tree as the code's.
float tree_of(std::vector<float> values) {
  while (values.size() > 1) {
    std::vector<float> next;
    for (std::size_t i = 0; i + 1 < values.size(); i += 2) {
      next.push_back(values[i] + values[i + 1]);
    }
    if (values.size() % 2 == 1) next.push_back(values.back());
    values = next;
  }
  return values.front();
}

TEST_CASE("all_reduce adds exactly on every rank for every size") {
  for (const int ranks : {1, 2, 3, 4, 5, 6, 7, 8}) {
    for (const std::int64_t count : {0, 1, 15, 16, 17, 1000, 100003}) {
      std::vector<std::vector<float>> data(static_cast<std::size_t>(ranks));
      for (int rank = 0; rank < ranks; ++rank) {
        std::vector<float>& mine = data[static_cast<std::size_t>(rank)];
        // One float more than asked for, which nothing may touch.
        for (std::int64_t i = 0; i < count; ++i) mine.push_back(whole_number(rank, i));
        mine.push_back(12345.0F);
      }
      check_no_errors(run_ranks(ranks, [&](Communicator& communicator, Context& context) {
        communicator.all_reduce(context, data[static_cast<std::size_t>(communicator.rank())].data(),
                                count, communicator.size() % 2 == 0);
      }));
      std::int64_t wrong = 0;
      for (std::int64_t i = 0; i < count; ++i) {
        float expected = 0;
        for (int rank = 0; rank < ranks; ++rank) expected += whole_number(rank, i);
        for (const auto& mine : data)
          wrong += mine[static_cast<std::size_t>(i)] != expected ? 1 : 0;
      }
      CAPTURE(ranks, count);
      CHECK(wrong == 0);
      for (const auto& mine : data) CHECK(mine.back() == 12345.0F);
    }
  }
}

TEST_CASE("all_reduce adds in the order of the tree, bit for bit, ordered or not") {
  constexpr std::int64_t kCount = 5000;
  for (const int ranks : {3, 5, 6, 7, 8, 11, 16}) {
    for (const bool ordered : {true, false}) {
      std::vector<std::vector<float>> data(static_cast<std::size_t>(ranks),
                                           std::vector<float>(kCount));
      for (std::size_t rank = 0; rank < data.size(); ++rank) {
        for (std::size_t i = 0; i < kCount; ++i) {
          // Sizes that differ by powers of ten, so that every order rounds differently.
          const auto x = static_cast<float>((i * 2654435761U + rank * 40503U) % 1000003U);
          data[rank][i] = (x - 500000.0F) * ((rank + i) % 3 == 0 ? 1e-3F : 1.7F);
        }
      }
      std::vector<float> expected(kCount);
      std::int64_t order_matters = 0;
      for (std::size_t i = 0; i < kCount; ++i) {
        std::vector<float> column;
        for (const auto& mine : data) column.push_back(mine[i]);
        expected[i] = tree_of(column);
        const float chain = std::accumulate(column.begin(), column.end(), 0.0F);
        order_matters += chain != expected[i] ? 1 : 0;
      }
      check_no_errors(run_ranks(ranks, [&](Communicator& communicator, Context& context) {
        communicator.all_reduce(context, data[static_cast<std::size_t>(communicator.rank())].data(),
                                kCount, ordered);
      }));
      CAPTURE(ranks, ordered);
      if (ranks > 3) CHECK(order_matters > kCount / 20);
      for (const auto& mine : data) {
        CHECK(std::memcmp(mine.data(), expected.data(), kCount * sizeof(float)) == 0);
      }
    }
  }
}

TEST_CASE("all_gather_host brings every rank's bytes in rank order, in place too") {
  for (const int ranks : {1, 2, 5, 8}) {
    std::atomic<int> wrong{0};
    check_no_errors(run_ranks(ranks, [&](Communicator& communicator, Context&) {
      const int mine[3] = {communicator.rank(), -communicator.rank(), 7};
      std::vector<int> all(static_cast<std::size_t>(3 * ranks), -1);
      communicator.all_gather_host(mine, all.data(), sizeof mine);
      std::vector<int> in_place(static_cast<std::size_t>(ranks), -1);
      int* own = &in_place[static_cast<std::size_t>(communicator.rank())];
      *own = 100 + communicator.rank();
      communicator.all_gather_host(own, in_place.data(), sizeof *own);
      communicator.all_gather_host(nullptr, nullptr, 0);
      for (int rank = 0; rank < ranks; ++rank) {
        const auto at = static_cast<std::size_t>(3 * rank);
        if (all[at] != rank || all[at + 1] != -rank || all[at + 2] != 7) ++wrong;
        if (in_place[static_cast<std::size_t>(rank)] != 100 + rank) ++wrong;
      }
    }));
    CHECK(wrong == 0);
  }
}

TEST_CASE("broadcast_host gives everybody the root's bytes") {
  constexpr int kRanks = 4;
  for (int root = 0; root < kRanks; ++root) {
    std::atomic<int> wrong{0};
    check_no_errors(run_ranks(kRanks, [&](Communicator& communicator, Context&) {
      std::vector<int> data(100, communicator.rank());
      communicator.broadcast_host(data.data(), data.size() * sizeof(int), root);
      for (const int value : data) {
        if (value != root) ++wrong;
      }
    }));
    CHECK(wrong == 0);
  }
  const auto alone = make_thread_communicators(1);
  CHECK(
      test::contains(test::message_of<UsageError>([&] { alone[0]->broadcast_host(nullptr, 0, 1); }),
                     "ranks are 0 to 0"));
}

TEST_CASE("nobody leaves a barrier before everybody is there, even with more ranks than cores") {
  constexpr int kRanks = 8;
  constexpr int kRounds = 2000;
  std::atomic<int> arrived{0};
  std::atomic<int> early{0};
  check_no_errors(run_ranks(kRanks, [&](Communicator& communicator, Context&) {
    for (int round = 1; round <= kRounds; ++round) {
      ++arrived;
      communicator.barrier();
      if (arrived < round * kRanks) ++early;
    }
  }));
  CHECK(early == 0);
  CHECK(arrived == kRanks * kRounds);
}

TEST_CASE("calls that differ between ranks fail on all ranks, naming rank and both calls") {
  float data[64] = {};
  std::byte bytes[1024];
  struct Case {
    const char* what;
    Work odd_one;
    const char* expected;
  };
  const std::vector<Case> cases = {
      {"another call", [](Communicator& c, Context&) { c.barrier(); },
       "rank 2 called barrier() while rank 0 called all_reduce(8 floats, ordered)"},
      {"another count", [&](Communicator& c, Context& x) { c.all_reduce(x, data + 32, 9, true); },
       "rank 2 called all_reduce(9 floats, ordered)"},
      {"another order", [&](Communicator& c, Context& x) { c.all_reduce(x, data + 32, 8, false); },
       "rank 2 called all_reduce(8 floats, any order)"},
      {"a gather", [&](Communicator& c, Context&) { c.all_gather_host(data, bytes, 8); },
       "rank 2 called all_gather_host(8 bytes)"},
      {"a broadcast", [&](Communicator& c, Context&) { c.broadcast_host(bytes, 8, 1); },
       "rank 2 called broadcast_host(8 bytes from rank 1)"},
  };
  for (const Case& one : cases) {
    INFO(one.what);
    const auto errors = run_ranks(3, [&](Communicator& communicator, Context& context) {
      if (communicator.rank() == 2) {
        one.odd_one(communicator, context);
      } else {
        communicator.all_reduce(context, data + 16 * communicator.rank(), 8, true);
      }
    });
    for (const std::string& error : errors) {
      CHECK(test::contains(error, one.expected));
      CHECK(test::contains(error, "same order"));
    }
  }
}

TEST_CASE("a rank that is done while others wait for it makes them fail") {
  auto communicators = make_thread_communicators(2);
  std::thread leaver([gone = std::move(communicators[1])]() mutable { gone.reset(); });
  const std::string error = test::message_of<CommError>([&] { communicators[0]->barrier(); });
  leaver.join();
  CHECK(test::contains(error, "rank 0 waits in barrier() but rank 1 is done"));
}

TEST_CASE("abort ends pending and later calls on all ranks") {
  for (const int ranks : {2, 4, 8}) {
    std::atomic<int> waiting{0};
    std::atomic<int> later{0};
    const auto errors = run_ranks(ranks, [&](Communicator& communicator, Context&) {
      // The last rank never comes: it aborts when the others are in the barrier or about to enter
      // it.
      if (communicator.rank() == ranks - 1) {
        while (waiting.load() < ranks - 1) std::this_thread::yield();
        communicator.abort();
      } else {
        ++waiting;
        try {
          communicator.barrier();
        } catch (const CommAborted&) {
          ++later;
        }
      }
      communicator.barrier();
    });
    CHECK(later == ranks - 1);
    for (const std::string& error : errors) CHECK(test::contains(error, "aborted"));
  }
}

TEST_CASE("abort from a thread that is no rank ends reductions wherever they are") {
  constexpr int kRanks = 4;
  for (int repeat = 0; repeat < 50; ++repeat) {
    const auto communicators = make_thread_communicators(kRanks);
    std::atomic<int> reductions{0};
    std::atomic<int> aborted{0};
    std::vector<std::thread> threads;
    for (int rank = 0; rank < kRanks; ++rank) {
      threads.emplace_back([&, rank] {
        Context context(Device{DeviceKind::cpu, rank});
        try {
          for (;;) {
            // Freed at once after a throw: nobody may still read it.
            std::vector<float> data(1000, 1.0F);
            communicators[static_cast<std::size_t>(rank)]->all_reduce(context, data.data(), 1000,
                                                                      false);
            ++reductions;
          }
        } catch (const CommAborted&) {
          ++aborted;
        }
      });
    }
    while (reductions < 8) std::this_thread::yield();
    communicators[0]->abort();
    for (std::thread& thread : threads) thread.join();
    CHECK(aborted == kRanks);
  }
  const auto alone = make_thread_communicators(1);
  alone[0]->abort();
  CHECK_THROWS_AS(alone[0]->barrier(), CommAborted);
}

TEST_CASE("communicators refuse what cannot be") {
  CHECK_THROWS_AS(make_thread_communicators(0), UsageError);
  const auto alone = make_thread_communicators(1);
  Context context(Device{});
  CHECK_THROWS_AS(alone[0]->all_reduce(context, nullptr, -1, true), UsageError);
}

}  // namespace
}  // namespace lockstep
