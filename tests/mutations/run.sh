#!/usr/bin/env bash
# Plants the faults of faults.txt, one after another, in a copy of the sources, and sees that a test turns red.
#   tests/mutations/run.sh            all of them; ends with a table: the fault, and what caught it; the same for
#                                     docs/reliability.md is in build/mutations/table.md
#   tests/mutations/run.sh NAME...    these only
#   tests/mutations/run.sh --check    builds nothing: does every fault still fit the sources and stand in docs/reliability.md?
# First the same tests must be green on the sources as they are. Fails when a fault is caught by nothing, does not build or
# does not fit. The copy is build/mutations; with a compiler cache most of what is built in it is built already.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
copy=$root/build/mutations
page=$root/docs/reliability.md
limit=1800  # seconds for the tests of a fault: one that makes them hang is caught too
export TSAN_OPTIONS=halt_on_error=1${TSAN_OPTIONS:+:$TSAN_OPTIONS}  # a race that has been seen is enough
cores=$(nproc)

names=()
declare -A what preset targets tests says files old new

fail() {
  printf 'run.sh: %s\n' "$*" >&2
  exit 2
}

# Reads faults.txt, which says at its top how it is written.
read_faults() {
  local name='' edit line key value
  while IFS= read -r line || [[ -n $line ]]; do
    case $line in
      '' | '#'*) continue ;;
      -*) old[$name,$edit]+=$'\n'${line#-} && continue ;;
      +*) new[$name,$edit]+=$'\n'${line#+} && continue ;;
    esac
    read -r key value <<<"$line"
    case $key in
      fault)
        name=$value edit=-1
        [[ -z ${what[$name]+set} ]] || fail "faults.txt: $name is there twice"
        names+=("$name")
        what[$name]='' preset[$name]='' targets[$name]='' tests[$name]='' says[$name]='' files[$name]=''
        ;;
      what) what[$name]=$value ;;
      preset) preset[$name]=$value ;;
      build) targets[$name]=$value ;;
      tests) tests[$name]=$value ;;
      says) says[$name]=$value ;;
      in)
        edit=$((edit + 1))
        files[$name]+="${files[$name]:+ }$value"
        old[$name,$edit]='' new[$name,$edit]=''
        ;;
      *) fail "faults.txt: $line: want fault, what, preset, build, tests, says, in or an edited line" ;;
    esac
  done <"$root/tests/mutations/faults.txt"
  for name in "${names[@]}"; do
    [[ -n ${what[$name]} && -n ${preset[$name]} && -n ${targets[$name]} && -n ${tests[$name]} && -n ${files[$name]} ]] ||
      fail "faults.txt: $name lacks one of what, preset, build, tests, in"
  done
}

