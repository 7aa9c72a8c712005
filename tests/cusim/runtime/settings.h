// The environment of the simulated CUDA, read once.
#pragma once

#include <cstddef>
#include <string>

namespace cusim {

struct Settings {
  int devices;             ///< CUSIM_DEVICES
  int driver;              ///< CUSIM_DRIVER: version; 0 is none, below 13000 too old
  int compute_capability;  ///< CUSIM_ARCH: 75, 90, ...
  int peers;         ///< CUSIM_PEERS: 1, devices reach each other; 2, and spoil what they copy
  int compute_mode;  ///< CUSIM_COMPUTE_MODE: 0 for all, 2 prohibited, 3 one process
  std::size_t memory_bytes;  ///< CUSIM_MEM_MB, of each device
  unsigned seed;             ///< CUSIM_SEED: delays, order of threads and graph nodes
  int delay_us;              ///< CUSIM_DELAY_US: random pauses before operations
  bool check;                ///< CUSIM_CHECK: look up every access of a kernel to global memory
  bool tag;                  ///< CUSIM_TAG: device pointers that the host cannot dereference
  bool log;                  ///< CUSIM_LOG: say on stderr what failed (default 1)
  std::string kernels;       ///< CUSIM_KERNELS: module libraries, separated by ':'
};

const Settings& settings();

/// A line on stderr, for the developer who reads a failed test.
void report(const std::string& line);

}  // namespace cusim
