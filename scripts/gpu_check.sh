#!/usr/bin/env bash
# Builds for this machine's GPU, tests there all that can be tested, measures, and writes what was seen into one table and one
# JSON file. Needs no network and, with its budget, ends in under 8 minutes.
#   scripts/gpu_check.sh [options]
#     --deps FOLDER     what scripts/gpu_pack.sh made, where headers or MNIST are missing
#     --budget SECONDS  for all of it (470): parts come in the order of their worth, and those at the end for which too little
#                       is left are not run
#     --limit SECONDS   no part may take longer than this; each has a limit of its own
#     --parts LIST      only these parts, separated by commas, and those that they need
#     --tests REGEX     of the tests only those whose name begins so: kernels/pool
#     --build FOLDER    where to build (build/gpu-check)
#     --out FOLDER      for the logs of all parts, logs.tar.gz, table.txt and result.json (build/gpu-check-out)
#     --json FILE       result.json goes here
#     --simulated       the same steps on simulated CUDA, on any machine with the toolkit, with little data
# A part passes, fails, or is not run for a reason that the table tells. What hangs is killed. The files are written anew after
# every part. Exit status: 0 no part failed, 1 some did, 2 wrong usage.
set -euo pipefail
cd "$(dirname "$0")/.."
exec </dev/null
export LC_ALL=C
source scripts/setup.sh
source scripts/gpu_check_parts.sh

say() { printf 'gpu_check: %s\n' "$*"; }
wrong_usage() {
  say "$1 (--help tells more)" >&2
  exit 2
}

deps='' budget=470 limit=0 wanted='' tests='' build=build/gpu-check out=build/gpu-check-out json='' simulated=
while (($# > 0)); do
  case $1 in
    --help | -h) sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//p}' "$0" && exit 0 ;;
    --simulated) simulated=yes ;;
    --deps | --budget | --limit | --parts | --tests | --build | --out | --json)
      (($# > 1)) || wrong_usage "$1 wants a value after it"
      case $1 in
        --deps) deps=$2 ;;
        --budget) budget=$2 ;;
        --limit) limit=$2 ;;
        --parts) wanted=$2 ;;
        --tests) tests=$2 ;;
        --build) build=$2 ;;
        --out) out=$2 ;;
        --json) json=$2 ;;
      esac
      shift
      ;;
    *) wrong_usage "there is no option $1" ;;
  esac
  shift
done
for number in "$budget" "$limit"; do
  [[ $number =~ ^[0-9]+$ ]] || wrong_usage "--budget and --limit want a number of seconds, not '$number'"
