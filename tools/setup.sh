#!/usr/bin/env bash
# Installs, by name, every package that building, testing, linting, fuzzing and measuring sinew needs on Debian 12; and npm,
# which fetches the hand networks and mesh (tools/assets.sh), where those are not there yet and there is no npm of any kind.
# Nothing to do: silent, a few milliseconds, no network. `--check` only lists what is missing (exit status 1).
set -euo pipefail

packages=(
  # build
  g++ make cmake ninja-build ccache pkg-config git
  libfmt-dev libspdlog-dev libcli11-dev libyaml-cpp-dev nlohmann-json3-dev libsimdjson-dev
  libjpeg-dev libpng-dev zlib1g-dev libdnnl-dev libeigen3-dev libflatbuffers-dev flatbuffers-compiler libxxhash-dev
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

# Not among the packages: npm may come from elsewhere (NodeSource's nodejs brings it and conflicts with Debian's npm), and
# the program works without what it fetches.
for_assets=()
if ! command -v npm >/dev/null && ! "$(dirname "$0")/assets.sh" --check; then for_assets=(nodejs npm); fi

# One dpkg-query for all; it fails and complains about unknown names, which are simply missing ones here.
declare -A installed=()
while read -r status name; do
  if [[ $status == ii* || $status == hi* ]]; then installed[$name]=1; fi
done < <(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' "${packages[@]}" 2>/dev/null || true)
missing=()
for package in "${packages[@]}"; do
  if [[ -z ${installed[$package]-} ]]; then missing+=("$package"); fi
done

if ((${#missing[@]} + ${#for_assets[@]} == 0)); then exit 0; fi
if [[ $check_only == yes ]]; then
  printf '%s\n' "${missing[@]}" "${for_assets[@]}"
  exit 1
fi

as_root=()
if ((EUID != 0)); then
  # Without a terminal sudo cannot ask for a password, and would only fail later with a worse message. npm alone is not
  # worth a question at each build.
  if command -v sudo >/dev/null && { sudo -n true 2>/dev/null || { [[ -t 0 ]] && ((${#missing[@]} > 0)); }; }; then
    as_root=(sudo)
  elif ((${#missing[@]} == 0)); then
    exit 0 # no npm: tools/assets.sh says what is missing for it
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

all=("${missing[@]}" "${for_assets[@]}")
say "installing ${#all[@]} packages: ${all[*]}"
# Any: by default apt-get reports a failed download of its lists as success.
if ! apt -o APT::Update::Error-Mode=any update; then
  sleep 5
  # One broken third-party source must not be in the way: the install below says what is really missing.
  apt -o APT::Update::Error-Mode=any update || say "apt-get update failed; going on with the package lists at hand"
fi
install() { apt install -y --no-install-recommends "$@"; }
if ((${#missing[@]} > 0)) && ! install "${missing[@]}"; then
  tail -n 20 "$log" >&2
  say "apt-get could not install the packages (its last lines are above)"
  exit 1
fi
# --no-remove: never at the price of a nodejs that someone installed.
if ((${#for_assets[@]} > 0)) && ! install --no-remove "${for_assets[@]}"; then
  say "apt-get could not install npm, going on without it: $(grep '^E: ' "$log" | tail -n 1)"
  exit 0
fi
say "done"
