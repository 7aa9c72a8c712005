#include "apps/text.h"

#include <algorithm>
#include <array>
#include <iomanip>
#include <sstream>

#include "lockstep/core/error.h"

namespace lockstep::apps {

std::string fixed(double value, int digits) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(digits) << value;
  return out.str();
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "kB", "MB", "GB", "TB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1000 && unit + 1 < kUnits.size(); ++unit) value /= 1000;
  return message(fixed(value, unit == 0 ? 0 : 1), ' ', kUnits[unit]);
}

std::string rate_text(double rate) {
  if (rate >= 0.001) return fixed(rate, 4);
  std::ostringstream out;
  out << std::setprecision(4) << rate;
  return out.str();
}

std::string devices_text(const Devices& devices, int replicas) {
  const bool cpu = devices.list.empty() || devices.list.front().kind == DeviceKind::cpu;
  return message(replicas, cpu ? " CPU" : " GPU", " replica", replicas == 1 ? "" : "s",
                 cpu ? message(" (", name_of(preferred_cpu_set()), ")") : "");
}

std::string device_text(const Device& device) {
  if (device.kind == DeviceKind::cpu) return device.to_string();
  return message(device.to_string(), ": ", device_info(device).to_string());
}

std::string batch_text(const Sharding& sharding) {
  const std::int64_t each = sharding.shard_samples * sharding.per_replica();
  std::string text = message(sharding.batch_size, " = ");
  if (each * sharding.replicas == sharding.batch_size) {
    text += message(sharding.replicas, " x ", each);
  } else {
    constexpr int kShown = 8;
    for (int rank = 0; rank < std::min(sharding.replicas, kShown); ++rank) {
      const std::int64_t rest = sharding.batch_size - rank * each;
      text += message(rank > 0 ? " + " : "", std::clamp<std::int64_t>(rest, 0, each));
    }
    if (sharding.replicas > kShown) text += " + ...";
  }
  if (sharding.shards != sharding.replicas) {
    text += message(", in ", sharding.shards, " shards of ", sharding.shard_samples);
  }
  return text;
}

std::string shown(const std::string& text) {
  std::string mended;
  for (const char c : text) {
    const bool control = (c >= 0 && c < ' ' && c != '\n') || c == '\x7F';
    // U+0080 to U+009F, which some terminals obey.
    const bool second_control = mended.ends_with('\xC2') && (c & '\xE0') == '\x80';
    if (second_control) mended.pop_back();
    mended += control || second_control ? '?' : c;
  }
  return mended;
}

std::string left(const std::string& text, std::size_t width) {
  return text + std::string(text.size() < width ? width - text.size() : 0, ' ');
}

std::string right(const std::string& text, std::size_t width) {
  return std::string(text.size() < width ? width - text.size() : 0, ' ') + text;
}

}  // namespace lockstep::apps
