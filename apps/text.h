// Small pieces of text that reports are made of.
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/core/device.h"
#include "lockstep/parallel/sharding.h"

namespace lockstep::apps {

/// `value` with `digits` digits behind the point.
[[nodiscard]] std::string fixed(double value, int digits);
/// "512 B", "64.2 MB", "141.0 GB"; a MB is a million bytes.
[[nodiscard]] std::string bytes_text(std::uint64_t bytes);
/// A learning rate: four digits behind the point as in the article, more where they would hide it.
[[nodiscard]] std::string rate_text(double rate);
/// "2 CPU replicas (avx512)".
[[nodiscard]] std::string devices_text(const Devices& devices, int replicas);
/// "cpu:0", or a GPU with its name, PCI address and UUID.
[[nodiscard]] std::string device_text(const Device& device);
/// How a batch is dealt: "128 = 2 x 64", "100 = 34 + 34 + 32", with shards told apart where a
/// replica has several: "128 = 2 x 64, in 8 shards of 16".
[[nodiscard]] std::string batch_text(const Sharding& sharding);
/// `text` for a terminal: what it would obey, which may come out of a file, becomes '?'; UTF-8 and
/// line breaks stay.
[[nodiscard]] std::string shown(const std::string& text);
/// `text` on the left of a column, or on its right.
[[nodiscard]] std::string left(const std::string& text, std::size_t width);
[[nodiscard]] std::string right(const std::string& text, std::size_t width);

}  // namespace lockstep::apps
