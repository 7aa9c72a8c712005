// Worlds of GPUs: connecting, several trainers in one, what is told, and the caller's own device.
#include <chrono>
#include <cstdlib>
#include <optional>
#include <thread>

#include <pthread.h>

#include "lockstep/core/buffer.h"
#include "lockstep/core/cuda/backend.h"

#include "parallel/cuda/gpus.h"
#include "support/throws.h"

namespace lockstep {
namespace {

using test::contains;
using test::counted;
using test::gpus;
using test::message_of;
using test::plant_fault;
using test::possible;

const TrainerOptions kOptions{.seed = 11, .bucket_bytes = 1024};

std::unique_ptr<Trainer> make_trainer(World& world, const TrainerOptions& options = kOptions) {
  return std::make_unique<Trainer>(world, test::small_net(), SoftmaxCrossEntropy{},
                                   Adam{.lr = 0.005F}, options);
}

void fit(Trainer& trainer, std::int64_t batch = 64) {
  trainer.fit(test::small_data(), {.epochs = 1, .batch_size = batch});
}

/// The most GPUs of 4 and 2 that there are, 0 when there is one only.
int several() {
  const std::vector<int> counts = possible({4, 2});
  if (counts.empty()) WARN("skipped: it takes several GPUs");
  return counts.empty() ? 0 : counts.front();
}

void check_no_hang() {
  if (test::is_simulated()) CHECK(counted("nccl_hangs") == 0);
}

TEST_CASE("a rank that does not come is not waited for beyond the limit") {
  if (!test::is_simulated()) {
    WARN("skipped: only a simulated rank stays away");
    return;
  }
  World world({.devices = gpus(4), .connect_limit = std::chrono::seconds(1)});
  constexpr int kInProgress = 7;
  plant_fault(("ncclCommGetAsyncError@1=" + std::to_string(kInProgress)).c_str());
  const std::string error = message_of<CommError>(
      [&] { world.run(4, [](Communicator&) { FAIL("all are connected"); }); });
  plant_fault("");
  INFO(error);
  CHECK(contains(error, "rank "));
  CHECK(contains(error, "within 1 s"));
  CHECK(contains(error, "did not come"));
  // It can be tried again.
  const auto trainer = make_trainer(world);
  fit(*trainer);
  CHECK(trainer->epoch() == 1);
}

TEST_CASE("a reduction that NCCL never finishes to start ends at the limit too") {
  if (!test::is_simulated()) {
    WARN("skipped: only a simulated rank stays away");
    return;
  }
  World world({.devices = gpus(4), .connect_limit = std::chrono::seconds(1)});
  world.run(4, [](Communicator&) {});
  const auto trainer = make_trainer(world);
  trainer->begin(test::small_data(), {.batch_size = 64});
  plant_fault("ncclCommGetAsyncError@1=7");
  const std::string error = message_of<CommError>([&] { trainer->run_steps(1); });
  plant_fault("");
  INFO(error);
  CHECK(contains(error, "ncclAllReduce"));
  CHECK(contains(error, "within 1 s"));
  CHECK(trainer->run_steps(1) == 1);
}

TEST_CASE("one GPU never asks NCCL for anything") {
  World world({.devices = gpus(1)});
  // Each would fail the training.
  plant_fault(
      "ncclGetUniqueId@1=1,ncclCommInitRankConfig@1=1,ncclAllReduce@1=1,ncclAllGather@1=1,"
      "ncclCommGetAsyncError@1=1,ncclCommInitRank@1=1,ncclCommInitAll@1=1");
  for (const Reduce reduce : {Reduce::fast, Reduce::invariant}) {
    TrainerOptions options = kOptions;
    options.reduce = reduce;
    const auto trainer = make_trainer(world, options);
    fit(*trainer);
    CHECK(trainer->evaluate(test::small_data()).samples > 0);
    CHECK(trainer->epoch() == 1);
  }
  plant_fault("");
}

TEST_CASE("trainers take turns in one world") {
  const int count = several();
  if (count == 0) return;
  World world({.devices = gpus(count)});
  const auto first = make_trainer(world);
  const auto second = make_trainer(world);
  const auto alone = [&] {
    World other({.devices = gpus(count)});
    const auto trainer = make_trainer(other);
    fit(*trainer);
    fit(*trainer);
    return trainer->model().arena();
  }();
  fit(*first);
  fit(*second);
  fit(*first);
  fit(*second);
  CHECK(first->model().arena() == alone);
  CHECK(second->model().arena() == alone);
  check_no_hang();
}

TEST_CASE("a recorded step does not outlive its connection") {
  const int count = several();
  if (count == 0) return;
  Devices devices = gpus(count);
  devices.automatic = true;
  World world({.devices = devices});
  const auto all = make_trainer(world);
  fit(*all);  // its graph has reductions of the connection between all
  world.run(1, [](Communicator&) {});
  check_no_hang();
  fit(*all);  // connects anew, records anew
  // Fewer replicas, another connection.
  TrainerOptions few = kOptions;
  few.reduce = Reduce::invariant;
  few.shards = 1;
  const auto one = make_trainer(world, few);
  fit(*one);
  CHECK(one->replicas() == 1);
  check_no_hang();
  fit(*all);
  CHECK(all->epoch() == 3);
  // And after another trainer's failure.
  CHECK_THROWS_AS(world.run(count,
                            [](Communicator& communicator) {
                              if (communicator.rank() == 1) throw DataError("a bad file");
                              communicator.barrier();
                            }),
                  DataError);
  check_no_hang();
  fit(*all);
  CHECK(all->epoch() == 4);
}

TEST_CASE("a world may end before, during and after connecting") {
  const int count = several();
  if (count == 0) return;
  { const World unused({.devices = gpus(count)}); }
  {
    World failed({.devices = gpus(count)});
    plant_fault("ncclCommInitRankConfig@2=2");
    if (test::is_simulated()) CHECK_THROWS_AS(failed.run(count, [](Communicator&) {}), CommError);
    plant_fault("");
  }
  {
    World failed({.devices = gpus(count)});
    CHECK_THROWS_AS(failed.run(count, [](Communicator&) { throw DataError("a bad file"); }),
                    DataError);
  }
  {
    World connected({.devices = gpus(count)});
    connected.run(count, [](Communicator&) {});
  }
  check_no_hang();
}

/// As long as it lives no thread starts: each would get a stack larger than any address space.
class NoNewThreads {
 public:
  NoNewThreads() {
    REQUIRE(pthread_getattr_default_np(&before_) == 0);
    pthread_attr_t huge;
    REQUIRE(pthread_attr_init(&huge) == 0);
    REQUIRE(pthread_attr_setstacksize(&huge, std::size_t{1} << 47) == 0);
    REQUIRE(pthread_setattr_default_np(&huge) == 0);
    pthread_attr_destroy(&huge);
  }
  ~NoNewThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }
  NoNewThreads(const NoNewThreads&) = delete;
  NoNewThreads& operator=(const NoNewThreads&) = delete;

