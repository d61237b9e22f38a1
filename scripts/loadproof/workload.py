"""The ladder's workload as an open loop."""

from __future__ import annotations

from loadtest import corpus as corpora
from loadtest.flags import ACCEPT, CEILING_S
from loadtest.job import Job
from loadtest.openloop import OpenLoop
from loadtest.request_body import RequestBody, template
from planner.errors import UsageError
from scripts.loadproof.case import Case


def open_loop(case: Case, *, corpus: str | None, body_template: str | None, content_type: str) -> OpenLoop:
    """The ladder's workload at the scenario's times."""
    workload = case.identity.workload
    response_format = workload.response_format or ""
    if body_template is None and response_format not in ACCEPT:
        raise UsageError(
            f"the ladder asked for {response_format or 'an unknown format'} with a request body of its own",
            "pass the same --body-template (and --content-type) here",
        )
    body = RequestBody(workload.voice, response_format, template(body_template, content_type))
    texts = corpora.load(corpus or workload.corpus).texts
    in_flight = case.plan.derived.queue_max_depth * case.scenario.instances
    job = Job(
        id=0,
        run=0,
        rung=0,
        users=in_flight,
        endpoint=case.live.name,
        variant=case.live.variant,
        api=case.identity.transport,
        client="lean",
        content_type=content_type,
        accept=ACCEPT.get(response_format, response_format),
        timeout_s=CEILING_S,
        seed=case.scenario.seed,
        bodies=[body.render(text).decode() for text in texts],
        chars=[len(text) for text in texts],
    )
    return OpenLoop(job, warm_connections=in_flight)
