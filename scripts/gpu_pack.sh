#!/usr/bin/env bash
# Packs what scripts/gpu_check.sh needs on a machine without a network:
#   scripts/gpu_pack.sh FOLDER
# FOLDER/debs has the packages with the headers that a machine may lack, FOLDER/mnist the gzipped files of MNIST, and
# FOLDER/SHA256SUMS their sums, by which gpu_check.sh knows that all has arrived. Fails when that is more than 60 MiB. FOLDER
# must be new or one that this script made.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=scripts/setup.sh
source "$root/scripts/setup.sh"

most=$((60 << 20))
say() { printf 'gpu_pack: %s\n' "$*"; }
die() {
  say "$1" >&2
  exit "${2:-1}"
}

if [[ ${1:-} == --help || ${1:-} == -h ]]; then sed -n '2,7s/^# \{0,1\}//p' "$0" && exit 0; fi
[[ $# == 1 && $1 != -* ]] || die "want one argument, the folder to make (--help tells more)" 2
if [[ -e $1 && ! -f $1/SHA256SUMS && -n $(ls -A "$1" 2>/dev/null || echo file) ]]; then
  die "$1 is there and not one that this script made: name a new folder" 2
fi
mkdir -p "$1"
folder=$(cd "$1" && pwd)

# All is gathered beside it first, so that a failure leaves what was there.
work=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/mnist"
setup_download "$work/debs" "${setup_packed[@]}" >&2 ||
  die "the packages ${setup_packed[*]} could not be fetched by apt-get (the lines above say why)"
"$root/scripts/fetch_mnist.sh" >&2
for file in "$root"/data/mnist/*-ubyte; do
  gzip -n -c "$file" >"$work/mnist/$(basename "$file").gz"
done
(cd "$work" && sha256sum debs/* mnist/* >SHA256SUMS)
bytes=$(cat "$work"/*/* "$work/SHA256SUMS" | wc -c)
[[ $bytes -le $most ]] || die "that would be $bytes bytes, and $most are the most: what is so large in $(du -a "$work" | sort -n | tail -n 3 | tr '\n' ' ')?"
rm -rf "$folder/debs" "$folder/mnist"
mv "$work/debs" "$work/mnist" "$work/SHA256SUMS" "$folder/"
say "$folder: $(wc -l <"$folder/SHA256SUMS") files, $(((bytes + 1048575) >> 20)) MiB"
say "take it along and run: scripts/gpu_check.sh --deps $1"
