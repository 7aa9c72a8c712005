#include "runtime/settings.h"

#include <cstdio>
#include <cstdlib>

namespace cusim {

namespace {

int number(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoi(text) : otherwise;
}

Settings read_environment() {
  const char* kernels = std::getenv("CUSIM_KERNELS");
  return {.devices = number("CUSIM_DEVICES", 2),
          .driver = number("CUSIM_DRIVER", 13000),
          .compute_capability = number("CUSIM_ARCH", 90),
          .peers = number("CUSIM_PEERS", 0),
          .compute_mode = number("CUSIM_COMPUTE_MODE", 0),
          .memory_bytes = static_cast<std::size_t>(number("CUSIM_MEM_MB", 4096)) << 20,
          .seed = static_cast<unsigned>(number("CUSIM_SEED", 0)),
          .delay_us = number("CUSIM_DELAY_US", 0),
          .check = number("CUSIM_CHECK", 0) != 0,
          .tag = number("CUSIM_TAG", 0) != 0,
          .log = number("CUSIM_LOG", 1) != 0,
          .kernels = kernels ? kernels : ""};
}

}  // namespace

const Settings& settings() {
  // Never freed: streams may still run while the process ends.
  static const Settings& values = *new Settings(read_environment());
  return values;
}

void report(const std::string& line) {
  if (settings().log) std::fprintf(stderr, "[cusim] %s\n", line.c_str());
}

}  // namespace cusim
