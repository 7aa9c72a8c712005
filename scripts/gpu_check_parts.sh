# The parts of scripts/gpu_check.sh, which sources this: functions part_NAME that fail, pass, or return not_run's status with
# the reason why they could not. They run in a process of their own; what they print is their log. `fact` notes what is known
# of the machine, for the parts after it too, `figure` what was measured.
# shellcheck shell=bash disable=SC2154  # its variables: build, deps, facts, out, simulated, tests, work

# NAME LIMIT LEAST BEFORE...: in the order of their worth; at most LIMIT seconds each, not begun with fewer than LEAST left,
# nor before the parts BEFORE have passed.
part_table=(
  "setup        60   0"
  "gpu          60   0 setup"
  "build       330  20 gpu"
  "data         30   0 setup"
  "graph_eager  60   5 build"
  "mnist        90  10 build data"
  "calibration  90  10 build"
  "tests       200  20 build data"
  "nodes        30   5 build"
  "epochs       60  10 build data"
  "memcheck     60  15 build"
  "racecheck    60  15 build"
  "initcheck    60  15 build"
  "pytorch      90  20 gpu data"
  "jax          90  20 gpu data"
)
part_names=()
for part_line in "${part_table[@]}"; do part_names+=("${part_line%% *}"); done

# parts_before PART: it, and all that must have passed before it.
parts_before() {
  local line name before part
  printf '%s ' "$1"
  for line in "${part_table[@]}"; do
    read -r name _ _ before <<<"$line"
    [[ $name == "$1" ]] || continue
    for part in $before; do parts_before "$part"; done
  done
}

fails() {  # the reason
  printf '%s' "$*" >"$work/reason"
  printf '%s\n' "$*"
  return 1
}

