#include "lockstep/core/unheard.h"

namespace lockstep {

thread_local UnheardErrors* UnheardErrors::innermost_ = nullptr;

UnheardErrors::UnheardErrors() noexcept : outer_(innermost_) {
  innermost_ = this;
}

UnheardErrors::~UnheardErrors() {
  innermost_ = outer_;
}

std::string UnheardErrors::text() const {
  if (count_ < 2) return first_;
  return message(first_, " (and ", count_ - 1, " more)");
}

void log_unheard(const LogSink& log, const char* who, const std::string& text) {
  if (text.empty() || !log) return;
  log(LogLevel::warning, message(who, ": ", text,
                                 "; training is not affected, but what the call "
                                 "should have given back may be lost until the program ends"));
}

LoggedErrors::~LoggedErrors() {
  if (std::uncaught_exceptions() > exceptions_) return;
  try {
    log_unheard(log_, who_, kept_.text());
  } catch (const std::exception&) {
    // Without memory for the text there is nothing to log.
  }
}

}  // namespace lockstep
