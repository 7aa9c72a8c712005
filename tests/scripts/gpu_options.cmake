# LOCKSTEP_CUDA, LOCKSTEP_CUDNN and LOCKSTEP_NCCL as ON, OFF and AUTO where a part is missing or too old.
#   cmake -D SOURCE=folder -D WORK=folder -D COMPILER=c++ -D HAS_CUDA=true|false -P gpu_options.cmake
# Only the library is configured, nothing is built.
cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE ${WORK})
file(WRITE ${WORK}/old/bin/nvcc "#!/bin/sh\necho 'Cuda compilation tools, release 11.8, V11.8.89'\n")
file(CHMOD ${WORK}/old/bin/nvcc PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
file(WRITE ${WORK}/old/include/cudnn_version.h
     "#define CUDNN_MAJOR 8\n#define CUDNN_MINOR 9\n#define CUDNN_PATCHLEVEL 7\n")
file(WRITE ${WORK}/old/lib/libcudnn.so.8 "")
file(WRITE ${WORK}/wheel/include/nccl.h "#define NCCL_MAJOR 2\n#define NCCL_MINOR 28\n#define NCCL_PATCH 9\n")
file(WRITE ${WORK}/wheel/lib/libnccl.so.2 "")

# configure(SUCCEEDS OUTPUT OPTIONS...): SUCCEEDS is whether it must; OUTPUT is a pattern for what it says.
function(configure succeeds pattern)
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/build -D CMAKE_CXX_COMPILER=${COMPILER}
                          -D LOCKSTEP_BUILD_APPS=OFF -D LOCKSTEP_BUILD_TESTS=OFF -D CMAKE_CUDA_ARCHITECTURES=90-virtual
                          ${ARGN}
                  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  string(REGEX REPLACE "[ \n]+" " " output "${output}")
  if((result EQUAL 0 AND NOT succeeds) OR (NOT result EQUAL 0 AND succeeds) OR NOT output MATCHES "${pattern}")
    message(SEND_ERROR "${ARGN}: wanted \"${pattern}\", got\n${output}")
  endif()
endfunction()

# nvcc is looked for anew every time: a failed search keeps nothing, a successful one is kept.
set(no_nvcc -U LOCKSTEP_NVCC -D CMAKE_FIND_ROOT_PATH=${WORK} -D CMAKE_FIND_ROOT_PATH_MODE_PROGRAM=ONLY)
set(old_nvcc -U LOCKSTEP_NVCC -D CUDAToolkit_ROOT=${WORK}/old)
configure(FALSE "LOCKSTEP_CUDA=MAYBE: want AUTO, ON or OFF" -D LOCKSTEP_CUDA=MAYBE)
configure(FALSE "LOCKSTEP_CUDA=ON, but .*/old/bin/nvcc is version '11.8', 12.4 is needed" -D LOCKSTEP_CUDA=ON ${old_nvcc})
configure(TRUE "Lockstep: CUDA is off: .*/old/bin/nvcc is version '11.8'" -D LOCKSTEP_CUDA=AUTO ${old_nvcc})
configure(FALSE "LOCKSTEP_CUDNN=ON, but CUDA is off" -D LOCKSTEP_CUDNN=ON ${old_nvcc})
configure(TRUE "Lockstep: CUDA is off: LOCKSTEP_CUDA=OFF" -D LOCKSTEP_CUDA=OFF -D LOCKSTEP_CUDNN=AUTO)
configure(FALSE "LOCKSTEP_CUDA=ON, but there is no nvcc on the PATH or in bin of: .*/usr/local/cuda.*/opt/cuda"
          -D LOCKSTEP_CUDA=ON -U CUDAToolkit_ROOT ${no_nvcc})

if(HAS_CUDA)
  file(REMOVE_RECURSE ${WORK}/build)
  configure(TRUE "Lockstep: CUDNN is off: .*/old/lib/libcudnn.so.8 is version 8.9.7, 9.0 is needed.*Lockstep: NCCL 2.28.9, .*/wheel/lib/libnccl.so.2"
            -D LOCKSTEP_CUDA=ON -D CUDNN_ROOT=${WORK}/old -D NCCL_ROOT=${WORK}/wheel)
  configure(FALSE "LOCKSTEP_CUDNN=ON, but .*/old/lib/libcudnn.so.8 is version 8.9.7" -D LOCKSTEP_CUDNN=ON)
  configure(FALSE "LOCKSTEP_NCCL=ON, but it was not found in .*/wheel.*/usr/local/cuda.*name its place with -D NCCL_ROOT=DIR"
            -D LOCKSTEP_CUDNN=OFF -D LOCKSTEP_NCCL=ON -U NCCL_LIBRARY -D CMAKE_FIND_ROOT_PATH=${WORK}/nowhere
            -D CMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY)

  # A toolkit without cuBLAS, and a wheel of Python that has it: made of the toolkit here, where that came as wheels.
  execute_process(COMMAND ${CMAKE_COMMAND} -P ${SOURCE}/third_party/nvcc.cmake OUTPUT_VARIABLE nvcc OUTPUT_STRIP_TRAILING_WHITESPACE)
  file(REAL_PATH ${nvcc} nvcc)
  get_filename_component(toolkit ${nvcc} DIRECTORY)
  get_filename_component(toolkit ${toolkit} DIRECTORY)
  if(EXISTS ${toolkit}/lib/libcublas.so.13)
    file(COPY ${toolkit}/bin DESTINATION ${WORK}/toolkit)
    file(CREATE_LINK ${toolkit}/nvvm ${WORK}/toolkit/nvvm SYMBOLIC)
    foreach(folder include lib)
      file(GLOB files ${toolkit}/${folder}/*)
      foreach(file ${files})
        get_filename_component(name ${file} NAME)
        set(place ${WORK}/toolkit/${folder})
        if(name MATCHES "cublas")
          set(place ${WORK}/site/nvidia/cu13/${folder})
        endif()
        file(MAKE_DIRECTORY ${place})
        file(CREATE_LINK ${file} ${place}/${name} SYMBOLIC)
      endforeach()
    endforeach()
    file(REMOVE_RECURSE ${WORK}/build)
    configure(TRUE "Lockstep: CUBLAS, .*/site/nvidia/cu13/lib/libcublas.so" -D LOCKSTEP_CUDA=ON
              -D CUDAToolkit_ROOT=${WORK}/toolkit -D LOCKSTEP_SITE_PACKAGES=${WORK}/site)
    file(REMOVE_RECURSE ${WORK}/toolkit)  # 100 MB
  endif()
endif()
