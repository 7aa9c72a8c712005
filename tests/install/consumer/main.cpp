// What an embedder writes: the README's example on drawn digits. Returns 0 when the model has
// learned and its weights survive a file.
#include <cstdio>

#include <lockstep/lockstep.h>

namespace ls = lockstep;

ls::Sequential cnn() {
  return {ls::Conv2d{.in = 1, .out = 8, .kernel = 3, .padding = ls::same},
          ls::MaxPool2d{.kernel = 2},
          ls::Conv2d{.in = 8, .out = 16, .kernel = 3, .padding = ls::same},
          ls::MaxPool2d{.kernel = 2},
          ls::Flatten{},
          ls::Linear{.in = 784, .out = 10}};
}

int main() {
  const ls::DatasetSplits digits =
      ls::synthetic_digits({.train = 4096, .validation = 256, .test = 512});
  ls::World world({.devices = ls::available_devices()});
  ls::Trainer trainer(world, cnn(), ls::SoftmaxCrossEntropy{}, ls::Adam{.lr = 0.01F});
  trainer.on_epoch([](const ls::EpochStats& e) {
    std::printf("%d %.4f %.2f%%\n", e.epoch, e.train_loss, 100 * e.val_accuracy);
  });
  trainer.fit(digits.train, digits.validation, {.epochs = 2, .batch_size = 128});
  const double accuracy = trainer.evaluate(digits.test).accuracy();
  std::printf("test accuracy %.2f%% with Lockstep %s\n", 100 * accuracy, ls::kVersion);

  ls::save_weights(trainer.model(), "digits.safetensors");
  ls::Model loaded(cnn(), digits.test.sample_shape());
  ls::load_weights(loaded, "digits.safetensors");
  const ls::Tensor samples = digits.test.tensor(0, 64);
  const bool same = loaded.predict_classes(samples) == trainer.model().predict_classes(samples);
  std::printf("loaded weights predict %s\n", same ? "the same" : "something else");
  return accuracy > 0.5 && same ? 0 : 1;
}
