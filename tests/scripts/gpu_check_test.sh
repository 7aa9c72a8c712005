#!/usr/bin/env bash
# scripts/gpu_check.sh and gpu_pack.sh on a machine with a GPU that programs only pretend: what passes, fails, hangs, is not run,
# and what the report says of it.
#   gpu_check_test.sh ROOT CMAKE
set -euo pipefail
root=$1
cmake=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
case_name=

# A copy of what the scripts need, with an MNIST of a few bytes.
mkdir -p "$work/root/apps" "$work/root/data" "$work/mnist" "$work/bin"
cp -r "$root/scripts" "$work/root/"
cp -r "$root/apps/lockstep_bench" "$work/root/apps/"
for name in train-images-idx3-ubyte train-labels-idx1-ubyte t10k-images-idx3-ubyte t10k-labels-idx1-ubyte; do
  printf '%s\n' "$name" >"$work/mnist/$name"
done
(cd "$work/mnist" && sha256sum -- *) >"$work/sums"
export LOCKSTEP_MNIST_SHA256S=$work/sums
build=$work/root/build/gpu-check

pretend() {  # FILE LINES...: a program of these lines of shell
  mkdir -p "$(dirname "$1")"
  printf '#!/bin/bash\n' >"$1"
  printf '%s\n' "${@:2}" >>"$1"
  chmod +x "$1"
}

# The machine on which all is well.
well() {
  rm -rf "${work:?}/bin" "$work/root/build" "$work/root/data/mnist"
  cp -r "$work/mnist" "$work/root/data/mnist"
  pretend "$work/bin/nvidia-smi" 'case "$*" in -L) echo "GPU 0: Pretended (UUID: GPU-0)" ;;' \
    '  *query*) echo "Pretended GPU, 580.1, 9.0, 1000" ;; esac'
  pretend "$work/bin/nvcc" 'echo compute_75; echo compute_90'
  pretend "$work/bin/cmake" 'case $1 in' "  -P) echo $work/bin/nvcc ;;" '  --version) echo "cmake version 3.99" ;;' \
    '  --preset) echo "-- Lockstep: CUDA 13.0, architectures $*"; echo "-- Lockstep: CUDNN 9.19, /wheels/libcudnn.so.9";' \
    '    echo "-- Lockstep: NCCL 2.28, /wheels/libnccl.so.2" ;;' '  --build) echo built ;;' 'esac'
  pretend "$work/bin/ctest" 'echo "100% tests passed, 0 tests failed out of 7"'
  pretend "$work/bin/compute-sanitizer" 'echo "========= ERROR SUMMARY: 0 errors"'
  pretend "$work/bin/python3" 'echo "{\"missing\": \"no such package\"}"'
  # shellcheck disable=SC2016  # the other shell expands it
  pretend "$build/bin/mnist_multi_gpu" 'while (($# > 0)); do [[ $1 == --out ]] && out=$2; shift; done' \
    'mkdir -p "$out" && echo weights >"$out/weights.safetensors"' \
    'for s in 0.5 0.25 0.125 0.375 0.25; do echo "{\"event\":\"epoch\",\"train_seconds\":$s,\"x\":1}"; done' \
    'echo "{\"event\":\"result\",\"test_accuracy\":0.984375,\"x\":1}"' \
    'if [[ -n $LD_PRELOAD ]]; then echo "graph of 11 nodes: 11 kernels" >&2; fi'
}

check() {  # WHAT COMMAND...
  if ! "${@:2}"; then
    printf 'FAILED: %s: %s\n--- output\n%s\n' "$case_name" "$1" "$(cat "$work/output")"
    failures=$((failures + 1))
  fi
}
begin() {
  case_name=$1
  printf 'case: %s\n' "$1"
  well
}
# run STATUS [options]: the script must end so.
run() {
  local status=0
  # The preloaded library is pretended too: the loader would complain about it.
  env -u CXX PATH="$work/bin:$PATH" bash "$work/root/scripts/gpu_check.sh" --out "$work/out" "${@:2}" >"$work/output" 2>&1 ||
    status=$?
  check "ends with $status, expected $1" test "$status" = "$1"
}
says() { check "says '$1'" grep -qF -- "$1" "$work/output"; }

