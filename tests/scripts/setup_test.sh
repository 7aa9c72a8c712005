#!/usr/bin/env bash
# scripts/setup.sh: asks no package server when nothing is missing, and says what is missing when nothing can be installed.
#   setup_test.sh SETUP_SCRIPT
set -euo pipefail
setup=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

check() {  # WHAT COMMAND...
  local what=$1
  shift
  if ! "$@"; then
    printf 'FAILED: %s\n--- output ---\n%s\n' "$what" "$(cat "$work/output")"
    failures=$((failures + 1))
  fi
}

# An apt-get, a sudo and a dpkg that only note that they were called.
mkdir "$work/stubs" "$work/bare"
for program in apt-get sudo dpkg; do
  printf '#!/bin/sh\necho "%s $*" >>"%s/calls"\nexit 1\n' "$program" "$work" >"$work/stubs/$program"
  chmod +x "$work/stubs/$program"
done
touch "$work/calls"

# This test runs in a built tree: everything that a build needs is here.
status=0
PATH=$work/stubs:$PATH bash "$setup" >"$work/output" 2>&1 || status=$?
check "all is here: succeeds" test "$status" = 0
check "all is here: asks nobody" test ! -s "$work/calls"
check "all is here: says so" grep -q "everything is here" "$work/output"

# The tools of this machine without a package manager.
for folder in /usr/local/bin /usr/bin /bin; do
  for program in "$folder"/*; do
    case ${program##*/} in
      apt* | dpkg* | sudo) ;;
      *) ln -sf "$program" "$work/bare/" ;;
    esac
  done
done
status=0
PATH=$work/bare LOCKSTEP_ASSUME_MISSING="zlib1g-dev catch2" CMAKE_PREFIX_PATH="" \
  bash "$(dirname "$setup")/setup.sh" >"$work/output" 2>&1 || status=$?
if [[ -f $(dirname "$setup")/../build/deps/usr/include/zlib.h ]]; then
  # A tree of a user without root has its own headers unpacked: nothing is missing even so.
  check "unpacked headers count: succeeds" test "$status" = 0
else
  check "no package manager: fails" test "$status" != 0
  check "no package manager: lists zlib" grep -q "zlib1g-dev .*zlib" "$work/output"
  check "no package manager: lists Catch2" grep -q "catch2 .*Catch2" "$work/output"
  check "no package manager: says what to do" grep -q "install these by your system's means" "$work/output"
fi

printf '%d failures\n' "$failures"
exit "$((failures > 0))"