median() { sort -g | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

# The values of the field $1 in the events $2 of the lines of JSON on stdin.
field() { sed -n "s/.*\"event\":\"$2\".*\"$1\":\([^,}]*\).*/\1/p" | tr -d '"'; }

# Runs a program on the GPU, or on the simulated one.
on_gpu() {
  if [[ -z $simulated ]]; then
    "$@"
  else
    env LD_LIBRARY_PATH="$build/cusim${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" CUSIM_DEVICES=1 CUSIM_CHECK=1 CUSIM_TAG=1 \
      CUSIM_SEED=1 CUSIM_ARCH=90 CUSIM_KERNELS="$build/tests/liblockstep_sm_90.so" "$@"
  fi
}

# train NAME [options]: trains on the first GPU into the run folder $work/NAME, started by the command `under`; events on
# stdout.
under=()
train() {
  local name=$1
  shift
  on_gpu "${under[@]}" "$build/bin/mnist_multi_gpu" train --devices cuda:0 --json --out "$work/$name" "$@"
}

# --- set-up ---

part_setup() {
  if [[ -n $deps ]]; then
    (cd "$deps" && sha256sum --quiet -c SHA256SUMS) ||
      fails "$deps is not what scripts/gpu_pack.sh made: files are missing or damaged (see the log); pack it again"
  fi
  lockstep_setup_offline "$deps" ||
    fails "headers or programs are missing (see the log); scripts/gpu_pack.sh packs headers for --deps"
}

part_data() {
  LOCKSTEP_MNIST_FROM=${deps:+$deps/mnist} scripts/fetch_mnist.sh --sources folder ||
    fails "MNIST is not in data/mnist; scripts/gpu_pack.sh packs it for --deps"
}

# --- what is here ---

# Asks the CUDA runtime itself, where there is no nvidia-smi: "name, driver, capability, MiB" as that would print it.
ask_runtime() {
  cat >"$work/ask.cu" <<'CUDA'
#include <cstdio>
int main() {
  cudaDeviceProp p;
  int driver = 0;
  const cudaError_t error = cudaGetDeviceProperties(&p, 0);
  if (error != cudaSuccess) return std::fprintf(stderr, "%s\n", cudaGetErrorString(error)), 1;
  cudaDriverGetVersion(&driver);
  std::printf("%s, for CUDA %d.%d, %d.%d, %zu\n", p.name, driver / 1000, driver % 1000 / 10, p.major, p.minor,
              p.totalGlobalMem >> 20);
}
CUDA
  "${facts[nvcc]}" -o "$work/ask" "$work/ask.cu" -L"$(dirname "${facts[nvcc]}")/../lib" && "$work/ask"
}

part_gpu() {
  local asked name driver capability memory
  if [[ -z $simulated ]]; then
    setup_gpu || fails "no GPU can be used: $setup_no_gpu; --simulated runs the same steps without one"
    nvidia-smi || true
  fi
  facts[nvcc]=$(setup_nvcc) || true
  [[ -n ${facts[nvcc]} ]] || fails "$(setup_nvcc 2>&1)"
  fact nvcc "${facts[nvcc]}"
  if [[ -n $simulated ]]; then
    asked="simulated, none, 9.0, 0"
  else
    asked=$(nvidia-smi --query-gpu=name,driver_version,compute_cap,memory.total --format=csv,noheader,nounits | head -n 1) ||
      asked=$(ask_runtime) || fails "neither nvidia-smi nor a program of CUDA can tell what GPU this is"
  fi
  printf '%s\n' "$asked"
  IFS=, read -r name driver capability memory <<<"${asked//, /,}"
  [[ $capability =~ ^[0-9]+\.[0-9]$ ]] || fails "the GPU's compute capability is '$capability', expected a number such as 9.0"
  fact card "$name"
  fact driver "$driver"
  fact compute_capability "$capability"
  fact memory_mib "$memory"
  fact cores "$(nproc)"
  fact system "$(sed -n 's/^PRETTY_NAME=//p' /etc/os-release | tr -d '"'), $(uname -sr)"
  fact compiler "$(${CXX:-c++} --version | head -n 1)"
  fact cmake "$(cmake --version | head -n 1)"
}

# The architecture to compile for: the GPU's own, or as text that the driver compiles, where nvcc is older than the GPU.
architecture() {
  local own=${facts[compute_capability]/./} known newest=0
  if [[ -n $simulated ]]; then
    printf '%s-virtual' "$own" && return
  fi
  for known in $("${facts[nvcc]}" --list-gpu-arch | sed -n 's/^compute_\([0-9]*\)$/\1/p'); do
    if ((known == own)); then
      printf '%s-real' "$own" && return
    fi
    if ((known < own && known > newest)); then newest=$known; fi
  done
  ((newest > 0)) || fails "${facts[nvcc]} does not know sm_$own, nor an older one" >&2
  printf '%s-virtual' "$newest"
}

part_build() {
  local here name line
  if [[ ! -f $build/CMakeCache.txt || $build == */gpu-check ]]; then
    lockstep_configure cuda-release -B "$build" -D CMAKE_CUDA_ARCHITECTURES="$(architecture)" -D LOCKSTEP_WERROR=OFF \
      -D LOCKSTEP_INSTALL=OFF -D LOCKSTEP_GPU_TEST_SECONDS=60 -D LOCKSTEP_CUSIM="${simulated:-no}" |& tee "$work/summary"
  else
    cmake -S . -B "$build" |& tee "$work/summary"
  fi
  for name in CUDA CUDNN NCCL; do
    line=$(sed -n "s/^-- Lockstep: $name \([0-9.]*\), \(.*\)/\1 \2/p" "$work/summary")
    here=${line%% *}
    [[ -n $here ]] || fails "$(sed -n "s/^-- Lockstep: $name is off: /$name: /p" "$work/summary")"
    fact "${name,,}" "$here"
    if [[ $name == CUDA ]]; then figure architectures "${line##* }"; else fact "${name,,}_place" "${line#* }"; fi
  done
  fact cublas_place "$(sed -n 's/^-- Lockstep: CUBLAS, //p' "$work/summary")"
  cmake --build "$build" --parallel "$(nproc)" --target gpu_tests mnist_multi_gpu lockstep_bench lockstep_graph_nodes
}

# --- does it compute the right thing? ---

part_graph_eager() {
  local way graph eager samples=12850 few
  if [[ -n $simulated ]]; then samples=700; fi
  few=(--dataset synthetic --limit-train "$samples" --limit-validation 100 --limit-test 0 --epochs 1)
  for way in fused unfused; do
    local options=("${few[@]}")
    if [[ $way == unfused ]]; then options+=(--no-fuse); fi
    train "graph_$way" "${options[@]}"
    train "eager_$way" "${options[@]}" --no-graph
    graph=$(sha256sum <"$work/graph_$way/weights.safetensors")
    eager=$(sha256sum <"$work/eager_$way/weights.safetensors")
    figure "${way}_sha256" "${graph%% *}"
    [[ $graph == "$eager" ]] || fails "$way: the weights of graph and eager steps differ: ${graph%% *} and ${eager%% *}"
  done
}

# The article's experiment, by the rule of test.sh for CPUs.
part_mnist() {
  local seed seeds="0 1 2 3 4" options=() wanted=0.978 accuracy
  if [[ -n $simulated ]]; then
    seeds=0 wanted=0.5 options=(--limit-train 1600 --limit-validation 100 --limit-test 500 --epochs 1)
  fi
  for seed in $seeds; do train "mnist$seed" --seed "$seed" "${options[@]}" | tee -a "$work/mnist"; done
  accuracy=$(field test_accuracy result <"$work/mnist" | median)
  figure test_accuracy_median "$accuracy"
  figure test_accuracy_lowest "$(field test_accuracy result <"$work/mnist" | sort -g | head -n 1)"
  awk -v a="$accuracy" -v b="$wanted" 'BEGIN { exit !(a >= b) }' ||
    fails "the median test accuracy of the seeds $seeds is $accuracy, at least $wanted is wanted"
}

# gpu_tests REGEX [options of ctest]: those of the label gpu, or on simulated CUDA.
gpu_tests() {
  local label='^gpu$' prefix='gpu' status=0
  if [[ -n $simulated ]]; then label='^cusim$' prefix='cusim/sm_90'; fi
  LOCKSTEP_REQUIRE_GPU=1 LOCKSTEP_REQUIRE_MNIST=1 ctest --test-dir "$build" --output-on-failure --no-tests=error -L "$label" \
    -R "^$prefix/$1" "${@:2}" |& tee "$work/ctest" || status=$?
  figure tests "$(sed -n 's/.* tests failed out of \([0-9]*\)$/\1/p' "$work/ctest")"
  figure failed "$(sed -n 's/.*passed, \([0-9]*\) tests failed out of .*/\1/p' "$work/ctest")"
  if ((status == 0)); then return; fi
  fails "$(sed -n 's/^.* - \([^ ]*\) (\(Failed\|Timeout\|SEGFAULT\|.*ABRT\|Not Run\|Skipped\)).*/\1 \2/p;s/^No tests were found.*/no test has such a name/p' \
    "$work/ctest" | paste -sd ',' | sed 's/,/, /g')"
}

part_calibration() { gpu_tests "calibration/"; }
part_tests() { gpu_tests "${tests:-(apps|core|data|io|kernels|layers|optim|parallel)/}"; }

# --- how many kernels, how long? ---

# The nodes of the graph that a step was recorded as. All of a fused step are kernels of ours, 11 of them.
part_nodes() {
  local way options nodes
  under=(env "LD_PRELOAD=$build/tests/calibration/liblockstep_graph_nodes.so")
  for way in fused unfused invariant; do
    options=(--dataset synthetic --limit-train 256 --limit-validation 0 --limit-test 0 --epochs 1)
    case $way in
      unfused) options+=(--no-fuse) ;;
      invariant) options+=(--reduce invariant) ;;
    esac
    train "nodes_$way" "${options[@]}" |& tee "$work/events"
    nodes=$(sed -n 's/^graph of //p' "$work/events" | tail -n 1)
    [[ -n $nodes ]] || fails "$way: no graph was instantiated"
    figure "$way" "$nodes"
    [[ $way != fused || $nodes == "11 nodes: 11 kernels" ]] ||
      fails "a fused step is a graph of $nodes, expected 11 nodes: 11 kernels"
  done
}

