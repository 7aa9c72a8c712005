// Options that several commands share.
#pragma once

#include <string>

#include "apps/command_line.h"
#include "apps/options.h"

namespace lockstep::apps {

inline constexpr std::int64_t kMaxCount = 2147483647;
inline constexpr std::int64_t kMaxBatch = std::int64_t{1} << 24;
inline constexpr int kMaxReplicas = 1024;

[[nodiscard]] Check dataset_name();
[[nodiscard]] Check model_name();
/// A count of samples; kept in an optional so that "not given" differs from every number.
void add_limit(CommandLine& line, const std::string& name, std::optional<std::int64_t>& target,
               std::int64_t min, const std::string& help);
/// --data and --dataset; `fallback` says what holds when they are not given.
void add_data(CommandLine& line, std::string& dataset, std::filesystem::path& folder,
              const std::string& fallback);
void add_output(CommandLine& line, OutputOptions& output);

}  // namespace lockstep::apps
