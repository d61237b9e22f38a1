"""kokoro-onnx with its own defaults, run by the interpreter that has it: ``kokoro_onnx_server.py PORT MODEL VOICES``"""

from __future__ import annotations

import sys

from kokoro_onnx import Kokoro
from plain_server import serve

if __name__ == "__main__":
    port, model, voices = sys.argv[1:]
    kokoro = Kokoro(model, voices)
    serve(lambda text, voice: kokoro.create(text, voice=voice)[0], int(port))
