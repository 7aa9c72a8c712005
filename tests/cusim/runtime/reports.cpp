// What is written to files when the process ends, for a program that knows nothing of cusim.h.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "cusim.h"
#include "runtime/settings.h"

namespace cusim {

namespace {

/// Calls `write(file)` with the file that an environment variable names.
template <class Write>
void write_report(const char* variable, Write write) {
  const char* path = std::getenv(variable);
  if (!path) return;
  std::FILE* file = std::fopen(path, "w");
  if (!file) return report(std::string(variable) + ": cannot write " + path);
  write(file);
  if (std::fclose(file) != 0) report(std::string(variable) + ": cannot write " + path);
}

void write_tallies(std::FILE* file, const char* heading,
                   std::size_t (*list)(cusim_tally* out, std::size_t room)) {
  std::vector<cusim_tally> all(list(nullptr, 0));
  list(all.data(), all.size());
  std::fprintf(file, "# %s\n", heading);
  for (const cusim_tally& entry : all) {
    if (entry.value != 0) {
      std::fprintf(file, "%s %lld\n", entry.name, static_cast<long long>(entry.value));
    }
  }
}

void write_trace(std::FILE* file) {
  std::fprintf(file, "# begin end device stream kind name\n");
  cusim_trace_entry entry{};
  for (std::size_t i = 0; cusim_trace_get(i, &entry) != 0; ++i) {
    std::fprintf(file, "%llu %llu %d %llu %s %s\n", static_cast<unsigned long long>(entry.begin),
                 static_cast<unsigned long long>(entry.end), entry.device,
                 static_cast<unsigned long long>(entry.stream), entry.kind, entry.name);
  }
}

struct Reports {
  Reports() {
    if (std::getenv("CUSIM_TRACE")) cusim_trace_start();
  }
  ~Reports() {
    write_report("CUSIM_POINTS", [](std::FILE* file) {
      write_tallies(file, "points passed", cusim_points);
      write_tallies(file, "still alive", cusim_ledger);
    });
    write_report("CUSIM_TRACE", write_trace);
  }
} const reports;

}  // namespace

}  // namespace cusim
