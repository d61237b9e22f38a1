"""Flags that ladder and surge share, and the checks that report every problem at once."""

from __future__ import annotations

import argparse
import importlib.util
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from loadtest import corpus, request_body
from loadtest.corpus import Corpus
from loadtest.request_body import RequestBody
from planner.artifacts.fingerprint import Transport, Workload
from planner.errors import UsageError

T = TypeVar("T")
ACCEPT = {"pcm": "audio/pcm", "wav": "audio/wav", "mp3": "audio/mpeg"}
CEILING_S = 60.0
"""SageMaker ends an invocation here."""


@dataclass(frozen=True)
class Common:
    """The endpoint, the workload and the SLO."""

    endpoint: str
    variant: str
    model: str
    slo_ms: float
    slo_metric: Literal["ttfab", "latency"]
    transport: Transport
    client: Literal["lean", "boto3"]
    corpus: Corpus
    body: RequestBody
    content_type: str
    accept: str
    seed: int
    out: str
    request_timeout_s: float
    dry_run: bool
    force: bool
    allow_config_mismatch: bool

    @property
    def workload(self) -> Workload:
        """As the fingerprint states it."""
        response_format = self.body.response_format if self.body.template is None else self.accept
        return self.corpus.workload(seed=self.seed, response_format=response_format, voice=self.body.voice)


class Problems:
    """Collects what is wrong with a command line, so that one run shows all of it."""

    def __init__(self) -> None:
        self._found: list[UsageError] = []

    def say(self, message: str, hint: str = "") -> None:
        """Note a problem and go on."""
        self._found.append(UsageError(message, hint))

    def number(self, flag: str, given: str, *, least: float = 0.0, above: bool = False) -> float:
        """A finite number >= ``least`` (> with ``above``); nan after a problem."""
        try:
            value = float(given)
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or value < least or (above and value == least):
            wanted = f"a number {'above' if above else 'of at least'} {least:g}"
            self.say(f"{flag} {given}: not {wanted}", f"give {flag} {wanted}")
            return math.nan
        return value

    def integer(self, flag: str, given: str, *, least: int = 0) -> int:
        """A whole number >= ``least``."""
        value = self.number(flag, given, least=least)
        if math.isfinite(value) and value != int(value):
            self.say(f"{flag} {given}: not a whole number", f"give {flag} a whole number")
        return int(value) if math.isfinite(value) else least

    def tried(self, attempt: Callable[[], T], fallback: T) -> T:
        """The attempt's value, or ``fallback`` after noting its UsageError."""
        try:
            return attempt()
        except UsageError as error:
            self._found.append(error)
            return fallback

    def stop(self) -> None:
        """Raise one UsageError that lists everything noted."""
        if self._found:
            hints = [error.hint for error in self._found if error.hint]
            raise UsageError("; ".join(error.message for error in self._found), "; ".join(hints))


def add_common(parser: argparse.ArgumentParser) -> None:
    """Flags of every load command. Numbers stay text here; ``common`` parses them."""
    add = parser.add_argument
    add("--endpoint", help="endpoint name")
    add("--variant", default="primary", help="variant name (primary)")
    add("--model", help="model name, part of the artifact's file name")
    add("--slo-ms", default="3000", help="the SLO in ms at p95 (3000)")
    add(
        "--slo-metric", choices=["ttfab", "latency"], default="ttfab", help="first audio byte or whole response (ttfab)"
    )
    add("--transport", choices=["response-stream", "invoke", "bidi"], default="response-stream", help="runtime API")
    add("--client", choices=["lean", "boto3"], default="lean", help="HTTP client of the load users (lean)")
    add("--corpus", default="short-clips", help="short-clips, paragraphs, or a text file with one text a line")
    add("--voice", help="voice named in each request (the container's default)")
    add("--format", choices=sorted(ACCEPT), default="pcm", help="audio format asked for (pcm)")
    add("--body-template", help="request body with {{text}} and {{voice}} as JSON strings, or @file")
    add("--content-type", default="application/json", help="content type of the request")
    add("--accept", help="content type asked for (that of --format)")
    add("--request-timeout-s", default=f"{CEILING_S:g}", help="give a request up after this long (60)")
    add("--seed", default="0", help="seed of the texts' order (0)")
    add("--out", default="artifacts", help="directory for artifact, raw records and chart (artifacts)")
    add("--dry-run", action="store_true", help="print schedule and cost estimate; no AWS call")
    add("--force", action="store_true", help="measure even if the endpoint carries other traffic or more instances")
    add("--allow-config-mismatch", action="store_true", help="measure although the admission bound is below the load")


def common(options: Any, problems: Problems) -> Common:
    """Check the shared flags; every problem lands in ``problems``."""
    for flag in ("endpoint", "model"):
        if not getattr(options, flag):
            problems.say(f"--{flag} is missing", f"give --{flag} NAME")
    if options.model and "/" in options.model:
        problems.say(f"--model {options.model}: not a file name", "a name without /, for example kokoro-82m")
    texts = problems.tried(lambda: corpus.load(options.corpus), Corpus("none", ("",)))
    filled = problems.tried(lambda: request_body.template(options.body_template, options.content_type), None)
    return Common(
        endpoint=options.endpoint or "",
        variant=options.variant,
        model=options.model or "",
        slo_ms=problems.number("--slo-ms", options.slo_ms, above=True),
        slo_metric=options.slo_metric,
        transport=options.transport,
        client=options.client,
        corpus=texts,
        body=RequestBody(options.voice, options.format, filled),
        content_type=options.content_type,
        accept=options.accept or ACCEPT[options.format],
        seed=problems.integer("--seed", options.seed),
        out=options.out,
        request_timeout_s=problems.number("--request-timeout-s", options.request_timeout_s, above=True),
        dry_run=options.dry_run,
        force=options.force,
        allow_config_mismatch=options.allow_config_mismatch,
    )


def refuse_locust_shape_flags(options: Any, problems: Problems, instead: str) -> None:
    """Locust's own -u, -r and -t contradict a schedule of ours."""
    given = [
        flag
        for flag, name in (("-u", "num_users"), ("-r", "spawn_rate"), ("-t", "run_time"))
        if getattr(options, name, None) is not None
    ]
    if given:
        problems.say(f"{', '.join(given)} cannot be combined with this load", instead)


def require_bidi() -> None:
    """Raise UsageError unless this Python can speak over bidirectional streams."""
    install = ".venv/bin/python -m pip install -c constraints.txt -e '.[bidi]'"
    if sys.version_info < (3, 12):
        raise UsageError(
            f"transport bidi needs Python 3.12 or later, this is {sys.version_info[0]}.{sys.version_info[1]}",
            f"rm -r .venv; make setup PYTHON=python3.12; {install}",
        )
    if importlib.util.find_spec("aws_sdk_sagemaker_runtime_http2") is None:
        raise UsageError("transport bidi needs the HTTP/2 SDK, which is not installed", install)
