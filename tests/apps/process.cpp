#include "apps/process.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lockstep::test {

namespace {

void require(bool good, const char* what) {
  if (!good) throw std::system_error(errno, std::generic_category(), what);
}

/// Appends what can be read now; false at the end. A terminal whose other end is closed gives EIO.
bool drain(int descriptor, std::string& text) {
  std::array<char, 4096> part{};
  const ssize_t count = read(descriptor, part.data(), part.size());
  if (count <= 0) return false;
  text.append(part.data(), static_cast<std::size_t>(count));
  return true;
}

}  // namespace

ProcessResult run_process(const std::string& name, const std::vector<std::string>& arguments,
                          const ProcessOptions& options) {
  const std::filesystem::path program =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
  std::vector<std::string> words{program.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  std::array<int, 2> out{};
  std::array<int, 2> err{};
  require(pipe2(out.data(), O_CLOEXEC) == 0, "pipe");
  if (options.terminal) {
    require(openpty(&err[0], &err[1], nullptr, nullptr, nullptr) == 0, "openpty");
  } else {
    require(pipe2(err.data(), O_CLOEXEC) == 0, "pipe");
  }
  const pid_t child = fork();
  require(child >= 0, "fork");
  if (child == 0) {
    if (!options.folder.empty() && chdir(options.folder.c_str()) != 0) _exit(126);
    setenv("TERM", "xterm", 1);
    // Whatever the tests themselves run under, nohup for one.
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
      std::signal(number, number == options.ignored ? SIG_IGN : SIG_DFL);
    }
    dup2(out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    if (options.terminal) {
      close(err[0]);
      close(err[1]);
    }
    execv(argv[0], argv.data());
    _exit(127);
  }
  close(out[1]);
  close(err[1]);

  ProcessResult result;
  std::array<pollfd, 2> open{pollfd{out[0], POLLIN, 0}, pollfd{err[0], POLLIN, 0}};
  while (open[0].fd >= 0 || open[1].fd >= 0) {
    if (poll(open.data(), open.size(), -1) < 0 && errno != EINTR) require(false, "poll");
    if (open[0].fd >= 0 && open[0].revents != 0) {
      if (!drain(out[0], result.out)) {
        open[0].fd = -1;
      } else if (options.on_output) {
        options.on_output(result.out, child);
      }
    }
    if (open[1].fd >= 0 && open[1].revents != 0 && !drain(err[0], result.err)) open[1].fd = -1;
  }
  close(out[0]);
  close(err[0]);
  int status = 0;
  require(waitpid(child, &status, 0) == child, "waitpid");
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

ScratchFolder::ScratchFolder() {
  std::string path = (std::filesystem::temp_directory_path() / "lockstep-test-XXXXXX").string();
  require(mkdtemp(path.data()) != nullptr, "mkdtemp");
  path_ = path;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace lockstep::test
