// How the library tells its host about something without printing.
#pragma once

#include <functional>
#include <string_view>

namespace lockstep {

enum class LogLevel { info, warning };

/// Called on the thread that has something to say; must not throw. An empty sink drops everything.
using LogSink = std::function<void(LogLevel, std::string_view)>;

}  // namespace lockstep
