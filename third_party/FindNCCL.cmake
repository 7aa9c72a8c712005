# NCCL 2: the target NCCL::NCCL. NCCL_ROOT names a place to look first.
include(${CMAKE_CURRENT_LIST_DIR}/GpuLibrary.cmake)
lockstep_gpu_library(NCCL nccl nccl.h)
