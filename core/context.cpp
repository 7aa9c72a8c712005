#include "lockstep/core/context.h"

#include <algorithm>

#include "lockstep/core/error.h"

namespace lockstep {

Context::Context(Device device) : Context(device, preferred_cpu_set()) {}

Context::Context(Device device, CpuSet set) : device_(device), cpu_set_(set) {
  const std::vector<CpuSet> sets = supported_cpu_sets();
  if (std::find(sets.begin(), sets.end(), set) == sets.end()) {
    throw UsageError(message("context: this processor does not run the instruction set ",
                             name_of(set), "; the fastest it runs is ", name_of(sets.back())));
  }
}

void Context::reserve_workspace(std::size_t bytes) {
  if (bytes > workspace_.bytes()) workspace_ = Buffer(device_, bytes, "the workspace");
}

}  // namespace lockstep
