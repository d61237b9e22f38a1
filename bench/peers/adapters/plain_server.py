"""The smallest fair server: a thread a connection, one call of the library at a time. Standard library and numpy."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
from numpy.typing import NDArray

Speak = Callable[[str, str], NDArray[np.float32]]
"""Text and voice to samples."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    speak: Speak
    turn = threading.Lock()
    """A call uses every core by the libraries' default, so calls take turns."""

    def do_GET(self) -> None:
        self.answer(b"ok", "text/plain")

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.turn:
            samples = type(self).speak(asked["input"], asked["voice"])
        self.answer((np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes(), "audio/pcm")

    def answer(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64


def serve(speak: Speak, port: int) -> None:
    Handler.speak = staticmethod(speak)
    Server(("127.0.0.1", port), Handler).serve_forever()
