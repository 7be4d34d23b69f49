#!/usr/bin/env bash
# clang-format and clang-tidy over the project's C++ files, or over the files given.
#   tools/lint.sh [--format-only | --fix-format] [FILE...]
# clang-tidy reads the compile commands of the asan preset (`cmake --preset asan`): clang's own flags, assertions on.
# A file they do not list (a benchmark, a fuzz target) is checked with the flags of its nearest neighbour.
set -euo pipefail
cd "$(dirname "$0")/.."

mode=all
case "${1-}" in
  --format-only) mode=format && shift ;;
  --fix-format) mode=fix && shift ;;
esac

files=("$@")
if ((${#files[@]} == 0)); then
  # New files count before they are committed; a source archive without git is searched instead.
  list_files() {
    git ls-files --cached --others --exclude-standard -- "$@" 2>/dev/null || find "$@" -type f
  }
  while read -r file; do
    if [[ $file =~ \.(cc|h|hpp|c)$ && -f $file ]]; then files+=("$file"); fi
  done < <(list_files include src bench tests tools | sort -u)
fi

if [[ $mode == fix ]]; then exec clang-format-19 -i "${files[@]}"; fi
clang-format-19 --dry-run -Werror "${files[@]}" || {
  echo "lint: not as clang-format-19 writes it; run: make format" >&2
  exit 1
}
if [[ $mode == format ]]; then exit 0; fi

database=build/asan
if [[ ! -f $database/compile_commands.json ]]; then
  echo "lint: $database/compile_commands.json is missing; run: cmake --preset asan" >&2
  exit 1
fi
# Headers are checked through the sources that include them (HeaderFilterRegex in .clang-tidy). The consumers in
# tests/install are built against an installed sinew only.
sources=()
for file in "${files[@]}"; do
  if [[ $file == *.cc && $file != tests/install/* ]]; then sources+=("$file"); fi
done

tidy() {
  local report extra=()
  # The analyzer follows the switches inside GTest's macros into paths that do not exist; tests run under asan anyway.
  if [[ $2 == *_test.cc || $2 == bench/* ]]; then extra=(--checks=-clang-analyzer-*); fi
  # No benchmark is in that database, and neighbours have no source folder to name.
  if [[ $2 == bench/* ]]; then extra+=("--extra-arg=-DSINEW_SOURCE_DIR=\".\""); fi
  # The count of suppressed warnings goes to stderr even when all is well, so output is shown for failures only.
  report=$(clang-tidy-19 -p "$1" --quiet "${extra[@]}" "$2" 2>&1) || {
    grep -v ' warnings generated\.$' <<<"$report"
    return 1
  }
}
export -f tidy
# shellcheck disable=SC2016  # the inner shell expands these
printf '%s\0' "${sources[@]}" | xargs -0 -n 1 -P "$(nproc)" bash -c 'tidy "$0" "$1"' "$database" || {
  echo "lint: clang-tidy-19 found problems (above)" >&2
  exit 1
}
echo "lint: ${#files[@]} files formatted, ${#sources[@]} sources pass clang-tidy"
