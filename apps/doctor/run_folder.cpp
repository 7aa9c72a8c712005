// doctor: can a run be written?
#include <string>
#include <system_error>
#include <vector>

#include <unistd.h>

#include "lockstep/core/error.h"
#include "lockstep/io/files.h"

#include "apps/doctor/checks.h"
#include "apps/text.h"

namespace lockstep::apps {

namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kProbeBytes = std::uintmax_t{1} << 20;
/// Runs of the article's net take less than a megabyte; this leaves room for larger nets.
constexpr std::uintmax_t kRoom = std::uintmax_t{100} << 20;

/// Folders made on the way to `path`, and a file in it; gone with the object.
class Probe {
 public:
  explicit Probe(const fs::path& path) : file_(path / message(".lockstep-doctor-", ::getpid())) {
    std::vector<fs::path> missing;
    std::error_code error;
    for (fs::path at = path; !at.empty() && !fs::exists(at, error) && at != at.parent_path();
         at = at.parent_path()) {
      missing.push_back(at);
    }
    while (!missing.empty()) {
      if (fs::create_directory(missing.back(), error)) made_.push_back(missing.back());
      if (error) {
        remove();
        throw IoError(message(missing.back().string(), ": cannot be made: ", error.message()));
      }
      missing.pop_back();
    }
  }
  ~Probe() { remove(); }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  /// As runs are written: a temporary name, synced, renamed; the second time over a file.
  void write() const {
    const std::string content(kProbeBytes, 'x');
    for (int i = 0; i < 2; ++i) write_text_file(file_, content);
  }

 private:
  void remove() noexcept {
    std::error_code ignored;
    fs::remove(file_, ignored);
    for (auto made = made_.rbegin(); made != made_.rend(); ++made) fs::remove(*made, ignored);
  }

  fs::path file_;
  std::vector<fs::path> made_;
};

}  // namespace

Finding check_run_folder(const fs::path& out) {
  const fs::path folder = out.empty() ? fs::path("runs") : out;
  Finding finding{.check = "run folder", .code = ExitCode::io};
  finding.details["folder"] = folder.string();
  try {
    std::error_code error;
    const bool occupied = !out.empty() && fs::exists(folder, error) && !fs::is_empty(folder, error);
    const Probe probe(folder);
    probe.write();
    const fs::space_info room = fs::space(folder, error);
    if (error) throw IoError(message(folder.string(), ": free room unknown: ", error.message()));
    finding.details["free"] = room.available;
    finding.text = message(folder.string(), ": files can be written, synced and replaced; ",
                           bytes_text(room.available), " free");
    if (room.available < kRoom) {
      finding.verdict = Verdict::warn;
      finding.remedy = "make room, or name another place with --out";
    } else if (occupied) {
      finding.verdict = Verdict::warn;
      finding.text += "; it is not empty, and no run is overwritten";
      finding.remedy = "name a new folder with --out";
    }
  } catch (const IoError& error) {
    finding.verdict = Verdict::fail;
    finding.text = error.what();
    finding.remedy = "make room there, or name a place that you may write to with --out";
  }
  return finding;
}

}  // namespace lockstep::apps