# value PATH...: of result.json, by somebody else's reader.
value() {
  cat >"$work/value.cmake" <<'TEXT'
file(READ ${FILE} json)
string(REPLACE "," ";" path "${WHERE}")
string(JSON value GET "${json}" ${path})
execute_process(COMMAND ${CMAKE_COMMAND} -E echo "${value}")
TEXT
  "$cmake" -D FILE="$work/out/result.json" -D WHERE="$1" -P "$work/value.cmake"
}
# part NAME RESULT: what both reports say; the reason is left in $reason, the part's place in $place.
part() {
  place=0
  while [[ $(value "parts,$place,name") != "$1" ]]; do place=$((place + 1)); done
  reason=$(value "parts,$place,reason")
  check "$1 is '$(value "parts,$place,result")', expected '$2'" test "$(value "parts,$place,result")" = "$2"
  check "the table tells of $1" grep -q "^$1  *[0-9.]* s  $2${reason:+: }" "$work/out/table.txt"
}
because() { check "the reason '$reason' has '$1'" test "${reason#*"$1"}" != "$reason"; }
figure() { check "figure $1 is $(value "parts,$place,figures,$1"), expected $2" test "$(value "parts,$place,figures,$1")" = "$2"; }

begin 'all is well'
run 0
part graph_eager passed
part mnist passed
figure test_accuracy_median 0.984375
part epochs passed
figure fused_epoch_seconds 0.25
figure fused_epoch_highest 0.375
part nodes passed
part memcheck passed
figure unfused '0 errors'
part tests passed
figure tests 7
part pytorch 'not run'
because 'no such package'
check 'the machine' test "$(value machine,card)" = 'Pretended GPU'
check 'cuDNN is in a wheel' test "$(value machine,cudnn_place)" = /wheels/libcudnn.so.9
check 'compiled for this GPU only' grep -q 'CMAKE_CUDA_ARCHITECTURES=90-real' "$work/out/logs/build.log"
check 'logs are packed' tar -tzf "$work/out/logs.tar.gz" logs/build.log

begin 'an nvcc older than the GPU'
pretend "$work/bin/nvidia-smi" 'case "$*" in -L) echo "GPU 0: New" ;; *query*) echo "New GPU, 999.1, 12.1, 1" ;; esac'
run 0 --parts build
check 'compiled as text for the driver' grep -q 'CMAKE_CUDA_ARCHITECTURES=90-virtual' "$work/out/logs/build.log"

begin 'a failing test, weights that differ, a bad accuracy, an error of the sanitizer and another graph'
pretend "$work/bin/ctest" 'echo "50% tests passed, 1 tests failed out of 2"' 'echo "	  7 - gpu/kernels/pool_test (Failed)"' 'exit 8'
pretend "$work/bin/compute-sanitizer" 'echo "========= ERROR SUMMARY: 3 errors"; exit 97'
sed -i 's/echo weights/echo $RANDOM$RANDOM/;s/0.984375/0.9/;s/11 nodes: 11/13 nodes: 12/' "$build/bin/mnist_multi_gpu"
run 1
part tests failed
because 'gpu/kernels/pool_test Failed'
part graph_eager failed
because 'differ'
part mnist failed
because 'the median test accuracy of the seeds 0 1 2 3 4 is 0.9, at least 0.978 is wanted'
part memcheck failed
because '3 errors'
part nodes failed
because 'a graph of 13 nodes: 12 kernels, expected 11'
part epochs passed
check 'the count' test "$(value failed)" = 8

begin 'a part that hangs is killed, with what it started, and the others go on'
pretend "$work/bin/python3" "if [[ \$1 == *jax* ]]; then echo '{\"missing\": \"nothing\"}'; exit; fi" \
  "sleep 300 & echo \$! >$work/sleeper; wait"
run 1 --limit 4 --parts pytorch,jax
part pytorch failed
because 'killed: not done after 4 s'
part jax 'not run'
sleeper=$(cat "$work/sleeper")
check 'what it started is gone' bash -c "! kill -0 $sleeper 2>/dev/null || [[ \$(cat /proc/$sleeper/stat) == *' Z '* ]]"

begin 'a budget of few seconds drops the last parts'
run 0 --budget 19
part build 'not run'
because 'of the budget of 19 s only'
part data passed
part mnist 'not run'
because 'the part build has not passed'
part jax 'not run'

begin 'no GPU at all'
CUDA_VISIBLE_DEVICES='' run 1
part gpu failed
because 'no GPU can be used: CUDA_VISIBLE_DEVICES hides them all; --simulated runs the same steps without one'
part build 'not run'

