#include "apps/lockstep_bench/child_process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lockstep/core/error.h"

namespace lockstep::apps {

namespace {

constexpr int kCannotRun = 127;

[[noreturn]] void fail(const char* what) {
  throw IoError(message("no process can be started: ", what, ": ", std::strerror(errno)));
}

/// One end to read, one to write; what is still open is closed at the end.
struct Pipe {
  std::array<int, 2> ends{-1, -1};

  Pipe() {
    if (pipe2(ends.data(), O_CLOEXEC) != 0) fail("pipe");
  }
  ~Pipe() {
    drop(0);
    drop(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void drop(std::size_t end) {
    if (ends[end] >= 0) close(ends[end]);
    ends[end] = -1;
  }
  /// Appends what can be read now; at the end the reading end is closed.
  void drain(std::string& text) {
    std::array<char, 4096> part{};
    const ssize_t count = read(ends[0], part.data(), part.size());
    if (count > 0) {
      text.append(part.data(), static_cast<std::size_t>(count));
    } else if (count == 0 || errno != EINTR) {
      drop(0);
    }
  }
};

std::vector<std::string> environment_with(const std::vector<Setting>& settings) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const bool replaced = std::any_of(settings.begin(), settings.end(), [&](const auto& setting) {
      return text.starts_with(setting.first + '=');
    });
    if (!replaced) all.push_back(text);
  }
  for (const auto& [name, value] : settings) all.push_back(message(name, '=', value));
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

}  // namespace

ChildResult run_child(const std::vector<std::string>& command,
                      const std::vector<Setting>& settings) {
  // All that needs memory is ready before the fork.
  std::vector<std::string> words = command;
  std::vector<std::string> variables = environment_with(settings);
  const std::vector<char*> argv = pointers(words);
  const std::vector<char*> envp = pointers(variables);
  Pipe out;
  Pipe err;
  const pid_t child = fork();
  if (child < 0) fail("fork");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);  // whoever ends us means the child too
    dup2(out.ends[1], STDOUT_FILENO);
    dup2(err.ends[1], STDERR_FILENO);
    execvpe(argv[0], argv.data(), envp.data());
    const char* const why = std::strerror(errno);
    static_cast<void>(!write(STDERR_FILENO, why, std::strlen(why)));
    _exit(kCannotRun);
  }
  out.drop(1);
  err.drop(1);
  ChildResult result;
  while (out.ends[0] >= 0 || err.ends[0] >= 0) {
    std::array<pollfd, 2> open{pollfd{out.ends[0], POLLIN, 0}, pollfd{err.ends[0], POLLIN, 0}};
    if (poll(open.data(), open.size(), -1) < 0) continue;
    if (open[0].revents != 0) out.drain(result.out);
    if (open[1].revents != 0) err.drain(result.err);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) fail("waitpid");
  }
  constexpr int kSignalled = 128;
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : kSignalled + WTERMSIG(status);
  return result;
}

std::string last_line(const std::string& text) {
  std::string last;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) last = line;
  }
  return last;
}

std::string own_program() {
  return std::filesystem::read_symlink("/proc/self/exe").string();
}

double peak_memory() {
  // Not getrusage: after an exec that still counts what the parent held.
  std::ifstream file("/proc/self/status");
  constexpr double kKib = 1024;
  for (std::string word; file >> word;) {
    double kib = 0;
    if (word == "VmHWM:" && file >> kib) return kKib * kib;
  }
  return 0;
}

}  // namespace lockstep::apps
