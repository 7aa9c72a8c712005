// Hostile manifest.json of a checkpoint: an input is the text, whose digest is right.
#include <string>

#include "lockstep/io/manifest.h"

#include "fuzz/harness.h"

namespace {

/// At most 65535 tensors are made room for before the tensors' files are looked at.
constexpr lockstep::fuzz::MemoryLimit kLimit{std::size_t{65535} * sizeof(lockstep::NamedTensor),
                                             64};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  lockstep::fuzz::judge(size, kLimit, [&] {
    const lockstep::Checkpoint read = lockstep::parse_manifest(text, "manifest.json");
    // What was understood is written and understood again.
    const std::string again = lockstep::manifest_text(read);
    const lockstep::Checkpoint same = lockstep::parse_manifest(again, "manifest.json");
    lockstep::fuzz::require(lockstep::manifest_text(same) == again, "a manifest that changes");
  });
  return 0;
}
