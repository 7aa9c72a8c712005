# Finds the CUDA toolkit, enables the language and sets LOCKSTEP_HAS_CUDA to true; or says why not.

if(LOCKSTEP_CUDA STREQUAL "OFF")
  lockstep_without(CUDA "LOCKSTEP_CUDA=OFF")
  return()
endif()
include(${CMAKE_CURRENT_LIST_DIR}/nvcc.cmake)
if(LOCKSTEP_NVCC_PROBLEM)
  lockstep_without(CUDA "${LOCKSTEP_NVCC_PROBLEM}")
  return()
endif()
set(CMAKE_CUDA_COMPILER ${LOCKSTEP_NVCC})
# One list of architectures, of which nvcc takes those it knows: code for the named ones, and from the last on
# what the driver compiles for newer ones.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  execute_process(COMMAND ${CMAKE_CUDA_COMPILER} --list-gpu-arch OUTPUT_VARIABLE lockstep_nvcc_architectures)
  set(CMAKE_CUDA_ARCHITECTURES "")
  foreach(architecture 75 80-real 86-real 89-real 90 100-real 120)
    string(REGEX REPLACE "-real" "" lockstep_number ${architecture})
    if(lockstep_nvcc_architectures MATCHES "compute_${lockstep_number}\n")
      list(APPEND CMAKE_CUDA_ARCHITECTURES ${architecture})
    endif()
  endforeach()
endif()
# Python's wheels have their libraries in lib, where this nvcc does not look by itself.
get_filename_component(lockstep_toolkit ${CMAKE_CUDA_COMPILER} DIRECTORY)
get_filename_component(lockstep_toolkit ${lockstep_toolkit} DIRECTORY)
set(ENV{LIBRARY_PATH} "${lockstep_toolkit}/lib:$ENV{LIBRARY_PATH}")
enable_language(CUDA)
# CMake 3.25 passes no -std for C++20 in CUDA.
set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
# One runtime for all: the shared one, linked by its place as CUDA::cudart; tests replace it.
set(CMAKE_CUDA_RUNTIME_LIBRARY None)
# Nor have they links without a version, which is all that FindCUDAToolkit looks for. cuBLAS may come as a wheel beside a
# toolkit that lacks it: of the same major version then, as the name says.
string(REGEX MATCH "^[0-9]+" lockstep_cuda_major ${CMAKE_CUDA_COMPILER_VERSION})
foreach(variable_library CUDA_CUDART:cudart CUDA_cudart_LIBRARY:cudart CUDA_cublas_LIBRARY:cublas)
  string(REGEX MATCH "(.*):(.*)" lockstep_ignored ${variable_library})
  set(lockstep_suffixes lib64 lib targets/x86_64-linux/lib)
  find_library(${CMAKE_MATCH_1} NAMES ${CMAKE_MATCH_2} lib${CMAKE_MATCH_2}.so.${lockstep_cuda_major} NAMES_PER_DIR
               HINTS ${lockstep_toolkit} PATH_SUFFIXES ${lockstep_suffixes})
  find_library(${CMAKE_MATCH_1} NAMES lib${CMAKE_MATCH_2}.so.${lockstep_cuda_major}
               HINTS ${lockstep_wheels} ${LOCKSTEP_SITE_PACKAGES}/nvidia/cublas ${LOCKSTEP_USUAL_PLACES}
               PATH_SUFFIXES ${lockstep_suffixes})
endforeach()
find_package(CUDAToolkit ${lockstep_minimum_CUDA})
if(NOT TARGET CUDA::cudart OR NOT TARGET CUDA::cublas)
  lockstep_without(CUDA "the toolkit of ${CMAKE_CUDA_COMPILER} lacks libcudart or libcublas, and no wheel of Python has it")
  return()
endif()
get_filename_component(lockstep_beside ${CUDA_cublas_LIBRARY} DIRECTORY)
find_path(LOCKSTEP_CUBLAS_INCLUDE_DIR cublas_v2.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ${lockstep_beside}/../include NO_DEFAULT_PATH)
mark_as_advanced(LOCKSTEP_CUBLAS_INCLUDE_DIR)
if(NOT LOCKSTEP_CUBLAS_INCLUDE_DIR)
  lockstep_without(CUDA "cublas_v2.h is neither in ${CUDAToolkit_INCLUDE_DIRS} nor in ${lockstep_beside}/../include")
  return()
endif()
target_include_directories(CUDA::cublas SYSTEM INTERFACE ${LOCKSTEP_CUBLAS_INCLUDE_DIR})
set(LOCKSTEP_HAS_CUDA true)
message(STATUS "Lockstep: CUDA ${CUDAToolkit_VERSION}, architectures ${CMAKE_CUDA_ARCHITECTURES}")
message(STATUS "Lockstep: CUBLAS, ${CUDA_cublas_LIBRARY}")
