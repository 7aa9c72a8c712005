#include "nccl/group.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/device_api.h"

namespace cusim {
namespace {

struct Call {
  ncclComm* communicator;
  const char* name;
  Collective collective;
  cudaStream_t stream;
};

struct Group {
  int depth = 0;
  ncclResult_t error = ncclSuccess;
  std::vector<ncclComm*> starts;
  std::vector<Call> calls;
};

thread_local Group group;

ncclResult_t carry_out(const Group& all) {
  if (!all.starts.empty() && !all.calls.empty()) {
    return refuse(ncclInvalidUsage,
                  "nccl: a group creates communicators or communicates, not both");
  }
  const auto captured = [](const Call& call) { return capturing(call.stream); };
  if (std::any_of(all.calls.begin(), all.calls.end(), captured) &&
      !std::all_of(all.calls.begin(), all.calls.end(), captured)) {
    return refuse(ncclInvalidUsage, "nccl: some calls of a group are captured, others are not");
  }
  ncclResult_t result = ncclSuccess;
  const auto keep = [&](ncclResult_t next) {
    if (result == ncclSuccess || (result == ncclInProgress && next != ncclSuccess)) result = next;
  };
  for (ncclComm* communicator : all.starts) keep(communicator->start());
  for (const Call& call : all.calls) {
    keep(call.communicator->submit(call.name, call.collective, call.stream));
  }
  return result;
}

}  // namespace

void start_group() {
  ++group.depth;
}

ncclResult_t end_group() {
  if (group.depth == 0) {
    return refuse(ncclInvalidUsage, "ncclGroupEnd: no group has been started");
  }
  if (--group.depth > 0) return ncclSuccess;
  const Group all = std::exchange(group, {});
  return all.error != ncclSuccess ? all.error : carry_out(all);
}

ncclResult_t start_in_group(ncclComm& communicator) {
  if (group.depth == 0) return communicator.start();
  group.starts.push_back(&communicator);
  return ncclSuccess;
}

ncclResult_t submit_in_group(ncclComm& communicator, const char* call, const Collective& collective,
                             cudaStream_t stream) {
  if (group.depth == 0) return communicator.submit(call, collective, stream);
  group.calls.push_back({&communicator, call, collective, stream});
  return ncclSuccess;
}

ncclResult_t fail_group(ncclResult_t error) {
  if (group.depth > 0 && group.error == ncclSuccess) group.error = error;
  return error;
}

}  // namespace cusim
