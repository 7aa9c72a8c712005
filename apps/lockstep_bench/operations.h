// The operations that lockstep_bench ops measures, each with shapes, memory and nominal work.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lockstep/core/buffer.h"
#include "lockstep/core/context.h"

namespace lockstep::apps {

struct Operation {
  std::string name;
  std::string shape;
  std::int64_t block = 0;        ///< samples of a call, or floats of an arena
  double flops = 0;              ///< nominal: two for a multiply-add
  double bytes = 0;              ///< inputs read once, outputs written once
  double working_set = 0;        ///< bytes of `memory`
  std::vector<Buffer> memory{};  ///< what `run` works on
  std::function<void()> run{};
};

/// All whose name and shape, with a blank between, contain `filter`. They keep a reference to
/// `context`, a CPU's, and have reserved its workspace. Throws UsageError, which lists the names,
/// when there is none.
[[nodiscard]] std::vector<Operation> make_operations(Context& context, const std::string& filter);

}  // namespace lockstep::apps
