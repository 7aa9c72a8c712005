#!/usr/bin/env bash
# Sets up the machine, builds and tests.
#   ./test.sh              the optimised build and its tests, without the long ones; with the CUDA toolkit also training on
#                          simulated GPUs
#   ./test.sh PRESET...    build and tests of these presets only (cpu-release cpu-debug cuda-release asan tsan)
#   ./test.sh --full       what CI runs: all of it, sanitizers, long tests, real MNIST, format, lint, a user without root;
#                          with the toolkit all of the simulation, with a GPU the tests on it
#   ./test.sh --nightly    --full, then what finds rare failures by repeating, every call of CUDA failing once, races between
#                          the threads of kernels, and faults planted in the sources
# The table at the end says which lanes ran, how long, and why one did not. Fails when a lane failed.
set -euo pipefail
cd "$(dirname "$0")"
exec </dev/null
source scripts/setup.sh

cores=$(nproc)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# --- lanes: functions that fail, pass, or return 77 with the reason why they did not run in $work/reason ---

not_run() {
  printf '%s' "$*" >"$work/reason"
  return 77
}

our_files() {  # the C++ and CUDA files under the folders "$@"
  find "$@" -type f \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' \) | sort
}

lane_format() {
  command -v clang-format >/dev/null || { not_run "clang-format is not on this machine"; return; }
  our_files core kernels layers optim data io parallel apps tests lockstep.h | xargs clang-format --dry-run -Werror
}

# lane_tidy PRESET LOOK: the sources whose paths grep finds with LOOK, compiled as PRESET says.
lane_tidy() {
  command -v clang-tidy >/dev/null || { not_run "clang-tidy is not on this machine"; return; }
  # clang does not know this option of GCC.
  mkdir -p "$work/tidy-$1"
  sed 's/ -fno-predictive-commoning//' "build/$1/compile_commands.json" >"$work/tidy-$1/compile_commands.json"
  # The peer is compiled only where it is asked for.
  our_files core kernels layers optim data io parallel apps | grep '\.cpp$' | grep "$2" '/\(cuda\|nccl\)/' |
    grep -v '/peer_onednn/' |
    xargs -P "$cores" -n 3 clang-tidy --quiet -p "$work/tidy-$1"
}

# Without the toolkit these lanes say so; with it they run or fail. One that is too old fails --full.
need_nvcc() {
  if [[ -n $nvcc ]]; then return; fi
  if [[ $mode == short || $no_nvcc == "there is no nvcc"* ]]; then
    not_run "$no_nvcc"
    return
  fi
  printf '%s\n' "$no_nvcc" >&2
  return 1
}

