#!/usr/bin/env bash
# Judges the CUDA backend beside the reference stack on a machine with a GPU: digits, kernel sets, per-layer drift at a
# real size, and times.
# usage: bench/gpu_parity.sh STEP[,STEP...] BUNDLE.tar.xz|FOLDER [OUT] [SIZE] [PEER]
#   STEPs   kernels   python/reference/check_kernels.py on models/tiny and all of data/eval
#           int8      the same records in INT8 and fp32, on the GPU against the CPU
#           drift     python/reference/check_drift.py on random weights of SIZE (default: 27b), in memory-backed files
#           repeats   the same digits at SIZE: 8 packed records, 100 times
#           beside    python/reference/bench_beside.py, 27b and 9b
#   BUNDLE  as scripts/bundle packs it. Logs and figures go to OUT (default: gpu_parity); a short table comes last.
# python3 needs torch, transformers, safetensors and numpy. PEER is a folder of Python packages with
# flash-linear-attention and fla-core, for `beside`; the other steps run on transformers' own kernels.
set -uo pipefail

usage='usage: bench/gpu_parity.sh STEP[,STEP...] BUNDLE.tar.xz|FOLDER [OUT] [SIZE] [PEER]'
steps=${1:?$usage}
bundle=${2:?$usage}
out=$(realpath -m "${3:-gpu_parity}")
size=${4:-27b}
peer=${5:-}
reference=$(cd "$(dirname "${BASH_SOURCE[0]}")/../python/reference" && pwd)
for step in ${steps//,/ }; do
  if [[ ! $step =~ ^(kernels|int8|drift|repeats|beside)$ ]]; then
    echo "gpu_parity: no step $step; $usage" >&2
    exit 2
  fi
done
if [[ ! -e $bundle ]]; then
  echo "gpu_parity: there is no bundle $bundle; scripts/bundle --tests makes one" >&2
  exit 2
fi
mkdir -p "$out"
scratch=$(mktemp -d)
release=$(mktemp -d "/dev/shm/treble-$size.XXXXXX")
trap 'rm -rf "$scratch" "$release"' EXIT
if [[ -f $bundle ]]; then
  tar -xf "$bundle" -C "$scratch"
  bundle=$(echo "$scratch"/*/)
fi
bundle=$(realpath "${bundle%/}")
if [[ ! -e /usr/local/cuda/lib64/libcublasLt.so.13 ]]; then
  found=$(find /usr /opt -name libcublasLt.so.13 -print -quit 2>/dev/null)
  if [[ -n $found ]]; then export LD_LIBRARY_PATH=${found%/*}:${LD_LIBRARY_PATH:-}; fi
fi
table=()

# row NAME LINES COMMAND...: runs it, keeps its log, and notes how it went and its last lines.
row() {
  local name=$1 lines=$2 begin=$SECONDS status=0
  shift 2
  "$@" >"$out/$name.log" 2>&1 || status=$?
  table+=("$name: $([[ $status == 0 ]] && echo passed || echo "FAILED $status"), $((SECONDS - begin)) s"
    "$(tail -n "$lines" "$out/$name.log" | cut -c 1-400)")
}

make_release() {
  if [[ -e $release/config.json ]]; then return; fi
  # A memory-backed file system may have been sized when the machine had shown only part of its memory.
  mount -o remount,size=100G /dev/shm 2>/dev/null
  row make_release 1 python3 "$reference/make_release.py" --size "$size" "$release"
}

for step in ${steps//,/ }; do
  case $step in
    kernels)
      row kernels 3 python3 "$reference/check_kernels.py" --device cuda --passes "$bundle/tests/treble_passes" \
        --json "$out/kernels.json"
      ;;
    int8)
      row int8 2 python3 "$reference/check_kernels.py" --device cuda --passes "$bundle/tests/treble_passes" \
        --kernels best --against-cpu --weights int8-convrot --precision f32 --json "$out/int8.json"
      ;;
    drift)
      make_release
      row drift 22 python3 "$reference/check_drift.py" --device cuda --passes "$bundle/tests/treble_passes" \
        --json "$out/drift.json" "$release"
      ;;
    repeats)
      make_release
      row repeats 1 python3 "$reference/check_kernels.py" --device cuda --passes "$bundle/tests/treble_passes" \
        --model "$release" --kernels best --most 8 --digits 8 --scratch /dev/shm --json "$out/repeats.json"
      ;;
    beside)
      rm -rf "$release" # the host's memory is needed for other weights
      row beside 12 env PYTHONPATH="$peer" python3 "$reference/bench_beside.py" --treble "$bundle/treble" \
        --json "$out/beside.json"
      ;;
  esac
done
printf '%s\n' "${table[@]}" | tee "$out/table.txt"
[[ $(printf '%s\n' "${table[@]}") != *FAILED* ]]
