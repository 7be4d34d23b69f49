#!/usr/bin/env bash
# Fetches the hand networks and the built-in hand (NOTICE says what they are) into the data folder: $SINEW_DATA, or build/data.
# Nothing to do: silent, 0.1 s (every file is checked against assets/SHA256SUMS), no network.
#   tools/assets.sh [--required | --check]
# The program works without them, on given boxes; so what cannot be fetched is told, and the exit status is 0 all the same.
# --required: it is 1. --check: only the status, 1 when a file is missing or damaged; prints nothing, fetches nothing.
set -euo pipefail
data=$(realpath -m "${SINEW_DATA:-$(dirname "$0")/../build/data}") # of the caller's folder, as for the program
cd "$(dirname "$0")/.."
data=${data#"$PWD/"} # shorter in messages

mode=${1-}
case "$mode" in
  "" | --required | --check) ;;
  *)
    echo "usage: tools/assets.sh [--required | --check]" >&2
    exit 2
    ;;
esac

sums=$(realpath "${SINEW_ASSET_SUMS:-assets/SHA256SUMS}") # another list: tests only
say() { printf 'assets: %s\n' "$*" >&2; }

intact() { [[ -d $data ]] && (cd "$data" && sha256sum --check --status --strict "$sums" 2>/dev/null); }
if intact; then exit 0; fi
if [[ $mode == --check ]]; then exit 1; fi

# Missing and damaged are told apart: a damaged file is replaced, and its owner may want to know.
damaged=()
while read -r _ name; do
  if [[ -e $data/$name ]]; then
    grep "  $name\$" "$sums" | (cd "$data" && sha256sum --check --status 2>/dev/null) || damaged+=("$name")
  fi
done <"$sums"
if ((${#damaged[@]} > 0)); then say "damaged, to be replaced: ${damaged[*]} (in $data)"; fi

give_up() {
  say "$1"
  say "without them sinew needs hand boxes (--boxes, --detector none) and has no hand mesh but your own (--hand-model FILE)."
  say "to get them: $2, then \`make assets\`; or copy a complete data folder to $data, or name one with SINEW_DATA=FOLDER."
  if [[ $mode == --required ]]; then exit 1; fi
  exit 0
}

# npm is a node script, so node is there with it; a broken installation of either says so itself below.
command -v npm >/dev/null || give_up "not fetched: the hand networks and mesh; there is no npm here" \
  "install npm (Debian: apt-get install nodejs npm)"

# 120 MB for a moment: under build/ rather than /tmp, which may be memory.
mkdir -p build
work=$(mktemp -d build/assets.XXXXXX)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
cp assets/package.json assets/package-lock.json "$work"

say "fetching the hand networks and mesh (npm, 107 MB, of which 12 MB are kept in $data)"
# The lock names versions and their SHA-512, no host: npm asks the registry it is configured for. Packages that it has in its
# cache from last time need no network. One retry: without a network every build would wait for more.
if ! npm ci --prefix "$work" --ignore-scripts --no-audit --no-fund --prefer-offline --no-update-notifier \
  --fetch-retries=1 --fetch-retry-mintimeout=1000 --fetch-timeout=120000 --loglevel=error >"$work/log" 2>&1; then
  grep -vE '^npm (ERR!|error) *($|at |A complete log| .*-debug-0\.log)' "$work/log" | head -n 6 >&2 || true
  give_up "not fetched: the hand networks and mesh; npm failed (its words are above)" "see to what npm says (does it reach its registry?)"
fi
if ! node tools/unpack_assets.mjs "$work/node_modules" "$data"; then
  give_up "not unpacked: the hand networks and mesh (the reason is above)" "see to that"
fi
if ! intact; then give_up "$data is not what assets/SHA256SUMS says, though just written" "see what changes it"; fi
say "done"
