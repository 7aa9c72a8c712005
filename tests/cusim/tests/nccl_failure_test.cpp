// What the simulated NCCL makes of mistakes and failures: on a GPU most of these would hang or
// corrupt memory. A device that has failed stays failed, so each case takes fresh ones.
#include <cstdlib>
#include <memory>

#include "tests/nccl_support.h"

namespace cusim {
namespace {

using namespace test;

constexpr std::size_t kCount = 100;

/// The first of two devices that no other case has used.
int fresh_devices() {
  static int next = 0;
  return (next += 2) - 2;
}

/// Two ranks with a buffer of kCount floats each.
struct Pair {
  World world{2, fresh_devices()};
  std::deque<Buffer<float>> buffers =
      world.buffers([](int) { return std::vector<float>(kCount, 1.0F); });

  [[nodiscard]] ncclResult_t reduce(int rank, std::size_t count = kCount) const {
    float* data = buffers[static_cast<std::size_t>(rank)].get();
    return ncclAllReduce(data, data, count, ncclFloat, ncclSum, world[rank].communicator,
                         world[rank].stream);
  }
};

using Errors = std::vector<cudaError_t>;

TEST_CASE("ranks that disagree about a collective both fail") {
  const Pair pair;
  REQUIRE(pair.reduce(0) == ncclSuccess);
  REQUIRE(pair.reduce(1, kCount - 1) == ncclSuccess);
  CHECK(pair.world.wait() == Errors(2, cudaErrorLaunchFailure));
  for (int rank = 0; rank < 2; ++rank) {
    CHECK(async_error(pair.world[rank].communicator) == ncclInvalidUsage);
    CHECK(pair.reduce(rank) == ncclInvalidUsage);
  }
}

TEST_CASE("a rank that does not come ends the wait of the others with an error") {
  const Pair pair;
  REQUIRE(pair.reduce(0) == ncclSuccess);
  CHECK(pair.world.wait() == Errors{cudaErrorLaunchFailure, cudaSuccess});
  CHECK(async_error(pair.world[0].communicator) == ncclRemoteError);
  CHECK(async_error(pair.world[1].communicator) == ncclSuccess);
  // It comes too late, and is told so.
  REQUIRE(pair.reduce(1) == ncclSuccess);
  CHECK(cudaStreamSynchronize(pair.world[1].stream) == cudaErrorLaunchFailure);
}

TEST_CASE("a collective that only some ranks have captured is an error") {
  const Pair pair;
  REQUIRE(cudaSetDevice(pair.world[0].device) == cudaSuccess);
  const Graph graph(pair.world[0].stream, [&] { REQUIRE(pair.reduce(0) == ncclSuccess); });
  REQUIRE(graph.launch(pair.world[0].stream) == cudaSuccess);
  REQUIRE(pair.reduce(1) == ncclSuccess);
  CHECK(pair.world.wait() == Errors(2, cudaErrorLaunchFailure));
}

TEST_CASE("memory that is not the rank's device's fails all ranks") {
  const Pair pair;
  float* others = pair.buffers[1].get();
  REQUIRE(ncclAllReduce(others, others, kCount, ncclFloat, ncclSum, pair.world[0].communicator,
                        pair.world[0].stream) == ncclSuccess);
  REQUIRE(pair.reduce(1) == ncclSuccess);
  CHECK(pair.world.wait() == Errors(2, cudaErrorLaunchFailure));
}

TEST_CASE("without mixing support, no call may be made while a launched graph is outstanding") {
  for (const bool supported : {false, true}) {
    REQUIRE(setenv("NCCL_GRAPH_MIXING_SUPPORT", supported ? "1" : "0", 1) == 0);
    const Pair pair;
    REQUIRE(unsetenv("NCCL_GRAPH_MIXING_SUPPORT") == 0);
    std::vector<std::unique_ptr<Graph>> graphs;
    for (int rank = 0; rank < 2; ++rank) {
      REQUIRE(cudaSetDevice(pair.world[rank].device) == cudaSuccess);
      graphs.push_back(std::make_unique<Graph>(pair.world[rank].stream,
                                               [&] { REQUIRE(pair.reduce(rank) == ncclSuccess); }));
    }
    REQUIRE(graphs[0]->launch(pair.world[0].stream) == cudaSuccess);
    // The graph of rank 0 waits for rank 1's.
    CHECK(pair.reduce(0) == (supported ? ncclSuccess : ncclInvalidUsage));
    REQUIRE(graphs[1]->launch(pair.world[1].stream) == cudaSuccess);
    REQUIRE(cudaStreamSynchronize(pair.world[1].stream) == cudaSuccess);
    if (!supported) REQUIRE(cudaStreamSynchronize(pair.world[0].stream) == cudaSuccess);
    if (!supported) CHECK(pair.reduce(0) == ncclSuccess);
    CHECK(pair.reduce(1) == ncclSuccess);
    CHECK(pair.world.wait() == Errors(2, cudaSuccess));
  }
}

TEST_CASE("abort from another thread frees the rank's own collectives, not those of others") {
  const Pair pair;
  REQUIRE(pair.reduce(0) == ncclSuccess);
  std::thread([&] { CHECK(ncclCommAbort(pair.world[0].communicator) == ncclSuccess); }).join();
  CHECK(cudaStreamSynchronize(pair.world[0].stream) == cudaSuccess);
  const std::vector<float> left = pair.buffers[0].read();
  CHECK(left[0] != left[0]);  // NaN: undefined
  CHECK(async_error(pair.world[0].communicator) == ncclInternalError);
  CHECK(pair.reduce(0) == ncclInternalError);
  CHECK(ncclCommAbort(pair.world[0].communicator) == ncclInvalidArgument);

  REQUIRE(pair.reduce(1) == ncclSuccess);
  CHECK(cudaStreamSynchronize(pair.world[1].stream) == cudaErrorLaunchFailure);
}

TEST_CASE("a communicator cannot end before the graphs with its collectives") {
  const Pair pair;
  REQUIRE(cudaSetDevice(pair.world[0].device) == cudaSuccess);
  for (const bool abort : {false, true}) {
    const int rank = abort ? 1 : 0;
    const Rank& place = pair.world[rank];
    REQUIRE(cudaSetDevice(place.device) == cudaSuccess);
    const Graph graph(place.stream, [&] { REQUIRE(pair.reduce(rank) == ncclSuccess); });
    CHECK((abort ? ncclCommAbort(place.communicator) : ncclCommDestroy(place.communicator)) ==
          ncclInternalError);
    CHECK(std::string(ncclGetLastError(nullptr)).find("graphs") != std::string::npos);
  }
}

TEST_CASE("injected faults: calls that fail, ranks that are lost, asynchronous errors") {
  const Pair pair;
  cusim_set_fault("ncclAllReduce@2=1");
  CHECK(pair.reduce(0) == ncclSuccess);
  CHECK(pair.reduce(1) == ncclUnhandledCudaError);
  CHECK(pair.reduce(1) == ncclSuccess);
  CHECK(pair.world.wait() == Errors(2, cudaSuccess));

  cusim_set_fault("ncclCommGetAsyncError@2=6");
  CHECK(async_error(pair.world[0].communicator) == ncclSuccess);
  CHECK(async_error(pair.world[0].communicator) == ncclRemoteError);
  CHECK(async_error(pair.world[0].communicator) == ncclRemoteError);
  CHECK(pair.reduce(0) == ncclRemoteError);
  CHECK(async_error(pair.world[1].communicator) == ncclSuccess);

  const Pair other;
  cusim_set_fault("ncclAllReduce:lost@2=1");
  CHECK(other.reduce(0) == ncclSuccess);
  CHECK(other.reduce(1) == ncclSuccess);
  cusim_set_fault("");
  CHECK(other.world.wait() == Errors{cudaErrorLaunchFailure, cudaSuccess});
}

TEST_CASE("every call can be made to fail, and a communicator ends all the same") {
  const int first = fresh_devices();
  REQUIRE(cudaSetDevice(first) == cudaSuccess);
  ncclUniqueId id;
  ncclComm_t communicator = nullptr;
  int number = 0;
  cusim_set_fault(
      "ncclGetVersion@1=3,ncclGetUniqueId@1=3,ncclCommInitRank@1=3,ncclCommCount@1=3,"
      "ncclGroupStart@1=3,ncclGroupEnd@1=3,ncclCommFinalize@1=3,ncclCommDestroy@1=3,"
      "ncclCommAbort@1=3");
  CHECK(ncclGetVersion(&number) == ncclInternalError);
  CHECK(ncclGetUniqueId(&id) == ncclInternalError);
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  CHECK(ncclGroupStart() == ncclInternalError);
  REQUIRE(ncclGroupStart() == ncclSuccess);
  CHECK(ncclGroupEnd() == ncclInternalError);
  const std::int64_t before = alive("nccl_communicators");
  CHECK(ncclCommInitRank(&communicator, 1, id, 0) == ncclInternalError);
  for (const bool abort : {false, true}) {
    REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
    REQUIRE(ncclCommInitRank(&communicator, 1, id, 0) == ncclSuccess);
    CHECK(alive("nccl_communicators") == before + 1);
    if (!abort) CHECK(ncclCommCount(communicator, &number) == ncclInternalError);
    if (!abort) CHECK(ncclCommFinalize(communicator) == ncclInternalError);
    CHECK((abort ? ncclCommAbort(communicator) : ncclCommDestroy(communicator)) ==
          ncclInternalError);
    CHECK(alive("nccl_communicators") == before);
  }
  CHECK(cusim_faults_happened() == 9);
  cusim_set_fault("");
}

TEST_CASE("a communicator cannot be made during a capture") {
  REQUIRE(cudaSetDevice(fresh_devices()) == cudaSuccess);
  const Stream stream;
  ncclUniqueId id;
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  ncclComm_t communicator = nullptr;
  CHECK(ncclCommInitRank(&communicator, 1, id, 0) == ncclUnhandledCudaError);
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated);
  cudaGetLastError();
}

TEST_CASE("mistakes in a call are refused") {
  const Pair pair;
  const Rank& place = pair.world[0];
  float* data = pair.buffers[0].get();
  const auto reduce = [&](const void* send, ncclDataType_t type, cudaStream_t stream) {
    return ncclAllReduce(send, data, kCount / 2, type, ncclSum, place.communicator, stream);
  };
  CHECK(reduce(data, ncclFloat16, place.stream) == ncclInvalidArgument);
  CHECK(reduce(nullptr, ncclFloat, place.stream) == ncclInvalidArgument);
  CHECK(reduce(data + 1, ncclFloat, place.stream) == ncclInvalidArgument);  // overlap
  CHECK(reduce(data, ncclFloat, pair.world[1].stream) == ncclInvalidUsage);
  CHECK(ncclBroadcast(data, data, 1, ncclFloat, 2, place.communicator, place.stream) ==
        ncclInvalidArgument);
  CHECK(ncclCommCount(reinterpret_cast<ncclComm_t>(data), nullptr) == ncclInvalidArgument);
}

TEST_CASE("mistakes in a group surface at its end") {
  CHECK(ncclGroupEnd() == ncclInvalidUsage);
  const Pair pair;
  REQUIRE(ncclGroupStart() == ncclSuccess);
  CHECK(pair.reduce(0) == ncclSuccess);
  CHECK(ncclBroadcast(nullptr, nullptr, 1, ncclFloat, 5, pair.world[1].communicator,
                      pair.world[1].stream) == ncclInvalidArgument);
  CHECK(ncclGroupEnd() == ncclInvalidArgument);
  CHECK(pair.world.wait() == Errors(2, cudaSuccess));  // nothing of it has been enqueued

  REQUIRE(cudaSetDevice(pair.world[0].device) == cudaSuccess);
  REQUIRE(cudaStreamBeginCapture(pair.world[0].stream, cudaStreamCaptureModeThreadLocal) ==
          cudaSuccess);
  REQUIRE(ncclGroupStart() == ncclSuccess);
  CHECK(pair.reduce(0) == ncclSuccess);
  CHECK(pair.reduce(1) == ncclSuccess);
  CHECK(ncclGroupEnd() == ncclInvalidUsage);
  cudaGraph_t graph = nullptr;
  REQUIRE(cudaStreamEndCapture(pair.world[0].stream, &graph) == cudaSuccess);
  CHECK(cudaGraphDestroy(graph) == cudaSuccess);
}

TEST_CASE("communicators that cannot be made") {
  const int first = fresh_devices();
  const int twice[] = {first, first};
  const int missing[] = {first, 1000};
  ncclComm_t pair[2] = {};
  CHECK(ncclCommInitAll(pair, 2, twice) == ncclInvalidUsage);
  CHECK(ncclCommInitAll(pair, 2, missing) == ncclInvalidArgument);

  ncclUniqueId id;
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  REQUIRE(cudaSetDevice(first) == cudaSuccess);
  CHECK(ncclCommInitRank(pair, 2, id, 2) == ncclInvalidArgument);
  CHECK(ncclCommInitRank(pair, 2, id, 0) == ncclSystemError);  // rank 1 does not come
  ncclUniqueId foreign{};
  CHECK(ncclCommInitRank(pair, 1, foreign, 0) == ncclSystemError);
  ncclConfig_t config{};
  CHECK(ncclCommInitRankConfig(pair, 1, id, 0, &config) == ncclInvalidArgument);

  // Two ranks on one device: both are told.
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  const std::vector<Rank> ranks{{.device = first}, {.device = first}};
  CHECK(all_are(
      on_threads(ranks, [&](int rank) { return ncclCommInitRank(&pair[rank], 2, id, rank); }),
      ncclInvalidUsage));
}

}  // namespace
}  // namespace cusim
