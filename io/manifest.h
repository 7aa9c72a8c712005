// manifest.json of a checkpoint: all that is no tensor. Internal to this folder.
#pragma once

#include <string>

#include "lockstep/io/checkpoint.h"

namespace lockstep {

/// Version of the manifest's fields: grows when one changes its meaning, comes or goes.
inline constexpr int kManifestSchema = 1;

/// Numbers read back to the same bits.
[[nodiscard]] std::string manifest_text(const Checkpoint& checkpoint);

/// A checkpoint whose tensors are empty: there are as many as the manifest tells. Throws IoError
/// with `where` in front for what is no manifest of this schema.
[[nodiscard]] Checkpoint parse_manifest(const std::string& text, const std::string& where);

}  // namespace lockstep
