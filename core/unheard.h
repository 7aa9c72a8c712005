// Failures that nobody can be told of by an exception, because they happen in destructors.
#pragma once

#include <exception>
#include <string>

#include "lockstep/core/error.h"
#include "lockstep/core/log.h"

namespace lockstep {

/// Keeps what fails in destructors on this thread as long as it lives; of several the one made
/// last. Where there is none, such failures are forgotten.
class UnheardErrors {
 public:
  UnheardErrors() noexcept;
  ~UnheardErrors();
  UnheardErrors(const UnheardErrors&) = delete;
  UnheardErrors& operator=(const UnheardErrors&) = delete;

  /// From a destructor: something failed, and its arguments are, as text, what an exception would
  /// have said.
  template <class... Parts>
  static void add(const Parts&... parts) noexcept {
    if (innermost_ == nullptr) return;
    try {
      if (innermost_->count_ == 0) innermost_->first_ = message(parts...);
    } catch (const std::exception&) {
      // Without memory for the text the number has to do.
    }
    ++innermost_->count_;
  }

  /// What was kept, as one text: the first, and how many there were after it. Empty when nothing
  /// failed.
  [[nodiscard]] std::string text() const;

 private:
  static thread_local UnheardErrors* innermost_;

  UnheardErrors* outer_;
  std::string first_;
  int count_ = 0;
};

/// Logs what destructors could not tell, as one warning "WHO: ..."; nothing for an empty text.
void log_unheard(const LogSink& log, const char* who, const std::string& text);

/// UnheardErrors that are logged at the end of the scope. Not where an exception ends it: they come
/// of what that tells.
class LoggedErrors {
 public:
  /// The sink must outlive the scope.
  LoggedErrors(const LogSink& log, const char* who) noexcept : log_(log), who_(who) {}
  ~LoggedErrors();
  LoggedErrors(const LoggedErrors&) = delete;
  LoggedErrors& operator=(const LoggedErrors&) = delete;

 private:
  const LogSink& log_;
  const char* who_;
  int exceptions_ = std::uncaught_exceptions();
  UnheardErrors kept_;
};

}  // namespace lockstep
