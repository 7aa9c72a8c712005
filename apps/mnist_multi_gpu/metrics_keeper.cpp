#include "apps/mnist_multi_gpu/metrics_keeper.h"

#include <utility>

#include "lockstep/core/error.h"

namespace lockstep::apps {

MetricsKeeper::MetricsKeeper(const RunFolder& folder, int next_epoch, LogSink log)
    : writer_(folder, next_epoch), log_(std::move(log)) {}

void MetricsKeeper::add(const EpochStats& epoch) {
  waiting_.push_back(epoch);
  if (written() || !log_) return;
  log_(LogLevel::warning,
       message("the figures of ", waiting_.size(), " epochs wait: ", trouble_,
               "; training goes on, without checkpoints until they are written"));
}

bool MetricsKeeper::written() {
  trouble_.clear();
  try {
    for (; !waiting_.empty(); waiting_.pop_front()) writer_.add(waiting_.front());
  } catch (const IoError& error) {
    trouble_ = error.what();
  }
  return trouble_.empty();
}

}  // namespace lockstep::apps
