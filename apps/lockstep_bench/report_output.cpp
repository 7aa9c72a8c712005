#include "apps/lockstep_bench/report_output.h"

#include <fstream>
#include <iostream>

#include "lockstep/core/error.h"

namespace lockstep::apps {

namespace {

void require(const std::ofstream& file, const std::string& path) {
  if (file) return;
  throw IoError(message(path, ": the report cannot be written; name another with --json"));
}

}  // namespace

bool begin_report(const std::string& json, bool quiet) {
  // Appending nothing leaves a report of before alone until there is a new one.
  if (!json.empty() && json != "-") require(std::ofstream(json, std::ios::app), json);
  return !quiet && json != "-";
}

void deliver(const std::string& json, const Json& event) {
  if (json == "-") {
    write_event(std::cout, event);
  } else if (!json.empty()) {
    std::ofstream file(json);
    write_event(file, event);
    require(file, json);
  }
}

}  // namespace lockstep::apps
