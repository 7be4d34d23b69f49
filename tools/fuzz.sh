#!/usr/bin/env bash
# Runs each fuzz target for a few seconds on its seeds:  tools/fuzz.sh SECONDS [NAME...]
# New inputs go to a temporary corpus, so the repository does not change. A crash leaves its input in
# build/fuzz/crashes/NAME/ and fails the run; keep it as tests/fuzz/seeds/NAME/<what-it-was> with the fix.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:?usage: tools/fuzz.sh SECONDS [NAME...]}
shift
names=("$@")
if ((${#names[@]} == 0)); then
  for source in tests/fuzz/*_fuzz.cc; do
    if [[ -f $source ]]; then names+=("$(basename "$source" _fuzz.cc)"); fi
  done
fi
if ((${#names[@]} == 0)); then
  echo "fuzz: no targets in tests/fuzz" >&2
  exit 1
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=()
for name in "${names[@]}"; do
  crashes=build/fuzz/crashes/$name
  mkdir -p "$scratch/$name" "$crashes"
  corpus=("$scratch/$name")
  if [[ -d tests/fuzz/seeds/$name ]]; then corpus+=("tests/fuzz/seeds/$name"); fi
  options=(-max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -artifact_prefix="$crashes/" -print_final_stats=1)
  if [[ -f tests/fuzz/$name.dict ]]; then options+=(-dict="tests/fuzz/$name.dict"); fi
  if "build/fuzz/${name}_fuzz" "${options[@]}" "${corpus[@]}" >"$scratch/log" 2>&1; then
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$scratch/log")
    printf 'fuzz: %-24s %9s runs, no crash\n' "$name" "$runs"
  else
    failed+=("$name")
    # The report without the coverage lines before it and the shadow memory after it.
    sed -n '/ERROR\|runtime error\|terminate called/,/^SUMMARY/p' "$scratch/log" | head -n 60
    printf 'fuzz: %-24s FAILED\n' "$name"
    reproducer=$(sed -n 's/.*Test unit written to //p' "$scratch/log" | tail -n 1)
    if [[ -n $reproducer ]]; then
      printf '      run again with: build/fuzz/%s_fuzz %s\n' "$name" "$reproducer"
    else
      tail -n 20 "$scratch/log"
    fi
  fi
done
if ((${#failed[@]} > 0)); then exit 1; fi
