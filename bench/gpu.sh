#!/usr/bin/env bash
# Stock against ours on a CUDA machine, in under eight minutes: ./bench/gpu.sh [output folder]
# Needs a Python with this project's kokoro extra, a CUDA build of torch and the weights (python -m container.weights).
set -euo pipefail
cd "$(dirname "$0")/.."
PY=${PY:-.venv/bin/python}
OUT=${1:-artifacts/gpu}
mkdir -p "$OUT"

"$PY" -c 'import torch; assert torch.cuda.is_available(), "torch sees no CUDA device"; print(torch.cuda.get_device_name(), torch.__version__)'
"$PY" -m container.weights

nvidia-smi --query-gpu=timestamp,utilization.gpu,memory.used,power.draw --format=csv -lms 200 > "$OUT/nvidia-smi.csv" &
SAMPLER=$!
trap 'kill "$SAMPLER" 2>/dev/null || true' EXIT

# Stock, batch 1 and batched, at the concurrencies of the published ladder; GPU busy share from the sampler above.
timeout 300 "$PY" -W ignore -m bench.engine --concurrency 1,4,16,50 --seconds 12 --precisions fp32,auto \
  --json "$OUT/engine.json" | tee "$OUT/engine.md"

# Kernel launches a request, stock and ours.
timeout 90 "$PY" -W ignore -m bench.launches | tee "$OUT/launches.md"
