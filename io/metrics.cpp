#include "lockstep/io/metrics.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <limits>
#include <optional>
#include <sstream>
#include <system_error>
#include <variant>
#include <vector>

#include <fcntl.h>
#include <nlohmann/json.hpp>

#include "lockstep/core/number_text.h"
#include "lockstep/io/descriptor.h"
#include "lockstep/io/files.h"

namespace lockstep {

namespace {

struct Column {
  const char* name;
  std::variant<std::monostate, std::int64_t, double> value;  ///< nothing: there is no such figure
};

std::vector<Column> columns_of(const EpochStats& epoch) {
  const auto validation = [&](double value) -> decltype(Column::value) {
    if (epoch.has_validation) return value;
    return std::monostate{};
  };
  return {{"epoch", std::int64_t{epoch.epoch}},
          {"lr", epoch.learning_rate},
          {"train_loss", epoch.train_loss},
          {"data_loss", epoch.data_loss},
          {"reg_loss", epoch.reg_loss},
          {"train_loss_ema", epoch.train_loss_ema},
          {"train_accuracy", epoch.train_accuracy},
          {"val_loss", validation(epoch.val_loss)},
          {"val_accuracy", validation(epoch.val_accuracy)},
          {"steps", epoch.steps},
          {"skipped_steps", epoch.skipped_steps},
          {"samples", epoch.samples},
          {"train_seconds", epoch.train_seconds},
          {"eval_seconds", epoch.eval_seconds},
          {"seconds", epoch.seconds},
          {"samples_per_second", epoch.samples_per_second()}};
}

std::string csv_header() {
  std::string line;
  for (const Column& column : columns_of({})) {
    line += column.name;
    line += ',';
  }
  line.back() = '\n';
  return line;
}

std::string csv_row(const EpochStats& epoch) {
  std::string line;
  for (const Column& column : columns_of(epoch)) {
    if (const auto* whole = std::get_if<std::int64_t>(&column.value)) line += number_text(*whole);
    if (const auto* real = std::get_if<double>(&column.value)) line += number_text(*real);
    line += ',';
  }
  line.back() = '\n';
  return line;
}

/// The epoch of a row; none where it is no whole row.
std::optional<int> epoch_of_csv(const std::string& row) {
  static const std::string header = csv_header();
  if (std::count(row.begin(), row.end(), ',') != std::count(header.begin(), header.end(), ',')) {
    return {};
  }
  int epoch = 0;
  const auto parsed = std::from_chars(row.data(), row.data() + row.size(), epoch);
  if (parsed.ec != std::errc{} || *parsed.ptr != ',') return {};
  return epoch;
}

std::optional<int> epoch_of_json(const std::string& row) {
  const auto json = nlohmann::json::parse(row, nullptr, false);
  if (!json.is_object() || !json.contains("epoch") || !json["epoch"].is_number_integer()) return {};
  return json["epoch"].get<int>();
}

/// Keeps a copy of a file in which somebody else has written.
void set_aside(const std::filesystem::path& path, const std::string& text) {
  const std::string name = "aside-" + path.filename().string();
  std::filesystem::path copy = path.parent_path() / name;
  std::error_code ignored;
  for (int more = 2; std::filesystem::exists(copy, ignored); ++more) {
    copy = path.parent_path() / message("again-", more, "-", name);
  }
  write_text_file(copy, text);
}

/// Takes the rows of an epoch from `next_epoch` on out of a file, and a last one that was cut off.
/// Where there are others that no MetricsWriter wrote, these go too, and the file as it was is kept
/// beside it.
void cut(const std::filesystem::path& path, const std::string& header, int next_epoch,
         const std::function<std::optional<int>(const std::string&)>& epoch_of) {
  if (!std::filesystem::exists(path)) return;
  const std::string text = read_file(path);
  std::string kept = header;
  bool others = false;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line) && !lines.eof();) {
    const std::optional<int> epoch = epoch_of(line);
    if (epoch && *epoch < next_epoch) kept += line + '\n';
    others = others || (!epoch && line + '\n' != header);
  }
  if (others) set_aside(path, text);
  if (kept != text) write_text_file(path, kept);
}

}  // namespace

std::string epoch_json(const EpochStats& epoch) {
  nlohmann::ordered_json json;
  json["event"] = "epoch";
  for (const Column& column : columns_of(epoch)) {
    auto& value = json[column.name];
    if (const auto* whole = std::get_if<std::int64_t>(&column.value)) value = *whole;
    if (const auto* real = std::get_if<double>(&column.value)) value = *real;
  }
  return json.dump();
}

struct MetricsWriter::Impl {
  static constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND;

  explicit Impl(const RunFolder& folder)
      : csv(folder.file("metrics.csv"), kFlags, "open"),
        jsonl(folder.file("metrics.jsonl"), kFlags, "open") {}

  Descriptor csv;
  Descriptor jsonl;
};

MetricsWriter::MetricsWriter(const RunFolder& folder, int next_epoch) {
  if (next_epoch != std::numeric_limits<int>::max()) {
    cut(folder.file("metrics.csv"), csv_header(), next_epoch, epoch_of_csv);
    cut(folder.file("metrics.jsonl"), "", next_epoch, epoch_of_json);
  }
  impl_ = std::make_unique<Impl>(folder);
  if (impl_->csv.size() == 0) impl_->csv.write_all(csv_header());
}

MetricsWriter::~MetricsWriter() = default;

void MetricsWriter::add(const EpochStats& epoch) {
  const std::uint64_t csv_before = impl_->csv.size();
  const std::uint64_t jsonl_before = impl_->jsonl.size();
  try {
    impl_->csv.write_all(csv_row(epoch));
    impl_->jsonl.write_all(epoch_json(epoch) + "\n");
    // A checkpoint of the end of this epoch must not outlive its row.
    impl_->csv.sync();
    impl_->jsonl.sync();
  } catch (const IoError&) {
    impl_->csv.shrink_to(csv_before);  // the two files have the same rows
    impl_->jsonl.shrink_to(jsonl_before);
    throw;
  }
}

}  // namespace lockstep
