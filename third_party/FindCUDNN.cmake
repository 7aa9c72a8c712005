# cuDNN 9: the target CUDNN::CUDNN. CUDNN_ROOT names a place to look first.
include(${CMAKE_CURRENT_LIST_DIR}/GpuLibrary.cmake)
lockstep_gpu_library(CUDNN cudnn cudnn_version.h)
