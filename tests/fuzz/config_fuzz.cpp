// Hostile config.json, as eval and predict read it: an input is the file, with the configuration
// under "config" where it has such a key.
#include <algorithm>
#include <string>
#include <string_view>

#include "lockstep/io/run_config.h"

#include "fuzz/harness.h"

namespace {

constexpr lockstep::fuzz::MemoryLimit kLimit{std::size_t{64} << 10, 32};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static lockstep::fuzz::MemoryFile place;
  static const lockstep::LegalTexts wanted = {
      {"model", {"article", "lenet5"}}, {"dataset", {"mnist", "synthetic"}}, {"data", {}}};
  place.put({data, size});
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const char* inside = bytes.find("\"config\"") == std::string_view::npos ? "" : "config";
  lockstep::fuzz::judge(size, kLimit, [&] {
    for (const auto& [key, text] : lockstep::read_run_config(place.path(), wanted, inside)) {
      const auto& legal = wanted.at(key);
      lockstep::fuzz::require(
          legal.empty() || std::find(legal.begin(), legal.end(), text) != legal.end(),
          "a value that is not legal");
    }
  });
  return 0;
}
