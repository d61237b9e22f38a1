"""Upstream's torch model, in our environment: ``python -m bench.peers.adapters.upstream_server PORT MODEL_DIR``"""

from __future__ import annotations

import sys
from pathlib import Path

from bench.engine import Locked
from bench.peers.adapters.plain_server import serve
from container.settings import Settings

if __name__ == "__main__":
    port, model_dir = sys.argv[1:]
    upstream = Locked(Settings(device="cpu", model_dir=Path(model_dir)))
    serve(lambda text, _voice: upstream.speak(text), int(port))
