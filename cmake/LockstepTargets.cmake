# The targets of the library: one object library per folder, one archive of them all.

include(GNUInstallDirs)

# Compiler settings that all of our own code shares.
add_library(lockstep_settings INTERFACE)
target_compile_features(lockstep_settings INTERFACE cxx_std_20)
set(lockstep_warnings -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion $<$<BOOL:${LOCKSTEP_WERROR}>:-Werror>)
target_compile_options(lockstep_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:${lockstep_warnings}>)
if(LOCKSTEP_SANITIZE STREQUAL "address")
  set(lockstep_sanitizers -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
elseif(LOCKSTEP_SANITIZE STREQUAL "thread")
  set(lockstep_sanitizers -fsanitize=thread)
elseif(LOCKSTEP_SANITIZE)
  message(FATAL_ERROR "LOCKSTEP_SANITIZE=${LOCKSTEP_SANITIZE}: want address, thread or nothing")
endif()
if(LOCKSTEP_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 sees uninitialised members in std::regex where a sanitizer has changed the code.
  list(APPEND lockstep_sanitizers -Wno-maybe-uninitialized)
endif()
target_compile_options(lockstep_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:${lockstep_sanitizers}>)
target_link_options(lockstep_settings INTERFACE ${lockstep_sanitizers})
find_package(Threads REQUIRED)
target_link_libraries(lockstep_settings INTERFACE Threads::Threads)

# Includes read "lockstep/core/tensor.h": the build tree has one link per public folder and config.h.
set(LOCKSTEP_INCLUDE_DIR ${PROJECT_BINARY_DIR}/include)
file(MAKE_DIRECTORY ${LOCKSTEP_INCLUDE_DIR}/lockstep)
target_include_directories(lockstep_settings INTERFACE ${LOCKSTEP_INCLUDE_DIR})

string(TOLOWER "${CMAKE_SYSTEM_PROCESSOR}" lockstep_processor)
if(lockstep_processor MATCHES "^(x86_64|amd64)$")
  set(LOCKSTEP_HAS_X86_SETS true)
  set(LOCKSTEP_CPU_SETS baseline avx2 avx512)
else()
  set(LOCKSTEP_HAS_X86_SETS false)
  set(LOCKSTEP_CPU_SETS baseline)
endif()
set(lockstep_flags_baseline "")
set(lockstep_flags_avx2 -mavx2 -mfma)
option(LOCKSTEP_SIXTEEN_LANES "For tests: compute the AVX2 set with the vectors of AVX-512, slowly" OFF)
mark_as_advanced(LOCKSTEP_SIXTEEN_LANES)
if(LOCKSTEP_SIXTEEN_LANES)
  list(APPEND lockstep_flags_avx2 -DLOCKSTEP_SIXTEEN_LANES -Wno-psabi)
endif()
set(lockstep_flags_avx512 -mavx2 -mfma -mavx512f -mavx512vl -mavx512bw -mavx512dq -mprefer-vector-width=512)
set(lockstep_cuda_architectures "")
if(LOCKSTEP_HAS_CUDA)
  list(JOIN CMAKE_CUDA_ARCHITECTURES ", " lockstep_cuda_architectures)
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/config.h.in ${LOCKSTEP_INCLUDE_DIR}/lockstep/config.h @ONLY)

# lockstep_folder(NAME [folders it may use...]): the object library lockstep_NAME of the folder NAME.
function(lockstep_folder name)
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${name} ${LOCKSTEP_INCLUDE_DIR}/lockstep/${name} SYMBOLIC)
  add_library(lockstep_${name} OBJECT "")
  target_link_libraries(lockstep_${name} PUBLIC $<BUILD_INTERFACE:lockstep_settings>)
  add_subdirectory(${PROJECT_SOURCE_DIR}/${name})
  set_property(GLOBAL APPEND PROPERTY LOCKSTEP_FOLDERS ${name})
endfunction()

