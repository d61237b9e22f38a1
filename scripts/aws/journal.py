"""What a freeze found and must put back: kept in a file and, for other machines, in a tag of the endpoint."""

from __future__ import annotations

import os
import re
import socket
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlparse

from pydantic import ValidationError

from planner.artifacts.base import Strict, first_fault, read_json, write_atomically
from planner.errors import UsageError
from scripts.aws.clients import aws_endpoint_url, aws_errors, control
from scripts.aws.endpoint import LiveEndpoint
from scripts.aws.scaling import ALL_SUSPENDED, Suspended, Target

TAG_KEY = "headroom:freeze"
TAG_LIMIT = 256
_NOT_TAG = re.compile(r"[^\w.:/=+\-@ ]")


class Journal(Strict):
    """State before the freeze."""

    endpoint: str
    variant: str
    endpoint_created_at: datetime | None
    run_id: str
    host: str
    pid: int
    started_at: datetime
    expires_at: datetime
    desired_instances: int
    min_capacity: int | None
    """None = no scalable target was registered."""
    max_capacity: int | None
    suspended: str | None
    """Three digits, 1 = suspended: scale-in, scale-out, scheduled. None = no target."""

    @property
    def suspended_state(self) -> Suspended | None:
        """What was suspended before; None when no target was registered."""
        return None if self.suspended is None else Suspended.from_bits(self.suspended)

    @property
    def who(self) -> str:
        """The run that holds the endpoint, for messages."""
        return f"run {self.run_id} (process {self.pid} on {self.host}, since {self.started_at:%Y-%m-%d %H:%M:%SZ})"


@dataclass(frozen=True)
class Found:
    """A journal and where it was."""

    journal: Journal
    source: str
    frozen: bool = True
    """False = its run died before it changed anything, or was thawed from another machine."""


def new_journal(live: LiveEndpoint, target: Target | None, run_id: str, now: datetime, expires_at: datetime) -> Journal:
    """Everything that a freeze of ``live`` will change."""
    return Journal(
        endpoint=live.name,
        variant=live.variant,
        endpoint_created_at=live.created_at,
        run_id=run_id,
        host=this_host(),
        pid=os.getpid(),
        started_at=now.replace(microsecond=0),
        expires_at=expires_at.replace(microsecond=0),
        desired_instances=live.desired_instances,
        min_capacity=target.min_capacity if target else None,
        max_capacity=target.max_capacity if target else None,
        suspended=target.suspended.bits if target else None,
    )


def this_host() -> str:
    """The name this machine writes into journals."""
    return socket.gethostname()


def state_dir() -> Path:
    """Where journals and locks live: $HEADROOM_STATE_DIR or .headroom in the working directory."""
    return Path(os.environ.get("HEADROOM_STATE_DIR") or ".headroom") / "freeze"


def file_path(endpoint: str, variant: str, suffix: str = "json") -> Path:
    """One file a variant, and another one for each AWS_ENDPOINT_URL: a rehearsal never blocks the real account."""
    url = aws_endpoint_url()
    place = f".{urlparse(url).netloc.replace(':', '-')}" if url else ""
    return state_dir() / f"{endpoint}.{variant}{place}.{suffix}"


def write_file(journal: Journal) -> None:
    """Write the journal where the next run on this machine looks."""
    write_atomically(file_path(journal.endpoint, journal.variant), journal.model_dump_json(indent=2) + "\n")


def read_file(live: LiveEndpoint) -> Journal | None:
    """The journal on this machine; one of an endpoint that was deleted since is dropped."""
    path = file_path(live.name, live.variant)
    if not path.exists():
        return None
    try:
        journal = Journal.model_validate(read_json(path))
    except (ValidationError, UsageError) as error:
        fault = first_fault(error) if isinstance(error, ValidationError) else error.message
        raise UsageError(
            f"{path}: not a freeze journal: {fault}", f"look at it, then remove {path}; make thaw uses the tag"
        ) from None
    if journal.endpoint_created_at != live.created_at:
        path.unlink()
        return None
    return journal


def remove_file(endpoint: str, variant: str) -> None:
    """The freeze is over."""
    file_path(endpoint, variant).unlink(missing_ok=True)


