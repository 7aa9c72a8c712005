#!/usr/bin/env bash
# Sets up the machine, builds and tests.
#   ./test.sh              the optimised build and its tests, without the long ones
#   ./test.sh PRESET...    build and all tests of these presets only (cpu-release cpu-debug asan tsan)
#   ./test.sh --full       what CI runs: all of it, sanitizers, long tests, real MNIST, format, lint, a user without root
#   ./test.sh --nightly    --full, then what finds rare failures by repeating
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

our_files() {  # the C++ files under the folders "$@"
  find "$@" -type f \( -name '*.h' -o -name '*.cpp' \) | sort
}

lane_format() {
  command -v clang-format >/dev/null || { not_run "clang-format is not on this machine"; return; }
  our_files core kernels layers optim data io parallel apps tests lockstep.h | xargs clang-format --dry-run -Werror
}

lane_tidy() {
  command -v clang-tidy >/dev/null || { not_run "clang-tidy is not on this machine"; return; }
  our_files core kernels layers optim data io parallel apps | grep '\.cpp$' |
    xargs -P "$cores" -n 3 clang-tidy --quiet -p build/cpu-release
}

lane_build() { lockstep_build "$@"; }

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

# quickstart.sh in a fresh folder as a user who may install nothing and lacks the headers.
lane_user() {
  [[ $(id -u) == 0 ]] || { not_run "all lanes ran as a user without root"; return; }
  command -v runuser >/dev/null || { not_run "there is no runuser to become a user without root"; return; }
  local folder=$work/user
  mkdir "$folder" "$folder/home"
  tar -cf - --exclude=./build --exclude=./.git --exclude=./runs --exclude=./data/mnist . | tar -xf - -C "$folder"
  chmod 711 "$work"
  chown -R nobody "$folder"
  (cd "$folder" &&
    runuser -u nobody -- env -i HOME="$folder/home" PATH=/usr/local/bin:/usr/bin:/bin \
      LOCKSTEP_ASSUME_MISSING="zlib1g-dev nlohmann-json3-dev libcli11-dev libstb-dev catch2" \
      ./quickstart.sh --dataset synthetic --limit-train 6000)
}

lane_repeat() { ctest --preset cpu-release --parallel "$cores" -L 'parallel|data|io' --repeat until-fail:5; }

# --- running them ---

table=()
failed=0

# run_lane NAME FUNCTION [arguments]: runs it apart, notes how it went and leaves its status in `status`. Never part of
# a condition, and neither is build_and_test: that would switch `set -e` off inside.
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

skip_lane() { table+=("$(printf '%-28s %5d s  did not run: %s' "$1" 0 "$2")"); }

# build_and_test PRESET TARGETS CTEST-OPTIONS...: tests only what could be built; `built` says whether.
build_and_test() {
  local preset=$1 targets=$2
  shift 2
  # shellcheck disable=SC2086  # one word a target
  run_lane "build $preset" lane_build "$preset" $targets
  built=$status
  if [[ $built == 0 ]]; then
    run_lane "test $preset" lane_test "$preset" "$@"
  else
    skip_lane "test $preset" "the build failed"
  fi
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
for argument in "$@"; do
  case $argument in
    --full) mode=full ;;
    --nightly) mode=nightly ;;
    -h | --help) sed -n '2,7s/^# \{0,1\}//p' "$0" && exit 0 ;;
    -*) printf 'test.sh: %s: want --full, --nightly or presets\n' "$argument" >&2 && exit 2 ;;
    *) presets+=("$argument") ;;
  esac
done

SECONDS=0
if [[ $mode == short ]]; then lockstep_setup; else lockstep_setup data full; fi

if [[ ${#presets[@]} -gt 0 ]]; then
  for preset in "${presets[@]}"; do build_and_test "$preset" ""; done
  finish
  exit
fi

if [[ $mode == short ]]; then
  build_and_test cpu-release "" -LE long
  finish
  exit
fi

run_lane format lane_format
build_and_test cpu-release "" -LE long
if [[ $built == 0 ]]; then
  run_lane "long tests" lane_test cpu-release -L long
  run_lane "real MNIST" lane_mnist
  run_lane "parity on real MNIST" lane_parity
  run_lane tidy lane_tidy
else
  for lane in "long tests" "real MNIST" "parity on real MNIST" tidy; do skip_lane "$lane" "the build failed"; done
fi
# The library; the programs, which take as long to build again, are sanitized at night.
library="core kernels layers optim data io parallel"
if [[ $mode == nightly ]]; then
  build_and_test asan "" -LE long
else
  build_and_test asan "--target ${library// /_tests }_tests invariance_chain_tests" \
    -L "^(${library// /|})\$" -LE 'long|scripts'
fi
# Everything that starts threads.
build_and_test tsan "--target core_tests parallel_tests invariance_chain_tests" -L '^(core|parallel)$' -LE long
run_lane "user without root" lane_user
if [[ $mode == nightly ]]; then run_lane "repeated tests" lane_repeat; fi
finish
