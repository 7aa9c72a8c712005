# Looks into the archive: it defines names of lockstep only (beside inline code of others, which the linker merges),
# it neither prints nor ends the process, and files compiled once per CPU set define no inline function: the linker
# would keep one set's copy for all.
cmake_minimum_required(VERSION 3.25)

set(ours "^_Z(Th?n?[0-9]+_|T[VISTC]|GV|GR|Z)*N?[KVRO]*N?[KVRO]*8lockstep")
set(inline_of_others
    "^(_Z(T[VIS]|GV|Z)*N?[KVRO]*(S[a-z]|9__gnu_cxx|8nlohmann|10__cxxabiv1)|_ZT[IS]|DW\\.ref\\.).* [WVu] ")
# What nvcc makes for the launch of a kernel of ours, and the header-only NVTX.
set(ours_on_gpus "^_Z[0-9]+__device_stub__ZN8lockstep")
set(nvtx "^(nvtx|InitializeInjectionNvtx|_ZZ[0-9]+nvtx)[^ ]* [WVu] ")
set(forbidden "exit|_exit|_Exit|quick_exit|abort|v?f?printf|__v?f?printf_chk|puts|fputs|putchar|perror|stdout|stderr")
string(APPEND forbidden "|_ZSt4(cout|cerr|clog)")
if(NOT CONFIG STREQUAL "Debug")
  string(APPEND forbidden "|__assert_fail")
endif()

# symbols(RESULT FILE OPTIONS...): lines "name type ...".
function(symbols result file)
  execute_process(COMMAND ${NM} --format=posix ${ARGN} ${file} OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX REPLACE "[];[]" "" output "${output}")
  string(REPLACE "\n" ";" output "${output}")
  list(FILTER output INCLUDE REGEX "^[^ ]+ [A-Za-z]")
  set(${result} "${output}" PARENT_SCOPE)
endfunction()

set(problems "")

symbols(defined ${ARCHIVE} --defined-only --extern-only)
list(LENGTH defined count)
if(count LESS 50)
  message(FATAL_ERROR "${ARCHIVE}: only ${count} symbols: is this the whole library?")
endif()
list(FILTER defined EXCLUDE REGEX "${ours}")
list(FILTER defined EXCLUDE REGEX "${inline_of_others}")
list(FILTER defined EXCLUDE REGEX "${ours_on_gpus}")
list(FILTER defined EXCLUDE REGEX "${nvtx}")
list(TRANSFORM defined PREPEND "defines a name outside of namespace lockstep: ")
list(APPEND problems ${defined})

# nvcc's host code ends the process where a function for the device is called on the host; the compiler lets nobody.
symbols(used ${ARCHIVE} --undefined-only --print-file-name)
list(FILTER used EXCLUDE REGEX "[.]cu[.]o: exit ")
list(TRANSFORM used REPLACE "^[^ ]+: " "")
list(FILTER used INCLUDE REGEX "^(${forbidden}) ")
list(TRANSFORM used PREPEND "a library throws, it does not print or end the process, but this one uses: ")
list(APPEND problems ${used})

file(STRINGS ${SET_OBJECTS} objects)
foreach(object ${objects})
  symbols(defined ${object} --defined-only --extern-only)
  list(FILTER defined INCLUDE REGEX "^_Z[^ ]+ [WVu] ")
  list(TRANSFORM defined PREPEND "${object} defines inline code: ")
  list(APPEND problems ${defined})
endforeach()

list(REMOVE_DUPLICATES problems)
if(problems)
  list(LENGTH problems count)
  list(JOIN problems "\n" problems)
  message("${problems}")
  message(FATAL_ERROR "${ARCHIVE}: ${count} problems")
endif()
