# Every dependency from outside is found here.
list(APPEND CMAKE_MODULE_PATH ${CMAKE_CURRENT_LIST_DIR})
include(third_party/gpu.cmake)
find_package(ZLIB REQUIRED)
find_package(nlohmann_json REQUIRED)
if(LOCKSTEP_BUILD_APPS)
  find_package(CLI11 REQUIRED)
  find_path(LOCKSTEP_STB_INCLUDE_DIR stb_image.h PATH_SUFFIXES stb REQUIRED)  # Debian: libstb-dev
  option(LOCKSTEP_PEERS "Make the target lockstep_peer_onednn, which lockstep_bench peers measures beside Lockstep" OFF)
  if(LOCKSTEP_PEERS)
    find_package(dnnl 2 REQUIRED)  # Debian: libdnnl-dev; version 3 has another interface
  endif()
endif()
if(LOCKSTEP_BUILD_TESTS)
  find_package(Catch2 REQUIRED)
endif()
