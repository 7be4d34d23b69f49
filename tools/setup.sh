#!/usr/bin/env bash
# Installs, by name, every package that building, testing, linting, fuzzing and measuring sinew needs on Debian 12.
# Nothing to do: silent, a few milliseconds, no network. `--check` only lists what is missing (exit status 1).
set -euo pipefail

packages=(
  # build
  g++ make cmake ninja-build ccache pkg-config git
  libfmt-dev libspdlog-dev libcli11-dev libyaml-cpp-dev nlohmann-json3-dev libsimdjson-dev
  libjpeg-dev libpng-dev zlib1g-dev libdnnl-dev
  # test and measure
  libgtest-dev libgmock-dev libbenchmark-dev
  # the second compiler, sanitizers, fuzzing, lint
  clang-19 libclang-rt-19-dev clang-tidy-19 clang-format-19
)

say() { printf 'setup: %s\n' "$*" >&2; }

check_only=no
case "${1-}" in
  "") ;;
  --check) check_only=yes ;;
  *)
    echo "usage: tools/setup.sh [--check]" >&2
    exit 2
    ;;
esac

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  say "this is not a Debian system (no apt). sinew is built and tested on Debian 12 with:"
  say "  ${packages[*]}"
  exit 1
fi

# One dpkg-query for all; it fails and complains about unknown names, which are simply missing ones here.
declare -A installed=()
while read -r status name; do
  if [[ $status == ii* || $status == hi* ]]; then installed[$name]=1; fi
done < <(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' "${packages[@]}" 2>/dev/null || true)
missing=()
for package in "${packages[@]}"; do
  if [[ -z ${installed[$package]-} ]]; then missing+=("$package"); fi
done

if ((${#missing[@]} == 0)); then exit 0; fi
if [[ $check_only == yes ]]; then
  printf '%s\n' "${missing[@]}"
  exit 1
fi

as_root=()
if ((EUID != 0)); then
  # Without a terminal sudo cannot ask for a password, and would only fail later with a worse message.
  if command -v sudo >/dev/null && { [[ -t 0 ]] || sudo -n true 2>/dev/null; }; then
    as_root=(sudo)
  else
    say "${#missing[@]} packages are missing and installing them needs root or sudo. Run as root:"
    say "  apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
    exit 1
  fi
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -qq -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@" >>"$log" 2>&1
}

say "installing ${#missing[@]} packages: ${missing[*]}"
# Any: by default apt-get reports a failed download of its lists as success.
if ! apt -o APT::Update::Error-Mode=any update; then
  sleep 5
  # One broken third-party source must not be in the way: the install below says what is really missing.
  apt -o APT::Update::Error-Mode=any update || say "apt-get update failed; going on with the package lists at hand"
fi
if ! apt install -y --no-install-recommends "${missing[@]}"; then
  tail -n 20 "$log" >&2
  say "apt-get could not install the packages (its last lines are above)"
  exit 1
fi
say "done"
