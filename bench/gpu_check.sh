#!/usr/bin/env bash
# Checks and times the CUDA backend on a machine with a GPU, from what `scripts/bundle --tests` has packed; runs in the
# root of a checkout, whose tests/data the goldens read.
# usage: bench/gpu_check.sh [--quick | --sanitize] BUNDLE.tar.xz|FOLDER [OUT]
#   Writes logs to OUT (default: gpu_check); prints a short table last.
#   --quick     op tests and the 9b model only, for a first look
#   --sanitize  the op tests under compute-sanitizer instead
set -uo pipefail

mode=all
case ${1:-} in
  --quick | --sanitize)
    mode=${1#--}
    shift
    ;;
esac
bundle=${1:?usage: bench/gpu_check.sh [--quick | --sanitize] BUNDLE.tar.xz|FOLDER [OUT]}
out=${2:-gpu_check}
if [[ ! -e $bundle ]]; then
  echo "gpu_check: there is no bundle $bundle; scripts/bundle --tests makes one" >&2
  exit 2
fi
mkdir -p "$out"
if [[ -f $bundle ]]; then
  unpacked=$(mktemp -d)
  trap 'rm -rf "$unpacked"' EXIT
  tar -xf "$bundle" -C "$unpacked"
  bundle=$(echo "$unpacked"/*/)
fi
bundle=$(realpath "$bundle")
table=()

# row NAME COMMAND...: runs it, keeps its log, and notes how it went.
row() {
  local name=$1 log begin=$SECONDS status=0
  shift
  log=$out/${name//[^a-z0-9]/_}.log
  "$@" >"$log" 2>&1 || status=$?
  table+=("$(printf '%-34s %-9s %4d s  %s' "$name" "$([[ $status == 0 ]] && echo passed || echo "FAILED $status")" \
    "$((SECONDS - begin))" "$(grep -E '^\[doctest\] test cases' "$log" | tail -n 1)")")
}

# bench SIZE ARGUMENTS...: medians of the runs, with the longest operations of each.
bench() {
  local size=$1 log
  shift
  log=$out/bench_$size$(printf '%s' "$*" | tr -c 'a-z0-9' '_').log
  if "$bundle/treble" bench --device cuda --precision bf16 --synthetic "$size" "$@" >"$log" 2>&1; then
    table+=("$(grep -E '^(device|memory|taken|driver|run|[0-9]+ tokens)' "$log")")
  else
    table+=("bench $size $*: FAILED: $(tail -n 3 "$log")")
  fi
}

nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm,power.limit --format=csv,noheader |
  tee "$out/device.txt"
# Where the machine's cuBLASLt is, if not where the starters look.
if [[ ! -e /usr/local/cuda/lib64/libcublasLt.so.13 ]]; then
  found=$(find /usr /opt -name libcublasLt.so.13 -print -quit 2>/dev/null)
  if [[ -n $found ]]; then export LD_LIBRARY_PATH=${found%/*}:${LD_LIBRARY_PATH:-}; fi
fi

if [[ $mode == sanitize ]]; then
  for tool in memcheck racecheck initcheck; do
    row "$tool" timeout 180 compute-sanitizer --tool "$tool" --error-exitcode 9 --target-processes all \
      "$bundle/tests/treble_cuda_op_tests" --no-colors --test-case-exclude='*4,000*'
  done
else
  row "op tests" "$bundle/tests/treble_cuda_op_tests" --no-colors
  if [[ $mode == all ]]; then row "goldens" env --chdir=tests "$bundle/tests/treble_cuda_golden_tests" --no-colors; fi
  bench 9b --tokens 298,1502,2270 --repeats 20
  bench 9b --tokens 298,1502 --repeats 5 --profile
fi
if [[ $mode == all ]]; then
  bench 9b --tokens 1502 --batch 16 --repeats 5 --pass-tokens 24576
  bench 27b --tokens 298,1502,2270 --repeats 20
  bench 27b --tokens 298,2270 --repeats 5 --profile
  bench 27b --tokens 1502 --batch 16 --repeats 3 --pass-tokens 24576
  bench 27b --weights int8-convrot --tokens 64,298,1502,2270 --repeats 20
  bench 27b --weights int8-convrot --tokens 298,2270 --repeats 5 --profile
  bench 27b --weights int8-convrot --tokens 1502 --batch 16 --repeats 3 --pass-tokens 24576
  bench 27b --weights nf4 --tokens 64,298,1502,2270,4500 --repeats 20 --pass-tokens 5120
  bench 27b --weights nf4 --tokens 298,2270 --repeats 5 --profile
  bench 27b --weights nf4 --kernels sm80 --tokens 298,1502,2270,4500 --repeats 10 --pass-tokens 5120
  bench 27b --weights nf4 --tokens 1502 --batch 16 --repeats 3 --pass-tokens 24576
fi
printf '%s\n' "${table[@]}" | tee "$out/table.txt"
if [[ $(printf '%s\n' "${table[@]}") == *FAILED* ]]; then
  grep -hE 'ERROR|wrong;' "$out"/*.log | cut -c 1-300 | head -n 40
  exit 1
fi
