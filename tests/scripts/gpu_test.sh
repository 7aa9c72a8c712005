#!/usr/bin/env bash
# Which build scripts/setup.sh chooses, and why no GPU is used; where nvcc is found. With programs that only pretend.
#   gpu_test.sh SETUP_SCRIPT
set -euo pipefail
root=$(cd "$(dirname "$1")/.." && pwd)
cmake=$(command -v cmake)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

pretend() {  # FILE LINES...: a program of these lines of shell
  mkdir -p "$(dirname "$1")"
  printf '#!/bin/sh\n' >"$1"
  printf '%s\n' "${@:2}" >>"$1"
  chmod +x "$1"
}

expect() {  # WHAT WANTED GOT: WANTED is a pattern
  # shellcheck disable=SC2053  # a pattern
  if [[ $3 != $2 ]]; then
    printf 'FAILED: %s\n  wanted: %s\n  got:    %s\n' "$1" "$2" "$3"
    failures=$((failures + 1))
  fi
}

# What lockstep_choose_preset chooses where the programs of the folder $1 come first on the PATH: "preset: reason".
choice() {
  # shellcheck disable=SC2016  # for the other shell
  PATH=$1:$PATH bash -c 'source "$1"; lockstep_choose_preset; echo "$setup_preset: $setup_no_gpu"' choice "$root/scripts/setup.sh"
}

# A machine with a GPU and a toolkit; cmake finds nvcc and prints the summary of a configuration.
machine() {  # FOLDER SUMMARY-COMMAND
  pretend "$1/nvidia-smi" 'echo "GPU 0: NVIDIA H200 (UUID: GPU-0)"'
  pretend "$1/cmake" 'if [ "$1" = -P ]; then echo /opt/nvcc; exit; fi' "$2"
}
machine "$work/all" 'echo "-- Lockstep: CUDA 13.0"; echo "-- Lockstep: CUDNN 9.19"; echo "-- Lockstep: NCCL 2.28"'
machine "$work/no_nccl" 'echo "-- Lockstep: NCCL is off: it was not found in /usr/lib"'
machine "$work/broken" 'echo "CMake Error: no compiler"; exit 1'
machine "$work/no_nvcc" ''
pretend "$work/no_nvcc/cmake" 'echo "there is no nvcc" >&2'
machine "$work/no_gpu" ''
pretend "$work/no_gpu/nvidia-smi" 'echo "NVIDIA-SMI has failed" >&2' 'exit 9'

unset CUDA_VISIBLE_DEVICES
expect "all is there" "cuda-release: " "$(choice "$work/all")"
expect "NCCL is missing" "cpu-release: NCCL: it was not found in /usr/lib" "$(choice "$work/no_nccl")"
expect "not to be configured" "cpu-release: the CUDA build cannot be configured: CMake Error: no compiler*" \
  "$(choice "$work/broken")"
expect "no nvcc" "cpu-release: there is no nvcc" "$(choice "$work/no_nvcc")"
expect "a driver without a GPU" "cpu-release: nvidia-smi finds none" "$(choice "$work/no_gpu")"
expect "hidden GPUs" "cpu-release: CUDA_VISIBLE_DEVICES hides them all" "$(CUDA_VISIBLE_DEVICES='' choice "$work/all")"
if [[ ! -e /dev/nvidia0 && ! -e /dev/dxg ]] && ! command -v nvidia-smi >/dev/null; then
  mkdir "$work/nothing"
  expect "no driver" "cpu-release: this machine has no NVIDIA driver" "$(choice "$work/nothing")"
fi

# nvcc where only $work is looked at: paths outside of it become paths in it.
nvcc() {  # [VARIABLE=VALUE...]
  env -u CUDAToolkit_ROOT -u CUDA_PATH -u CUDA_HOME -u CONDA_PREFIX PATH=/usr/bin:/bin "$@" "$cmake" -D \
    CMAKE_FIND_ROOT_PATH="$work" -D CMAKE_FIND_ROOT_PATH_MODE_PROGRAM=ONLY -D LOCKSTEP_SITE_PACKAGES="$work/site" -P "$root/third_party/nvcc.cmake" 2>&1
}
release='echo "Cuda compilation tools, release 12.8, V12.8.93"'
expect "nowhere" "there is no nvcc on the PATH or in bin of: */named*/usr/local/cuda*/opt/cuda*" "$(nvcc CUDA_PATH=/named)"
pretend "$work/site/nvidia/cu13/bin/nvcc" "$release"
expect "a wheel of Python" "$work/site/nvidia/cu13/bin/nvcc" "$(nvcc)"
pretend "$work/usr/local/cuda/bin/nvcc" "$release"
expect "not on the PATH" "$work/usr/local/cuda/bin/nvcc" "$(nvcc)"
pretend "$work/conda/bin/nvcc" "$release"
expect "conda" "$work/conda/bin/nvcc" "$(nvcc CONDA_PREFIX="$work/conda")"
pretend "$work/old/bin/nvcc" 'echo "Cuda compilation tools, release 11.8, V11.8.89"'
expect "named and too old" "$work/old/bin/nvcc is version '11.8', 12.4 is needed" "$(nvcc CUDA_HOME="$work/old")"

printf '%d failures\n' "$failures"
exit "$((failures > 0))"
