#include "apps/option_groups.h"

#include "lockstep/layers/zoo.h"

namespace lockstep::apps {

Check dataset_name() {
  return one_of(dataset_names());
}

Check model_name() {
  return one_of(zoo::names());
}

void add_limit(CommandLine& line, const std::string& name, std::optional<std::int64_t>& target,
               std::int64_t min, const std::string& help) {
  line.value(name, target, "N", help, whole_number(min, kMaxCount));
}

void add_data(CommandLine& line, std::string& dataset, std::filesystem::path& folder,
              const std::string& fallback) {
  line.value(
      "--dataset", dataset, "NAME",
      "mnist, fashion-mnist or synthetic, drawn digits that need no files (" + fallback + ")",
      dataset_name());
  line.value("--data", folder, "DIR",
             "folder of the IDX files (data/ and the name of the data set)");
}

void add_output(CommandLine& line, OutputOptions& output) {
  line.flag("--quiet", output.quiet, "print nothing but errors");
  line.flag("--json", output.json, "print one JSON object a line on stdout and nothing else");
}

}  // namespace lockstep::apps
