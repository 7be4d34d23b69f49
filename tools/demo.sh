#!/usr/bin/env bash
# The main job on what the repository contains and set-up fetches: a hand picture that sinew draws itself, with a pose it knows, goes
# through detector, landmarks and inverse kinematics; then through a full-size HaMeR, whose published weights cannot be shipped, with random
# ones: there the work and its time are real and the numbers mean nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

sinew=build/release/sinew
work=build/demo
mkdir -p "$work"

if tools/assets.sh --check; then
  echo "1. a hand with a known pose, drawn by sinew: $work/hand.png"
  "$sinew" synth picture --out "$work/hand.png" --boxes "$work/boxes.json" --joints "$work/joints.json" --seed 1 >/dev/null
  echo "2. found, posed and drawn, without any model of yours:"
  "$sinew" hands "$work/hand.png" --out "$work/out" --save json,png,glb --truth "$work/joints.json"
  cat <<EOT
   overlay: $work/out/hand_all.png   panels: $work/out/hand_0.png   mesh for a viewer: $work/out/hand_0.glb
EOT
else
  echo "1. a hand drawn by sinew: $work/hand.png"
  "$sinew" synth picture --out "$work/hand.png" --boxes "$work/boxes.json" --seed 1 >/dev/null
  echo "2. left out: the hand networks are not there (see above), so nothing can find the hand"
fi

if [[ ! -f $work/model/hamer.ckpt || ! -f $work/model/model_config.yaml ]]; then
  free_kb=$(df --output=avail -k "$work" | tail -n 1)
  if ((free_kb < 6500000)); then
    echo "demo: the synthetic checkpoint and its prepared weights need 6 GB in $work, and only $((free_kb / 1000)) MB are free there" >&2
    exit 1
  fi
  echo "   making a full-size checkpoint with random weights (2.7 GB, once): $work/model"
  "$sinew" synth hamer --out "$work/model" --seed 1 >/dev/null
fi
export SINEW_CACHE=$PWD/$work/cache
echo "3. full-size HaMeR with RANDOM weights, for its time only; its weights are prepared once, and mapped at each later start:"
"$sinew" plan build "$work/model"
"$sinew" hands "$work/hand.png" --model "$work/model" --boxes "$work/boxes.json" --out "$work/hamer" --save json

cat <<EOT

With the published checkpoint: sinew hands photo.jpg --model _DATA        Without it: sinew hands photo.jpg
EOT
