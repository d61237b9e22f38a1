"""AWS Signature Version 4 for one service and a fixed set of headers, quick enough for a hot path.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
"""

from __future__ import annotations

import hmac
from datetime import datetime
from hashlib import sha256
from urllib.parse import quote


class Signer:
    """Signs POST requests without a query string; the derived key is kept for the day and the credentials."""

    def __init__(self, region: str, service: str) -> None:
        self._scope_tail = f"{region}/{service}/aws4_request"
        self._parts = (region, service)
        self._key_for: tuple[str, str] = ("", "")
        self._key = b""

    def headers(
        self, *, host: str, path: str, body: bytes, access_key: str, secret_key: str, token: str | None, now: datetime
    ) -> dict[str, str]:
        """The headers that authorise this request; ``now`` is UTC and ``path`` is already percent-encoded."""
        stamp = now.strftime("%Y%m%dT%H%M%SZ")
        signed = {"host": host, "x-amz-date": stamp}
        if token:
            signed["x-amz-security-token"] = token
        names = ";".join(signed)
        canonical = "\n".join(
            [
                "POST",
                quote(path, safe="/-_.~"),
                "",
                *(f"{name}:{value}" for name, value in signed.items()),
                "",
                names,
                sha256(body).hexdigest(),
            ]
        )
        scope = f"{stamp[:8]}/{self._scope_tail}"
        text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{sha256(canonical.encode()).hexdigest()}"
        signature = hmac.digest(self._signing_key(secret_key, stamp[:8]), text.encode(), "sha256").hex()
        sent = {"X-Amz-Date": stamp}
        if token:
            sent["X-Amz-Security-Token"] = token
        sent["Authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
        )
        return sent

    def _signing_key(self, secret_key: str, day: str) -> bytes:
        if self._key_for != (secret_key, day):
            key = f"AWS4{secret_key}".encode()
            for part in (day, *self._parts, "aws4_request"):
                key = hmac.digest(key, part.encode(), "sha256")
            self._key_for, self._key = (secret_key, day), key
        return self._key
