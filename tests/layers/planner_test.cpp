// Which tensors share memory, and the block size that follows from it.
#include "lockstep/layers/planner.h"

#include "lockstep/core/buffer.h"
#include "lockstep/layers/plan.h"
#include "lockstep/layers/zoo.h"

#include "support/catch.h"

using namespace lockstep;

namespace {

void check_apart(const MemoryMap& memory) {
  for (int a = 0; a < memory.values(); ++a) {
    CHECK(memory.offset(a) % kAlignment == 0);
    CHECK(memory.offset(a) + memory.bytes(a) <= memory.size());
    for (int b = 0; b < a; ++b) {
      if (!memory.overlap_in_time(a, b)) continue;
      const bool apart = memory.offset(a) + memory.bytes(a) <= memory.offset(b) ||
                         memory.offset(b) + memory.bytes(b) <= memory.offset(a);
      CHECK(apart);
    }
  }
}

Blueprint cpu_blueprint(const Sequential& model, const Shape& sample, bool training) {
  return make_blueprint(model, single_units(model), sample, 16, block_form(DeviceKind::cpu),
                        training);
}

}  // namespace

TEST_CASE("values that live at once never share memory, others do", "[layers]") {
  MemoryMap memory;
  const int a = memory.add(100, 0);
  const int b = memory.add(1000, 1);
  const int c = memory.add(64, 3);
  memory.use(a, 2);
  memory.use(c, 5);
  memory.place();
  check_apart(memory);
  CHECK(memory.overlap_in_time(a, b));
  CHECK_FALSE(memory.overlap_in_time(b, c));
  CHECK(memory.size() == 1024 + 128);
}

TEST_CASE("no plan of the zoo lets live tensors overlap", "[layers]") {
  for (const std::string& name : zoo::names()) {
    for (const bool training : {false, true}) {
      INFO(name << (training ? ", training" : ", forward"));
      const Blueprint blueprint = cpu_blueprint(zoo::by_name(name), {1, 28, 28}, training);
      check_apart(blueprint.memory);
    }
  }
}

TEST_CASE("relu works in place where nobody reads what it overwrites", "[layers]") {
  const Sequential model{Linear{.in = 4, .out = 4}, ReLU{}, ReLU{}, Dropout{}, Flatten{},
                         Linear{.in = 4, .out = 4}};
  const std::vector<PlannedLayer> training = cpu_blueprint(model, {4}, true).layers;
  CHECK(training[1].y == training[1].x);  // behind linear, which reads its x alone
  CHECK(training[2].y != training[2].x);  // relu reads its y
  CHECK(training[3].y != training[3].x);
  CHECK(training[4].y == training[4].x);  // flatten moves nothing
  for (int i : {2, 3, 4})
    CHECK(training[static_cast<std::size_t>(i)].dx == training[static_cast<std::size_t>(i)].dy);

  const std::vector<PlannedLayer> forward = cpu_blueprint(model, {4}, false).layers;
  for (int i : {1, 2, 3, 4})
    CHECK(forward[static_cast<std::size_t>(i)].y == forward[static_cast<std::size_t>(i)].x);
}

TEST_CASE("the caller's input is never overwritten", "[layers]") {
  for (const Sequential& model :
       {Sequential{ReLU{}}, Sequential{Flatten{}, ReLU{}}, Sequential{Dropout{}}}) {
    const Blueprint blueprint = cpu_blueprint(model, {6}, false);
    CHECK(blueprint.layers.back().y != blueprint.layers.front().x);
  }
}

TEST_CASE("layers below the first parameters have no gradients", "[layers]") {
  const Blueprint blueprint = cpu_blueprint(
      {Dropout{}, Flatten{}, Linear{.in = 4, .out = 4}, ReLU{}, Linear{.in = 4, .out = 2}}, {4},
      true);
  CHECK(blueprint.first_backward == 2);
  CHECK(blueprint.layers[0].saved >= 0);  // forward writes the mask all the same
  CHECK(blueprint.layers[1].dy == -1);
  CHECK(blueprint.layers[2].dx == -1);
  CHECK(blueprint.layers[2].dy >= 0);
  CHECK(blueprint.layers[4].dx >= 0);
}

TEST_CASE("a forward plan needs far less memory than a training plan", "[layers]") {
  for (const std::string& name : zoo::names()) {
    INFO(name);
    const Sequential model = zoo::by_name(name);
    CHECK(cpu_blueprint(model, {1, 28, 28}, false).memory.size() <
          cpu_blueprint(model, {1, 28, 28}, true).memory.size());
  }
}

TEST_CASE("CUDA plans are canonical and not rounded", "[layers]") {
  const Blueprint blueprint = make_blueprint(zoo::article(), single_units(zoo::article()),
                                             {1, 28, 28}, 100, block_form(DeviceKind::cuda), true);
  CHECK(blueprint.block == 100);
  CHECK(blueprint.layout == Layout::canonical);
}

// Checkpoints record the block and results depend on it: a change here changes what a seed gives.
TEST_CASE("the blocks of the zoo's models are frozen", "[layers]") {
  const auto block = [](const Sequential& model, std::int64_t shard) {
    return block_samples(Context(Device{}), model, {1, 28, 28}, shard, true);
  };
  CHECK(block(zoo::article(), 128) == 16);
  CHECK(block(zoo::lenet5(), 128) == 16);
  CHECK(block(zoo::wide_cnn(), 128) == 64);  // weights larger than the budget
  CHECK(block(zoo::wide_cnn(), 40) == 48);
  CHECK(block_samples(Context(Device{}), zoo::article(), {1, 28, 28}, 128, false) == 16);
  // 784 + 128 + 128 + 10 floats a sample live at once at most: 7 groups fit.
  CHECK(block(zoo::mlp(), 128) == 112);
  CHECK(block(zoo::mlp(), 1024) == 112);
  CHECK(block(zoo::mlp(), 40) == 48);
  CHECK(block_samples(Context(Device{}), {Linear{.in = 8, .out = 2}}, {8}, 100000, true) == 10912);
}

TEST_CASE("a block is a multiple of 16 within the shard", "[layers]") {
  const Sequential small{Linear{.in = 3, .out = 2}};
  for (const std::int64_t shard : {0, 1, 15, 16, 17, 31, 100}) {
    const std::int64_t block = block_samples(Context(Device{}), small, {3}, shard, true);
    CHECK(block == std::max<std::int64_t>(16, round_up(shard, 16)));
  }
}