def to_tag(journal: Journal) -> str:
    """At most 256 characters of the tag alphabet."""
    scaling = "none"
    if journal.suspended is not None:
        scaling = f"{journal.suspended}:{journal.min_capacity}:{journal.max_capacity}"
    fields = {
        "v": "1",
        "run": journal.run_id[:36],
        "exp": f"{journal.expires_at.timestamp():.0f}",
        "at": f"{journal.started_at.timestamp():.0f}",
        "n": str(journal.desired_instances),
        "s": scaling,
        "pid": str(journal.pid),
        "var": journal.variant,
        "host": journal.host[:40],
    }
    text = " ".join(f"{key}={_NOT_TAG.sub('-', value)}" for key, value in fields.items())
    return text[:TAG_LIMIT]


def from_tag(text: str, live: LiveEndpoint) -> Journal:
    """Inverse of to_tag, for the endpoint that carries it."""
    fields = dict(part.split("=", 1) for part in text.split(" ") if "=" in part)
    try:
        suspended, low, high = None, None, None
        if fields["s"] != "none":
            bits, low_text, high_text = fields["s"].split(":")
            suspended, low, high = bits, int(low_text), int(high_text)
        return Journal(
            endpoint=live.name,
            variant=fields["var"],
            endpoint_created_at=live.created_at,
            run_id=fields["run"],
            host=fields.get("host", "unknown"),
            pid=int(fields["pid"]),
            started_at=datetime.fromtimestamp(int(fields["at"]), UTC),
            expires_at=datetime.fromtimestamp(int(fields["exp"]), UTC),
            desired_instances=int(fields["n"]),
            min_capacity=low,
            max_capacity=high,
            suspended=suspended,
        )
    except (KeyError, ValueError) as error:
        raise UsageError(
            f"tag {TAG_KEY} of {live.name} is damaged ({error!r}): {text}",
            "set the count and scaling by hand, then remove the tag (aws sagemaker delete-tags)",
        ) from None


def write_tag(live: LiveEndpoint, journal: Journal) -> None:
    """Write the journal where other machines look."""
    with aws_errors(f"tagging {live.name}"):
        control("sagemaker").add_tags(ResourceArn=live.arn, Tags=[{"Key": TAG_KEY, "Value": to_tag(journal)}])


def read_tag(live: LiveEndpoint) -> Journal | None:
    """The journal in the endpoint's tag, whoever wrote it."""
    with aws_errors(f"reading the tags of {live.name}"):
        pages = list(control("sagemaker").get_paginator("list_tags").paginate(ResourceArn=live.arn))
    tags = {tag["Key"]: tag["Value"] for page in pages for tag in page["Tags"]}
    return from_tag(tags[TAG_KEY], live) if TAG_KEY in tags else None


def remove_tag(live: LiveEndpoint) -> None:
    """The freeze is over, for other machines too."""
    with aws_errors(f"removing the freeze tag of {live.name}"):
        control("sagemaker").delete_tags(ResourceArn=live.arn, TagKeys=[TAG_KEY])


def find(live: LiveEndpoint, target: Target | None) -> Found | None:
    """What an earlier freeze left behind: the exact file where it still holds, else the tag.

    The tag is written before the first change and removed after the last, so a file without its tag means that nothing
    is frozen, unless somebody else removed the tag: then scaling is still suspended.
    """
    kept, tagged = read_file(live), read_tag(live)
    if tagged is not None and not (kept is not None and _same_run(kept, tagged)):
        return Found(tagged, f"tag {TAG_KEY}")
    if kept is None:
        return None
    holds = _same_run(kept, tagged) or _still_frozen(kept, target)
    return Found(kept, str(file_path(live.name, live.variant)), holds)


def _same_run(kept: Journal, tagged: Journal | None) -> bool:
    return tagged is not None and tagged.run_id == kept.run_id[:36] and tagged.variant == kept.variant


def _still_frozen(kept: Journal, target: Target | None) -> bool:
    return target is not None and target.suspended == ALL_SUSPENDED and kept.suspended_state != ALL_SUSPENDED


def mark_traffic_end(live: LiveEndpoint, now: datetime) -> None:
    """Remember when our own load stopped, so that the next run does not take it for somebody else's."""
    write_atomically(file_path(live.name, live.variant, "last"), now.isoformat() + "\n")


def traffic_end(live: LiveEndpoint) -> datetime | None:
    """When our own load on this variant last stopped, as far as this machine knows."""
    path = file_path(live.name, live.variant, "last")
    try:
        return datetime.fromisoformat(path.read_text(encoding="utf-8").strip())
    except (FileNotFoundError, ValueError):
        return None
