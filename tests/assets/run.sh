#!/usr/bin/env bash
# The set-up of assets (tools/assets.sh, tools/unpack_assets.mjs) without a network: the packages are made here, with the
# index of the real loader, and an `npm` of our own "installs" them. What each failure says, and that no failure writes.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
unset SINEW_DATA SINEW_ASSET_SUMS

fail() {
  echo "FAILED: $*" >&2
  exit 1
}
# expect STATUS PATTERN COMMAND...: its exit status, and a line of its output (PATTERN "": no output at all).
expect() {
  local status=$1 pattern=$2 found=0
  shift 2
  "$@" >"$scratch/output" 2>&1 || found=$?
  [[ $found == "$status" ]] || { cat "$scratch/output" >&2 && fail "$* exits with $found, expected $status"; }
  if [[ -z $pattern ]]; then
    [[ ! -s $scratch/output ]] || { cat "$scratch/output" >&2 && fail "$* is not silent"; }
  else
    grep -qE -- "$pattern" "$scratch/output" || { cat "$scratch/output" >&2 && fail "$* does not say: $pattern"; }
  fi
}
# The tools that the scripts use, and no npm: what a PATH without it looks like.
mkdir "$scratch/bin"
for tool in bash dirname realpath sha256sum grep mkdir mktemp cp rm cut head; do ln -s "$(command -v $tool)" "$scratch/bin/"; done
assets() { env PATH="$scratch/bin" SINEW_DATA="$scratch/data" "$@"; }

# 1. No npm: told, with the way out; no failure of a build, but of who asked for the assets.
expect 1 "" assets "$root/tools/assets.sh" --check
expect 0 "there is no npm here" assets "$root/tools/assets.sh"
expect 0 "SINEW_DATA=FOLDER" assets "$root/tools/assets.sh"
expect 1 "apt-get install nodejs npm" assets "$root/tools/assets.sh" --required
expect 2 "usage" assets "$root/tools/assets.sh" --offline
[[ ! -e $scratch/data ]] || fail "a data folder without data"

# 2. npm fails: its words are passed on.
printf '#!/bin/bash\necho "npm error network: no route to anywhere"; exit 1\n' >"$scratch/bin/npm"
chmod +x "$scratch/bin/npm"
expect 0 "no route to anywhere" assets "$root/tools/assets.sh"
expect 1 "npm failed" assets "$root/tools/assets.sh" --required

if ! command -v node >/dev/null; then
  echo "skipped: unpacking, which needs node"
  exit 0
fi
ln -s "$(command -v node)" "$scratch/bin/"

# 3. Packages of small files. The packed data: 11 bytes of something else, then the two models.
modules=$scratch/node_modules
hands=$modules/@mediapipe/hands
mesh=$modules/@webxr-input-profiles/assets
mkdir -p "$hands" "$mesh/dist/profiles/generic-hand"
printf 'landmark full' >"$hands/hand_landmark_full.tflite"
printf 'landmark lite' >"$hands/hand_landmark_lite.tflite"
printf 'Left\nRight\nthe full palmthe lite palm' >"$hands/hands_solution_packed_assets.data"
printf 'right hand' >"$mesh/dist/profiles/generic-hand/right.glb"
printf 'MIT' >"$mesh/LICENSE.md"
index() { # index LITE_END [SIZE]: the loader with the lite model ending there
  local palm=/third_party/mediapipe/modules/palm_detection
  printf 'loadPackage = function(metadata) {};\n    loadPackage({"files": [%s, %s, %s], "remote_package_size": %s});\n' \
    '{"filename": "/x/handedness.txt", "start": 0, "end": 11}' \
    "{\"filename\": \"$palm/palm_detection_full.tflite\", \"start\": 11, \"end\": 24}" \
    "{\"filename\": \"$palm/palm_detection_lite.tflite\", \"start\": 24, \"end\": $1}" "${2-37}" \
    >"$hands/hands_solution_packed_assets_loader.js"
}
index 37
sum() { printf '%s  %s\n' "$(sha256sum | cut -d' ' -f1)" "$1"; }
{
  printf 'the full palm' | sum palm_detection_full.tflite
  printf 'the lite palm' | sum palm_detection_lite.tflite
  printf 'landmark full' | sum hand_landmark_full.tflite
  printf 'landmark lite' | sum hand_landmark_lite.tflite
  printf 'right hand' | sum generic_hand_right.glb
  sum LICENSE-mediapipe.txt <"$root/LICENSE"
  printf 'MIT' | sum LICENSE-webxr-input-profiles.md
} >"$scratch/sums"
export SINEW_ASSET_SUMS=$scratch/sums

# npm ci --prefix FOLDER ...: the packages appear there, if it was given the lock and told to run no scripts.
cat >"$scratch/bin/npm" <<EOF
#!/bin/bash
[[ "\$1 \$2 \$4" == "ci --prefix --ignore-scripts" && -f \$3/package-lock.json ]] || exit 9
cp -r "$modules" "\$3/node_modules"
realpath "\$3" >"$scratch/work_folder"
EOF
expect 0 "^assets: done" assets "$root/tools/assets.sh"
expect 0 "" assets "$root/tools/assets.sh"
[[ $(cat "$scratch/data/palm_detection_lite.tflite") == "the lite palm" ]] || fail "the index is misread"
[[ $(find "$scratch/data" -type f | wc -l) == 7 ]] || fail "more than the assets is in the data folder"
[[ ! -e $(<"$scratch/work_folder") ]] || fail "the packages stay behind in $(<"$scratch/work_folder")"

# 4. A damaged file is named and replaced, a file of the user's left alone.
echo damaged >"$scratch/data/generic_hand_right.glb"
echo mine >"$scratch/data/notes.txt"
expect 0 "damaged, to be replaced: generic_hand_right.glb" assets "$root/tools/assets.sh"
expect 0 "" assets "$root/tools/assets.sh" --check
[[ $(cat "$scratch/data/notes.txt") == mine ]] || fail "the user's file is gone"

# 5. Packages that are not what the sums say, and hostile indexes: one line, nothing written.
refused() { # refused PATTERN
  rm -rf "$scratch/data"
  expect 1 "$1" node "$root/tools/unpack_assets.mjs" "$modules" "$scratch/data"
  [[ ! -e $scratch/data ]] || fail "written all the same: $1"
}
index 36
refused "palm_detection_lite.tflite: the package's has SHA-256"
index 38
refused "palm_detection_lite.tflite is bytes 24 to 38 of 37"
index 23
refused "palm_detection_lite.tflite is bytes 24 to 23 of 37"
index 36.5
refused "bytes 24 to 36.5"
index 37 99999999999
refused "the index is of 99999999999 bytes, the data file has 37"
index '37, "end": }'
refused "the index is not JSON"
echo 'loadPackage(somewhere);' >"$hands/hands_solution_packed_assets_loader.js"
refused "0 calls of loadPackage"
index 37
truncate -s 100M "$hands/hand_landmark_full.tflite"
refused "hand_landmark_full.tflite has 104857600 bytes, more than"
rm "$hands/hand_landmark_full.tflite"
refused "hand_landmark_full.tflite is not there"
expect 0 "not unpacked" assets "$root/tools/assets.sh"
echo "the set-up of assets: all as expected"
