// A line on a terminal that shows how far something is.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace lockstep::apps {

/// Draws on stderr, a few times a second, when stderr is a terminal; otherwise does nothing at all.
/// Erased before anything else is printed and at its end.
class ProgressBar {
 public:
  /// `wanted` false makes it silent everywhere (--quiet, --json).
  explicit ProgressBar(bool wanted);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// Shows `label`, a bar of done / total and `note`.
  void show(const std::string& label, std::int64_t done, std::int64_t total,
            const std::string& note = {});
  void erase();

  [[nodiscard]] bool on() const { return on_; }

 private:
  bool on_ = false;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point next_{};
};

/// The line that a bar draws, at most `width` characters.
[[nodiscard]] std::string progress_line(const std::string& label, std::int64_t done,
                                        std::int64_t total, const std::string& note, int width);

}  // namespace lockstep::apps