begin 'a build without cuDNN is said to lack it'
sed -i 's/-- Lockstep: CUDNN [^"]*/-- Lockstep: CUDNN is off: it was not found in \/usr/' "$work/bin/cmake"
run 1 --parts build
part build failed
because 'CUDNN: it was not found in /usr'

begin 'a driver that the sanitizer does not support, and no sanitizer'
pretend "$work/bin/compute-sanitizer" 'echo "========= Error: Device not supported"; exit 1'
run 0 --parts memcheck
part memcheck 'not run'
because 'device not supported'

begin 'errors in kernels that are not ours are told and fail nothing, errors in ours fail'
# shellcheck disable=SC2016  # the other shell expands it
pretend "$work/bin/compute-sanitizer" 'if [[ $* != *no-fuse* ]]; then echo "========= ERROR SUMMARY: 0 errors"; exit; fi' \
  'echo "=========     at 0x70 in cudnn::kernel(float*)"; echo "=========         Host Frame: lockstep::conv"' \
  'if [[ $* == *racecheck* ]]; then echo "=========     at lockstep::cuda::pool+0x70 in pool.cu:9"; fi' \
  'echo "========= ERROR SUMMARY: 2 errors"; exit 97'
run 1 --parts memcheck,racecheck
part memcheck passed
figure fused '0 errors'
figure unfused '2 errors (none in a kernel of ours)'
part racecheck failed
because 'unfused: 2 errors'

begin 'wrong usage'
run 2 --nonsense
says 'there is no option --nonsense'
run 2 --budget soon
run 2 --parts mnist,everything
says "there is no part 'everything', expected some of: setup gpu"
run 2 --deps "$work/nowhere"
says 'there is no such folder; scripts/gpu_pack.sh makes one'
run 2 --json "$work/nowhere/result.json"

# --- the folder with what is missing ---

pack() {  # STATUS FOLDER
  local status=0
  PATH=$work/bin:$PATH bash "$work/root/scripts/gpu_pack.sh" "${@:2}" >"$work/output" 2>&1 || status=$?
  check "gpu_pack ends with $status, expected $1" test "$status" = "$1"
}
# apt-get that downloads empty packages of the names asked for, and dpkg that unpacks a header of each.
packages() {
  # shellcheck disable=SC2016  # the other shell expands it
  pretend "$work/bin/apt-get" 'while [[ $1 != download ]]; do shift || exit 1; done; shift' \
    "for name; do truncate -s $1 \"\${name}_1_all.deb\"; done"
  # shellcheck disable=SC2016
  pretend "$work/bin/dpkg" 'mkdir -p "$3/usr/include/nlohmann" "$3/usr/include/CLI" "$3/usr/include/catch2"' \
    'touch "$3/usr/include/"{zlib.h,stb_image.h,nlohmann/json.hpp,CLI/CLI.hpp,catch2/catch.hpp}'
}

begin 'what is packed is unpacked where it is missing'
packages 100
pack 0 "$work/pack"
check 'sums' test "$(wc -l <"$work/pack/SHA256SUMS")" = 10
rm -rf "$work/root/data/mnist"
LOCKSTEP_ASSUME_MISSING="zlib1g-dev nlohmann-json3-dev libcli11-dev libstb-dev catch2" run 0 --deps "$work/pack"
part data passed
check 'unpacked' test -f "$work/root/build/deps/usr/include/zlib.h"
pack 0 "$work/pack"

begin 'without it they are missed'
rm -rf "$work/root/data/mnist"
LOCKSTEP_ASSUME_MISSING="zlib1g-dev" run 1 --parts data,build
part setup failed
because 'scripts/gpu_pack.sh packs headers for --deps'
part data 'not run'
run 1 --parts data
part data failed
because 'MNIST is not in data/mnist'

begin 'a damaged folder is refused'
echo damaged >"$work/pack/debs/catch2_1_all.deb"
run 1 --deps "$work/pack"
part setup failed
because 'files are missing or damaged'

begin 'more than 60 MiB is refused, and so is a folder of others; what is there stays'
packages 11M
pack 1 "$work/pack"
check 'the old packages' grep -q damaged "$work/pack/debs/catch2_1_all.deb"
mkdir "$work/others" && touch "$work/others/file"
pack 2 "$work/others"
check 'the file' test -f "$work/others/file"

printf '%d failures\n' "$failures"
exit "$((failures > 0))"
