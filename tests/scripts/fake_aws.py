"""A small AWS in one JSON file: what freeze, ttotal, drift and validate read and change.

State lives in a file so that a process killed mid-call and its successor see the same account. Every call is logged.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

CREATED = datetime(2026, 8, 1, 12, 0, tzinfo=UTC)
DIGEST = "sha256:" + "8b" * 32


def fresh_state(**changes: Any) -> dict[str, Any]:
    """One InService endpoint ``e``/``v`` with two policies on its scalable target."""
    state: dict[str, Any] = {
        "endpoint": {"status": "InService", "desired": 1, "current": 1, "config": "e-cfg", "reason": None, "polls": 0},
        "slow_polls": 2,
        "tags": {},
        "target": {"min": 1, "max": 4, "suspended": [False, False, False]},
        "policies": [],
        "alarms": [],
        "metrics": {},
        "logs": {},
        "environment": {},
        "instance_type": "ml.g5.xlarge",
        "image": f"123456789012.dkr.ecr.us-east-1.amazonaws.com/speech@{DIGEST}",
        "quota": 8.0,
        "failures": {},
        "busy": 0,
        "calls": [],
    }
    return state | changes


class FakeAws:
    """Stands in for boto3: ``client(service)`` answers from the state file."""

    def __init__(self, path: Path, **changes: Any) -> None:
        self.path = path
        if not path.exists():
            path.write_text(json.dumps(fresh_state(**changes)))

    def client(self, service: str, **_: Any) -> FakeClient:
        return FakeClient(self, service)

    @property
    def state(self) -> dict[str, Any]:
        return json.loads(self.path.read_text())

    @contextmanager
    def edit(self) -> Iterator[dict[str, Any]]:
        with self.path.open("r+") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            state = json.load(stream)
            try:
                yield state
            finally:
                stream.seek(0)
                stream.truncate()
                json.dump(state, stream)

    def durable(self) -> dict[str, Any]:
        """What a freeze must leave exactly as it was."""
        state = self.state
        kept = ("target", "policies", "alarms", "tags")
        counts = {key: state["endpoint"][key] for key in ("status", "desired", "current", "config")}
        return {key: state[key] for key in kept} | {"counts": counts}


def refused(operation: str, code: str, message: str = "", status: int = 400) -> ClientError:
    """What botocore raises."""
    answer = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, operation)  # type: ignore[arg-type]


class FakePaginator:
    def __init__(self, call: Any) -> None:
        self._call = call

    def paginate(self, **request: Any) -> list[Any]:
        return [self._call(**request)]


class FakeClient:
    """One service. Unknown operations are an AttributeError: the code called something the fake does not know."""

    def __init__(self, aws: FakeAws, service: str) -> None:
        self._aws = aws
        self._service = service

    def get_paginator(self, operation: str) -> FakePaginator:
        return FakePaginator(getattr(self, operation))

    @contextmanager
    def _state(self, operation: str, **request: Any) -> Iterator[dict[str, Any]]:
        with self._aws.edit() as state:
            state["calls"].append([operation, json.loads(json.dumps(request, default=str))])
            failures = state["failures"].get(operation)
            if failures:
                code, message, status = failures.pop(0)
                raise refused(operation, code, message, status)
            yield state

    # --- sagemaker ---------------------------------------------------------------------------------------------------

    def describe_endpoint(self, EndpointName: str) -> dict[str, Any]:
        with self._state("describe_endpoint", EndpointName=EndpointName) as state:
            endpoint = state["endpoint"]
            if endpoint is None or EndpointName != "e":
                raise refused("DescribeEndpoint", "ValidationException", f'Could not find endpoint "{EndpointName}".')
            if endpoint["status"] == "Updating":
                endpoint["polls"] += 1
                if endpoint["polls"] > state["slow_polls"]:
                    endpoint.update(status="InService", current=endpoint["desired"], polls=0)
            answer = {
                "EndpointName": "e",
                "EndpointArn": "arn:aws:sagemaker:us-east-1:123456789012:endpoint/e",
                "EndpointConfigName": endpoint["config"],
                "EndpointStatus": endpoint["status"],
                "CreationTime": CREATED,
                "ProductionVariants": [
                    {
                        "VariantName": "v",
                        "DesiredInstanceCount": endpoint["desired"],
                        "CurrentInstanceCount": endpoint["current"],
                    }
                ],
            }
            if endpoint["reason"]:
                answer["FailureReason"] = endpoint["reason"]
            return answer

    def list_endpoints(self, **request: Any) -> dict[str, Any]:
        with self._state("list_endpoints", **request):
            return {"Endpoints": [{"EndpointName": "e"}]}

    def describe_endpoint_config(self, EndpointConfigName: str) -> dict[str, Any]:
        with self._state("describe_endpoint_config", EndpointConfigName=EndpointConfigName) as state:
            variant = {
                "VariantName": "v",
                "ModelName": "m",
                "InstanceType": state["instance_type"],
                "InitialInstanceCount": 1,
            }
            return {"ProductionVariants": [variant]}

    def describe_model(self, ModelName: str) -> dict[str, Any]:
        with self._state("describe_model", ModelName=ModelName) as state:
            return {"PrimaryContainer": {"Image": state["image"], "Environment": state["environment"]}}

    def update_endpoint_weights_and_capacities(
        self, EndpointName: str, DesiredWeightsAndCapacities: list[dict[str, Any]]
    ) -> None:
        wanted = DesiredWeightsAndCapacities[0]["DesiredInstanceCount"]
        with self._state("update_endpoint_weights_and_capacities", desired=wanted) as state:
            endpoint = state["endpoint"]
            if endpoint["status"] != "InService" or state["busy"] > 0:
                state["busy"] -= 1
                message = f'Cannot update in-progress endpoint "{EndpointName}".'
                raise refused("UpdateEndpointWeightsAndCapacities", "ValidationException", message)
            endpoint.update(status="Updating", desired=wanted, polls=0)

    def add_tags(self, ResourceArn: str, Tags: list[dict[str, str]]) -> None:
        with self._state("add_tags", ResourceArn=ResourceArn, Tags=Tags) as state:
            for tag in Tags:
                assert len(tag["Value"]) <= 256
                state["tags"][tag["Key"]] = tag["Value"]

    def list_tags(self, ResourceArn: str) -> dict[str, Any]:
        with self._state("list_tags", ResourceArn=ResourceArn) as state:
            return {"Tags": [{"Key": key, "Value": value} for key, value in state["tags"].items()]}

    def delete_tags(self, ResourceArn: str, TagKeys: list[str]) -> None:
        with self._state("delete_tags", ResourceArn=ResourceArn, TagKeys=TagKeys) as state:
            for key in TagKeys:
                state["tags"].pop(key, None)

    # --- application-autoscaling -------------------------------------------------------------------------------------

    def describe_scalable_targets(self, **request: Any) -> dict[str, Any]:
        with self._state("describe_scalable_targets", **request) as state:
            target = state["target"]
            if target is None:
                return {"ScalableTargets": []}
            scale_in, scale_out, scheduled = target["suspended"]
            return {
                "ScalableTargets": [
                    {
                        "ResourceId": "endpoint/e/variant/v",
                        "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
                        "MinCapacity": target["min"],
                        "MaxCapacity": target["max"],
                        "SuspendedState": {
                            "DynamicScalingInSuspended": scale_in,
                            "DynamicScalingOutSuspended": scale_out,
                            "ScheduledScalingSuspended": scheduled,
                        },
                    }
                ]
            }

    def register_scalable_target(self, **request: Any) -> None:
        with self._state("register_scalable_target", **request) as state:
            assert state["target"] is not None, "a freeze must never create a target"
            suspended = request["SuspendedState"]
            state["target"]["suspended"] = [
                suspended["DynamicScalingInSuspended"],
                suspended["DynamicScalingOutSuspended"],
                suspended["ScheduledScalingSuspended"],
            ]

    def describe_scaling_policies(self, **request: Any) -> dict[str, Any]:
        with self._state("describe_scaling_policies", **request) as state:
            return {"ScalingPolicies": state["policies"]}

    # --- logs --------------------------------------------------------------------------------------------------------

    def describe_log_streams(self, **request: Any) -> dict[str, Any]:
        with self._state("describe_log_streams", **request) as state:
            return {"logStreams": [{"logStreamName": name} for name in state["logs"]]}

    def get_log_events(self, **request: Any) -> dict[str, Any]:
        with self._state("get_log_events", **request) as state:
            events = state["logs"][request["logStreamName"]]
            start = int(request.get("nextToken", 0))
            found = [{"timestamp": at, "message": text} for at, text in events[start:]]
            return {"events": found, "nextForwardToken": str(len(events))}

    # --- cloudwatch, service-quotas, sts -----------------------------------------------------------------------------

    def describe_alarms(self, **request: Any) -> dict[str, Any]:
        with self._state("describe_alarms", **request) as state:
            names = request.get("AlarmNames")
            found = [alarm for alarm in state["alarms"] if names is None or alarm["AlarmName"] in names]
            return {"MetricAlarms": found}

    def get_metric_data(self, **request: Any) -> dict[str, Any]:
        with self._state("get_metric_data", **request) as state:
            name = request["MetricDataQueries"][0]["MetricStat"]["Metric"]["MetricName"]
            points = [(datetime.fromisoformat(at), value) for at, value in state["metrics"].get(name, [])]
            points = [(at, value) for at, value in points if request["StartTime"] <= at < request["EndTime"]]
            return {"MetricDataResults": [{"Timestamps": [p[0] for p in points], "Values": [p[1] for p in points]}]}

    def list_service_quotas(self, **request: Any) -> dict[str, Any]:
        with self._state("list_service_quotas", **request) as state:
            if state["quota"] is None:
                return {"Quotas": []}
            name = f"{state['instance_type']} for endpoint usage"
            return {"Quotas": [{"QuotaName": name, "QuotaCode": "L-1928E07B", "Value": state["quota"]}]}

    def list_aws_default_service_quotas(self, **request: Any) -> dict[str, Any]:
        with self._state("list_aws_default_service_quotas", **request):
            return {"Quotas": []}

    def get_caller_identity(self) -> dict[str, Any]:
        with self._state("get_caller_identity"):
            headers = {"date": datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")}
            return {"Account": "123456789012", "ResponseMetadata": {"HTTPHeaders": headers}}
