# Fails when PROGRAM imports a function of CUDA that none of LIBRARIES (separated by commas) has: the loader binds
# lazily, so such a program would start and end in the middle of its work.
function(read_symbols out)
  execute_process(COMMAND ${NM} -D ${ARGN} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "(__cuda|cuda|cublas|cudnn|nccl)[A-Za-z0-9_]+" names "${text}")
  set(${out} ${names} PARENT_SCOPE)
endfunction()

string(REPLACE "," ";" libraries "${LIBRARIES}")
read_symbols(there --defined-only ${libraries})
read_symbols(missing --undefined-only ${PROGRAM})
if(NOT missing)
  message(FATAL_ERROR "${PROGRAM} imports nothing of CUDA: is it linked statically?")
endif()
list(REMOVE_ITEM missing ${there})
if(missing)
  message(FATAL_ERROR "The simulated CUDA lacks ${missing}")
endif()
