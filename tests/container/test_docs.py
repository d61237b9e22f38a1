"""The snippets of docs/container-api.md run as they are printed."""

from __future__ import annotations

import http.client
import os
import re
import shutil
import struct
import subprocess
import sys
import threading
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from container import settings as settings_module

DOCS = (Path(__file__).parents[2] / "docs/container-api.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", DOCS, re.MULTILINE | re.DOTALL)


def run(command: list[str], tmp_path: Path, **env: str) -> str:
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, **env}, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.e2e
def test_snippets(container_process, tmp_path):
    with container_process("serve") as running:
        running.wait_ready()
        address = f"127.0.0.1:{running.port}"
        curls = [block for block in blocks("bash") if block.startswith("curl")]
        output = [run(["bash", "-c", block.replace("localhost:8080", address)], tmp_path) for block in curls]
        assert (tmp_path / "speech.wav").read_bytes()[:4] == b"RIFF"
        assert output[1].splitlines() == ["event: audio", "event: done"]

        boto3_snippet, socket_snippet = blocks("python")
        said = run([sys.executable, "-c", socket_snippet.replace("127.0.0.1:8080", address)], tmp_path)
        assert "bytes of audio" in said
        assert '"type": "complete"' in said

        if node := shutil.which("node"):
            (tmp_path / "speak.mjs").write_text(blocks("js")[0])
            said = run([node, "speak.mjs", "Hello there."], tmp_path, SPEECH_URL=f"http://{address}/invocations")
            assert "s of speech" in said

        with EventStreamFront(running.port) as url:
            keys = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_DEFAULT_REGION": "us-east-1"}
            said = run([sys.executable, "-c", boto3_snippet], tmp_path, AWS_ENDPOINT_URL=url, **keys)
        assert said.startswith("first audio after")
        assert "complete after" in said


def test_every_setting_is_documented():
    source = Path(settings_module.__file__).read_text()
    names = set(re.findall(r'read\.\w+\(\s*"([A-Z0-9_]+)"', source))
    assert {name for name in names if f"`{name}`" not in DOCS} == set()


def frame(payload: bytes) -> bytes:
    """One PayloadPart of vnd.amazon.eventstream."""
    names = {":event-type": "PayloadPart", ":content-type": "application/octet-stream", ":message-type": "event"}
    headers = b"".join(
        bytes([len(name)]) + name.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
        for name, value in names.items()
    )
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    message = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + payload
    return message + struct.pack(">I", zlib.crc32(message))


class EventStreamFront:
    """As much of the platform's data plane as one call needs."""

    def __init__(self, port: int) -> None:
        class Front(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                inner = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
                inner.request("POST", "/invocations", body, {"Content-Type": "application/json"})
                answer = inner.getresponse()
                self.send_response(200)
                self.send_header("Content-Type", "application/vnd.amazon.eventstream")
                self.end_headers()
                while piece := answer.read1(65_536):
                    self.wfile.write(frame(piece))
                inner.close()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Front)
        self._thread = threading.Thread(target=self._server.serve_forever)

    def __enter__(self) -> str:
        self._thread.start()
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