# Fills `edited` with the changed text of each file of the fault NAME under FOLDER, and `original` with the text as it is.
declare -A edited original
plant() {  # NAME FOLDER
  local edit=0 file text rest
  edited=() original=()
  for file in ${files[$1]}; do
    [[ -f $2/$file ]] || fail "$1: there is no $file"
    original[$file]=${original[$file]:-$(<"$2/$file")}
    text=${edited[$file]:-$'\n'${original[$file]}$'\n'}
    local before=${old[$1,$edit]}$'\n' after=${new[$1,$edit]}$'\n'
    rest=${text#*"$before"}
    [[ $rest != "$text" ]] || fail "$1: $file has no longer the text${before%$'\n'}"
    # A line that ends the text may begin it the next time.
    [[ $'\n'$rest != *"$before"* ]] || fail "$1: $file has this text twice:${before%$'\n'}"
    edited[$file]=${text/"$before"/"$after"}
    edit=$((edit + 1))
  done
}

check() {
  local name wrong=0
  for name in "${names[@]}"; do
    plant "$name" "$root"
    if ! grep -qF "${what[$name]}" "$page"; then
      printf '%s: docs/reliability.md does not say "%s"\n' "$name" "${what[$name]}"
      wrong=1
    fi
  done
  printf '%d faults\n' "${#names[@]}"
  return $wrong
}

build() {  # PRESET TARGETS
  # shellcheck disable=SC2086  # one word a target
  cmake --build "$copy/build/$1" --parallel "$cores" --target $2
}

# Runs tests; their output is in $copy/output, the names of those that failed in `red`.
run_tests() {  # PRESET TESTS [SECONDS]
  local log=$copy/build/$1/Testing/Temporary/LastTestsFailed.log status=0 most=${3:-$limit}
  rm -f "$log"
  timeout "$most" ctest --test-dir "$copy/build/$1" -R "$2" --no-tests=error --output-on-failure --parallel "$cores" \
    >"$copy/output" 2>&1 || status=$?
  red=
  if [[ $status == 124 ]]; then
    red="none ended within $most s"
  elif [[ $status != 0 ]]; then
    [[ -s $log ]] || { cat "$copy/output" && fail "ctest failed without a failed test"; }
    red=$(sed 's/^[0-9]*://' "$log" | sort | paste -sd ' ')
  fi
}

# What the output shows first: the place of a race in our code, or the name of a Catch2 case.
first_sight() {
  local place
  place=$(sed -n '/WARNING: ThreadSanitizer: data race/,$p' "$copy/output" | grep -v '/tests/' |
    grep -oE '(core|kernels|layers|parallel)/[a-z_/]*[.](cu|cpp|h):[0-9]+' | sed -n 1p) || true
  if [[ -n $place ]]; then
    printf 'data race at %s' "$place"
  else
    awk '/^--------------------------------------/ { if ((getline line) > 0 && line !~ /^[ .-]*$/) { print line; exit } }' "$copy/output"
  fi
}

# A fault: plants it, builds, tests, takes it out again. Adds a line to `table`.
table=()
survivors=0
try() {  # NAME
  local name=$1 file start=$SECONDS result seen
  plant "$name" "$copy"
  for file in "${!edited[@]}"; do
    local text=${edited[$file]#$'\n'}
    printf '%s' "$text" >"$copy/$file"
  done
  if ! build "${preset[$name]}" "${targets[$name]}" >"$copy/output" 2>&1; then
    tail -n 30 "$copy/output"
    result="DOES NOT BUILD"
    survivors=$((survivors + 1))
  else
    run_tests "${preset[$name]}" "${tests[$name]}"
    if [[ -z $red ]]; then
      result="SURVIVED ${tests[$name]}"
      survivors=$((survivors + 1))
    elif [[ -n ${says[$name]} ]] && ! grep -qE "${says[$name]}" "$copy/output"; then
      result="SURVIVED: $red failed, but without saying ${says[$name]}"
      survivors=$((survivors + 1))
    else
      seen=$(first_sight)
      result="$red${seen:+ ($seen)}"
      printf '| %s | `%s`%s |\n' "${what[$name]}" "${red// /\`, \`}" "${seen:+: $seen}" >>"$copy/table.md"
    fi
  fi
  # With the time of now, or what was built with the fault would pass for new.
  for file in "${!original[@]}"; do printf '%s\n' "${original[$file]}" >"$copy/$file"; done
  table+=("$(printf '%-26s %4d s  %s' "$name" $((SECONDS - start)) "$result")")
  printf '%s\n' "${table[-1]}"
}

# Copies the sources, and builds and runs on them what the faults "$@" will need.
prepare() {
  local name file key options
  local -A wanted patterns
  mkdir -p "$copy"
  tar -C "$root" -cf - --exclude=./build --exclude=./.git --exclude=./runs . | tar -C "$copy" -xf -
  for name in "${names[@]}"; do
    for file in ${files[$name]}; do touch "$copy/$file"; done
  done
  for name in "$@"; do
    wanted[${preset[$name]}]+=" ${targets[$name]}"
    patterns[${preset[$name]}]+="|${tests[$name]}"
  done
  for key in "${!wanted[@]}"; do
    options=()
    if [[ $key != cpu-release ]]; then options+=(-D LOCKSTEP_CUDA=ON -D CMAKE_CUDA_ARCHITECTURES=90-virtual); fi
    (cd "$copy" && cmake --preset "$key" "${setup_generator[@]}" "${options[@]}") >"$copy/output" 2>&1 ||
      { cat "$copy/output" && fail "$key cannot be configured"; }
    build "$key" "$(tr ' ' '\n' <<<"${wanted[$key]}" | sort -u | paste -sd ' ')" >"$copy/output" 2>&1 ||
      { tail -n 40 "$copy/output" && fail "$key does not build without a fault"; }
  done
  for key in "${!patterns[@]}"; do
    run_tests "$key" "${patterns[$key]#|}" 3600
    if [[ -n $red ]]; then tail -n 60 "$copy/output" && fail "without a fault, red: $red"; fi
  done
}

read_faults
if [[ ${1:-} == --check ]]; then
  check
  exit
fi
chosen=("${names[@]}")
if [[ $# -gt 0 ]]; then
  chosen=("$@")
  for name in "$@"; do [[ -n ${what[$name]+set} ]] || fail "there is no fault $name in faults.txt"; done
fi
source "$root/scripts/setup.sh"
lockstep_setup
SECONDS=0
rm -f "$copy/table.md"
prepare "${chosen[@]}"
printf 'green without a fault, after %d s\n' "$SECONDS"
for name in "${chosen[@]}"; do try "$name"; done
printf '\n--- %d faults, %d not caught (%d s) ---\n' "${#chosen[@]}" "$survivors" "$SECONDS"
printf '%s\n' "${table[@]}"
[[ $survivors == 0 ]]
