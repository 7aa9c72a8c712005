// Hostile config.json: an input is the file. It is read as eval and predict do, out of "config"
// where there is such a key, and with the key "options" as --resume does too.
#include <algorithm>
#include <string>
#include <string_view>

#include "lockstep/io/run_config.h"

#include "fuzz/harness.h"

namespace {

using lockstep::fuzz::require;

constexpr lockstep::fuzz::MemoryLimit kLimit{std::size_t{64} << 10, 32};

void read_texts(const std::filesystem::path& path, const char* inside) {
  static const lockstep::LegalTexts wanted = {
      {"model", {"article", "lenet5"}}, {"dataset", {"mnist", "synthetic"}}, {"data", {}}};
  for (const auto& [key, text] : lockstep::read_run_config(path, wanted, inside)) {
    const auto& legal = wanted.at(key);
    require(legal.empty() || std::find(legal.begin(), legal.end(), text) != legal.end(),
            "a value that is not legal");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static lockstep::fuzz::MemoryFile place;
  place.put({data, size});
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto has = [&](const char* key) { return bytes.find(key) != std::string_view::npos; };
  lockstep::fuzz::judge(size, kLimit,
                        [&] { read_texts(place.path(), has("\"config\"") ? "config" : ""); });
  if (has("\"options\"")) {
    lockstep::fuzz::judge(size, kLimit, [&] {
      require(lockstep::read_run_options(place.path()).batch_size > 0, "a batch without samples");
    });
  }
  return 0;
}
