# One step of using Lockstep from outside, in the folder WORK:
#   STEP=install       installs the tree BUILD and moves it away from where it was installed
#   STEP=find_package  builds the consumer by find_package against the moved tree and runs it
#   STEP=pkg_config    the same by a plain compiler call with the flags that PKG_CONFIG gives
#   STEP=subproject    the same with the sources SOURCE as a part of the consumer
# DEPENDENCIES lists folders where packages are looked for, COMPILER is the C++ compiler, CUDA is LOCKSTEP_CUDA of BUILD.
cmake_minimum_required(VERSION 3.25)

set(moved ${WORK}/moved)
set(here ${CMAKE_CURRENT_LIST_DIR})
set(folder ${WORK}/${STEP})
list(JOIN DEPENDENCIES ":" dependencies)
set(ENV{CMAKE_PREFIX_PATH} "${dependencies}")

function(run)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${folder} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${folder})
file(MAKE_DIRECTORY ${folder})

if(STEP STREQUAL "install")
  run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${folder}/tree)
  file(GLOB inside ${folder}/tree/include/lockstep/*/*)
  foreach(entry ${inside})
    if(IS_DIRECTORY ${entry})
      message(FATAL_ERROR "headers of a subfolder were installed: ${entry}")
    endif()
  endforeach()
  file(GLOB_RECURSE texts ${folder}/tree/*.cmake ${folder}/tree/*.pc ${folder}/tree/*.h)
  foreach(text ${texts})
    file(STRINGS ${text} lines REGEX "${folder}|${BUILD}")
    if(lines)
      message(FATAL_ERROR "${text} names a folder of this machine: ${lines}")
    endif()
  endforeach()
  file(REMOVE_RECURSE ${moved})
  file(RENAME ${folder}/tree ${moved})

elseif(STEP STREQUAL "pkg_config")
  file(GLOB_RECURSE pc ${moved}/lockstep.pc)
  get_filename_component(pc_folder ${pc} DIRECTORY)
  set(ENV{PKG_CONFIG_PATH} ${pc_folder})
  execute_process(COMMAND ${PKG_CONFIG} --cflags --libs lockstep OUTPUT_VARIABLE flags COMMAND_ERROR_IS_FATAL ANY
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  foreach(dependency ${DEPENDENCIES})
    list(APPEND flags -L${dependency}/lib -L${dependency}/lib/${ARCHITECTURE})
  endforeach()
  run(${COMPILER} ${here}/consumer/main.cpp -o consumer ${flags})
  run(${folder}/consumer)

else()
  if(STEP STREQUAL "subproject")
    set(options -DLOCKSTEP_SOURCE=${SOURCE} -DLOCKSTEP_CUDA=${CUDA})
  else()
    set(options -Dlockstep_ROOT=${moved})
  endif()
  run(${CMAKE_COMMAND} -S ${here}/consumer -B build -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${COMPILER} ${options})
  run(${CMAKE_COMMAND} --build build)
  run(${folder}/build/consumer)
endif()
