# shellcheck shell=bash disable=SC2034
# Shared by ./quickstart, ./test and .ci/run, which source it from the repository's root:
# installs the packages that are missing, then configures and builds a preset.

# What a build and its tests need on Debian 12. oneDNN's CMake package asks for the OpenCL headers.
build_packages=(git ca-certificates cmake ninja-build g++ ccache pkg-config python3
  libdnnl-dev ocl-icd-opencl-dev libhwy-dev libfmt-dev libsimdjson-dev libutf8proc-dev libcli11-dev doctest-dev
  libpng-dev libjpeg62-turbo-dev libwebp-dev libgif-dev libssl-dev
  libavformat-dev libavcodec-dev libswscale-dev)
# The tests of python/train draw and resize pictures.
test_packages=(python3-numpy python3-pil)
lint_packages=(clang-format-14 shellcheck)
tsan_packages=(clang libomp-dev)

# run_step LOG TEXT COMMAND...: prints TEXT and runs COMMAND, whose output goes to LOG; shows LOG's end if it fails.
run_step() {
  local log=$1 text=$2 status=0
  shift 2
  mkdir -p "$(dirname "$log")"
  echo "$text"
  "$@" >"$log" 2>&1 </dev/null || status=$?
  if ((status != 0)); then
    tail -n 60 "$log" >&2
    echo "failed with status $status: $* (whole log: $log)" >&2
  fi
  return "$status"
}

installed_packages() {
  dpkg-query --show --showformat='${db:Status-Status} ${Package}\n' "$@" 2>/dev/null | sed -n 's/^installed //p'
}

# install_packages PACKAGE...: those of them that are missing.
install_packages() {
  local codename='' missing=() root=()
  if [[ -r /etc/os-release ]]; then codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}"); fi
  if [[ $codename != bookworm ]]; then
    echo "This is not Debian 12: nothing is installed; the build needs what Debian calls $*."
    return 0
  fi
  mapfile -t missing < <(comm -23 <(printf '%s\n' "$@" | sort) <(installed_packages "$@" | sort))
  if ((${#missing[@]} == 0)); then return 0; fi
  if ((EUID != 0)); then
    if ! command -v sudo >/dev/null; then
      echo "Packages are missing. Run this as root, then try again: apt-get install ${missing[*]}" >&2
      return 1
    fi
    root=(sudo)
  fi
  root+=(env DEBIAN_FRONTEND=noninteractive)
  run_step build/packages.log "Looking up Debian's packages ..." "${root[@]}" apt-get update
  run_step build/packages.log "Installing ${missing[*]} ..." \
    "${root[@]}" apt-get install --yes --no-install-recommends -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 \
    "${missing[@]}"
}

# build_preset PRESET LOG [TARGET...]: configures the preset the first time and when presets have changed, and builds
# the targets, or everything.
build_preset() {
  local preset=$1 log=$2
  shift 2
  if [[ ! -f build/$preset/build.ninja || CMakePresets.json -nt build/$preset/build.ninja ]]; then
    run_step "$log" "Configuring build/$preset ..." cmake --preset "$preset"
  fi
  run_step "$log" "Building build/$preset (the first time takes minutes; log: $log) ..." \
    cmake --build --preset "$preset" ${1:+--target "$@"}
}
