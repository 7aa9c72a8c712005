#include "apps/progress_bar.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string_view>

#include <sys/ioctl.h>
#include <unistd.h>

namespace lockstep::apps {

namespace {

constexpr int kBarCells = 30;
constexpr std::chrono::milliseconds kInterval{100};
constexpr const char* kEraseLine = "\r\x1b[K";

bool stderr_is_terminal() {
  const char* term = std::getenv("TERM");
  return isatty(STDERR_FILENO) == 1 && term != nullptr && std::string_view(term) != "dumb";
}

int terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

std::string progress_line(const std::string& label, std::int64_t done, std::int64_t total,
                          const std::string& note, int width) {
  const double fraction =
      total > 0 ? std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0) : 0;
  const int cells = static_cast<int>(fraction * kBarCells);
  std::string line = label + " [" + std::string(static_cast<std::size_t>(cells), '=') +
                     std::string(static_cast<std::size_t>(kBarCells - cells), ' ') + "] " +
                     std::to_string(static_cast<int>(fraction * 100)) + " %";
  if (!note.empty()) line += "  " + note;
  return line.substr(0, static_cast<std::size_t>(std::max(width, 0)));
}

ProgressBar::ProgressBar(bool wanted) : on_(wanted && stderr_is_terminal()) {}

ProgressBar::~ProgressBar() {
  erase();
}

void ProgressBar::show(const std::string& label, std::int64_t done, std::int64_t total,
                       const std::string& note) {
  if (!on_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + kInterval;
  // One column stays free: writing the last one makes some terminals wrap.
  std::cerr << kEraseLine << progress_line(label, done, total, note, terminal_width() - 1)
            << std::flush;
  drawn_ = true;
}

void ProgressBar::erase() {
  if (!drawn_) return;
  std::cerr << kEraseLine << std::flush;
  drawn_ = false;
  next_ = {};
}

}  // namespace lockstep::apps