lane_build() {  # PRESET [options of cmake --build]
  if [[ $1 == cuda-* ]]; then need_nvcc || return; fi
  if [[ ${#configure[@]} -gt 0 ]]; then lockstep_configure "$1" "${configure[@]}"; fi
  lockstep_build "$@"
}

lane_test() {  # PRESET [ctest options]
  local preset=$1
  shift
  ctest --preset "$preset" --parallel "$cores" "$@"
}

# The whole way of a newcomer on real data; the article's set-up reaches a median of 97.8 % over 5 seeds.
lane_mnist() {
  ./quickstart.sh --json --seed 0 --out "$work/run0" >"$work/json"
  local seed median
  for seed in 1 2 3 4; do
    build/cpu-release/bin/mnist_multi_gpu --json --seed "$seed" --out "$work/run$seed" >>"$work/json"
  done
  cat "$work/json"
  median=$(sed -n 's/.*"event":"result".*"test_accuracy":\([0-9.e-]*\).*/\1/p' "$work/json" | sort -g | sed -n 3p)
  printf 'median test accuracy of 5 seeds %s, at least 0.978 wanted\n' "${median:-missing}"
  awk -v a="${median:-0}" 'BEGIN { exit !(a >= 0.978) }'
}

lane_parity() {
  build/cpu-release/bin/mnist_multi_gpu parity --kind cpu --replicas 1,2,4,8 --json | tee "$work/parity"
  grep -q '"event":"parity".*"bit_equal":true' "$work/parity"
}

# Every .cu file of the library has been compiled for every one of these.
lane_architectures() {
  local architecture
  for architecture in 75 80 86 89 90 100 120; do
    printf 'sm_%s ' "$architecture"
    grep 'lockstep_kernels_cuda.*\.cu' build/cuda-release/compile_commands.json |
      grep -w "sm_$architecture" >/dev/null
  done
}

lane_simulated() {  # PRESET [ctest options]
  need_nvcc || return
  scripts/fetch_mnist.sh
  LOCKSTEP_REQUIRE_MNIST=1 lane_test "$@"
}

# The asan tree without the libraries that one can do without: little is compiled again. It is put back at the end.
lane_plain() {
  need_nvcc || return
  trap 'cmake --preset asan -D LOCKSTEP_CUDNN=AUTO -D LOCKSTEP_NCCL=AUTO' EXIT
  cmake --preset asan -D LOCKSTEP_CUDNN=OFF -D LOCKSTEP_NCCL=OFF
  lockstep_build asan --target kernels_cuda_tests parallel_cuda_tests
  lane_test asan -R '^cusim/sm_90/(kernels/conv|parallel/)'
}

lane_gpu() {
  setup_gpu || { not_run "no GPU: $setup_no_gpu"; return; }
  LOCKSTEP_REQUIRE_GPU=1 LOCKSTEP_REQUIRE_MNIST=1 lane_test cuda-release -L '^gpu$'
}

# All steps of the check of a real GPU, on the simulation; of the tests, which have run already, only one file.
lane_gpu_check() {
  need_nvcc || return
  scripts/gpu_check.sh --simulated --build build/cuda-release --out "$work/gpu_check" --budget 1500 --tests kernels/pool_test
}

# As a user who may install nothing and lacks the headers, in a fresh folder. By day the set-up and the tests of data,
# which need what was unpacked; at night all of quickstart.sh.
lane_user() {
  [[ $(id -u) == 0 ]] || { not_run "all lanes ran as a user without root"; return; }
  command -v runuser >/dev/null || { not_run "there is no runuser to become a user without root"; return; }
  local folder=$work/user commands
  if [[ $mode == nightly ]]; then
    commands=(./quickstart.sh --dataset synthetic --limit-train 6000)
  else
    # shellcheck disable=SC2016  # the user's shell expands it
    commands=(bash -c 'set -e; source scripts/setup.sh; lockstep_setup full
      lockstep_build cpu-release --target data_tests
      build/cpu-release/bin/data_tests')
  fi
  mkdir "$folder" "$folder/home"
  tar -cf - --exclude=./build --exclude=./.git --exclude=./runs --exclude=./data/mnist . | tar -xf - -C "$folder"
  chmod 711 "$work"
  chown -R nobody "$folder"
  (cd "$folder" &&
    runuser -u nobody -- env -i HOME="$folder/home" PATH=/usr/local/bin:/usr/bin:/bin \
      LOCKSTEP_ASSUME_MISSING="zlib1g-dev nlohmann-json3-dev libcli11-dev libstb-dev catch2" \
      "${commands[@]}")
}

# The kernels of AVX-512 on any machine: with AVX2's instructions, two for one.
lane_sixteen_lanes() {
  cmake --preset cpu-release "${setup_generator[@]}" -B build/sixteen-lanes -D LOCKSTEP_SIXTEEN_LANES=ON
  cmake --build build/sixteen-lanes --parallel "$cores" --target kernels_tests layers_tests
  ctest --test-dir build/sixteen-lanes --output-on-failure --parallel "$cores" -L '^(kernels|layers)$' -E per_set_symbols
}

# Faults planted in a copy of the sources must turn tests red.
lane_mutations() {
  need_nvcc || return
  tests/mutations/run.sh
}

# Trainings killed at random times end with the weights of one that was not.
lane_kills() { LOCKSTEP_KILLS=50 build/cpu-release/bin/apps_tests 'resume: killed*'; }

# fuzz ARGUMENTS OF LIBFUZZER: two harnesses at a time, each from its corpus; what they find stays in build/fuzz/found.
fuzz() {
  local found=build/fuzz/found
  mkdir -p "$found"
  # shellcheck disable=SC2016  # the inner shell expands it
  find build/fuzz/bin -name 'fuzz_*' -type f -printf '%f\n' | sort | xargs -P 2 -I {} bash -c '
    name=$1 work=$2 found=$3 harness=${1#fuzz_} longest=4096
    shift 3
    if [[ $harness == idx ]]; then longest=300; fi  # gzip makes up to 1032 bytes of one
    mkdir -p "$work/$name"
    if ! "build/fuzz/bin/$name" -rss_limit_mb=1024 -timeout=10 -max_len="$longest" -reload=0 -entropic=0 -print_final_stats=1 \
      -dict="tests/fuzz/dictionary/$harness.txt" -artifact_prefix="$found/$harness-" "$@" \
      "$work/$name" "tests/fuzz/corpus/$harness" >"$work/$name.log" 2>&1; then
      cat "$work/$name.log"
      exit 1
    fi
    printf "%s: %s executions, %s\n" "$harness" "$(sed -n "s/^stat::number_of_executed_units: *//p" "$work/$name.log")" \
      "$(grep -o "DONE .*corp" "$work/$name.log" | sed "s/DONE *//; s/ corp//")"
  ' _ {} "$work" "$found" "$@"
}

# By day a minute each, at night ten million executions each.
lane_fuzz() {
  if [[ $mode == nightly ]]; then fuzz -runs=10000000; else fuzz -max_total_time=60; fi
}

lane_fuzz_build() {
  setup_has clang || { not_run "there is no clang with libFuzzer on this machine"; return; }
  lane_build fuzz
}

lane_repeat() { ctest --preset cpu-release --parallel "$cores" -L 'parallel|data|io' --repeat until-fail:5; }

# --- running them ---

table=()
failed=0

# run_lane NAME FUNCTION [arguments]: runs it apart, notes how it went and leaves its status in `status`. Never part of
# a condition, and neither are those who call it: that would switch `set -e` off inside.
run_lane() {
  local name=$1 start=$SECONDS result
  shift
  printf '\n=== %s ===\n' "$name"
  rm -f "$work/reason"
  set +e
  (
    set -e
    "$@"
  )
  status=$?
  set -e
  case $status in
    0) result=passed ;;
    77) result="did not run: $(cat "$work/reason" 2>/dev/null)" ;;
    *) result="FAILED ($status)" && failed=$((failed + 1)) ;;
  esac
  table+=("$(printf '%-28s %5d s  %s' "$name" $((SECONDS - start)) "$result")")
}

# build PRESET [TARGETS]: the lane that builds it; `built` is its status.
build() {
  # shellcheck disable=SC2086  # one word a target
  run_lane "build $1" lane_build "$1" ${2:-}
  built=$status
}

# after_build NAME FUNCTION [arguments]: a lane that runs only when the latest build has passed.
after_build() {
  if [[ $built == 0 ]]; then
    run_lane "$@"
    return
  fi
  local reason="the build failed"
  if [[ $built == 77 ]]; then reason=$(cat "$work/reason"); fi
  table+=("$(printf '%-28s %5d s  did not run: %s' "$1" 0 "$reason")")
}

finish() {
  printf '\n%s\n' "--- lanes (${SECONDS} s in all, $cores cores) ---"
  printf '%s\n' "${table[@]}"
  if [[ $failed -gt 0 ]]; then
    printf '%d of %d lanes failed\n' "$failed" "${#table[@]}"
    exit 1
  fi
}

mode=short
presets=()
configure=()  # options of cmake for the trees that are built next
for argument in "$@"; do
  case $argument in
    --full) mode=full ;;
    --nightly) mode=nightly ;;
    -h | --help) sed -n '2,11s/^# \{0,1\}//p' "$0" && exit 0 ;;
    -*) printf 'test.sh: %s: want --full, --nightly or presets\n' "$argument" >&2 && exit 2 ;;
    *) presets+=("$argument") ;;
  esac
