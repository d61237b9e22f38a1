"""What one invocation adds to CloudWatch. Latencies are microseconds."""

from __future__ import annotations

from rehearsal.cloudwatch.publisher import Publisher
from rehearsal.record import RequestTrace

_US = "Microseconds"


def publish(publisher: Publisher, trace: RequestTrace, instances: int) -> None:
    """Of a request that reached an instance and is over."""
    if trace.variant is None or trace.routed_ns is None or trace.end_ns is None:
        return
    container_status = trace.container_status

    def count(name: str, value: float, unit: str = "None") -> None:
        publisher.count(trace.endpoint, trace.variant or "", name, value, unit)

    count("Invocations", 1)
    count("InvocationsPerInstance", 1 / max(instances, 1))
    count("Invocation4XXErrors", float(container_status is not None and 400 <= container_status < 500))
    count("Invocation5XXErrors", float(container_status is None or container_status >= 500))
    count("InvocationModelErrors", float(container_status is None or container_status >= 300))
    count("OverheadLatency", (trace.routed_ns - trace.arrival_ns) / 1e3, _US)
    if trace.headers_ns is not None:
        count("ModelLatency", (trace.end_ns - trace.routed_ns) / 1e3, _US)
    if trace.first_byte_ns is not None:
        count("FirstChunkLatency", (trace.first_byte_ns - trace.arrival_ns) / 1e3, _US)
        count("FirstChunkModelLatency", (trace.first_byte_ns - trace.routed_ns) / 1e3, _US)
        count("FirstChunkOverheadLatency", (trace.routed_ns - trace.arrival_ns) / 1e3, _US)
        count("MidStreamErrors", float(trace.outcome not in ("ok", "client_gone")))
