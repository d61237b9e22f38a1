"""A runtime endpoint that answers exactly the bytes a test scripts, and records what really reached it."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from zlib import crc32

import boto3
import pytest

Script = Callable[["Call"], None]


def frame(payload: bytes, headers: dict[str, str]) -> bytes:
    """One event-stream message, written from the specification."""
    packed = b"".join(
        bytes([len(name)]) + name.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
        for name, value in headers.items()
    )
    prelude = struct.pack(">II", 16 + len(packed) + len(payload), len(packed))
    message = prelude + struct.pack(">I", crc32(prelude)) + packed + payload
    return message + struct.pack(">I", crc32(message))


def part(payload: bytes) -> bytes:
    """A PayloadPart event."""
    return frame(payload, {":message-type": "event", ":event-type": "PayloadPart", ":content-type": "x/y"})


@dataclass
class Call:
    """One request as the server saw it, and ways to answer it."""

    path: str
    headers: dict[str, str]
    body: bytes
    connection: socket.socket

    def send(self, data: bytes) -> None:
        self.connection.sendall(data)

    def head(self, status: int, headers: dict[str, str]) -> None:
        lines = [f"HTTP/1.1 {status} Scripted", *(f"{name}: {value}" for name, value in headers.items())]
        self.send("\r\n".join([*lines, "", ""]).encode())

    def stream(
        self, pieces: list[bytes], *, content_type: str = "audio/pcm", attributes: str = "", end: bool = True
    ) -> None:
        """A chunked event stream whose HTTP chunks are ``pieces``."""
        self.head(
            200,
            {
                "Content-Type": "application/vnd.amazon.eventstream",
                "X-Amzn-SageMaker-Content-Type": content_type,
                "X-Amzn-SageMaker-Custom-Attributes": attributes,
                "Transfer-Encoding": "chunked",
            },
        )
        for piece in pieces:
            self.send(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        if end:
            self.send(b"0\r\n\r\n")

    def whole(self, body: bytes, content_type: str = "audio/wav") -> None:
        self.head(200, {"Content-Type": content_type, "Content-Length": str(len(body))})
        self.send(body)

    def error(self, status: int, code: str, **fields: object) -> None:
        body = json.dumps(fields).encode()
        headers = {"Content-Type": "application/json", "x-amzn-ErrorType": code, "Content-Length": str(len(body))}
        self.head(status, headers)
        self.send(body)


@dataclass
class Scripted:
    """Hits and accepted connections are what the server counted itself."""

    url: str = ""
    script: Script = lambda call: call.stream([part(b"audio")])
    calls: list[Call] = field(default_factory=list)
    accepted: int = 0

    def serve(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            self.accepted += 1
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as reader:
            while line := reader.readline():
                path = line.split()[1].decode()
                headers: dict[str, str] = {}
                while (header := reader.readline().strip()) != b"":
                    name, _, value = header.decode().partition(":")
                    headers[name.lower()] = value.strip()
                call = Call(path, headers, reader.read(int(headers.get("content-length", 0))), connection)
                self.calls.append(call)
                try:
                    self.script(call)
                except OSError:
                    return


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scripted]:
    """A running server; the AWS environment variables point at it."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    server = Scripted(url=f"http://127.0.0.1:{listener.getsockname()[1]}")
    threading.Thread(target=server.serve, args=(listener,), daemon=True).start()
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)  # it keeps the credentials it saw first
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "token")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    yield server
    # shutdown wakes the accepting thread; close alone does not.
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    time.sleep(0)


@pytest.fixture
def event_frame() -> Callable[[bytes, dict[str, str]], bytes]:
    return frame


@pytest.fixture
def payload_part() -> Callable[[bytes], bytes]:
    return part
