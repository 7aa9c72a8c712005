# `cmake --install`: the archive, the public headers, a package configuration and a pkg-config file. The tree may be
# moved afterwards: nothing in it names an absolute path.

include(CMakePackageConfigHelpers)

install(TARGETS lockstep EXPORT lockstepTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})

# Headers lie as they are included. Subfolders (cpu, cuda, nccl, mpi) and headers that call themselves internal are
# nobody's business outside.
set(lockstep_headers ${CMAKE_INSTALL_INCLUDEDIR}/lockstep)
get_property(folders GLOBAL PROPERTY LOCKSTEP_FOLDERS)
foreach(folder ${folders})
  file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.h)
  foreach(header ${headers})
    file(STRINGS ${header} opening LIMIT_COUNT 5)
    if(opening MATCHES "Internal( to this folder)?\\.")
      list(REMOVE_ITEM headers ${header})
    endif()
  endforeach()
  install(FILES ${headers} DESTINATION ${lockstep_headers}/${folder})
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/lockstep.h ${LOCKSTEP_INCLUDE_DIR}/lockstep/config.h DESTINATION ${lockstep_headers})

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/lockstep)
install(EXPORT lockstepTargets NAMESPACE lockstep:: DESTINATION ${package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/lockstepConfig.cmake.in ${PROJECT_BINARY_DIR}/lockstepConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/lockstepConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/lockstepConfig.cmake ${PROJECT_BINARY_DIR}/lockstepConfigVersion.cmake
        DESTINATION ${package_dir})

# Who links the archive links what it calls: the package finds the GPU's libraries again by the same means, the
# pkg-config file names them where they are now.
set(lockstep_pc_gpu_libraries "")
if(LOCKSTEP_HAS_CUDA)
  foreach(module FindCUDNN FindNCCL GpuLibrary GpuPlaces)
    install(FILES ${PROJECT_SOURCE_DIR}/third_party/${module}.cmake DESTINATION ${package_dir})
  endforeach()
  foreach(library CUDA::cudart CUDA::cublas CUDNN::CUDNN NCCL::NCCL)
    if(TARGET ${library})
      get_target_property(location ${library} IMPORTED_LOCATION)
      get_filename_component(folder ${location} DIRECTORY)
      string(APPEND lockstep_pc_gpu_libraries " ${location} -Wl,-rpath,${folder}")
    endif()
  endforeach()
  string(APPEND lockstep_pc_gpu_libraries " -ldl")
endif()

file(RELATIVE_PATH lockstep_pc_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(${PROJECT_SOURCE_DIR}/cmake/lockstep.pc.in ${PROJECT_BINARY_DIR}/lockstep.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/lockstep.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

foreach(program mnist_multi_gpu lockstep_bench)
  if(TARGET ${program})
    # The GPU's libraries stay where they are, which need not be where the loader looks.
    set_target_properties(${program} PROPERTIES INSTALL_RPATH_USE_LINK_PATH TRUE)
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endforeach()
