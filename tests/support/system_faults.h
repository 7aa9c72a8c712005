// System calls that fail on purpose, or at which the process ends.
#pragma once

namespace lockstep::test {

/// What happens at a call.
enum class Fault {
  refused,      ///< it does nothing and fails
  short_write,  ///< a write takes half of the bytes and the next write fails; others are refused
  dies_before,  ///< the process ends, as by SIGKILL, before it
  dies_after,   ///< the process ends when it is done
};

/// While one lives, the calls of this thread to open, pread, write, fsync, close, mkdir and rename
/// are counted from 0, and the fault happens at number `at`, with errno `error`. Meanwhile fsync
/// does not wait for the disk. One at a time.
class SystemFault {
 public:
  SystemFault(int at, Fault fault, int error);
  ~SystemFault();
  SystemFault(const SystemFault&) = delete;
  SystemFault& operator=(const SystemFault&) = delete;

  /// Whether there was such a call.
  [[nodiscard]] static bool happened();
};

/// What a folder's file system may refuse for good.
enum class Refusal {
  none,
  make_file,    ///< open for a file that is not there
  make_folder,  ///< mkdir
  rename,
};

/// While one lives, the calls of this thread that `what` names do nothing and fail with errno
/// `error`. One at a time.
class RefusingFileSystem {
 public:
  RefusingFileSystem(Refusal what, int error);
  ~RefusingFileSystem();
  RefusingFileSystem(const RefusingFileSystem&) = delete;
  RefusingFileSystem& operator=(const RefusingFileSystem&) = delete;
};

}  // namespace lockstep::test