# lockstep_cpu_sources(NAME FILE...): compiles each file once per CPU instruction set, in a namespace of that name: the
# object libraries NAME_SET.
# Such a file includes nothing with inline functions: the linker would keep one set's copy for all.
function(lockstep_cpu_sources name)
  foreach(set ${LOCKSTEP_CPU_SETS})
    add_library(${name}_${set} OBJECT ${ARGN})
    target_link_libraries(${name}_${set} PRIVATE lockstep_settings)
    target_compile_options(${name}_${set} PRIVATE ${lockstep_flags_${set}} -fno-math-errno -fno-trapping-math
                                                  -ffp-contract=fast)
    # Nothing in them throws. What AddressSanitizer would clean up behind an exception needs a symbol of all sets.
    target_compile_options(${name}_${set} PRIVATE -fno-exceptions)
    # GCC would keep what one step of a loop has loaded for the next, in registers that the tiles have filled.
    target_compile_options(${name}_${set} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fno-predictive-commoning>)
    target_compile_definitions(${name}_${set} PRIVATE LOCKSTEP_CPU_SET=${set})
  endforeach()
endfunction()

if(LOCKSTEP_HAS_CUDA)
  # The libraries that folders named cuda and nccl call.
  set(lockstep_gpu_libraries CUDA::cudart CUDA::cublas ${CMAKE_DL_LIBS})
  foreach(part CUDNN NCCL)
    if(LOCKSTEP_HAS_${part})
      list(APPEND lockstep_gpu_libraries ${part}::${part})
    endif()
  endforeach()
endif()

# lockstep_cuda_sources(FOLDER FILE...): the object library lockstep_FOLDER_cuda of these files; a second call adds to
# it. A build without the toolkit has no such library.
function(lockstep_cuda_sources folder)
  if(NOT LOCKSTEP_HAS_CUDA)
    return()
  endif()
  set(target lockstep_${folder}_cuda)
  if(NOT TARGET ${target})
    add_library(${target} OBJECT "")
    target_link_libraries(${target} PUBLIC $<BUILD_INTERFACE:lockstep_settings> ${lockstep_gpu_libraries})
    # Line numbers for profilers and tests, PTX as text, which the tests translate. No fast math.
    target_compile_options(${target} PRIVATE
      "$<$<COMPILE_LANGUAGE:CUDA>:-lineinfo;--no-compress;--expt-relaxed-constexpr;-Xcompiler=-Wall,-Wextra>"
      "$<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${LOCKSTEP_WERROR}>>:--Werror=all-warnings>")
    set_property(GLOBAL APPEND PROPERTY LOCKSTEP_CUDA_TARGETS ${target})
  endif()
  list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  target_sources(${target} PRIVATE ${ARGN})
endfunction()

# The static library `lockstep` (alias lockstep::lockstep) of all folders.
function(lockstep_library)
  get_property(folders GLOBAL PROPERTY LOCKSTEP_FOLDERS)
  add_library(lockstep STATIC)
  add_library(lockstep::lockstep ALIAS lockstep)
  foreach(folder ${folders})
    target_sources(lockstep PRIVATE $<TARGET_OBJECTS:lockstep_${folder}>)
  endforeach()
  foreach(set ${LOCKSTEP_CPU_SETS})
    target_sources(lockstep PRIVATE $<TARGET_OBJECTS:lockstep_cpu_${set}>)
  endforeach()
  get_property(cuda_targets GLOBAL PROPERTY LOCKSTEP_CUDA_TARGETS)
  foreach(target ${cuda_targets})
    target_sources(lockstep PRIVATE $<TARGET_OBJECTS:${target}>)
  endforeach()
  target_link_libraries(lockstep PRIVATE ${lockstep_gpu_libraries})
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/lockstep.h ${LOCKSTEP_INCLUDE_DIR}/lockstep/lockstep.h SYMBOLIC)
  target_compile_features(lockstep PUBLIC cxx_std_20)
  target_include_directories(lockstep PUBLIC $<BUILD_INTERFACE:${LOCKSTEP_INCLUDE_DIR}>
                                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(lockstep PUBLIC Threads::Threads PRIVATE ZLIB::ZLIB $<BUILD_INTERFACE:lockstep_settings>)
endfunction()
