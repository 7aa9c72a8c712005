# Every dependency from outside is found here.
list(APPEND CMAKE_MODULE_PATH ${CMAKE_CURRENT_LIST_DIR})
include(third_party/gpu.cmake)
find_package(ZLIB REQUIRED)
find_package(nlohmann_json REQUIRED)
if(LOCKSTEP_BUILD_APPS)
  find_package(CLI11 REQUIRED)
  find_path(LOCKSTEP_STB_INCLUDE_DIR stb_image.h PATH_SUFFIXES stb REQUIRED)  # Debian: libstb-dev
endif()
if(LOCKSTEP_BUILD_TESTS)
  find_package(Catch2 REQUIRED)
endif()
