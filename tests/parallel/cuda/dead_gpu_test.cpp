// GPUs that die while several train. A simulated GPU stays dead as long as the process lives, so
// every case takes new ones; a real one is not broken, and these cases are skipped there.
#include <optional>

#include "lockstep/core/buffer.h"
#include "lockstep/kernels/conv.h"
#include "lockstep/kernels/linear.h"
#include "lockstep/kernels/relu.h"

#include "parallel/cuda/gpus.h"
#include "support/throws.h"

namespace lockstep {
namespace {

using test::contains;
using test::plant_fault;

bool is_skipped() {
  if (test::is_simulated()) return false;
  WARN("skipped: real GPUs are not broken on purpose");
  return true;
}

/// `count` GPUs that no case has had yet.
Devices new_gpus(int count) {
  static int used = 0;
  const int first = used;
  used += count;
  return parse_devices("cuda:" + std::to_string(first) + "-" + std::to_string(used - 1));
}

/// Those of the devices that do not answer any more.
std::vector<int> dead_ranks(const Devices& devices) {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < devices.list.size(); ++rank) {
    try {
      static_cast<void>(free_device_memory(devices.list[rank]));
    } catch (const DeviceError&) {
      ranks.push_back(static_cast<int>(rank));
    }
  }
  return ranks;
}

Trainer make_trainer(World& world, bool graph) {
  return {world,
          test::small_net(),
          SoftmaxCrossEntropy{},
          Adam{.lr = 0.005F},
          {.seed = 11, .bucket_bytes = 1024, .graph = graph}};
}

void fit(Trainer& trainer) {
  trainer.fit(test::small_data(), test::striped_images(300, 8, 5, 2),
              {.epochs = 1, .batch_size = 64});
}

TEST_CASE("a GPU that dies is the one that is blamed, and the others live on") {
  if (is_skipped()) return;
  for (const bool graph : {true, false}) {
    for (const int at : {1, 30, 60, 90}) {
      const Devices devices = new_gpus(4);
      World world({.devices = devices});
      Trainer trainer = make_trainer(world, graph);
      plant_fault(("kernel:@" + std::to_string(at) + "=700").c_str());
      const std::string error = test::message_of<DeviceError>([&] { fit(trainer); });
      plant_fault("");
      INFO("kernel " << at << (graph ? " recorded: " : ": ") << error);
      const std::vector<int> dead = dead_ranks(devices);
      REQUIRE(dead.size() == 1);
      const auto rank = static_cast<std::size_t>(dead[0]);
      CHECK(error.starts_with("rank " + std::to_string(rank) + " (" +
                              devices.list[rank].to_string() + "): "));
      CHECK(contains(error, "cudaErrorIllegalAddress"));
      // The weights are to be had from another replica.
      for (const float weight : trainer.model().arena()) REQUIRE(std::isfinite(weight));
      // Again, and it is still the same GPU.
      CHECK(contains(test::message_of<DeviceError>([&] { fit(trainer); }),
                     devices.list[rank].to_string()));
      // Without it training goes on.
      Devices rest = devices;
      rest.list.erase(rest.list.begin() + dead[0]);
      rest.list.resize(2);
      World smaller({.devices = rest});
      Trainer successor(smaller, trainer.model(), SoftmaxCrossEntropy{}, Adam{.lr = 0.005F});
      fit(successor);
      CHECK(successor.epoch() == 1);
    }
  }
}

TEST_CASE("a single GPU that dies is named") {
  if (is_skipped()) return;
  for (const int at : {1, 40}) {
    const Devices devices = new_gpus(1);
    World world({.devices = devices});
    Trainer trainer = make_trainer(world, true);
    plant_fault(("kernel:@" + std::to_string(at) + "=719").c_str());
    const std::string error = test::message_of<DeviceError>([&] { fit(trainer); });
    plant_fault("");
    INFO(error);
    CHECK(error.starts_with("rank 0 (" + devices.list[0].to_string() + "): "));
    CHECK(contains(error, "cudaErrorLaunchFailure"));
  }
}

/// Lets a kernel fail on the context's device, and waits for it.
void kill(Context& context) {
  const Buffer data(context.device(), 4 * sizeof(float), "a test");
  const FloatView view{data.as<float>(), {4}};
  plant_fault("kernel:@1=700");
  const std::string error = test::message_of<DeviceError>([&] {
    relu_forward(context, view, view);
    context.synchronize();
  });
  plant_fault("");
  REQUIRE(contains(error, "cudaErrorIllegalAddress"));
}

TEST_CASE("a library that fails on a dead GPU does not hide what killed it") {
  if (is_skipped()) return;
  struct Call {
    const char* function;
    void (*make)(Context&, float*);
  };
  const Call calls[] = {
      {"cublasSgemm",
       [](Context& context, float* data) {
         linear_forward(context, {data, {2, 2}}, {data, {2, 2}}, {}, {data + 4, {2, 2}});
       }},
      {"cudnnConvolutionForward",
       [](Context& context, float* data) {
         conv2d_forward(context, {.kernel_h = 1, .kernel_w = 1}, {data, {1, 1, 2, 2}},
                        {data, {1, 1, 1, 1}}, {}, {data + 4, {1, 1, 2, 2}});
       }},
  };
  for (const bool first_call : {true, false}) {
    for (const Call& call : calls) {
      const Device device = new_gpus(1).list[0];
      const CurrentDevice current(device);
      Context context(device);
      context.reserve_workspace(1 << 20);
      const Buffer data(device, 8 * sizeof(float), "a test");
      if (!first_call) call.make(context, data.as<float>());
      context.synchronize();
      kill(context);
      const std::string error =
          test::message_of<DeviceError>([&] { call.make(context, data.as<float>()); });
      INFO(error);
      if (!first_call) CHECK(contains(error, call.function));
      CHECK(contains(error, "cudaErrorIllegalAddress"));
    }
  }
}

TEST_CASE("NCCL that fails on a dead GPU does not hide what killed it") {
  if (is_skipped()) return;
  const Devices devices = new_gpus(2);
  World world({.devices = devices});
  const std::string error = test::message_of<DeviceError>([&] {
    world.run(2, [&](Communicator& communicator) {
      Context context(devices.list[static_cast<std::size_t>(communicator.rank())]);
      const Buffer data(context.device(), 16, "a test");
      if (communicator.rank() == 1) {
        kill(context);
        communicator.all_reduce(context, data.as<float>(), 4, false);
      }
      communicator.barrier();
    });
  });
  INFO(error);
  CHECK(error.starts_with("rank 1 (" + devices.list[1].to_string() + "): "));
  CHECK(contains(error, "ncclAllReduce"));
  CHECK(contains(error, "cudaErrorIllegalAddress"));
}

// The simulated NCCL gives up after CUSIM_NCCL_TIMEOUT_MS; a real GPU would wait for ever.
TEST_CASE("a rank that is lost in a reduction ends training on all") {
  if (is_skipped()) return;
  for (const int at : {1, 6, 20}) {
    const Devices devices = new_gpus(4);
    World world({.devices = devices});
    Trainer trainer = make_trainer(world, true);
    plant_fault(("ncclAllReduce:lost@" + std::to_string(at) + "=1").c_str());
    std::string error;
    try {
      fit(trainer);
    } catch (const DeviceError& failure) {
      error = failure.what();
    } catch (const CommError& failure) {
      error = failure.what();
    }
    plant_fault("");
    INFO("reduction " << at << ": " << error);
    CHECK(error.starts_with("rank "));
    CHECK(contains(error, "cuda:"));
  }
}

}  // namespace
}  // namespace lockstep
