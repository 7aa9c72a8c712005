#include "apps/lockstep_bench/operations.h"

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/core/joined.h"
#include "lockstep/layers/plan.h"

#include "apps/lockstep_bench/catalogue.h"

namespace lockstep::apps {

std::vector<std::int64_t> Catalogue::blocks(const Sequential& layers, const Shape& sample) {
  std::vector<std::int64_t> all{kN16};
  const std::int64_t by_rule = block_samples(Context(Device{}), layers, sample, kMostSamples, true);
  if (by_rule > kN16) all.push_back(by_rule);
  return all;
}

bool Catalogue::wanted(const std::string& name, const std::string& shape) {
  if (std::find(names_.begin(), names_.end(), name) == names_.end()) names_.push_back(name);
  return (name + ' ' + shape).find(filter_) != std::string::npos;
}

std::vector<Operation> Catalogue::finish() {
  if (operations_.empty()) {
    throw UsageError(message("ops: no operation has '", filter_,
                             "' in its name or shape; --filter takes a part of one of: ",
                             joined(names_, ", "), "; or of a shape as in '8->16'"));
  }
  return std::move(operations_);
}

std::vector<Operation> make_operations(Context& context, const std::string& filter) {
  Catalogue list(context, filter);
  add_convolutions(list);
  add_fused(list);
  add_pools(list);
  add_linears(list);
  add_elementwise(list);
  add_batches(list);
  add_arenas(list);
  return list.finish();
}

}  // namespace lockstep::apps
