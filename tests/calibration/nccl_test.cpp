// NCCL, on as many devices as there are: one is enough for all but the sums. Results marked
// (source) are not in NCCL's documentation but in its code as published for version 2.28.
#include <cstring>
#include <string>

#include "calibration/support.h"
#include "cusim/tests/nccl_support.h"

namespace lockstep::calibration {
namespace {

using cusim::test::async_error;
using cusim::test::on_threads;
using cusim::test::World;

/// Devices that a world takes here: all up to four.
int ranks() {
  return std::min(device_count(), 4);
}

/// A communicator of one rank on device 0.
ncclComm_t alone() {
  ncclUniqueId id;
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  ncclComm_t communicator = nullptr;
  REQUIRE(ncclCommInitRank(&communicator, 1, id, 0) == ncclSuccess);
  return communicator;
}

std::vector<float> mine(int rank) {
  return values(1000, static_cast<unsigned>(rank + 1));
}

const auto mine_of_rank = [](int rank) { return mine(rank); };

std::vector<double> sum_of_all(int count) {
  std::vector<double> sum(mine(0).size());
  for (int rank = 0; rank < count; ++rank) {
    const std::vector<float> part = mine(rank);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
  }
  return sum;
}

/// Calls `work` on all ranks at the same time, one thread each, and waits for their streams.
template <class Work>
void together(const World& world, Work work) {
  for (const ncclResult_t result : on_threads(world, work)) CHECK(result == ncclSuccess);
  for (const cudaError_t error : world.wait()) REQUIRE(error == cudaSuccess);
}

}  // namespace

TEST_CASE("ncclGetVersion and ncclGetErrorString") {
  int version = 0;
  REQUIRE(ncclGetVersion(&version) == ncclSuccess);
  CHECK(version >= 21800);
  CHECK(std::strlen(ncclGetErrorString(ncclInvalidUsage)) > 0);
  CHECK(std::string(ncclGetErrorString(ncclSuccess)) != ncclGetErrorString(ncclInvalidUsage));
}

TEST_CASE("ncclGetUniqueId gives another one each time") {
  ncclUniqueId first;
  ncclUniqueId second;
  REQUIRE(ncclGetUniqueId(&first) == ncclSuccess);
  REQUIRE(ncclGetUniqueId(&second) == ncclSuccess);
  CHECK(std::memcmp(&first, &second, sizeof first) != 0);
}

TEST_CASE("ncclCommInitRank, ncclCommCount, ncclCommUserRank, ncclCommCuDevice, ncclCommDestroy") {
  ncclComm_t communicator = alone();
  int count = 0;
  int rank = -1;
  int device = -1;
  REQUIRE(ncclCommCount(communicator, &count) == ncclSuccess);
  REQUIRE(ncclCommUserRank(communicator, &rank) == ncclSuccess);
  REQUIRE(ncclCommCuDevice(communicator, &device) == ncclSuccess);
  CHECK(count == 1);
  CHECK(rank == 0);
  CHECK(device == 0);
  CHECK(async_error(communicator) == ncclSuccess);
  CHECK(ncclCommDestroy(communicator) == ncclSuccess);
  CHECK(ncclCommCount(nullptr, &count) == ncclInvalidArgument);
}

TEST_CASE("ncclCommInitRank refuses a rank outside of its world, and says why") {
  ncclUniqueId id;
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  ncclComm_t communicator = nullptr;
  CHECK(ncclCommInitRank(&communicator, 1, id, 1) == ncclInvalidArgument);  // (source)
  CHECK(ncclCommInitRank(&communicator, 1, id, -1) == ncclInvalidArgument);
  CHECK(ncclGetLastError(nullptr) != nullptr);
}

TEST_CASE("ncclCommInitRankConfig: one that does not block, polled; ncclCommFinalize") {
  ncclUniqueId id;
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t communicator = nullptr;
  const auto finished = [&] {
    ncclResult_t state = ncclInProgress;
    while (state == ncclInProgress) state = async_error(communicator);
    return state;
  };
  const ncclResult_t started = ncclCommInitRankConfig(&communicator, 1, id, 0, &config);
  CHECK((started == ncclSuccess || started == ncclInProgress));
  REQUIRE(finished() == ncclSuccess);
  const ncclResult_t ended = ncclCommFinalize(communicator);
  CHECK((ended == ncclSuccess || ended == ncclInProgress));
  CHECK(finished() == ncclSuccess);
  CHECK(ncclCommDestroy(communicator) == ncclSuccess);

  ncclConfig_t zeros;
  std::memset(&zeros, 0, sizeof zeros);  // "must be initialised by NCCL_CONFIG_INITIALIZER"
  CHECK(ncclCommInitRankConfig(&communicator, 1, id, 0, &zeros) == ncclInvalidArgument);
}

TEST_CASE("ncclCommInitAll makes one communicator a device and takes no device twice") {
  const World world(ranks());
  int count = 0;
  REQUIRE(ncclCommCount(world[0].communicator, &count) == ncclSuccess);
  CHECK(count == ranks());
  ncclComm_t two[2] = {};
  const int same[2] = {0, 0};
  CHECK(ncclCommInitAll(two, 2, same) == ncclInvalidUsage);  // (source)
  const int none[1] = {device_count()};
  CHECK(ncclCommInitAll(two, 1, none) != ncclSuccess);
}

TEST_CASE("ncclAllReduce adds, in place too, and every rank has the same bits") {
  const World world(ranks());
  const auto x = world.buffers(mine_of_rank);
  for (const bool in_place : {false, true}) {
    const auto y = world.buffers(mine_of_rank);
    together(world, [&](int rank) {
      const auto r = static_cast<std::size_t>(rank);
      const float* from = in_place ? y[r].get() : x[r].get();
      return ncclAllReduce(from, y[r].get(), 1000, ncclFloat, ncclSum, world[r].communicator,
                           world[r].stream);
    });
    const std::vector<float> first = y[0].read();
    CHECK(difference(first, sum_of_all(ranks())) < 1e-6);
    for (const auto& other : y) CHECK(other.read() == first);
  }
}

TEST_CASE("ncclReduceScatter gives each rank its part of the sum, ncclAllGather all parts") {
  const World world(ranks());
  const auto part = static_cast<std::size_t>(1000 / ranks());
  const auto count = static_cast<std::size_t>(ranks());
  const auto x = world.buffers(mine_of_rank);
  const auto parts = world.buffers([&](int) { return std::vector<float>(part); });
  const auto whole = world.buffers([&](int) { return std::vector<float>(part * count); });
  together(world, [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    return ncclReduceScatter(x[r].get(), parts[r].get(), part, ncclFloat, ncclSum,
                             world[r].communicator, world[r].stream);
  });
  together(world, [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    return ncclAllGather(parts[r].get(), whole[r].get(), part, ncclFloat, world[r].communicator,
                         world[r].stream);
  });
  std::vector<double> wanted = sum_of_all(ranks());
  wanted.resize(part * count);
  for (const auto& all : whole) CHECK(difference(all.read(), wanted) < 1e-6);
}

TEST_CASE("ncclBroadcast sends the root's values") {
  const World world(ranks());
  const int root = ranks() - 1;
  const auto x = world.buffers(mine_of_rank);
  together(world, [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    return ncclBroadcast(x[r].get(), x[r].get(), 1000, ncclFloat, root, world[r].communicator,
                         world[r].stream);
  });
  for (const auto& one : x) CHECK(one.read() == mine(root));
}

TEST_CASE("ncclGroupStart and ncclGroupEnd: one thread drives all ranks") {
  const World world(ranks());
  const auto x = world.buffers(mine_of_rank);
  REQUIRE(ncclGroupStart() == ncclSuccess);
  for (std::size_t rank = 0; rank < world.size(); ++rank) {
    REQUIRE(cudaSetDevice(world[rank].device) == cudaSuccess);
    CHECK(ncclAllReduce(x[rank].get(), x[rank].get(), 1000, ncclFloat, ncclSum,
                        world[rank].communicator, world[rank].stream) == ncclSuccess);
  }
  REQUIRE(ncclGroupEnd() == ncclSuccess);
  for (const cudaError_t error : world.wait()) REQUIRE(error == cudaSuccess);
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
  CHECK(difference(x[0].read(), sum_of_all(ranks())) < 1e-6);
  CHECK(ncclGroupEnd() == ncclInvalidUsage);  // (source)
}

TEST_CASE("collectives refuse bad arguments") {
  const World world(1);
  const Buffer<float> x(std::vector<float>{1, 2});
  const ncclComm_t communicator = world[0].communicator;
  const auto reduce = [&](ncclDataType_t type, ncclRedOp_t operation, ncclComm_t with) {
    return ncclAllReduce(x.get(), x.get(), 2, type, operation, with, world[0].stream);
  };
  CHECK(reduce(ncclFloat, ncclSum, nullptr) == ncclInvalidArgument);
  CHECK(reduce(static_cast<ncclDataType_t>(15), ncclSum, communicator) == ncclInvalidArgument);
  CHECK(reduce(ncclFloat, static_cast<ncclRedOp_t>(1000), communicator) == ncclInvalidArgument);
  CHECK(ncclBroadcast(x.get(), x.get(), 2, ncclFloat, 1, communicator, world[0].stream) ==
        ncclInvalidArgument);
  CHECK(x.read() == std::vector<float>{1, 2});
}

TEST_CASE("collectives are captured, all ranks' alike") {
  const World world(ranks());
  const auto x = world.buffers(mine_of_rank);
  const auto reduce = [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    return ncclAllReduce(x[r].get(), x[r].get(), 1000, ncclFloat, ncclMax, world[r].communicator,
                         world[r].stream);
  };
  together(world, reduce);  // connects
  const std::vector<float> largest = x[0].read();
  std::vector<cudaGraphExec_t> execs(world.size());
  for (const cudaError_t error : on_threads(world, [&](int rank) {
         const auto r = static_cast<std::size_t>(rank);
         cudaGraph_t graph = nullptr;
         cudaStreamBeginCapture(world[r].stream, cudaStreamCaptureModeThreadLocal);
         reduce(rank);
         cudaStreamEndCapture(world[r].stream, &graph);
         const cudaError_t error = cudaGraphInstantiate(&execs[r], graph, 0);
         cudaGraphDestroy(graph);
         return error;
       })) {
    REQUIRE(error == cudaSuccess);
  }
  on_threads(world, [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    return cudaGraphLaunch(execs[r], world[r].stream);
  });
  for (const cudaError_t error : world.wait()) CHECK(error == cudaSuccess);
  for (const auto& one : x) CHECK(one.read() == largest);
  for (const cudaGraphExec_t exec : execs) CHECK(cudaGraphExecDestroy(exec) == cudaSuccess);
}

TEST_CASE("ncclCommAbort ends a communicator") {
  CHECK(ncclCommAbort(alone()) == ncclSuccess);
  CHECK(ncclCommAbort(nullptr) == ncclSuccess);    // (source)
  CHECK(ncclCommDestroy(nullptr) == ncclSuccess);  // (source)
}

TEST_CASE("ncclCommGetAsyncError refuses what is no communicator") {
  ncclResult_t error = ncclSuccess;
  CHECK(ncclCommGetAsyncError(nullptr, &error) == ncclInvalidArgument);
}

TEST_CASE("ncclMemAlloc and ncclMemFree: memory of the device") {
  void* memory = nullptr;
  REQUIRE(ncclMemAlloc(&memory, 1 << 20) == ncclSuccess);
  const float one = 1;
  float back = 0;
  REQUIRE(cudaMemcpy(memory, &one, sizeof one, cudaMemcpyDefault) == cudaSuccess);
  REQUIRE(cudaMemcpy(&back, memory, sizeof back, cudaMemcpyDefault) == cudaSuccess);
  CHECK(back == 1);
  CHECK(ncclMemFree(memory) == ncclSuccess);
}

}  // namespace lockstep::calibration
