// Internal. The list of operations under way: what the files that describe them share.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lockstep/core/random.h"
#include "lockstep/core/tensor.h"
#include "lockstep/layers/sequential.h"

#include "apps/lockstep_bench/operations.h"

namespace lockstep::apps {

/// Samples of a call are at most these; the rule for blocks would take more for small layers.
inline constexpr std::int64_t kMostSamples = 64;

/// One operation while its memory is laid out.
class Draft {
 public:
  Draft(std::string name, std::string shape, std::int64_t block) {
    operation_.name = std::move(name);
    operation_.shape = std::move(shape);
    operation_.block = block;
  }

  /// Memory for `count` values that a call reads or writes `uses` times.
  template <class T>
  T* values(std::int64_t count, int uses = 1) {
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
    operation_.memory.emplace_back(Device{}, bytes, operation_.name);
    operation_.bytes += static_cast<double>(bytes) * uses;
    operation_.working_set += static_cast<double>(bytes);
    return operation_.memory.back().template as<T>();
  }
  /// The same of floats from -1 to 1: with zeros alone a branch would never turn.
  float* floats(std::int64_t count, int uses = 1) {
    float* const data = values<float>(count, uses);
    std::uint32_t state = 1;
    for (std::int64_t i = 0; i < count; ++i) {
      state = state * 1664525U + 1013904223U;
      data[i] = 2 * uniform_float(state) - 1;
    }
    return data;
  }
  FloatView activation(const Shape& sample, int uses = 1) {
    const Shape shape = sample.with_first(operation_.block);
    return {floats(shape.count(), uses), shape, Layout::n16};
  }
  View<std::uint8_t> bytes_of(const Shape& sample) {
    const Shape shape = sample.with_first(operation_.block);
    return {values<std::uint8_t>(shape.count()), shape, Layout::n16};
  }
  /// Numbers of the samples, as if they were the first of the data set.
  std::int32_t* sample_index() {
    auto* const index = values<std::int32_t>(operation_.block);
    for (std::int64_t i = 0; i < operation_.block; ++i) index[i] = static_cast<std::int32_t>(i);
    return index;
  }
  FloatView parameter(const Shape& shape) { return {floats(shape.count()), shape}; }

  Operation done(double flops, std::function<void()> run) {
    operation_.flops = flops;
    operation_.run = std::move(run);
    return std::move(operation_);
  }

 private:
  Operation operation_;
};

class Catalogue {
 public:
  Catalogue(Context& context, std::string filter) : context_(context), filter_(std::move(filter)) {}

  [[nodiscard]] Context& context() const { return context_; }
  /// One group of samples, and what the planner would take for these layers alone where it is more.
  [[nodiscard]] static std::vector<std::int64_t> blocks(const Sequential& layers,
                                                        const Shape& sample);
  /// Whether the filter takes it.
  [[nodiscard]] bool wanted(const std::string& name, const std::string& shape);
  /// Bytes of workspace that an operation uses.
  void need(std::size_t bytes) { context_.reserve_workspace(bytes); }
  void add(Draft& draft, double flops, std::function<void()> run) {
    operations_.push_back(draft.done(flops, std::move(run)));
  }
  /// The list. Throws UsageError when it is empty.
  [[nodiscard]] std::vector<Operation> finish();

 private:
  Context& context_;
  std::string filter_;
  std::vector<std::string> names_;  ///< of all operations, wanted or not
  std::vector<Operation> operations_;
};

void add_convolutions(Catalogue& list);
void add_fused(Catalogue& list);
void add_pools(Catalogue& list);
void add_linears(Catalogue& list);
void add_elementwise(Catalogue& list);
void add_batches(Catalogue& list);
void add_arenas(Catalogue& list);

}  // namespace lockstep::apps
