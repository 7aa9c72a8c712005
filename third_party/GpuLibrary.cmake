# What FindCUDNN and FindNCCL share: the places where such a library may be, and an imported target for it. They are
# installed with Lockstep, for those who link it.
include(${CMAKE_CURRENT_LIST_DIR}/GpuPlaces.cmake)
include(FindPackageHandleStandardArgs)

# lockstep_gpu_library(PART NAME HEADER): finds NAME by PART_ROOT, beside the toolkit, or as a wheel of Python, which
# has no link without a version; HEADER has the version. Sets PART_LIBRARY and LOCKSTEP_PART_PLACES, the places.
macro(lockstep_gpu_library part name header)
  set(LOCKSTEP_${part}_PLACES ${${part}_ROOT} $ENV{${part}_ROOT} $ENV{${part}_PATH} ${CUDAToolkit_LIBRARY_ROOT}
      ${CUDAToolkit_TARGET_DIR} ${LOCKSTEP_NAMED_PLACES} ${LOCKSTEP_USUAL_PLACES} ${LOCKSTEP_SITE_PACKAGES}/nvidia/${name})
  list(REMOVE_DUPLICATES LOCKSTEP_${part}_PLACES)
  find_path(${part}_INCLUDE_DIR ${header} HINTS ${LOCKSTEP_${part}_PLACES} PATH_SUFFIXES include)
  if(${part}_INCLUDE_DIR)
    file(STRINGS ${${part}_INCLUDE_DIR}/${header} lockstep_defines
         REGEX "#define ${part}_(MAJOR|MINOR|PATCHLEVEL|PATCH) +[0-9]+")
    string(REGEX REPLACE ".*${part}_MAJOR +([0-9]+).*" "\\1" lockstep_major "${lockstep_defines}")
    string(REGEX REPLACE ".*${part}_MINOR +([0-9]+).*" "\\1" lockstep_minor "${lockstep_defines}")
    string(REGEX REPLACE ".*${part}_PATCH(LEVEL)? +([0-9]+).*" "\\2" lockstep_patch "${lockstep_defines}")
    set(${part}_VERSION ${lockstep_major}.${lockstep_minor}.${lockstep_patch})
  endif()
  find_library(${part}_LIBRARY NAMES ${name} lib${name}.so.${lockstep_major} NAMES_PER_DIR
               HINTS ${LOCKSTEP_${part}_PLACES} PATH_SUFFIXES lib lib64 lib/x64)
  find_package_handle_standard_args(${part} REQUIRED_VARS ${part}_LIBRARY ${part}_INCLUDE_DIR
                                    VERSION_VAR ${part}_VERSION)
  mark_as_advanced(${part}_LIBRARY ${part}_INCLUDE_DIR)
  if(${part}_FOUND AND NOT TARGET ${part}::${part})
    add_library(${part}::${part} UNKNOWN IMPORTED)
    set_target_properties(${part}::${part} PROPERTIES IMPORTED_LOCATION ${${part}_LIBRARY}
                                                      INTERFACE_INCLUDE_DIRECTORIES ${${part}_INCLUDE_DIR})
  endif()
endmacro()
