"""Stands between a client and the rehearsal and notes which IAM action each request needs."""

from __future__ import annotations

import http.client
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

_SCOPE = re.compile(r"Credential=[^/]+/\d+/[^/]+/(?P<service>[^/]+)/aws4_request")
_PREFIX = {
    "monitoring": "cloudwatch",
    "servicequotas": "servicequotas",
    "application-autoscaling": "application-autoscaling",
}
# S3 names its actions after neither method nor operation.
_S3_QUERY = {
    "acl": "BucketAcl",
    "policy": "BucketPolicy",
    "versioning": "BucketVersioning",
    "lifecycle": "LifecycleConfiguration",
    "encryption": "EncryptionConfiguration",
    "publicAccessBlock": "BucketPublicAccessBlock",
    "ownershipControls": "BucketOwnershipControls",
    "tagging": "BucketTagging",
    "location": "BucketLocation",
    "cors": "BucketCORS",
    "website": "BucketWebsite",
    "accelerate": "AccelerateConfiguration",
    "requestPayment": "BucketRequestPayment",
    "logging": "BucketLogging",
    "replication": "ReplicationConfiguration",
    "object-lock": "BucketObjectLockConfiguration",
    "policyStatus": "BucketPolicyStatus",
}


def action(method: str, path: str, headers: dict[str, str], body: bytes) -> str | None:
    """``service:Action``; None for requests nobody signed."""
    match = _SCOPE.search(headers.get("authorization", ""))
    if match is None:
        return None
    service = _PREFIX.get(match["service"], match["service"])
    if service == "s3":
        return f"s3:{_s3(method, path)}"
    target = headers.get("x-amz-target", "")
    if target:
        return f"{service}:{target.rpartition('.')[2]}"
    rpc = re.search(r"/operation/(?P<name>\w+)$", path)
    if rpc:
        return f"{service}:{rpc['name']}"
    form = parse_qs(body.decode("utf-8", "replace"))
    if "Action" in form:
        return f"{service}:{form['Action'][0]}"
    return f"{service}:{method} {urlsplit(path).path}"


def _s3(method: str, path: str) -> str:
    parts = urlsplit(path)
    query = parse_qs(parts.query, keep_blank_values=True)
    bucket, _, key = parts.path.lstrip("/").partition("/")
    if not bucket:
        return "ListAllMyBuckets"
    if key:
        verb = {"GET": "GetObject", "HEAD": "GetObject", "PUT": "PutObject", "DELETE": "DeleteObject"}[method]
        return verb + ("Tagging" if "tagging" in query else "")
    if "versions" in query:
        return "ListBucketVersions"
    if "delete" in query:
        return "DeleteObjectVersion"
    for name, noun in _S3_QUERY.items():
        if name in query:
            if method == "DELETE":
                return "DeleteBucketPolicy" if name == "policy" else f"Put{noun}"
            return f"{'Get' if method == 'GET' else 'Put'}{noun}"
    return {"GET": "ListBucket", "HEAD": "ListBucket", "PUT": "CreateBucket", "DELETE": "DeleteBucket"}[method]


class _Server(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True


@contextmanager
def recording(upstream: str) -> Iterator[tuple[str, set[str]]]:
    """A URL that answers as ``upstream`` and the actions seen so far."""
    seen: set[str] = set()
    address = urlsplit(upstream).netloc

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            found = action(self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body)
            if found is not None:
                seen.add(found)
            connection = http.client.HTTPConnection(address, timeout=60)
            kept = {k: v for k, v in self.headers.items() if k.lower() not in {"connection", "transfer-encoding"}}
            connection.request(self.command, self.path, body, kept)
            answer = connection.getresponse()
            data = answer.read()
            connection.close()
            self.send_response_only(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in {"transfer-encoding", "connection", "content-length"}:
                    self.send_header(name, value)
            length = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(data))
            self.send_header("Content-Length", length or "0")
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _forward

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = _Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        server.server_close()