# Seconds of an epoch of the article's training set, for three ways in turns: median, lowest and highest of all but each
# process's first epoch.
part_epochs() {
  local round way options limits=(--limit-validation 0 --limit-test 0 --epochs 5) epochs
  if [[ -n $simulated ]]; then limits=(--limit-train 256 --limit-validation 0 --limit-test 0 --epochs 2); fi
  for round in 1 2 3; do
    for way in fused unfused eager; do
      options=("${limits[@]}")
      case $way in
        unfused) options+=(--no-fuse) ;;
        eager) options+=(--no-graph) ;;
      esac
      train "epochs_${way}_$round" "${options[@]}" | tee "$work/events"
      field train_seconds epoch <"$work/events" | tail -n +2 >>"$work/epochs_$way.seconds"
    done
    if [[ -n $simulated ]]; then break; fi
  done
  for way in fused unfused eager; do
    epochs=$(sort -g "$work/epochs_$way.seconds")
    figure "${way}_epoch_seconds" "$(median <<<"$epochs")"
    figure "${way}_epoch_lowest" "$(head -n 1 <<<"$epochs")"
    figure "${way}_epoch_highest" "$(tail -n 1 <<<"$epochs")"
  done
}

# --- what the sanitizer sees ---

# sanitize TOOL: two eager steps and an evaluation, fused and layer by layer, where kernels of cuDNN and cuBLAS run too: what
# the tool finds in those alone is told and fails nothing.
sanitize() {
  local tool=$1 sanitizer way options status summary
  if [[ -n $simulated ]]; then
    not_run "compute-sanitizer needs a real GPU"
    return
  fi
  sanitizer=$(PATH=$PATH:$(dirname "${facts[nvcc]}"):/usr/local/cuda/bin command -v compute-sanitizer) || {
    not_run "compute-sanitizer is neither on the PATH nor beside nvcc"
    return
  }
  under=("$sanitizer" --tool "$tool" --error-exitcode 97)
  for way in fused unfused; do
    options=(--dataset synthetic --limit-train 256 --limit-validation 16 --limit-test 16 --epochs 1 --no-graph) status=0
    if [[ $way == unfused ]]; then options+=(--no-fuse); fi
    train "${tool}_$way" "${options[@]}" |& tee "$work/events" || status=$?
    summary=$(sed -n 's/^=* *\(ERROR\|RACECHECK\) SUMMARY: //p' "$work/events" | tail -n 1)
    if ((status != 0)) && grep -qi 'device not supported' "$work/events"; then
      not_run "compute-sanitizer says: device not supported"
      return
    fi
    if ((status == 97)) && [[ $way == unfused ]] && ! grep '^=* *at ' "$work/events" | grep -q lockstep; then
      summary+=" (none in a kernel of ours)"
    elif ((status != 0)); then
      fails "$way: ${summary:-status $status} (see the log)"
      return
    fi
    figure "$way" "$summary"
  done
}

