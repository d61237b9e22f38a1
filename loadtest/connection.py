"""One keep-alive HTTP/1.1 connection of one user: a request at a time, the answer as it arrives, no retry."""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic_ns
from urllib.parse import urlsplit

from gevent import socket, ssl
from geventhttpclient.response import HTTPConnectionClosed, HTTPParseError, HTTPResponse

READ_BYTES = 65_536

CONNECTION_ERRORS: tuple[type[Exception], ...] = (OSError, HTTPParseError)
"""What a refused, reset, silent or garbled connection raises."""

__all__ = ["CONNECTION_ERRORS", "Connection", "HTTPConnectionClosed"]


class Connection:
    """Opened on demand and again after a failure; ``read_timeout_s`` bounds the silence between two pieces."""

    def __init__(self, url: str, *, connect_timeout_s: float = 5, read_timeout_s: float = 60) -> None:
        parts = urlsplit(url)
        self._tls = parts.scheme == "https"
        self._address = (parts.hostname or "", parts.port or (443 if self._tls else 80))
        self.host = parts.netloc.rpartition("@")[2]
        self.base_path = parts.path.rstrip("/")
        self._timeouts_s = (connect_timeout_s, read_timeout_s)
        self._socket: socket.socket | None = None

    def open(self) -> None:
        """Connect now (TCP and TLS), so that no request's time contains it."""
        if self._socket is not None:
            return
        raw = socket.create_connection(self._address, timeout=self._timeouts_s[0])
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if self._tls:
            raw = ssl.create_default_context().wrap_socket(raw, server_hostname=self._address[0])
        raw.settimeout(self._timeouts_s[1])
        self._socket = raw

    def close(self) -> None:
        """Drop the connection; the next request opens a new one."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def post(self, path: str, headers: dict[str, str], body: bytes) -> Answer:
        """Send and wait for the response's headers."""
        lines = [f"POST {path} HTTP/1.1", f"Host: {self.host}", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self._drop_if_closed_by_peer()
        self.open()
        assert self._socket is not None
        try:
            self._socket.sendall("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
            return Answer(self, self._socket)
        except BaseException:
            self.close()
            raise

    def _drop_if_closed_by_peer(self) -> None:
        """An idle connection that its server closed: sending on it would count as the server's failure."""
        if self._socket is None or self._tls:
            return
        try:
            closed = self._socket._sock.recv(1, socket.MSG_PEEK) == b""
        except BlockingIOError:
            return
        except OSError:
            closed = True
        if closed:
            self.close()


class Answer:
    """A response whose headers have arrived; iterate it for the body's pieces as they come."""

    def __init__(self, connection: Connection, source: socket.socket) -> None:
        self._connection = connection
        self._socket = source
        self._parser = HTTPResponse("POST")
        while not self._parser.headers_complete or self._parser.get_code() < 200:
            self._receive()
        self.headers_ns = monotonic_ns()
        self.status = int(self._parser.get_code())

    def header(self, name: str) -> str:
        """A header's value, empty when it is missing."""
        return str(self._parser.get(name) or "")

    def __iter__(self) -> Iterator[bytes]:
        try:
            while True:
                if self._parser._body_buffer:
                    piece = bytes(self._parser._body_buffer)
                    del self._parser._body_buffer[:]
                    yield piece
                elif self._parser.message_complete:
                    break
                else:
                    self._receive()
        except BaseException:
            self._connection.close()
            raise
        if self._parser.should_close():
            self._connection.close()

    def _receive(self) -> None:
        data = self._socket.recv(READ_BYTES)
        if not data:
            if self._parser.headers_complete and not self._length_known():
                self._parser.message_complete = True
                return
            raise HTTPConnectionClosed("the connection was closed before the end of the response")
        self._parser.feed(data)

    def _length_known(self) -> bool:
        return bool(self.header("content-length")) or "chunked" in self.header("transfer-encoding").lower()
