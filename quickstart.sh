#!/usr/bin/env bash
# From a bare machine to a trained model without one question: installs what is missing, builds, fetches MNIST, trains on
# every GPU where GPUs can be used, else on every core and says why.
#   ./quickstart.sh [options of mnist_multi_gpu]
# All but the program's own results goes to stderr. Without MNIST it says why and trains on drawn digits.
set -euo pipefail
cd "$(dirname "$0")"
exec </dev/null
source scripts/setup.sh

say() { printf 'quickstart: %s\n' "$*" >&2; }

SECONDS=0
lockstep_setup data >&2
lockstep_choose_preset
if [[ -n $setup_no_gpu ]]; then say "no GPU is used: $setup_no_gpu"; fi
lockstep_build "$setup_preset" --target mnist_multi_gpu >&2

data=()
fetch=(scripts/fetch_mnist.sh)
arguments=" ${*//=/ } "
if [[ $arguments == *" --dataset fashion-mnist "* ]]; then fetch+=(--fashion); fi
# Somebody who names the data's folder has it, and synthetic digits are in no folder.
if [[ $arguments != *" --data "* && $arguments != *" --dataset synthetic "* ]]; then
  if ! "${fetch[@]}" >&2; then
    if [[ $arguments == *" --dataset "* ]]; then
      say "the data set could not be had (the lines above say why); try again: ${fetch[*]}"
      exit 3
    fi
    say "**************************************************************************"
    say "MNIST could not be had (the lines above say why): training on drawn digits"
    say "instead. Accuracies are NOT those of MNIST. To try again:"
    say "${fetch[*]}"
    say "**************************************************************************"
    data=(--dataset synthetic)
  fi
fi

ready=$SECONDS
"build/$setup_preset/bin/mnist_multi_gpu" "$@" "${data[@]}"
say "done: $ready s until all was ready, $((SECONDS - ready)) s for the program"
