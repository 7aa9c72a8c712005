#include "lockstep/io/run_config.h"

#include <algorithm>
#include <cerrno>
#include <limits>

#include <fcntl.h>
#include <sys/stat.h>

#include "lockstep/core/joined.h"
#include "lockstep/core/printable.h"
#include "lockstep/io/descriptor.h"
#include "lockstep/io/json_object.h"

namespace lockstep {

namespace {

constexpr std::uint64_t kMaxBytes = 1 << 20;
/// A manifest, the configuration in it, lists of devices in that; and what later versions may add.
constexpr int kMaxDepth = 16;
constexpr const char* kRemedy = "mend it, or move the file away";
constexpr const char* kWhat = "a run's configuration";

std::string read_config(const std::filesystem::path& path) {
  const Descriptor file(path, O_RDONLY | O_NONBLOCK, "open");
  if (!file.is_regular()) {
    throw IoError(message(path.string(), ": is no regular file; ", kRemedy));
  }
  if (file.size() > kMaxBytes) {
    throw IoError(message(path.string(), ": has ", file.size(),
                          " bytes, expected a run's configuration of at most ", kMaxBytes, "; ",
                          kRemedy));
  }
  return file.read_all();
}

std::string checked(const nlohmann::json& value, const std::string& key,
                    const std::vector<std::string>& legal, const std::filesystem::path& path) {
  const std::string where = message(path.string(), ": '", key, "' is ");
  if (!value.is_string()) {
    throw IoError(message(where, printable(value.dump()), ", expected a text; ", kRemedy));
  }
  auto text = value.get<std::string>();
  if (legal.empty() || std::find(legal.begin(), legal.end(), text) != legal.end()) return text;
  throw IoError(message(where, "'", printable(text), "', expected one of ", joined(legal, ", "),
                        "; ", kRemedy));
}

}  // namespace

std::map<std::string, std::string> read_run_config(const std::filesystem::path& path,
                                                   const LegalTexts& wanted,
                                                   const std::string& inside) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 && errno == ENOENT) return {};
  nlohmann::json config = parse_object(read_config(path), kMaxDepth, path, kWhat);
  if (!inside.empty()) {
    config = config.value(inside, nlohmann::json());
    if (config.is_null()) return {};
    if (!config.is_object()) {
      throw IoError(message(path.string(), ": '", inside, "' is ", printable(config.dump()),
                            ", expected an object; ", kRemedy));
    }
  }
  std::map<std::string, std::string> texts;
  for (const auto& [key, legal] : wanted) {
    if (const auto found = config.find(key); found != config.end()) {
      texts[key] = checked(*found, key, legal, path);
    }
  }
  return texts;
}

RunOptions read_run_options(const std::filesystem::path& path) {
  return parse_run_options(read_config(path), path);
}

RunOptions parse_run_options(const std::string& text, const std::filesystem::path& path) {
  constexpr const char* kStartNew = "; start a new run with --out";
  const nlohmann::json config = parse_object(text, kMaxDepth, path, kWhat);
  const auto options = config.find("options");
  if (options == config.end() || !options->is_object()) {
    throw IoError(message(path.string(), ": does not say the options of its run", kStartNew));
  }
  RunOptions run;
  for (const auto& [name, value] : options->items()) {
    if (!value.is_string()) {
      throw IoError(message(path.string(), ": the option '", printable(name), "' is ",
                            printable(value.dump()), ", expected a text", kStartNew));
    }
    run.options[name] = value.get<std::string>();
  }
  const auto batch = config.find("batch_size");
  if (batch != config.end() && batch->is_number_unsigned() &&
      batch->get<std::uint64_t>() <= std::numeric_limits<std::int64_t>::max()) {
    run.batch_size = batch->get<std::int64_t>();
  }
  if (run.batch_size < 1) {
    throw IoError(message(path.string(), ": 'batch_size' is ",
                          batch == config.end() ? "missing" : printable(batch->dump()),
                          ", expected a number of samples", kStartNew));
  }
  return run;
}

}  // namespace lockstep
