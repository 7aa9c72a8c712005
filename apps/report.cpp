#include "apps/report.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "apps/text.h"

namespace lockstep::apps {

namespace {

constexpr const char* kRule = "------------------------------------------------------------";

std::string percent(double fraction) {
  return fixed(100 * fraction, 4) + "%";
}

void write_resumed(std::ostream& out, const ResumeReport& resumed) {
  if (resumed.checkpoint.empty()) {
    out << "resumed: there is no checkpoint yet, training begins again\n";
    return;
  }
  out << "resumed from: " << resumed.checkpoint.string() << ", step " << resumed.step
      << " in epoch " << resumed.epoch << '\n';
  if (resumed.bit_differences.empty()) {
    out << "bit-equal to a run without the break\n";
    return;
  }
  out << "not bit-equal to a run without the break:";
  const char* separator = " ";
  for (const std::string& reason : resumed.bit_differences) {
    out << separator << reason;
    separator = "; ";
  }
  out << '\n';
}

}  // namespace

void write_train_start(std::ostream& out, const TrainReport& report) {
  out << "lockstep " << report.version << '\n'
      << "devices: " << report.devices << ", " << report.precision << '\n'
      << "data: " << report.dataset << ": " << report.train << " train, " << report.validation
      << " validation, " << report.test << " test\n"
      << "model: " << report.model << '\n'
      << report.model_table << (report.model_table.ends_with('\n') ? "" : "\n")
      << "optimizer: " << report.optimizer << '\n'
      << "learning rate: " << report.schedule << ", not scaled with the replicas\n"
      << "batch: " << report.batch << "; " << report.steps_per_epoch << " steps an epoch\n"
      << "reduction: " << report.reduce << "; seed " << report.seed << '\n'
      << "run folder: " << report.run_folder.string() << '\n';
  if (report.resumed) write_resumed(out, *report.resumed);
  for (const std::string& name : report.device_names) out << "build model on " << name << '\n';
  out << std::flush;
}

void write_epoch_start(std::ostream& out, int epoch, double learning_rate) {
  out << kRule << '\n'
      << "Epoch:" << epoch << ", lr:" << rate_text(learning_rate) << '\n'
      << std::flush;
}

void write_epoch_end(std::ostream& out, const EpochStats& epoch) {
  out << "Train loss:" << fixed(epoch.train_loss, 4);
  if (epoch.reg_loss > 0) {
    out << " (data " << fixed(epoch.data_loss, 4) << ", L2 " << fixed(epoch.reg_loss, 4) << ')';
  }
  out << '\n';
  if (epoch.has_validation) {
    out << "Val Accuracy: " << percent(epoch.val_accuracy) << " (loss " << fixed(epoch.val_loss, 4)
        << ")\n";
  }
  out << "Cost time: " << fixed(epoch.seconds, 2) << " sec. (train "
      << fixed(epoch.train_seconds, 2) << ", validation " << fixed(epoch.eval_seconds, 2) << "; "
      << fixed(epoch.samples_per_second(), 0) << " samples/s)\n"
      << std::flush;
}

void write_train_end(std::ostream& out, const TrainEnd& end) {
  out << kRule << '\n';
  if (end.interrupted) {
    out << "training interrupted after " << end.epochs << " whole epochs.\n";
  } else if (end.stopped_early) {
    out << "training done: no lower validation loss since epoch " << end.best_epoch << ".\n";
  } else {
    out << "training done.\n";
  }
  if (end.restored_best && end.best_epoch >= 0) {
    out << "weights of epoch " << end.best_epoch << " restored\n";
  }
  if (end.test) {
    out << "Test Accuracy: " << percent(end.test->accuracy()) << " (loss "
        << fixed(end.test->loss, 4) << ", " << end.test->correct << " of " << end.test->samples
        << ")\n";
  }
  out << "Total time: " << fixed(end.seconds, 2) << " sec.\n"
      << "run folder: " << end.run_folder.string() << '\n'
      << "weights: " << end.weights.string() << '\n';
  if (end.interrupted) {
    out << "go on with: mnist_multi_gpu --resume " << end.run_folder.string() << '\n';
  }
  out << std::flush;
}

void write_eval(std::ostream& out, const EvalReport& report) {
  out << "weights: " << report.weights.string() << '\n'
      << "data: " << report.dataset << ", " << report.split << ", " << report.stats.samples
      << " samples\n"
      << "devices: " << report.devices << '\n'
      << "Loss: " << fixed(report.stats.loss, 6) << '\n'
      << "Accuracy: " << percent(report.stats.accuracy()) << " (" << report.stats.correct << " of "
      << report.stats.samples << ")\n"
      << "Cost time: " << fixed(report.stats.seconds, 2) << " sec.\n\n"
      << "class  samples     right    predicted as";
  for (std::size_t c = 0; c < report.confusion.size(); ++c) out << right(std::to_string(c), 6);
  out << '\n';
  for (std::size_t c = 0; c < report.confusion.size(); ++c) {
    const auto& row = report.confusion[c];
    std::int64_t samples = 0;
    for (const std::int64_t count : row) samples += count;
    const double share =
        samples == 0 ? 0 : static_cast<double>(row[c]) / static_cast<double>(samples);
    out << right(std::to_string(c), 5) << right(std::to_string(samples), 9)
        << right(samples == 0 ? "-" : fixed(100 * share, 2) + "%", 10) << std::string(16, ' ');
    for (const std::int64_t count : row) {
      out << right(count == 0 ? "." : std::to_string(count), 6);
    }
    out << '\n';
  }
  out << std::flush;
}

std::string preview(const std::vector<float>& pixels, std::size_t width) {
  constexpr std::string_view kShades = " .:-=+*#%@";
  std::string text;
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    const float shade = std::clamp(pixels[i], 0.0F, 1.0F) * static_cast<float>(kShades.size() - 1);
    // Characters are about twice as high as wide.
    text += std::string(2, kShades[static_cast<std::size_t>(std::lround(shade))]);
    if ((i + 1) % width == 0) {
      text.erase(text.find_last_not_of(' ') + 1);
      text += '\n';
    }
  }
  return text;
}

}  // namespace lockstep::apps
