# What FindCUDNN and FindNCCL share: the places where such a library may be, and an imported target for it.

# Next to the toolkit, in a conda environment, or where Python's wheels put it: those have no link without a version.
set(LOCKSTEP_GPU_LIBRARY_ROOTS ${CUDAToolkit_LIBRARY_ROOT} ${CUDAToolkit_TARGET_DIR} $ENV{CUDA_PATH} $ENV{CONDA_PREFIX}
                               $ENV{CONDA_PREFIX}/targets/x86_64-linux /usr/local/cuda)
if(NOT DEFINED LOCKSTEP_SITE_PACKAGES)
  find_program(LOCKSTEP_PYTHON NAMES python3)
  if(LOCKSTEP_PYTHON)
    execute_process(COMMAND ${LOCKSTEP_PYTHON} -c "import sysconfig; print(sysconfig.get_paths()['purelib'])"
                    OUTPUT_VARIABLE site OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
  set(LOCKSTEP_SITE_PACKAGES "${site}" CACHE PATH "Where Python keeps the wheels of NVIDIA's libraries")
endif()

# lockstep_gpu_library(PART NAME HEADER): sets PART_INCLUDE_DIR and PART_LIBRARY. HEADER has the version.
macro(lockstep_gpu_library part name header)
  list(APPEND LOCKSTEP_GPU_LIBRARY_ROOTS ${LOCKSTEP_SITE_PACKAGES}/nvidia/${name})
  set(lockstep_roots ${${part}_ROOT} $ENV{${part}_ROOT} $ENV{${part}_PATH} ${LOCKSTEP_GPU_LIBRARY_ROOTS})
  find_path(${part}_INCLUDE_DIR ${header} HINTS ${lockstep_roots} ${CUDAToolkit_INCLUDE_DIRS} PATH_SUFFIXES include)
  if(${part}_INCLUDE_DIR)
    file(STRINGS ${${part}_INCLUDE_DIR}/${header} lockstep_defines REGEX "#define ${part}_(MAJOR|MINOR|PATCHLEVEL|PATCH) +[0-9]+")
    string(REGEX REPLACE ".*${part}_MAJOR +([0-9]+).*" "\\1" lockstep_major "${lockstep_defines}")
    string(REGEX REPLACE ".*${part}_MINOR +([0-9]+).*" "\\1" lockstep_minor "${lockstep_defines}")
    string(REGEX REPLACE ".*${part}_PATCH(LEVEL)? +([0-9]+).*" "\\2" lockstep_patch "${lockstep_defines}")
    set(${part}_VERSION ${lockstep_major}.${lockstep_minor}.${lockstep_patch})
  endif()
  find_library(${part}_LIBRARY NAMES ${name} lib${name}.so.${lockstep_major} NAMES_PER_DIR
               HINTS ${lockstep_roots} ${CUDAToolkit_LIBRARY_DIR} PATH_SUFFIXES lib lib64 lib/x64)
  include(FindPackageHandleStandardArgs)
  find_package_handle_standard_args(${part} REQUIRED_VARS ${part}_LIBRARY ${part}_INCLUDE_DIR VERSION_VAR ${part}_VERSION)
  mark_as_advanced(${part}_LIBRARY ${part}_INCLUDE_DIR)
  if(${part}_FOUND AND NOT TARGET ${part}::${part})
    add_library(${part}::${part} UNKNOWN IMPORTED)
    set_target_properties(${part}::${part} PROPERTIES IMPORTED_LOCATION ${${part}_LIBRARY}
                                                      INTERFACE_INCLUDE_DIRECTORIES ${${part}_INCLUDE_DIR})
  endif()
endmacro()
