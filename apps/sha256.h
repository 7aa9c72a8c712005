// SHA-256 (FIPS 180-4), for telling files apart in reports.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace lockstep::apps {

/// The digest of `bytes` as 64 lower-case hexadecimal digits.
[[nodiscard]] std::string sha256(std::span<const std::uint8_t> bytes);

}  // namespace lockstep::apps
