# Where NVIDIA's toolkit and libraries may be: LOCKSTEP_NAMED_PLACES, which somebody has named, before the PATH is looked
# at, and LOCKSTEP_USUAL_PLACES after it.

# Python's wheels lie in the site-packages of the interpreter on the PATH.
if(NOT DEFINED LOCKSTEP_SITE_PACKAGES)
  find_program(LOCKSTEP_PYTHON NAMES python3)
  mark_as_advanced(LOCKSTEP_PYTHON)
  if(LOCKSTEP_PYTHON)
    execute_process(COMMAND ${LOCKSTEP_PYTHON} -c "import sysconfig; print(sysconfig.get_paths()['purelib'])"
                    OUTPUT_VARIABLE lockstep_site OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
  set(LOCKSTEP_SITE_PACKAGES "${lockstep_site}" CACHE PATH "Where Python keeps the wheels of NVIDIA's libraries")
endif()

set(LOCKSTEP_NAMED_PLACES ${CUDAToolkit_ROOT} $ENV{CUDAToolkit_ROOT} $ENV{CUDA_PATH} $ENV{CUDA_HOME})

file(GLOB lockstep_versions LIST_DIRECTORIES true /usr/local/cuda-*)
file(GLOB lockstep_wheels LIST_DIRECTORIES true ${LOCKSTEP_SITE_PACKAGES}/nvidia/cu[0-9]*)
list(SORT lockstep_versions COMPARE NATURAL ORDER DESCENDING)
list(SORT lockstep_wheels COMPARE NATURAL ORDER DESCENDING)
set(LOCKSTEP_USUAL_PLACES "")
if(DEFINED ENV{CONDA_PREFIX})
  list(APPEND LOCKSTEP_USUAL_PLACES $ENV{CONDA_PREFIX} $ENV{CONDA_PREFIX}/targets/x86_64-linux)
endif()
list(APPEND LOCKSTEP_USUAL_PLACES /usr/local/cuda ${lockstep_versions} /opt/cuda ${lockstep_wheels})
