#!/usr/bin/env bash
# INT8 beside BF16 on a processor with AVX512_VNNI or AMX, which need not be the one that builds.
# usage: bench/int8_cpu.sh pack OUT.tar.xz     everything that a run needs, from build/release (built by ./test)
#        ./int8_cpu.sh run [THREADS]           in the unpacked folder: tests first, then times; about three minutes
set -euo pipefail

readonly programs=(apps/cli/treble bench/treble_linear_bench src/cpu/treble_cpu_tests src/quant/treble_quant_tests
  tests/treble_op_tests tests/treble_golden_tests)

pack() {
  local out=$1 root folder program
  root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
  folder=$(mktemp --directory)
  # shellcheck disable=SC2064  # the folder of now
  trap "rm -rf '$folder'" EXIT
  mkdir -p "$folder/int8/bin" "$folder/int8/lib" "$folder/int8/data"
  for program in "${programs[@]}"; do
    strip -o "$folder/int8/bin/$(basename "$program")" "$root/build/release/$program"
  done
  # All shared libraries but those of glibc, which go with the kernel's loader.
  ldd "$folder"/int8/bin/* | awk '$2 == "=>" && $1 !~ /^lib(c|m|pthread|dl|rt)\.so/ {print $3}' | sort --unique |
    xargs cp --dereference --target-directory="$folder/int8/lib"
  strip --strip-unneeded "$folder"/int8/lib/*
  cp -r "$root"/tests/data/micro "$root"/tests/data/micro-int8 "$root"/tests/data/micro-nf4 "$folder/int8/data"
  echo "$root/tests/data" >"$folder/int8/data.path"
  cp "${BASH_SOURCE[0]}" "$folder/int8/int8_cpu.sh"
  tar --directory "$folder" --create --owner=0 --group=0 int8 | xz -T0 -6 >"$out"
  du --human-readable "$out"
}

# median_ms LABEL JSON: the medians of a report of `treble bench --json`, and remembers them.
print_ratios() {
  python3 - "$@" <<'PYTHON'
import json, statistics, sys
medians = {}
for path in sys.argv[1:]:
    weights = path.rsplit("/", 1)[1].split(".")[0]
    for row in json.load(open(path))["rows"]:
        medians.setdefault((row["total_tokens"], weights), []).append(row["total_ms"]["median"])
for tokens in sorted({tokens for tokens, _ in medians}):
    plain = statistics.median(medians[tokens, "as-stored"])
    for (t, weights), values in medians.items():
        if t == tokens:
            median = statistics.median(values)
            print(f"{tokens} tokens  {weights:13} {median:8.1f} ms ({min(values):.1f} to {max(values):.1f})"
                  f"  bf16 / this = {plain / median:.2f}")
PYTHON
}

run() {
  local threads=${1:-$(nproc)} test path status=0
  cd "$(dirname "${BASH_SOURCE[0]}")"
  export LD_LIBRARY_PATH=$PWD/lib
  lscpu | grep -E '^(Model name|CPU\(s\)|Thread|Core|Socket|L[123])' || true
  grep -m1 '^flags' /proc/cpuinfo | grep -oE '\b(avx512_(vnni|bf16)|amx_(tile|int8|bf16))\b' | sort -u | xargs || true
  # The tests know the folder of their data as it was where they were built.
  path=$(cat data.path)
  if [[ ! -e $path ]]; then
    { mkdir -p "$(dirname "$path")" && ln -s "$PWD/data" "$path"; } || echo "no $path: the golden tests fail"
  fi

  echo "== tests"
  for test in cpu quant op golden; do
    echo "-- treble_${test}_tests"
    "bin/treble_${test}_tests" --no-intro --force-colors=false || status=1
  done
  if ((status != 0)); then echo "TESTS FAILED: the times below are worth nothing"; fi

  echo "== products"
  for blocks in AMX VNNI none; do
    bin/treble_linear_bench bf16 7 "$threads" 0.8b "$blocks" | grep -v nf4 || true
  done

  echo "== passes, in turns"
  local times=$PWD/times round weights
  mkdir -p "$times"
  for round in 1 2 3; do
    for weights in as-stored int8-convrot nf4; do
      bin/treble bench --synthetic 0.8b --weights "$weights" --tokens 298,1502 --precision bf16 --threads "$threads" \
        --repeats 7 --json >"$times/$weights.$round.json"
    done
  done
  print_ratios "$times"/*.json || cat "$times"/*.json

  echo "== where the time goes"
  for weights in as-stored int8-convrot nf4; do
    echo "-- $weights"
    bin/treble bench --synthetic 0.8b --weights "$weights" --tokens 1502 --precision bf16 --threads "$threads" \
      --repeats 5 --profile
  done
  return "$status"
}

case ${1:-} in
  pack) pack "${2:?name the archive}" ;;
  run) run "${@:2}" ;;
  *) sed -n '2,4s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" && exit 2 ;;
esac
