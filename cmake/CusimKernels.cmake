# Kernels for the simulated CUDA runtime, from the object files of nvcc.

# cusim_kernels(NAME ARCH OBJECT_LIBRARY...): the module NAME with all kernels of the libraries' .cu files, translated
# from the PTX embedded for compute_ARCH, one C++ file per object. Programs find it by
# CUSIM_KERNELS=$<TARGET_FILE:NAME>. The libraries must have all their sources by now and be compiled with `ARCH-virtual`
# among their architectures and with --no-compress.
function(cusim_kernels name arch)
  set(translations)
  foreach(library ${ARGN})
    get_target_property(folder ${library} SOURCE_DIR)
    get_target_property(sources ${library} SOURCES)
    list(FILTER sources INCLUDE REGEX "[.]cu$")
    foreach(source ${sources})
      get_filename_component(source ${source} ABSOLUTE BASE_DIR ${folder})
      file(RELATIVE_PATH source ${folder} ${source})
      string(REPLACE "../" "" source ${source})  # the end of the object's path, whatever CMake puts before it
      string(REPLACE "." "[.]" pattern "${source}")
      set(object "$<FILTER:$<TARGET_OBJECTS:${library}>,INCLUDE,/${pattern}[.]o$>")
      set(translation ${CMAKE_CURRENT_BINARY_DIR}/${name}/${source}.cpp)
      get_filename_component(translation_folder ${translation} DIRECTORY)
      file(MAKE_DIRECTORY ${translation_folder})
      add_custom_command(OUTPUT ${translation}
        COMMAND ptx2cpp --arch ${arch} -o ${translation} ${object}
        DEPENDS ptx2cpp ${library} ${object}
        COMMENT "Translating PTX of ${source}" VERBATIM)
      list(APPEND translations ${translation})
    endforeach()
  endforeach()
  if(NOT translations)
    message(FATAL_ERROR "cusim_kernels(${name}): no .cu file in ${ARGN}")
  endif()

  add_library(${name} MODULE ${translations})
  target_link_libraries(${name} PRIVATE cusim_settings cusim_cudart cusim_unsanitized)
  # The host rounds as the PTX says: a fused multiply-add only where there is one. Machine-made code is compiled without
  # warnings, and at -O1, which builds a third faster than -O2 and runs as fast.
  target_compile_options(${name} PRIVATE -O1 -mfma -mf16c -ffp-contract=off -fno-strict-aliasing -w)
  target_precompile_headers(${name} PRIVATE ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../tests/cusim/ptx/ptx_runtime.h)
endfunction()
