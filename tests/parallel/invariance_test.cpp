// Invariant mode: the same bits for every legal number of replicas.
//
// Also linked with parallel/shard_chain.cpp, which adds the shards of a rank in a chain instead of
// the tree: then this test must fail.
#include <vector>

#include "lockstep/parallel/trainer.h"

#include "support/catch.h"
#include "support/tiny_data.h"

using namespace lockstep;

namespace {

struct Outcome {
  std::vector<float> weights;
  std::vector<double> figures;
};

/// 55 steps over uneven tails, with dropout, L2, clipping, Adam and an evaluation in between.
Outcome train(int replicas) {
  const Dataset data =
      test::striped_images(10 * 64 + 37, 8, 5);  // 11 steps an epoch, the last of 37 samples
  const Dataset validation = test::striped_images(300, 8, 5, 2);
  World world({.devices = parse_devices("cpu:" + std::to_string(replicas))});
  const Sequential model{Conv2d{.in = 1, .out = 5, .kernel = 3, .padding = same},
                         ReLU{},
                         MaxPool2d{.kernel = 2},
                         Flatten{},
                         Linear{.in = 80, .out = 24},
                         ReLU{},
                         Dropout{.rate = 0.3F},
                         Linear{.in = 24, .out = 5}};
  Trainer trainer(world, model, SoftmaxCrossEntropy{}, Adam{.lr = 0.005F},
                  {.seed = 11,
                   .reduce = Reduce::invariant,
                   .bucket_bytes = 1024,
                   .schedule = ExponentialDecay{},
                   .l2 = 1e-3F,
                   .clip_norm = 1.0F});
  Outcome outcome;
  trainer.on_epoch([&](const EpochStats& epoch) {
    for (const double figure :
         {epoch.train_loss, epoch.data_loss, epoch.reg_loss, epoch.train_loss_ema,
          epoch.train_accuracy, epoch.val_loss, epoch.val_accuracy}) {
      outcome.figures.push_back(figure);
    }
  });
  trainer.fit(data, validation, {.epochs = 5, .batch_size = 64});
  outcome.weights = trainer.model().arena();
  return outcome;
}

}  // namespace

TEST_CASE("invariant mode gives the same bits for 1, 2, 4 and 8 replicas", "[parallel]") {
  const Outcome one = train(1);
  REQUIRE(one.figures.size() == 35);
  CHECK(one.figures[28] < one.figures[0]);  // it learns: the test is not about zeros
  for (const int replicas : {2, 4, 8}) {
    const Outcome other = train(replicas);
    INFO("weights differ between 1 replica and " << replicas);
    CHECK(other.weights == one.weights);
    CHECK(other.figures == one.figures);
  }
}
