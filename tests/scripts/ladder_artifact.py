"""A Q_max artifact for tests: rungs whose p95 is stated, for the deployment that is live."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from loadtest import corpus
from planner.artifacts.base import Provenance
from planner.artifacts.fingerprint import Fingerprint, Transport, slug
from planner.artifacts.qmax import Method, Qmax, Quantiles, Rung
from scripts.aws.endpoint import LiveEndpoint, fingerprint


def identity(live: LiveEndpoint, transport: Transport = "response-stream") -> Fingerprint:
    workload = corpus.load("short-clips").workload(seed=0, response_format="pcm", voice=None)
    return fingerprint(live, workload, transport)


def write(live: LiveEndpoint, out: Path, p95_ms: dict[int, float], transport: Transport = "response-stream") -> Path:
    """``p95_ms`` by concurrency."""
    measured = identity(live, transport)
    made = Qmax(
        provenance=Provenance(
            tool_version="0",
            command=[],
            run_id="ladder000001",
            created_at=datetime.now(UTC),
            region="us-east-1",
            endpoint=live.name,
            variant=live.variant,
        ),
        model="m",
        fingerprint=measured,
        method=Method(rungs=list(p95_ms), hold_s=240, measure_window_s=60, idle_s=30, slo_ms=3000),
        outcome="lower_bound",
        q_max=max(p95_ms),
        bracketed=False,
        service_mean_s=0.06,
        service_p95_s=0.07,
        ttfab_p95_at_1_ms=p95_ms.get(1),
        ladder=[
            Rung(
                concurrency=n,
                verdict="pass",
                point_verdict="pass",
                ttfab_ms=Quantiles(n=1000, mean=p95, p50=p95, p90=p95, p95=p95, p99=p95),
            )
            for n, p95 in p95_ms.items()
        ],
    )
    path = out / f"qmax-m-{transport}-{slug(measured)}.json"
    made.save(path)
    return path
