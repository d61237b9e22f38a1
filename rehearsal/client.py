"""Clients of a running rehearsal that look at nothing in the user's AWS configuration."""

from __future__ import annotations

from typing import Any

import boto3
import botocore.session
from botocore.config import Config

from rehearsal.settings import ACCESS_KEY, SECRET_KEY

_NO_PROFILE = {"profile": (None, None, None, None)}


def client(url: str, region: str, service: str) -> Any:
    """A stock client with the rehearsal's address and keys."""
    session: Any = boto3.Session(
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
        region_name=region,
        botocore_session=botocore.session.Session(session_vars=_NO_PROFILE),
    )
    return session.client(service, endpoint_url=url, config=Config(retries={"mode": "standard"}))