part_memcheck() { sanitize memcheck; }
part_racecheck() { sanitize racecheck; }
part_initcheck() { sanitize initcheck; }

# --- others beside us ---

# peer SCRIPT SETTING...: the same net and samples trained by apps/lockstep_bench/SCRIPT. Its epochs as `epochs` of ours.
peer() {
  local setting samples=55000 epochs=4 line seconds
  if [[ -n $simulated ]]; then samples=512 epochs=1; fi
  {
    head -c $((16 + samples * 784)) data/mnist/train-images-idx3-ubyte | tail -c +17
    head -c $((8 + samples)) data/mnist/train-labels-idx1-ubyte | tail -c +9
  } >"$work/samples"
  for setting in "${@:2}"; do
    line=$("${PYTHON:-python3}" "apps/lockstep_bench/$1" --setting "$setting" --model article --cores "$(nproc)" --samples "$samples" \
      --epochs "$epochs" --warm-up 1 --started 0 --file "$work/samples" | tee /dev/stderr | tail -n 1)
    if [[ $line == '{"missing"'* ]]; then
      not_run "$(sed 's/.*: "\(.*\)"}$/\1/' <<<"$line")"
      return
    fi
    seconds=$(sed -n 's/.*"epoch_seconds": \[\([^]]*\)\].*/\1/p' <<<"$line" | tr -d ' ' | tr ',' '\n')
    [[ -n $seconds ]] || fails "$setting: no epoch was measured (see the log)"
    figure "${setting}_epoch_seconds" "$(median <<<"$seconds")"
  done
  figure version "$(sed -n 's/.*"version": "\([^"]*\)".*/\1/p' <<<"$line")"
}

part_pytorch() { peer peer_torch.py cuda-eager cuda-graph; }
part_jax() { peer peer_jax.py jit scan; }
