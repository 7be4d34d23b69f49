#!/usr/bin/env bash
# The main job on what the repository contains: a hand picture that sinew draws itself, through a full-size HaMeR. The published weights
# cannot be shipped, so the weights are random: the numbers mean nothing, the work and its time are the real ones.
set -euo pipefail
cd "$(dirname "$0")/.."

sinew=build/release/sinew
work=build/demo
mkdir -p "$work"

if [[ ! -f $work/model/hamer.ckpt || ! -f $work/model/model_config.yaml ]]; then
  free_kb=$(df --output=avail -k "$work" | tail -n 1)
  if ((free_kb < 3000000)); then
    echo "demo: the synthetic checkpoint needs 2.7 GB in $work, and only $((free_kb / 1000)) MB are free there" >&2
    exit 1
  fi
  echo "making a full-size checkpoint with random weights (2.7 GB, once): $work/model"
  "$sinew" synth hamer --out "$work/model" --seed 1 >/dev/null
fi

echo "drawing a hand: $work/hand.png"
"$sinew" synth picture --out "$work/hand.png" --boxes "$work/boxes.json" --seed 1 >/dev/null

echo "running sinew hands:"
"$sinew" hands "$work/hand.png" --model "$work/model" --boxes "$work/boxes.json" --out "$work/out"

cat <<EOT

record:  $work/out/hand_0.json
picture: $work/out/hand_0.png   (the box, and the skeleton of the network's answer)

The weights are random, so the skeleton has nothing to do with the hand; only the steps and the timings are real.
With the published checkpoint: sinew hands photo.jpg --model _DATA --box x1,y1,x2,y2,right
EOT
