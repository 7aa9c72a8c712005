#include "lockstep/layers/zoo.h"

#include "lockstep/core/error.h"

namespace lockstep::zoo {

namespace {

Conv2d he_conv(std::int64_t in, std::int64_t out, std::int64_t kernel, Padding padding = valid) {
  return {.in = in, .out = out, .kernel = kernel, .padding = padding, .weight_init = he_normal};
}

Linear he_linear(std::int64_t in, std::int64_t out) {
  return {.in = in, .out = out, .weight_init = he_normal};
}

struct Entry {
  const char* name;
  Sequential (*make)();
};

constexpr Entry kEntries[] = {
    {"article", article}, {"lenet5", lenet5}, {"wide_cnn", wide_cnn}, {"mlp", mlp}};

}  // namespace

Sequential article() {
  const auto conv = [](std::int64_t in, std::int64_t out) {
    return Conv2d{.in = in, .out = out, .kernel = 3, .padding = same, .bias_init = glorot_uniform};
  };
  return {conv(1, 8),  MaxPool2d{.kernel = 2, .padding = same},
          conv(8, 16), MaxPool2d{.kernel = 2, .padding = same},
          Flatten{},   Linear{.in = 784, .out = 10, .bias_init = glorot_uniform}};
}

Sequential lenet5() {
  return {he_conv(1, 6, 5, same),
          ReLU{},
          MaxPool2d{.kernel = 2},
          he_conv(6, 16, 5),
          ReLU{},
          MaxPool2d{.kernel = 2},
          Flatten{},
          he_linear(400, 120),
          ReLU{},
          he_linear(120, 84),
          ReLU{},
          he_linear(84, 10)};
}

Sequential wide_cnn() {
  return {he_conv(1, 32, 3),      ReLU{},    he_conv(32, 64, 3),   ReLU{}, MaxPool2d{.kernel = 2},
          Dropout{.rate = 0.25F}, Flatten{}, he_linear(9216, 128), ReLU{}, Dropout{.rate = 0.5F},
          he_linear(128, 10)};
}

Sequential mlp() {
  return {Flatten{}, he_linear(784, 128), ReLU{}, he_linear(128, 10)};
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const Entry& entry : kEntries) all.emplace_back(entry.name);
  return all;
}

Sequential by_name(std::string_view name) {
  std::string known;
  for (const Entry& entry : kEntries) {
    if (name == entry.name) return entry.make();
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  throw UsageError(message("model '", name, "' is not known; there are: ", known));
}

}  // namespace lockstep::zoo
