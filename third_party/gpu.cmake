# CUDA, cuDNN and NCCL: what is found, what is switched off, and why. Sets LOCKSTEP_HAS_CUDA, LOCKSTEP_HAS_CUDNN and
# LOCKSTEP_HAS_NCCL to true or false.
#
# Each of LOCKSTEP_CUDA, LOCKSTEP_CUDNN, LOCKSTEP_NCCL is AUTO (use it where it is), ON (an error where it is not) or
# OFF.

set(lockstep_minimum_CUDNN 9.0)
set(lockstep_minimum_NCCL 2.18)

set(LOCKSTEP_CUDA AUTO CACHE STRING "The CUDA backend: AUTO, ON or OFF")
set(LOCKSTEP_CUDNN AUTO CACHE STRING "Convolutions by cuDNN: AUTO, ON or OFF")
set(LOCKSTEP_NCCL AUTO CACHE STRING "Training on several GPUs by NCCL: AUTO, ON or OFF")
foreach(part CUDA CUDNN NCCL)
  set_property(CACHE LOCKSTEP_${part} PROPERTY STRINGS AUTO ON OFF)
  if(NOT LOCKSTEP_${part} MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "LOCKSTEP_${part}=${LOCKSTEP_${part}}: want AUTO, ON or OFF")
  endif()
  set(LOCKSTEP_HAS_${part} false)
endforeach()

# lockstep_without(PART REASON): notes why a part is off; an error where it was asked for.
function(lockstep_without part reason)
  if(LOCKSTEP_${part} STREQUAL "ON")
    message(FATAL_ERROR "LOCKSTEP_${part}=ON, but ${reason}")
  endif()
  message(STATUS "Lockstep: ${part} is off: ${reason}")
endfunction()

# lockstep_find_gpu_library(PART): cuDNN or NCCL by its find module.
macro(lockstep_find_gpu_library part)
  if(NOT LOCKSTEP_HAS_CUDA)
    lockstep_without(${part} "CUDA is off")
  elseif(LOCKSTEP_${part} STREQUAL "OFF")
    lockstep_without(${part} "LOCKSTEP_${part}=OFF")
  else()
    find_package(${part} QUIET)
    if(NOT ${part}_FOUND)
      list(JOIN LOCKSTEP_${part}_PLACES ", " lockstep_places)
      lockstep_without(${part} "it was not found in ${lockstep_places}; name its place with -D ${part}_ROOT=DIR")
    elseif(${part}_VERSION VERSION_LESS lockstep_minimum_${part})
      lockstep_without(${part}
        "${${part}_LIBRARY} is version ${${part}_VERSION}, ${lockstep_minimum_${part}} is needed")
    else()
      set(LOCKSTEP_HAS_${part} true)
      message(STATUS "Lockstep: ${part} ${${part}_VERSION}, ${${part}_LIBRARY}")
    endif()
  endif()
endmacro()

include(${CMAKE_CURRENT_LIST_DIR}/toolkit.cmake)
lockstep_find_gpu_library(CUDNN)
lockstep_find_gpu_library(NCCL)