done
for part in ${wanted//,/ }; do
  [[ " ${part_names[*]} " == *" $part "* ]] || wrong_usage "there is no part '$part', expected some of: ${part_names[*]}"
done
[[ -z $deps || -d $deps ]] || wrong_usage "--deps $deps: there is no such folder; scripts/gpu_pack.sh makes one"
absolute() { [[ $1 == /* ]] && printf '%s' "$1" || printf '%s/%s' "$PWD" "$1"; }
build=$(absolute "$build")
mkdir -p "$out/logs" || wrong_usage "--out $out cannot be made"
out=$(cd "$out" && pwd)
rm -f "$out"/logs/*.log
json=$(absolute "${json:-$out/result.json}")
touch "$json" || wrong_usage "--json $json cannot be written"
work=$(mktemp -d)

# --- what parts tell ---

not_run() {  # the reason
  printf '%s' "$*" >"$work/reason"
  return 77
}
fact() { printf '%s\t%s\n' "$1" "$2" >>"$work/facts"; }      # of this machine, for the parts that follow and the report
figure() { printf '%s\t%s\n' "$1" "$2" >>"$work/figures"; }  # of this part

# --- running them ---

declare -A result reason seconds figures facts
started=$EPOCHREALTIME
elapsed() { awk -v a="$started" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }'; }
left() { awk -v a="$started" -v b="$EPOCHREALTIME" -v c="$budget" 'BEGIN { printf "%d", c - (b - a) }'; }

# run_limited SECONDS COMMAND...: its status, 124 when it was killed with all that it had started.
run_limited() {
  local most=$1 end pid status=0
  shift
  set -m
  (
    set -e
    "$@"
  ) &
  pid=$!
  set +m
  end=$((SECONDS + most))
  while kill -0 "$pid" 2>/dev/null; do
    if ((SECONDS >= end)); then
      kill -TERM -- "-$pid" 2>/dev/null || true
      sleep 3
      kill -KILL -- "-$pid" 2>/dev/null || true
      wait "$pid" 2>/dev/null || true
      return 124
    fi
    sleep 0.1
  done
  wait "$pid" || status=$?
  return "$status"
}

# run_part NAME LIMIT LEAST BEFORE: runs part_NAME for at most LIMIT seconds, if LEAST are left and the parts BEFORE have passed.
run_part() {
  local name=$1 most=$2 least=$3 before status start=$EPOCHREALTIME remaining key value
  remaining=$(left)
  result[$name]='not run' reason[$name]='' seconds[$name]=0 figures[$name]=''
  for before in $4; do
    if [[ ${result[$before]} != passed ]]; then
      reason[$name]="the part $before has not passed"
      return
    fi
  done
  if ((remaining < least)); then
    reason[$name]="of the budget of $budget s only $((remaining > 0 ? remaining : 0)) are left, and it wants $least"
    return
  fi
  if ((limit > 0 && limit < most)); then most=$limit; fi
  local cut=$((remaining < most))
  if ((cut)); then most=$remaining; fi
  rm -f "$work/reason" "$work/figures"
  printf '%s ...\n' "$name"
  set +e  # a condition in its place would switch `set -e` off inside
  run_limited "$most" "part_$name" >"$out/logs/$name.log" 2>&1
  status=$?
  set -e
  seconds[$name]=$(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }')
  if [[ -f $work/figures ]]; then figures[$name]=$(cat "$work/figures"); fi
  case $status in
    0) result[$name]=passed ;;
    77) reason[$name]=$(cat "$work/reason" 2>/dev/null || true) ;;
    124)
      if ((cut)); then
        reason[$name]="stopped after $most s, when the budget of $budget s was used up"
      else
        result[$name]=failed reason[$name]="killed: not done after $most s"
      fi
      ;;
    *)
      result[$name]=failed
      reason[$name]=$(cat "$work/reason" 2>/dev/null || printf 'status %d: %s' "$status" "$(grep -v '^ *$' "$out/logs/$name.log" | tail -n 1)")
      ;;
  esac
  if [[ -f $work/facts ]]; then
    while IFS=$'\t' read -r key value; do facts[$key]=$value; done <"$work/facts"
  fi
}

# --- the report ---

text() {  # as a string of JSON
  local string=${1//\\/\\\\}
  string=${string//\"/\\\"}
  string=${string//[$'\n\t']/ }
  printf '"%s"' "${string//[[:cntrl:]]/}"
}
number_or_text() {
  if [[ $1 =~ ^-?(0|[1-9][0-9]*)(\.[0-9]+)?(e-?[0-9]+)?$ ]]; then printf '%s' "$1"; else text "$1"; fi
}
# object "KEY<tab>VALUE" lines on stdin, as an object of JSON.
object() {
  local key value comma=
  printf '{'
  while IFS=$'\t' read -r key value; do
    [[ -n $key ]] || continue
    printf '%s%s: %s' "$comma" "$(text "$key")" "$(number_or_text "$value")"
    comma=', '
  done
  printf '}'
}

count_of() {  # parts with the result $1
  local name count=0
  for name in "${!result[@]}"; do [[ ${result[$name]} != "$1" ]] || count=$((count + 1)); done
  printf '%d' "$count"
}

write_json() {
  local key name comma=
  {
    printf '{"date": %s, "commit": %s, "simulated": %s, "budget_seconds": %d, "seconds": %s, "passed": %d, "failed": %d, "not_run": %d,\n' \
      "$(text "$(date -u +%Y-%m-%dT%H:%M:%SZ)")" "$(text "$(git rev-parse HEAD 2>/dev/null || echo unknown)")" \
      "$([[ $simulated ]] && echo true || echo false)" "$budget" "$(elapsed)" "$(count_of passed)" "$(count_of failed)" \
      "$(count_of 'not run')"
    printf ' "machine": '
    for key in "${!facts[@]}"; do printf '%s\t%s\n' "$key" "${facts[$key]}"; done | sort | object
    printf ',\n "parts": ['
    for name in "${part_names[@]}"; do
      [[ -n ${result[$name]:-} ]] || continue
      printf '%s\n  {"name": %s, "result": %s, "reason": %s, "seconds": %s, "figures": ' "$comma" "$(text "$name")" \
        "$(text "${result[$name]}")" "$(text "${reason[$name]}")" "${seconds[$name]}"
      object <<<"${figures[$name]}"
      printf '}'
      comma=,
    done
    printf '\n ]}\n'
  } >"$json.new"
  mv "$json.new" "$json"
}

write_table() {
  local name line
  printf -- '--- %s%s, %s s of %s ---\n' "${facts[card]:-no GPU}" "$([[ -z $simulated ]] || echo ' (nothing here ran on a GPU)')" \
    "$(elapsed)" "$budget"
  printf 'driver %s, CUDA %s, cuDNN %s, NCCL %s\n' "${facts[driver]:-?}" "${facts[cuda]:-?}" "${facts[cudnn]:-?}" "${facts[nccl]:-?}"
  for name in "${part_names[@]}"; do
    [[ -n ${result[$name]:-} ]] || continue
    printf '%-12s %7.1f s  %s%s\n' "$name" "${seconds[$name]}" "${result[$name]}" "${reason[$name]:+: ${reason[$name]}}"
    while IFS= read -r line; do
      [[ -z $line ]] || printf '%24s%s\n' '' "${line/$'\t'/ }"
    done <<<"${figures[$name]}"
  done
  printf '%d passed, %d failed, %d not run\n' "$(count_of passed)" "$(count_of failed)" "$(count_of 'not run')"
}

finish() {
  write_table >"$out/table.txt"
  write_json
  tar -czf "$out/logs.tar.gz" -C "$out" logs
  rm -rf "$work"
}
trap finish EXIT

selected=" ${part_names[*]} "
if [[ -n $wanted ]]; then selected=" $(for part in ${wanted//,/ }; do parts_before "$part"; done) "; fi
for line in "${part_table[@]}"; do
  read -r name most least before <<<"$line"
  [[ $selected == *" $name "* ]] || continue
  run_part "$name" "$most" "$least" "$before"
  write_table >"$out/table.txt"
  write_json
done
write_table
say "logs in $out/logs, report in $json"
if (($(count_of failed) > 0)); then exit 1; fi
