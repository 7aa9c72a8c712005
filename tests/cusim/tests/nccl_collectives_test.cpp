// Collectives of the simulated NCCL as programs use them: threads, groups, graphs, polling.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "nccl/reduction.h"
#include "tests/nccl_support.h"

namespace cusim {
namespace {

using namespace test;

constexpr std::size_t kCount = 1001;

std::vector<float> input(int rank) {
  return values(kCount, static_cast<unsigned>(rank) + 1);
}

/// What an all-reduce of input() by `operation` makes.
std::vector<float> wanted_sum(int ranks, ncclRedOp_t operation = ncclSum) {
  std::vector<std::vector<float>> inputs;
  std::vector<const std::byte*> sources;
  for (int rank = 0; rank < ranks; ++rank) inputs.push_back(input(rank));
  for (const auto& values : inputs) {
    sources.push_back(reinterpret_cast<const std::byte*>(values.data()));
  }
  std::vector<float> result(kCount);
  reduce_in_pieces(ncclFloat32, operation, sources, kCount,
                   reinterpret_cast<std::byte*>(result.data()));
  return result;
}

TEST_CASE("an all-reduce by one thread per rank gives all the same bits, not in rank order") {
  const World world(4);
  const auto buffers = world.buffers(input);
  const auto results = on_threads(world, [&](int rank) {
    float* data = buffers[static_cast<std::size_t>(rank)].get();
    return ncclAllReduce(data, data, kCount, ncclFloat, ncclSum, world[rank].communicator,
                         world[rank].stream);
  });
  REQUIRE(all_are(results, ncclSuccess));
  REQUIRE(all_are(world.wait(), cudaSuccess));
  std::vector<float> in_rank_order(kCount);
  for (int rank = 0; rank < 4; ++rank) {
    const std::vector<float> values = input(rank);
    for (std::size_t i = 0; i < kCount; ++i) in_rank_order[i] += values[i];
  }
  for (const auto& buffer : buffers) {
    const std::vector<float> sum = buffer.read();
    CHECK(sum == wanted_sum(4));
    CHECK(sum != in_rank_order);
    for (std::size_t i = 0; i < kCount; ++i) CHECK(sum[i] == Approx(in_rank_order[i]).margin(1e-5));
  }
}

/// Calls `call(rank)` for all ranks in a group of one thread, and waits.
template <class Call>
void grouped(const World& world, Call call) {
  REQUIRE(ncclGroupStart() == ncclSuccess);
  for (int rank = 0; rank < static_cast<int>(world.size()); ++rank) {
    REQUIRE(call(rank) == ncclSuccess);
  }
  REQUIRE(ncclGroupEnd() == ncclSuccess);
  REQUIRE(all_are(world.wait(), cudaSuccess));
}

TEST_CASE("gathering, scattering and broadcasting, in place and not") {
  const World world(3);
  const auto send = world.buffers(input);
  const auto receive = world.buffers([](int) { return std::vector<float>(3 * kCount); });
  const auto out = [&](int rank) { return receive[static_cast<std::size_t>(rank)].get(); };
  const auto in = [&](int rank) { return send[static_cast<std::size_t>(rank)].get(); };
  std::vector<float> all;
  for (int rank = 0; rank < 3; ++rank) {
    const std::vector<float> values = input(rank);
    all.insert(all.end(), values.begin(), values.end());
  }

  grouped(world, [&](int rank) {
    return ncclAllGather(in(rank), out(rank), kCount, ncclFloat, world[rank].communicator,
                         world[rank].stream);
  });
  for (const auto& buffer : receive) CHECK(buffer.read() == all);

  // In place: rank r's part lies where it will end.
  grouped(world, [&](int rank) {
    return ncclAllGather(out(rank) + static_cast<std::size_t>(rank) * kCount, out(rank), kCount,
                         ncclFloat, world[rank].communicator, world[rank].stream);
  });
  for (const auto& buffer : receive) CHECK(buffer.read() == all);

  // All have the same, so the sum is three times that; each receives its third.
  grouped(world, [&](int rank) {
    return ncclReduceScatter(out(rank), in(rank), kCount, ncclFloat, ncclSum,
                             world[rank].communicator, world[rank].stream);
  });
  for (int rank = 0; rank < 3; ++rank) {
    std::vector<float> wanted = input(rank);
    for (float& value : wanted) value = value + value + value;
    CHECK(send[static_cast<std::size_t>(rank)].read() == wanted);
  }

  grouped(world, [&](int rank) {
    return ncclBroadcast(rank == 1 ? in(rank) : nullptr, in(rank), kCount, ncclFloat, 1,
                         world[rank].communicator, world[rank].stream);
  });
  for (const auto& buffer : send) CHECK(buffer.read() == send[1].read());
}

TEST_CASE("collectives captured by all ranks run at every launch") {
  const World world(2);
  const auto buffers =
      world.buffers([](int rank) { return std::vector<float>(8, static_cast<float>(rank + 1)); });
  cusim_reset_counters();
  const auto results = on_threads(world, [&](int rank) {
    float* data = buffers[static_cast<std::size_t>(rank)].get();
    ncclResult_t result = ncclSuccess;
    const Graph graph(world[rank].stream, [&] {
      result = ncclAllReduce(data, data, 8, ncclFloat, ncclSum, world[rank].communicator,
                             world[rank].stream);
    });
    for (int launch = 0; launch < 3; ++launch) {
      if (graph.launch(world[rank].stream) != cudaSuccess) result = ncclUnhandledCudaError;
    }
    if (cudaStreamSynchronize(world[rank].stream) != cudaSuccess) result = ncclUnhandledCudaError;
    return result;
  });
  REQUIRE(all_are(results, ncclSuccess));
  // 1 + 2 = 3, then 3 + 3, then 6 + 6.
  for (const auto& buffer : buffers) CHECK(buffer.read() == std::vector<float>(8, 12.0F));
  CHECK(cusim_counter("collectives") == 2);
  CHECK(cusim_counter("library_calls") == 2);
  CHECK(cusim_counter("calls") == 2);
  CHECK(cusim_counter("nccl_bytes") == 3 * 2 * 8 * sizeof(float));
}

TEST_CASE("calls on different streams keep the order of the calls") {
  const World world(2);
  const auto buffers =
      world.buffers([](int rank) { return std::vector<float>(8, static_cast<float>(rank + 1)); });
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
  const Stream held;
  std::atomic<bool> open{false};
  REQUIRE(cudaLaunchHostFunc(
              held, [](void* flag) { static_cast<std::atomic<bool>*>(flag)->wait(false); },
              &open) == cudaSuccess);
  const auto reduce = [&](int rank, std::size_t count, cudaStream_t stream) {
    float* data = buffers[static_cast<std::size_t>(rank)].get();
    return ncclAllReduce(data, data, count, ncclFloat, ncclSum, world[rank].communicator, stream);
  };
  // The second call of rank 0 could run at once, but must not meet the first one of rank 1.
  REQUIRE(reduce(0, 8, held) == ncclSuccess);
  REQUIRE(reduce(0, 4, world[0].stream) == ncclSuccess);
  REQUIRE(reduce(1, 8, world[1].stream) == ncclSuccess);
  REQUIRE(reduce(1, 4, world[1].stream) == ncclSuccess);
  open = true;
  open.notify_all();
  REQUIRE(held.wait() == cudaSuccess);
  REQUIRE(all_are(world.wait(), cudaSuccess));
  for (const auto& buffer : buffers) {
    CHECK(buffer.read() == std::vector<float>{6, 6, 6, 6, 3, 3, 3, 3});
  }
}

TEST_CASE("ranks join by the id, each on its own thread") {
  const std::vector<Rank> ranks{{.device = 0}, {.device = 1}, {.device = 2}};
  ncclUniqueId id;
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  std::vector<ncclComm_t> communicators(3);
  REQUIRE(all_are(on_threads(ranks,
                             [&](int rank) {
                               return ncclCommInitRank(
                                   &communicators[static_cast<std::size_t>(rank)], 3, id, rank);
                             }),
                  ncclSuccess));
  for (int rank = 0; rank < 3; ++rank) {
    ncclComm_t communicator = communicators[static_cast<std::size_t>(rank)];
    int count = 0;
    int number = 0;
    int device = -1;
    CHECK(ncclCommCount(communicator, &count) == ncclSuccess);
    CHECK(ncclCommUserRank(communicator, &number) == ncclSuccess);
    CHECK(ncclCommCuDevice(communicator, &device) == ncclSuccess);
    CHECK(std::vector<int>{count, number, device} == std::vector<int>{3, rank, rank});
    CHECK(async_error(communicator) == ncclSuccess);
    CHECK(ncclCommFinalize(communicator) == ncclSuccess);
    CHECK(ncclCommDestroy(communicator) == ncclSuccess);
    CHECK(ncclCommDestroy(communicator) == ncclInvalidArgument);
  }
}

TEST_CASE("one thread makes all ranks in a group") {
  ncclUniqueId id;
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  std::vector<ncclComm_t> communicators(2);
  REQUIRE(ncclGroupStart() == ncclSuccess);
  for (int rank = 0; rank < 2; ++rank) {
    REQUIRE(cudaSetDevice(rank) == cudaSuccess);
    REQUIRE(ncclCommInitRank(&communicators[static_cast<std::size_t>(rank)], 2, id, rank) ==
            ncclSuccess);
  }
  REQUIRE(ncclGroupEnd() == ncclSuccess);
  for (ncclComm_t communicator : communicators) CHECK(ncclCommDestroy(communicator) == ncclSuccess);
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
}

TEST_CASE("a communicator that does not block works when it is polled") {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclUniqueId id;
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  std::vector<ncclComm_t> communicators(2);
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
  REQUIRE(ncclCommInitRankConfig(&communicators[0], 2, id, 0, &config) == ncclInProgress);
  CHECK(async_error(communicators[0]) == ncclInProgress);
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  REQUIRE(ncclCommInitRankConfig(&communicators[1], 2, id, 1, &config) == ncclInProgress);

  const World streams(2);  // for its devices and streams
  const auto buffers =
      streams.buffers([](int rank) { return std::vector<float>(4, static_cast<float>(rank + 1)); });
  const auto reduce = [&](std::size_t rank) {
    return ncclAllReduce(buffers[rank].get(), buffers[rank].get(), 4, ncclFloat, ncclSum,
                         communicators[rank], streams[rank].stream);
  };
  CHECK(reduce(0) == ncclInvalidArgument);  // not polled yet
  for (std::size_t rank = 0; rank < 2; ++rank) {
    CHECK(async_error(communicators[rank]) == ncclSuccess);
    CHECK(reduce(rank) == ncclInProgress);
    CHECK(reduce(rank) == ncclInvalidArgument);
    CHECK(async_error(communicators[rank]) == ncclInProgress);
  }
  REQUIRE(all_are(streams.wait(), cudaSuccess));
  CHECK(buffers[0].read() == std::vector<float>(4, 1.0F));  // forgotten until polled
  for (ncclComm_t communicator : communicators) CHECK(async_error(communicator) == ncclSuccess);
  REQUIRE(all_are(streams.wait(), cudaSuccess));
  for (const auto& buffer : buffers) CHECK(buffer.read() == std::vector<float>(4, 3.0F));
  for (ncclComm_t communicator : communicators) {
    CHECK(ncclCommFinalize(communicator) == ncclInProgress);
    CHECK(async_error(communicator) == ncclInProgress);
    CHECK(async_error(communicator) == ncclSuccess);
    CHECK(ncclCommDestroy(communicator) == ncclSuccess);
  }
}

TEST_CASE("collectives are traced by name, between what is before and after them on a stream") {
  const World world(2);
  const auto buffers = world.buffers(input);
  cusim_trace_start();
  grouped(world, [&](int rank) {
    float* data = buffers[static_cast<std::size_t>(rank)].get();
    return ncclAllReduce(data, data, kCount, ncclFloat, ncclSum, world[rank].communicator,
                         world[rank].stream);
  });
  cusim_trace_stop();
  REQUIRE(cusim_trace_size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    cusim_trace_entry entry{};
    REQUIRE(cusim_trace_get(i, &entry) == 1);
    CHECK(entry.kind == std::string("collective"));
    CHECK(entry.name == std::string("ncclAllReduce"));
  }
}

TEST_CASE("memory for collectives is device memory") {
  const std::size_t before = cusim_live_bytes(0);
  void* memory = nullptr;
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
  REQUIRE(ncclMemAlloc(&memory, 1000) == ncclSuccess);
  CHECK(cusim_live_bytes(0) >= before + 1000);
  CHECK(ncclMemFree(memory) == ncclSuccess);
  CHECK(cusim_live_bytes(0) == before);
}

}  // namespace
}  // namespace cusim
