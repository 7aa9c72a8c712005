#include "lockstep/io/json_object.h"

#include <set>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/printable.h"

namespace lockstep {

std::string words_of(const nlohmann::json::exception& error) {
  // "[json.exception.parse_error.101] parse error at line 1, ..."
  const std::string text = error.what();
  const std::size_t name = text.starts_with('[') ? text.find("] ") : std::string::npos;
  return printable(name == std::string::npos ? text : text.substr(name + 2));
}

template <class Json>
Json parse_object(const std::string& text, int max_depth, const std::filesystem::path& path,
                  std::string_view what) {
  using Event = typename Json::parse_event_t;
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto watch = [&](int depth, Event event, Json& parsed) {
    const bool object = event == Event::object_start;
    if ((object || event == Event::array_start) && depth >= max_depth) {
      throw IoError(message(path.string(), ": ", what, " is nested more than ", max_depth,
                            " deep; the file is damaged"));
    }
    if (object) keys.emplace_back();
    if (event == Event::object_end) keys.pop_back();
    if (event == Event::key && !keys.back().insert(parsed).second) {
      throw IoError(message(path.string(), ": '", printable(parsed), "' is twice in ", what,
                            "; the file is damaged"));
    }
    return true;
  };
  Json json;
  try {
    json = Json::parse(text, watch);
  } catch (const nlohmann::json::exception& error) {
    throw IoError(message(path.string(), ": ", what, " is no JSON (", words_of(error),
                          "); the file is damaged or of another kind"));
  }
  if (!json.is_object()) {
    throw IoError(message(path.string(), ": ", what,
                          " is no JSON object; the file is damaged or of another kind"));
  }
  return json;
}

template nlohmann::json parse_object(const std::string&, int, const std::filesystem::path&,
                                     std::string_view);
template nlohmann::ordered_json parse_object(const std::string&, int, const std::filesystem::path&,
                                             std::string_view);

}  // namespace lockstep
