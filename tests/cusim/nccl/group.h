// ncclGroupStart and ncclGroupEnd: calls of one thread that take effect together.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "nccl/communicator.h"

namespace cusim {

void start_group();
/// Ends the innermost group; the outermost one carries out its calls. Returns the first error of a
/// call inside; ncclInProgress when a communicator does not block.
ncclResult_t end_group();

/// Does `communicator`'s start now, or at the end of the group.
ncclResult_t start_in_group(ncclComm& communicator);
/// Submits a collective now, or at the end of the group.
ncclResult_t submit_in_group(ncclComm& communicator, const char* call, const Collective& collective,
                             cudaStream_t stream);
/// Passes `error` on, and lets the group, if there is one, end with it.
ncclResult_t fail_group(ncclResult_t error);

}  // namespace cusim
