"""CloudWatch readings of one endpoint variant; a period without data is absent, never zero."""

from __future__ import annotations

from datetime import datetime

from scripts.aws.clients import aws_errors, control

INVOCATIONS = "AWS/SageMaker"
UTILISATION = "/aws/sagemaker/Endpoints"
_UTILISATION_METRICS = frozenset(
    {
        "CPUUtilization",
        "CPUUtilizationNormalized",
        "MemoryUtilization",
        "GPUUtilization",
        "GPUMemoryUtilization",
        "DiskUtilization",
    }
)


def namespace(name: str) -> str:
    """The namespace a metric of an endpoint lives in."""
    return UTILISATION if name in _UTILISATION_METRICS else INVOCATIONS


def dimensions(endpoint: str, variant: str) -> list[dict[str, str]]:
    """The dimensions every metric and alarm of a variant carries."""
    return [{"Name": "EndpointName", "Value": endpoint}, {"Name": "VariantName", "Value": variant}]


def metric(
    name: str, endpoint: str, variant: str, stat: str, period_s: int, start: datetime, end: datetime
) -> list[tuple[datetime, float]]:
    """Readings in ascending time; ``stat`` is Maximum, Minimum, Sum, Average, SampleCount or a percentile (p95)."""
    query = {
        "Id": "m0",
        "MetricStat": {
            "Metric": {
                "Namespace": namespace(name),
                "MetricName": name,
                "Dimensions": dimensions(endpoint, variant),
            },
            "Period": period_s,
            "Stat": stat,
        },
        "ReturnData": True,
    }
    found: list[tuple[datetime, float]] = []
    with aws_errors(f"reading metric {name} of {endpoint}"):
        pages = (
            control("cloudwatch")
            .get_paginator("get_metric_data")
            .paginate(MetricDataQueries=[query], StartTime=start, EndTime=end, ScanBy="TimestampAscending")
        )
        for page in pages:
            for result in page["MetricDataResults"]:
                found.extend(zip(result["Timestamps"], result["Values"], strict=True))
    return sorted(found)
