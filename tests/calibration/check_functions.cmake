# Fails when one of the simulated LIBRARIES (separated by commas) exports a function that no source of FOLDER calls: whoever
# simulates a function says here what the real one does.
#   cmake -D NM=nm -D LIBRARIES=... -D FOLDER=... -P check_functions.cmake

cmake_minimum_required(VERSION 3.25)

# Called by what nvcc makes of <<<>>> and of kernels' files, never by hand; each launch of the calibration goes through them.
set(exempt __cudaRegisterFatBinary __cudaRegisterFatBinaryEnd __cudaUnregisterFatBinary __cudaRegisterFunction
           __cudaRegisterVar __cudaInitModule __cudaPushCallConfiguration __cudaPopCallConfiguration __cudaGetKernel
           __cudaLaunchKernel)

string(REPLACE "," ";" libraries "${LIBRARIES}")
execute_process(COMMAND ${NM} -D --defined-only ${libraries} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL " T (__cuda|cuda|cublas|cudnn|nccl)[A-Za-z0-9_]+" functions "${symbols}")
list(TRANSFORM functions REPLACE "^ T " "")
list(TRANSFORM functions REPLACE "_v2$" "")  # what the headers call it
list(REMOVE_DUPLICATES functions)
list(LENGTH functions count)
if(count LESS 100)
  message(FATAL_ERROR "Only ${count} functions are exported by ${LIBRARIES}: is this the simulated CUDA?")
endif()

file(GLOB sources ${FOLDER}/*.cpp ${FOLDER}/*.cu ${FOLDER}/*.h)
set(text "")
foreach(source ${sources})
  file(READ ${source} part)
  string(REGEX REPLACE "//[^\n]*" "" part "${part}")
  string(REGEX REPLACE "\"[^\"\n]*\"" "" part "${part}")
  string(APPEND text "${part}")
endforeach()
set(missing "")
foreach(function ${functions})
  if(NOT function IN_LIST exempt AND NOT text MATCHES "[^A-Za-z0-9_]${function}[(]")
    list(APPEND missing ${function})
  endif()
endforeach()
if(missing)
  list(JOIN missing "\n  " missing)
  message(FATAL_ERROR "The simulated CUDA has functions that no test in ${FOLDER} calls. Add a case that holds for the real "
                      "one too:\n  ${missing}")
endif()
message(STATUS "calibration: all of ${count} simulated functions are called")
