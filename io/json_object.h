// JSON out of files, taken for hostile. Internal to this folder.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace lockstep {

/// The JSON object (sorted by key, or as an ordered_json in the file's order) that `text` of the
/// file `path` is. `what` names the text in messages: "the header". Throws IoError for anything but
/// an object, for objects and arrays more than `max_depth` inside each other, which could only cost
/// memory, and for a key that comes twice in an object, of which every reader would believe another
/// one.
template <class Json = nlohmann::json>
[[nodiscard]] Json parse_object(const std::string& text, int max_depth,
                                const std::filesystem::path& path, std::string_view what);

/// What a JSON exception says, without the library's name for it, and safe for a terminal.
[[nodiscard]] std::string words_of(const nlohmann::json::exception& error);

extern template nlohmann::json parse_object(const std::string&, int, const std::filesystem::path&,
                                            std::string_view);
extern template nlohmann::ordered_json parse_object(const std::string&, int,
                                                    const std::filesystem::path&, std::string_view);

}  // namespace lockstep
