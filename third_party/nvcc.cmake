# Looks for nvcc: sets LOCKSTEP_NVCC, and LOCKSTEP_NVCC_PROBLEM to what is wrong where there is none or it is too old.
# As a script it prints nvcc's path on stdout, or what is wrong on stderr:
#   cmake -P third_party/nvcc.cmake

set(lockstep_minimum_CUDA 12.4)
include(${CMAKE_CURRENT_LIST_DIR}/GpuPlaces.cmake)

if(CMAKE_CUDA_COMPILER)
  set(LOCKSTEP_NVCC ${CMAKE_CUDA_COMPILER})
endif()
find_program(LOCKSTEP_NVCC nvcc HINTS ${LOCKSTEP_NAMED_PLACES} PATHS ${LOCKSTEP_USUAL_PLACES} PATH_SUFFIXES bin)
set(LOCKSTEP_NVCC_PROBLEM "")
if(LOCKSTEP_NVCC)
  execute_process(COMMAND ${LOCKSTEP_NVCC} --version OUTPUT_VARIABLE lockstep_nvcc_text ERROR_QUIET)
  string(REGEX MATCH "release ([0-9]+\\.[0-9]+)" lockstep_ignored "${lockstep_nvcc_text}")
  set(lockstep_nvcc_version "${CMAKE_MATCH_1}")
  if(lockstep_nvcc_version VERSION_LESS lockstep_minimum_CUDA)
    set(LOCKSTEP_NVCC_PROBLEM
        "${LOCKSTEP_NVCC} is version '${lockstep_nvcc_version}', ${lockstep_minimum_CUDA} is needed")
  endif()
else()
  list(JOIN LOCKSTEP_NAMED_PLACES ", " lockstep_named)
  list(JOIN LOCKSTEP_USUAL_PLACES ", " lockstep_usual)
  set(LOCKSTEP_NVCC_PROBLEM "there is no nvcc on the PATH or in bin of: ${lockstep_named} ${lockstep_usual}")
endif()

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  if(LOCKSTEP_NVCC_PROBLEM)
    message("${LOCKSTEP_NVCC_PROBLEM}")
  else()
    execute_process(COMMAND ${CMAKE_COMMAND} -E echo ${LOCKSTEP_NVCC})
  endif()
endif()
