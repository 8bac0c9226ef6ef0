#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Trains a GPT of about 10 M parameters on real text, on 2 ranks over an emulated link. The memory limit is halfway
# between the needs of all-fsdp and all-sdp. Prints validation bits per byte and a sample.
#
#   bench/train_text.sh [BUILD [DIRECTORY [STEPS]]]      (build, runs/text, 1000)
#
# The text is the documentation that Debian's perl-doc and anarchism install, at least 10 MB.
set -eu
cd "$(dirname "$0")/.."
weft=$(realpath "${1:-build}")/cli/weft
run=${2:-runs/text}
steps=${3:-1000}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 - "$work/text" <<'PYTHON'
"""All prose of both packages, in the order of their paths, without the markup of HTML."""
import gzip
import html
import re
import subprocess
import sys

PACKAGES = {"perl-doc": (".pod",), "anarchism": (".html", ".html.gz", ".txt", ".txt.gz", ".md")}
LEAST_BYTES = 10_000_000

texts = []
for package, endings in PACKAGES.items():
    listed = subprocess.run(["dpkg", "-L", package], capture_output=True, text=True, check=False)
    for path in sorted(listed.stdout.split("\n")):
        if not path.endswith(endings):
            continue
        with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
            text = file.read().decode("utf-8", "replace")
        if ".html" in path:
            text = re.sub(r"(?s)<(script|style|head).*?</\1>", " ", text)
            text = html.unescape(re.sub(r"<[^>]*>", " ", text))
        texts.append(re.sub(r"[ \t]+", " ", re.sub(r"\s*\n\s*\n\s*", "\n\n", text)))
data = "\n\n".join(texts).encode()
if len(data) < LEAST_BYTES:
    sys.exit(f"{len(data)} bytes of text: install perl-doc and anarchism first "
             "(apt-get install perl-doc anarchism)")
with open(sys.argv[1], "wb") as file:
    file.write(data)
print(f"text      {len(data)} bytes of {', '.join(PACKAGES)}")
PYTHON

cat >"$work/run.json" <<JSON
{
  "version": 1,
  "model": "$PWD/configs/models/gpt-10m.json",
  "cluster": "$PWD/configs/clusters/local-2.json",
  "train": {
    "steps": $steps, "micro_batch": 8, "seq_len": 256, "seed": 42, "data": "$work/text",
    "validation": { "share": 0.05, "every": 100, "samples": 256 },
    "optimizer": { "type": "adamw", "lr": 0.001, "betas": [0.9, 0.95], "weight_decay": 0.1 },
    "clip_norm": 1.0,
    "lr_schedule": { "type": "cosine", "warmup_steps": 50, "min_ratio": 0.1 },
    "checkpoint": { "at_end": true }
  },
  "plan": { "planner": "ilp", "policies": "dp,sdp,fsdp" }
}
JSON
"$weft" profile "$work/run.json" -o "$work/profile.json" -q >"$work/log"
needs() {
    "$weft" plan "$work/run.json" --profile "$work/profile.json" --planner "$1" --json -q |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["total_bytes"])'
}
limit=$((($(needs all-fsdp) + $(needs all-sdp)) / 2 / 1024))
echo "limit     $limit KiB a rank, halfway between all-fsdp and all-sdp"
mkdir -p "$(dirname "$run")"
"$weft" train "$work/run.json" --set cluster.profile="$work/profile.json" \
    --memory-limit "${limit}KiB" --run "$run" >"$work/log"
grep -v '^step ' "$work/log" | grep -v '^validation' || true
grep '^validation' "$work/log" | awk '{ line[NR] = $0 } END { if (NR > 1) print line[1]; print line[NR] }'
echo "sample    of the model, temperature 0.8, 40 likeliest:"
"$weft" generate "$run" --prompt "The " --tokens 600 --temperature 0.8 --top-k 40
