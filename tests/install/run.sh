#!/usr/bin/env bash
# Installs a build tree into a temporary prefix, moves the prefix (nothing in it may remember where it was), and builds
# and runs the two ten-line consumers against it with find_package and with pkg-config.
#   tests/install/run.sh BUILD_DIR CXX
set -euo pipefail

build_dir=$1
cxx=$2
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

install() { cmake --install "$build_dir" --prefix "$1" >"$scratch/install.log" 2>&1; }

# Without the assets: told, and everything else is there.
mkdir "$scratch/data"
SINEW_DATA=$scratch/data install "$scratch/staging" || fail "cmake --install without assets"
grep -q 'Not installed.*palm_detection_full.tflite.*LICENSE-webxr' "$scratch/install.log" || fail "missing assets are not told"
prefix=$scratch/prefix
mv "$scratch/staging" "$prefix"
for file in bin/sinew include/sinew/sinew.h include/sinew/sinew.hpp share/doc/sinew/LICENSE share/doc/sinew/NOTICE; do
  [[ -f $prefix/$file ]] || fail "$file is not installed"
done
[[ -z $(find "$prefix" -name '*.tflite' -o -name '*.glb') ]] || fail "assets come from a folder that was not named"

# The program looks for them where it lies now, and says so.
run_hands() { env -u SINEW_DATA "$1/bin/sinew" hands "$scratch/hand.png" --hand-model builtin --out "$scratch/out" 2>&1; }
"$prefix/bin/sinew" synth picture --out "$scratch/hand.png" --boxes "$scratch/boxes.json" --seed 1 >/dev/null
if output=$(run_hands "$prefix"); then fail "hands without networks that are installed: $output"; fi
[[ $output == *palm_detection_full.tflite*$prefix/share/sinew*"make assets"* ]] || fail "the missing networks are not explained: $output"

# A damaged one: an error that names it.
echo damaged >"$scratch/data/palm_detection_lite.tflite"
if SINEW_DATA=$scratch/data install "$scratch/damaged"; then fail "a damaged asset is installed"; fi
grep -q 'palm_detection_lite.tflite: its SHA-256' "$scratch/install.log" || fail "a damaged asset is not named"

# With the assets, where there are any on this machine: all, unchanged, with their licences.
assets=$(cd "${SINEW_DATA:-$here/../../build/data}" 2>/dev/null && pwd || true)
sums=$(realpath "$here/../../assets/SHA256SUMS")
if [[ -n $assets ]] && (cd "$assets" && sha256sum --check --status "$sums" 2>/dev/null); then
  SINEW_DATA=$assets install "$scratch/full" || fail "cmake --install with assets"
  (cd "$scratch/full/share/sinew" && sha256sum --check --quiet "$sums") || fail "assets are not installed as they are"
  run_hands "$scratch/full" >"$scratch/hands.log" || { cat "$scratch/hands.log" && fail "sinew does not find its assets"; }
  rm -rf "$scratch/full"
else
  echo "skipped: installing the hand networks and mesh, which are not here (make assets)"
fi
if grep -rIl "$scratch/staging" "$prefix"; then fail "these files name the prefix they were installed to"; fi

# Only the C ABI is visible, and consumers do not need what the library is made of.
library=$(find "$prefix" -name libsinew.so)
[[ -n $library ]] || fail "libsinew.so is not installed"
strangers=$(nm -D --defined-only "$library" | awk '$3 !~ /^sinew_[a-z_]+$/ { print $3 }')
[[ -z $strangers ]] || fail "libsinew.so exports more than the C ABI: $strangers"

# Each consumer prints the version, and the error of opening a model that does not exist.
expect() {
  local output
  output=$("$@") || fail "$* exits with $?"
  [[ $output == "sinew "[0-9]*.*missing/model.ckpt* ]] || fail "$* printed: $output"
  printf '%s: %s\n' "${1#"$scratch"/}" "$output"
}

cmake -S "$here" -B "$scratch/find_package" -G Ninja -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_PREFIX_PATH="$prefix" \
  >"$scratch/cmake.log" || fail "find_package(sinew)"
cmake --build "$scratch/find_package" >"$scratch/cmake.log" || { cat "$scratch/cmake.log" && fail "find_package build"; }
expect "$scratch/find_package/consumer_c"
expect "$scratch/find_package/consumer_cpp"
if readelf -d "$scratch/find_package/consumer_cpp" | grep NEEDED | grep -E 'fmt|spdlog|dnnl|jpeg|png|yaml'; then
  fail "private dependencies leak into the consumer"
fi

PKG_CONFIG_PATH=$(dirname "$library")/pkgconfig
export PKG_CONFIG_PATH
read -ra flags < <(pkg-config --cflags --libs sinew)
mkdir "$scratch/pkg-config"
cc -std=c99 -Wall -Wextra -Wpedantic -Werror "$here/consumer.c" -o "$scratch/pkg-config/consumer_c" "${flags[@]}"
"$cxx" -std=c++17 -Wall -Wextra -Werror "$here/consumer.cpp" -o "$scratch/pkg-config/consumer_cpp" "${flags[@]}"
LD_LIBRARY_PATH=$(dirname "$library")
export LD_LIBRARY_PATH
expect "$scratch/pkg-config/consumer_c"
expect "$scratch/pkg-config/consumer_cpp"
