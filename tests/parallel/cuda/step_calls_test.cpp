// What a step costs in calls, and what is not done between two looks. Only the simulation counts:
// on a real GPU these cases check nothing but that training runs.
#include <cstring>

#include "lockstep/layers/zoo.h"

#include "parallel/cuda/gpus.h"

namespace lockstep {
namespace {

using test::counted;

/// The article's images, few of them.
Dataset images(std::int64_t count) {
  return test::striped_images(count, 28, 10);
}

/// Calls of the eager steps of `steps` after warm-up, over all replicas.
std::uint64_t calls_of_steps(int gpus, Reduce reduce, bool fuse, std::int64_t steps) {
  World world({.devices = test::gpus(gpus)});
  Trainer trainer(world, zoo::article(), SoftmaxCrossEntropy{}, Adam{.lr = 0.01F},
                  {.reduce = reduce, .graph = false, .fuse = fuse});
  trainer.begin(images(16 * 16), {.batch_size = 16});
  trainer.run_steps(2);
  const std::uint64_t before = counted("calls");
  trainer.run_steps(steps);
  return counted("calls") - before;
}

TEST_CASE("a step of the article's CNN is at most 26 calls, fused at most 12") {
  if (!test::is_simulated()) return;
  for (const bool fuse : {false, true}) {
    for (const int count : {1, 2}) {
      const auto replicas = static_cast<std::uint64_t>(count);
      const std::uint64_t calls = calls_of_steps(count, Reduce::fast, fuse, 3);
      INFO(count << " GPUs: " << calls / 3 / replicas << " calls a step and GPU");
      CHECK(calls % (3 * replicas) == 0);
      CHECK(calls / 3 / replicas <= (fuse ? 12 : 26));
      CHECK(calls / 3 / replicas > 5);  // it counts at all
    }
  }
}

TEST_CASE("invariant mode costs one sum of shards more, or a pass of the plan for each shard") {
  if (!test::is_simulated()) return;
  // 8 shards on one GPU, fused: all at once. 4 on each of two: at once, gathered and added.
  CHECK(calls_of_steps(1, Reduce::invariant, true, 3) == 3 * 12);
  CHECK(calls_of_steps(2, Reduce::invariant, true, 3) == 3 * 2 * 14);
  // 8 shards one after another: 21 calls each, 7 sums and 7 copies of the tree, 3 of the update.
  CHECK(calls_of_steps(1, Reduce::invariant, false, 3) == 3 * (8 * 21 + 14 + 3));
}

TEST_CASE("between two looks nothing is allocated, waited for or copied") {
  if (!test::is_simulated()) return;
  constexpr std::int64_t kSteps = 64;
  for (const Residence residence : {Residence::resident, Residence::streamed}) {
    World world({.devices = test::gpus(2)});
    Trainer trainer(world, test::small_net(), SoftmaxCrossEntropy{}, Adam{.lr = 0.01F},
                    {.residence = residence});
    trainer.begin(test::striped_images(4 * kSteps * 16, 8, 5), {.batch_size = 16});
    trainer.run_steps(kSteps);  // sets up, records
    const std::vector<const char*> never = {
        "mallocs", "frees", "host_allocs", "device_syncs", "pageable_copies", "graph_instantiates"};
    const std::vector<const char*> some = {"memcpys", "graph_launches", "stream_syncs"};
    std::vector<std::uint64_t> before;
    for (const auto* names : {&never, &some}) {
      for (const char* name : *names) before.push_back(counted(name));
    }
    trainer.run_steps(2 * kSteps);
    std::size_t at = 0;
    for (const char* name : never) {
      INFO(name);
      // run_steps writes the state once, from memory of the host that is not page-locked.
      const std::uint64_t at_the_start = std::strcmp(name, "pageable_copies") == 0 ? 2 : 0;
      CHECK(counted(name) - before[at++] == at_the_start);
    }
    // For each of 2 GPUs: a copy of the state in, one for each of 4 looks out, and, streamed, one
    // for each window.
    const std::uint64_t windows = residence == Residence::streamed ? 4 : 0;
    CHECK(counted("memcpys") - before[at++] == 2 * (1 + 4 + windows));
    CHECK(counted("graph_launches") - before[at++] == 2 * 2 * kSteps);
    CHECK(counted("stream_syncs") - before[at++] == 2);
  }
}

TEST_CASE("the first reduction begins before the backward pass has ended") {
  if (!test::is_simulated()) return;
  // Five layers with parameters, the largest reduced first, and 64 bytes close a bucket.
  const Sequential model{Conv2d{.in = 1, .out = 8, .kernel = 3, .padding = same},
                         Conv2d{.in = 8, .out = 8, .kernel = 3, .padding = same},
                         Conv2d{.in = 8, .out = 8, .kernel = 3, .padding = same},
                         Flatten{},
                         Linear{.in = 8 * 64, .out = 64},
                         Linear{.in = 64, .out = 5}};
  World world({.devices = test::gpus(2)});
  Trainer trainer(world, model, SoftmaxCrossEntropy{}, Adam{.lr = 0.01F},
                  {.bucket_bytes = 64, .fuse = false});
  trainer.begin(test::striped_images(64 * 8, 8, 5), {.batch_size = 64});
  trainer.run_steps(1);
  test::simulated<decltype(cusim_trace_start)>("cusim_trace_start")();
  trainer.run_steps(1);
  test::simulated<decltype(cusim_trace_stop)>("cusim_trace_stop")();

  std::uint64_t first_collective = ~std::uint64_t{0};
  std::uint64_t last_backward = 0;
  int collectives = 0;
  cusim_trace_entry entry{};
  const std::size_t size = test::simulated<decltype(cusim_trace_size)>("cusim_trace_size")();
  for (std::size_t i = 0; i < size; ++i) {
    REQUIRE(test::simulated<decltype(cusim_trace_get)>("cusim_trace_get")(i, &entry) != 0);
    if (entry.device != 0) continue;
    if (std::string(entry.kind) == "collective") {
      ++collectives;
      first_collective = std::min(first_collective, entry.begin);
    }
    if (std::string(entry.name).find("ConvolutionBackwardFilter") != std::string::npos) {
      last_backward = std::max(last_backward, entry.end);
    }
  }
  CHECK(collectives >= 4);
  CHECK(last_backward > 0);
  CHECK(first_collective < last_backward);
}

}  // namespace
}  // namespace lockstep
