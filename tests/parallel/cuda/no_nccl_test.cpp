// A build without NCCL trains on one GPU and refuses several.
#include "lockstep/config.h"

#include "parallel/cuda/gpus.h"
#include "support/throws.h"

namespace lockstep {

TEST_CASE("without NCCL several GPUs are refused with what to install; one trains") {
  static_assert(!kHasNccl);
  const auto train = [](const Devices& devices) {
    return test::train_small(devices, {.seed = 3}, 1).epochs.size();
  };
  CHECK(train(test::gpus(1)) == 1);
  if (test::gpu_count() == 1) return;
  const std::string refusal =
      test::message_of<DeviceError>([&] { static_cast<void>(train(test::gpus(2))); });
  CHECK(test::contains(refusal, "training on 2 GPUs needs NCCL"));
  CHECK(test::contains(refusal, "libnccl-dev"));
}

}  // namespace lockstep
