#include "apps/lockstep_bench/report_output.h"

#include <fstream>
#include <iostream>

#include "lockstep/core/error.h"

namespace lockstep::apps {

bool for_people(const std::string& json, bool quiet) {
  return !quiet && json != "-";
}

void deliver(const std::string& json, const Json& event) {
  if (json == "-") {
    write_event(std::cout, event);
  } else if (!json.empty()) {
    std::ofstream file(json);
    write_event(file, event);
    if (!file)
      throw IoError(message(json, ": the report cannot be written; name another with --json"));
  }
}

}  // namespace lockstep::apps