done

SECONDS=0
if [[ $mode == short ]]; then lockstep_setup data; else lockstep_setup data full; fi
# The tree with CUDA takes its plain C++ objects from the one without: seen from the trees, their paths are the same.
if [[ $mode != short ]] && command -v ccache >/dev/null; then
  export CCACHE_DIR=$PWD/build/ccache CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1 CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi
nvcc=$(setup_nvcc 2>"$work/no_nvcc")
no_nvcc=$(cat "$work/no_nvcc")

if [[ ${#presets[@]} -gt 0 ]]; then
  nvcc=${nvcc:-"asked for: the configuration says what is missing"}
  for preset in "${presets[@]}"; do
    # --full leaves CUDA out of these two.
    configure=()
    if [[ $preset == asan || $preset == tsan ]]; then configure=(-D LOCKSTEP_CUDA=AUTO); fi
    build "$preset"
    after_build "test $preset" lane_test "$preset" -LE nightly
  done
  finish
  exit
fi

if [[ $mode != short ]]; then run_lane format lane_format; fi
build cpu-release
after_build "test cpu-release" lane_test cpu-release -LE long
if [[ $mode == short ]]; then
  build cuda-release "--target gpu_tests"
  after_build "simulated GPUs" lane_simulated cusim -R '^cusim/sm_'
  finish
  exit
fi
after_build "long tests" lane_test cpu-release -L long
after_build "real MNIST" lane_mnist
after_build "parity on real MNIST" lane_parity
after_build tidy lane_tidy cpu-release -v

if [[ $mode == nightly ]]; then configure=(-D "LOCKSTEP_CUSIM_ARCHITECTURES=75;90"); fi
build cuda-release "--target gpu_tests"
configure=()
after_build architectures lane_architectures
after_build "simulated GPUs" lane_simulated cusim
if [[ $mode == nightly ]]; then
  after_build "every fault" lane_simulated cuda-release -R '^nightly/fault_sweep$'
  after_build "seeds and delays" lane_simulated cuda-release -R '^nightly/seed_'
fi
after_build "installed with CUDA" lane_test cuda-release -L '^install$' -LE long
after_build "tidy CUDA" lane_tidy cuda-release -e
after_build GPUs lane_gpu
if [[ $mode == nightly ]]; then after_build "GPU check, simulated" lane_gpu_check; fi

# By day the library without CUDA is sanitized; the programs, which take as long to build again, and all that runs on
# simulated GPUs at night.
library="core kernels layers optim data io parallel"
threads="core_tests parallel_tests invariance_chain_tests"
if [[ $mode == nightly ]]; then
  configure=(-D LOCKSTEP_CUDA=AUTO)
  build asan
  after_build "test asan" lane_test asan -LE 'long|cusim|gpu'
  after_build "simulated GPUs, asan" lane_simulated asan -R '^cusim/sm_90/(kernels|parallel)/'
  after_build "without cuDNN and NCCL" lane_plain
  if [[ -n $nvcc ]]; then threads+=" kernels_cuda_tests parallel_cuda_tests"; fi
else
  configure=(-D LOCKSTEP_CUDA=OFF)
  build asan "--target ${library// /_tests }_tests invariance_chain_tests"
  after_build "test asan" lane_test asan -L "^(${library// /|})\$" -LE 'long|scripts'
fi
# Everything that starts threads.
build tsan "--target $threads"
after_build "test tsan" lane_test tsan -L '^(core|parallel)$' -LE long
if [[ $mode == nightly ]]; then
  after_build "simulated GPUs, tsan" lane_simulated tsan -R '^cusim/threads/'
  after_build racecheck lane_simulated tsan -R '^cusim/racecheck/'
fi
run_lane "build fuzz" lane_fuzz_build
built=$status
after_build fuzz lane_fuzz
run_lane "user without root" lane_user
if [[ $mode == nightly ]]; then
  run_lane "sixteen lanes" lane_sixteen_lanes
  run_lane "killed trainings" lane_kills
  run_lane "repeated tests" lane_repeat
  run_lane "planted faults" lane_mutations
fi
finish