 private:
  pthread_attr_t before_;
};

TEST_CASE("threads that cannot be started are an error, and the end needs no new ones") {
  if (several() < 4) return;
  {
    World world({.devices = gpus(4)});
    world.run(4, [](Communicator&) {});
    {
      const NoNewThreads none;
      const std::string error =
          message_of<DeviceError>([&] { world.run(2, [](Communicator&) {}); });
      INFO(error);
      CHECK(contains(error, "cannot start the thread that disconnects rank 0"));
      CHECK(contains(error, "use fewer GPUs"));
    }
    world.run(2, [](Communicator&) {});
  }
  {
    std::optional<World> world(std::in_place, WorldOptions{.devices = gpus(4)});
    world->run(4, [](Communicator&) {});
    const NoNewThreads none;
    world.reset();
  }
  check_no_hang();
}

TEST_CASE("an exception of the caller's own ends training on GPUs, which can go on") {
  for (const int count : possible({1, 4})) {
    INFO(count << " GPUs");
    const Dataset data = test::striped_images(100 * 16, 8, 5);
    const auto train = [&](bool interrupted) {
      World world({.devices = gpus(count)});
      const auto trainer = make_trainer(world);
      trainer->begin(data, {.batch_size = 16});
      if (interrupted) {
        trainer->on_progress([](const Progress&) {
          // Not before the GPUs are some steps further: they have been given more than these.
          const auto ran = [] { return test::is_simulated() ? counted("kernels_run") : 0; };
          const std::uint64_t further = test::is_simulated() ? ran() + 100 : 0;
          while (ran() < further) std::this_thread::yield();
          throw DataError("enough");
        });
        CHECK_THROWS_AS(trainer->run_epoch(), DataError);
        trainer->on_progress({});
        CHECK(trainer->step() >= 32);
      }
      trainer->run_epoch();
      CHECK(trainer->step() == 100);
      return trainer->model().arena();
    };
    CHECK(train(true) == train(false));
  }
}

TEST_CASE("a trainer cannot be called from its own callback") {
  World world({.devices = gpus(possible({2, 1}).front())});
  const auto trainer = make_trainer(world);
  const Dataset data = test::striped_images(70 * 16, 8, 5);
  int refused = 0;
  trainer->on_progress([&](const Progress&) {
    const auto count = [&](const std::function<void()>& call) {
      refused += contains(message_of<UsageError>(call), "one call comes after another") ? 1 : 0;
    };
    count([&] { trainer->begin(data, {.batch_size = 1}); });
    count([&] { trainer->run_steps(1); });
    count([&] { trainer->evaluate(data); });
  });
  trainer->begin(data, {.batch_size = 16});
  CHECK(trainer->run_steps(70) == 70);
  CHECK(refused > 0);
  CHECK(refused % 3 == 0);
}

/// The caller's current device is the last one there is.
TEST_CASE("the caller's current device is as it was after every public call") {
  const Device mine{DeviceKind::cuda, test::gpu_count() - 1};
  const CurrentDevice current(mine);
  const auto check = [&](const char* call) {
    INFO(call);
    CHECK(cuda::current_device() == mine.index);
  };
  for (const int count : possible({1, 4})) {
    World world({.devices = gpus(count)});
    check("World");
    {
      const auto trainer = make_trainer(world);
      check("Trainer");
      fit(*trainer);
      check("fit");
      trainer->begin(test::small_data(), {.batch_size = 32});
      check("begin");
      trainer->run_steps(3);
      check("run_steps");
      trainer->evaluate(test::small_data(2));
      check("evaluate");
      CHECK(trainer->model().arena().size() > 0);
      check("model");
      for (const char* fault : {"cudaGraphLaunch@1=1", "cudaMemcpyAsync@1=1", "kernel:@1=1"}) {
        if (!test::is_simulated()) break;
        plant_fault(fault);
        CHECK_THROWS_AS(trainer->run_epoch(), Error);
        plant_fault("");
        check(fault);
        trainer->begin(test::small_data(), {.batch_size = 32});
      }
    }
    check("~Trainer");
  }
  check("~World");
  CHECK(free_device_memory({DeviceKind::cuda, 0}) > 0);
  check("free_device_memory");
  CHECK_FALSE(device_info({DeviceKind::cuda, 0}).name.empty());
  check("device_info");
}

TEST_CASE("memory that is missing is named, with what is free and what helps") {
  const int count = possible({2, 1}).front();
  const Device last{DeviceKind::cuda, count - 1};
  constexpr std::size_t kLeft = std::size_t{1} << 19;
  const std::size_t free = free_device_memory(last);
  std::optional<Buffer> ballast(std::in_place, last, free - kLeft, "the ballast");
  World world({.devices = gpus(count)});
  const Sequential big{Flatten{}, Linear{.in = 64, .out = 4096}, ReLU{},
                       Linear{.in = 4096, .out = 5}};
  const auto train = [&] {
    Trainer trainer(world, big, SoftmaxCrossEntropy{}, Adam{.lr = 0.005F});
    fit(trainer);
  };
  const std::string rank = std::to_string(count - 1);
  const std::string error = message_of<DeviceError>(train);
  INFO(error);
  CHECK(error.starts_with("rank " + rank + " (cuda:" + rank + "): "));
  CHECK(contains(error, "the parameters"));
  CHECK(contains(error, " bytes wanted"));
  CHECK(contains(error, " free"));
  CHECK(contains(error, "smaller batch"));
  if (test::is_simulated()) CHECK(contains(error, std::to_string(kLeft) + " free"));
  ballast.reset();
  train();
}

TEST_CASE("memory that cuBLAS does not find is named, with what is free and what helps") {
  if (!test::is_simulated()) {
    WARN("skipped: no call of a real GPU fails at our wish");
    return;
  }
  World world({.devices = gpus(1)});
  const auto trainer = make_trainer(world);
  constexpr int kAllocFailed = 3;
  plant_fault(("cublasCreate@1=" + std::to_string(kAllocFailed)).c_str());
  const std::string error = message_of<DeviceError>([&] { fit(*trainer); });
  plant_fault("");
  INFO(error);
  CHECK(error.starts_with("rank 0 (cuda:0): "));
  CHECK(contains(error, "cublasCreate"));
  CHECK(contains(error, "found no memory"));
  CHECK(contains(error, " bytes are free"));
  CHECK(contains(error, "smaller batch"));
  fit(*trainer);
}

TEST_CASE("data that shall be resident and does not fit says what helps") {
  const Device device{DeviceKind::cuda, 0};
  constexpr std::size_t kLeft = std::size_t{56} << 20;
  constexpr int kSamples = 16000;  // 64 MB
  const Dataset data = Dataset::from_bytes(
      "black images", Shape{1, 64, 64}, std::vector<std::uint8_t>(kSamples * std::size_t{64 * 64}),
      std::vector<std::int32_t>(kSamples), 5);
  std::optional<Buffer> ballast(std::in_place, device, free_device_memory(device) - kLeft,
                                "the ballast");
  World world({.devices = gpus(1)});
  const Sequential model{MaxPool2d{.kernel = 4}, Flatten{}, Linear{.in = 16 * 16, .out = 5}};
  const auto train = [&](Residence residence) {
    Trainer trainer(world, model, SoftmaxCrossEntropy{}, Adam{.lr = 0.005F},
                    {.residence = residence});
    trainer.begin(data, {.batch_size = 16});
    trainer.run_steps(3);
  };
  const std::string error = message_of<DeviceError>([&] { train(Residence::resident); });
  INFO(error);
  CHECK(contains(error, "the data set"));
  CHECK(contains(error, "--data-resident off"));
  if (test::is_simulated()) train(Residence::automatic);  // in windows, which fit
}

TEST_CASE("settings of NCCL that cost bits or launches are warned of") {
  const int count = several();
  if (count == 0) return;
  std::vector<std::string> lines;
  const auto connect = [&] {
    lines.clear();
    World world({.devices = gpus(count), .log = [&](LogLevel level, std::string_view line) {
                   CHECK(level == LogLevel::warning);
                   lines.emplace_back(line);
                 }});
    world.run(count, [](Communicator&) {});
    world.run(count, [](Communicator&) {});  // is connected already
  };
  const char* const names[] = {"NCCL_NVLS_ENABLE", "NCCL_GRAPH_MIXING_SUPPORT"};
  for (const char* name : names) setenv(name, "1", 1);
  connect();
  REQUIRE(lines.size() == 2);
  CHECK(contains(lines[0], "NCCL_NVLS_ENABLE=0"));
  CHECK(contains(lines[1], "NCCL_GRAPH_MIXING_SUPPORT=0"));
  for (const char* name : names) unsetenv(name);
  connect();
  CHECK(lines.size() == 2);
  for (const char* name : names) setenv(name, "0", 1);
  connect();
  CHECK(lines.empty());
  const auto trainer_options = kOptions;
  World world({.devices = gpus(count)});
  const auto trainer = make_trainer(world, trainer_options);
  fit(*trainer);  // trains under these settings, recorded and not
  CHECK(trainer->epoch() == 1);
  for (const char* name : names) unsetenv(name);
}

}  // namespace
}  // namespace lockstep
