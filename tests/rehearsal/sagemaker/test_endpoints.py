"""An endpoint's life through stock boto3: creation, scaling, updates, refusals, failures, deletion."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError, EventStreamError

from tests.rehearsal.conftest import ENDPOINT, VARIANT, Up, until

pytestmark = pytest.mark.e2e
IMAGE = "123456789012.dkr.ecr.us-east-1.amazonaws.com/x@sha256:" + "a" * 64
_numbers = itertools.count()


class Made:
    """Creates models, configurations and endpoints of a test's own."""

    def __init__(self, up: Up) -> None:
        self.up = up
        self.sagemaker = up.client("sagemaker")
        self.endpoints: list[str] = []

    def config(self, count: int = 1, instance_type: str = "ml.g5.xlarge", **environment: str) -> str:
        name = f"made-{next(_numbers)}"
        self.sagemaker.create_model(
            ModelName=name,
            ExecutionRoleArn="arn:aws:iam::123456789012:role/execution",
            PrimaryContainer={"Image": IMAGE, "Environment": environment},
        )
        self.sagemaker.create_endpoint_config(
            EndpointConfigName=name,
            ProductionVariants=[
                {
                    "VariantName": VARIANT,
                    "ModelName": name,
                    "InstanceType": instance_type,
                    "InitialInstanceCount": count,
                    "RoutingConfig": {"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"},
                }
            ],
        )
        return name

    def endpoint(self, config: str) -> str:
        name = f"endpoint-{next(_numbers)}"
        self.endpoints.append(name)
        self.sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=config)
        return name

    def describe(self, name: str) -> dict[str, Any]:
        return self.sagemaker.describe_endpoint(EndpointName=name)

    def scale(self, name: str, count: int) -> None:
        self.sagemaker.update_endpoint_weights_and_capacities(
            EndpointName=name,
            DesiredWeightsAndCapacities=[{"VariantName": VARIANT, "DesiredInstanceCount": count}],
        )

    def counts(self, name: str) -> tuple[int, int]:
        variant = self.describe(name)["ProductionVariants"][0]
        return variant["CurrentInstanceCount"], variant["DesiredInstanceCount"]

    def settled(self, name: str) -> dict[str, Any]:
        def look() -> dict[str, Any] | None:
            found = self.describe(name)
            return found if found["EndpointStatus"] in ("InService", "Failed") else None

        return until(look)


@pytest.fixture
def made(seeded: Up) -> Iterator[Made]:
    made = Made(seeded)
    yield made
    seeded.clear_faults()
    for name in made.endpoints:
        if any(endpoint["name"] == name for endpoint in seeded.truth("state")["endpoints"]):
            made.settled(name)
            made.sagemaker.delete_endpoint(EndpointName=name)


def refused(call: Callable[..., Any], *arguments: Any, **named: Any) -> tuple[str, str]:
    with pytest.raises(ClientError) as caught:
        call(*arguments, **named)
    error = caught.value.response["Error"]
    return error["Code"], error["Message"]


def test_creation_waits_for_instances(made: Made) -> None:
    name = made.endpoint(made.config(count=2))
    first = made.describe(name)
    assert first["EndpointStatus"] == "Creating"
    assert "ProductionVariants" not in first
    after = made.settled(name)
    assert after["EndpointStatus"] == "InService"
    assert made.counts(name) == (2, 2)
    assert after["CreationTime"] == first["CreationTime"]
    assert after["ProductionVariants"][0]["DeployedImages"][0]["ResolvedImage"] == IMAGE


def test_scaling_out_and_in(made: Made) -> None:
    name = made.endpoint(made.config())
    made.settled(name)
    made.scale(name, 3)
    assert made.describe(name)["EndpointStatus"] == "Updating"
    assert made.counts(name) == (1, 3)
    assert refused(made.scale, name, 2) == (
        "ValidationException",
        f'Cannot update in-progress endpoint "arn:aws:sagemaker:us-east-1:123456789012:endpoint/{name}".',
    )
    made.settled(name)
    assert made.counts(name) == (3, 3)
    made.scale(name, 1)
    made.settled(name)
    assert made.counts(name) == (1, 1)
    events = [event["event"] for event in made.up.truth("events") if event["endpoint"] == name]
    assert events.count("launched") == 3
    until(
        lambda: [event["event"] for event in made.up.truth("events") if event["endpoint"] == name].count("stopped") == 2
    )


def test_scale_in_lets_a_stream_end(made: Made) -> None:
    name = made.endpoint(made.config(count=2))
    made.settled(name)
    answers = [
        made.up.client("sagemaker-runtime").invoke_endpoint_with_response_stream(
            EndpointName=name, Body=b'{"pieces": 10, "gap_s": 0.1}'
        )
        for _ in range(2)
    ]
    assert [instance["in_flight"] for instance in made.up.instances(name)] == [1, 1]
    made.scale(name, 1)
    for answer in answers:
        assert sum(len(part["PayloadPart"]["Bytes"]) for part in answer["Body"]) == 4800


def test_routing_prefers_the_idle_instance(made: Made) -> None:
    name = made.endpoint(made.config(count=2))
    made.settled(name)
    runtime = made.up.client("sagemaker-runtime")
    playing = runtime.invoke_endpoint_with_response_stream(EndpointName=name, Body=b'{"pieces": 40, "gap_s": 0.02}')
    for _ in range(6):
        runtime.invoke_endpoint(EndpointName=name, Body=b"{}")["Body"].read()
    traces = [trace for trace in made.up.truth("requests") if trace["endpoint"] == name]
    assert {trace["instance"] for trace in traces[1:]} != {traces[0]["instance"]}
    assert len({trace["instance"] for trace in traces[1:]}) == 1
    list(playing["Body"])


def test_an_update_replaces_the_fleet_and_keeps_the_count_when_asked(made: Made) -> None:
    old, new = made.config(STUB_NOTE="old"), made.config(count=1, STUB_NOTE="new")
    name = made.endpoint(old)
    made.settled(name)
    made.scale(name, 2)
    made.settled(name)
    before = {instance["id"] for instance in made.up.instances(name)}
    made.sagemaker.update_endpoint(EndpointName=name, EndpointConfigName=new, RetainAllVariantProperties=True)
    pending = made.describe(name)
    assert pending["EndpointConfigName"] == old
    assert pending["PendingDeploymentSummary"]["EndpointConfigName"] == new
    after = made.settled(name)
    assert after["EndpointConfigName"] == new
    assert made.counts(name) == (2, 2)
    assert before.isdisjoint({instance["id"] for instance in made.up.instances(name)})
    made.sagemaker.update_endpoint(EndpointName=name, EndpointConfigName=old)
    made.settled(name)
    assert made.counts(name) == (1, 1)


def test_a_failed_update_rolls_back(made: Made) -> None:
    good, sick = made.config(), made.config(STUB_PING="503")
    name = made.endpoint(good)
    made.settled(name)
    made.up.fault("unhealthy", after_s=0.5)
    made.sagemaker.update_endpoint(EndpointName=name, EndpointConfigName=sick)
    after = made.settled(name)
    assert after["EndpointStatus"] == "InService"
    assert after["EndpointConfigName"] == good
    assert "did not pass the ping health check" in after["FailureReason"]


def test_a_creation_that_fails(made: Made) -> None:
    made.up.fault("unhealthy", after_s=0.3)
    found = made.settled(made.endpoint(made.config()))
    assert found["EndpointStatus"] == "Failed"
    assert "did not pass the ping health check" in found["FailureReason"]


@pytest.mark.parametrize(
    ("fault", "parameters", "reason"),
    [
        ("no-capacity", {"after_s": 0.3}, "capacity"),
        ("unhealthy", {"after_s": 0.3}, "ping health check"),
        ("rollback", {}, "rolled back"),
    ],
)
def test_a_scale_out_that_fails_puts_the_count_back(
    made: Made, fault: str, parameters: dict[str, Any], reason: str
) -> None:
    name = made.endpoint(made.config())
    made.settled(name)
    made.up.fault(fault, **parameters)
    made.scale(name, 2)
    after = made.settled(name)
    assert after["EndpointStatus"] == "InService"
    assert reason in after["FailureReason"]
    assert made.counts(name) == (1, 1)


def test_a_quota_refuses_at_once(made: Made) -> None:
    name = made.endpoint(made.config(instance_type="ml.g5.2xlarge"))
    made.settled(name)
    made.up.fault("quota", value=1)
    code, message = refused(made.scale, name, 2)
    assert code == "ResourceLimitExceeded"
    assert "'ml.g5.2xlarge for endpoint usage' is 1 Instances" in message
    assert "current utilization of 1 Instances and a request delta of 1 Instances" in message
    quotas = made.up.client("service-quotas").list_service_quotas(ServiceCode="sagemaker")["Quotas"]
    [quota] = [each for each in quotas if each["QuotaName"] == "ml.g5.xlarge for endpoint usage"]
    assert (quota["QuotaCode"], quota["Value"]) == ("L-1928E07B", 1.0)
    assert made.counts(name) == (1, 1)


def test_a_crashed_container_starts_again(made: Made) -> None:
    name = made.endpoint(made.config())
    made.settled(name)
    with pytest.raises(ClientError, match="ModelError"):
        made.up.client("sagemaker-runtime").invoke_endpoint(EndpointName=name, Body=b'{"exit": true}')
    [instance] = made.up.instances(name)
    until(
        lambda: any(
            event["instance"] == instance["id"] and event["event"] == "container_exited"
            for event in made.up.truth("events")
        )
    )
    until(lambda: [each["state"] for each in made.up.instances(name)] == ["InService"])
    assert made.counts(name) == (1, 1)
    assert made.describe(name)["EndpointStatus"] == "InService"


def test_a_crash_under_load_takes_what_it_holds_and_no_more(made: Made) -> None:
    name = made.endpoint(made.config(count=2))
    made.settled(name)
    runtime = made.up.client("sagemaker-runtime")
    made.up.fault("crash", in_flight=2)
    playing = [
        runtime.invoke_endpoint_with_response_stream(EndpointName=name, Body=b'{"pieces": 15, "gap_s": 0.1}')
        for _ in range(2)
    ]
    with pytest.raises(ClientError, match="ModelError"):
        runtime.invoke_endpoint_with_response_stream(EndpointName=name, Body=b"{}")
    ends = [_ends_well(answer) for answer in playing]
    assert sorted(ends) == [False, True]
    assert runtime.invoke_endpoint(EndpointName=name, Body=b"{}")["Body"].read()


def _ends_well(answer: Any) -> bool:
    try:
        list(answer["Body"])
    except EventStreamError:
        return False
    return True


def test_deletion_is_complete(made: Made) -> None:
    name = made.endpoint(made.config())
    found = made.settled(name)
    made.sagemaker.add_tags(ResourceArn=found["EndpointArn"], Tags=[{"Key": "k", "Value": "v"}])
    pids = [instance["pid"] for instance in made.up.instances(name)]
    made.sagemaker.delete_endpoint(EndpointName=name)
    until(lambda: all(endpoint["name"] != name for endpoint in made.up.truth("state")["endpoints"]))
    assert refused(made.describe, name)[0] == "ValidationException"
    assert not [pid for pid in pids if _alive(pid)]
    assert made.sagemaker.list_tags(ResourceArn=found["EndpointArn"])["Tags"] == []


def _alive(pid: int) -> bool:
    from rehearsal.state import start_ticks

    return start_ticks(pid) > 0


@pytest.mark.parametrize(
    ("call", "arguments", "message"),
    [
        ("describe_endpoint", {"EndpointName": "nowhere"}, "Could not find endpoint"),
        ("describe_endpoint_config", {"EndpointConfigName": "nowhere"}, "Could not find endpoint configuration"),
        ("describe_model", {"ModelName": "nowhere"}, "Could not find model"),
        ("create_endpoint", {"EndpointName": "x", "EndpointConfigName": "nowhere"}, "Could not find"),
        ("create_endpoint", {"EndpointName": ENDPOINT, "EndpointConfigName": "nowhere"}, "already existing endpoint"),
        (
            "update_endpoint_weights_and_capacities",
            {
                "EndpointName": ENDPOINT,
                "DesiredWeightsAndCapacities": [{"VariantName": "other", "DesiredInstanceCount": 1}],
            },
            "is/are not present",
        ),
        (
            "create_endpoint_config",
            {
                "EndpointConfigName": "bad",
                "ProductionVariants": [{"VariantName": "v", "ModelName": "m", "InstanceType": "ml.huge"}],
            },
            "Member must satisfy enum value set",
        ),
        (
            "create_model",
            {"ModelName": "under_score", "ExecutionRoleArn": "arn:aws:iam::123456789012:role/execution"},
            "Member must satisfy regular expression pattern",
        ),
    ],
)
def test_refusals(seeded: Up, call: str, arguments: dict[str, Any], message: str) -> None:
    code, said = refused(getattr(seeded.client("sagemaker"), call), **arguments)
    assert code == "ValidationException"
    assert message in said


def test_an_action_outside_the_rehearsal_is_a_400(seeded: Up) -> None:
    with pytest.raises(ClientError) as caught:
        seeded.client("sagemaker").list_domains()
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400
    assert caught.value.response["Error"]["Code"] == "UnknownOperationException"


def test_lists_filter_and_page(made: Made) -> None:
    names = [made.config() for _ in range(3)]
    listed = made.sagemaker.list_endpoint_configs(NameContains="made-", MaxResults=2, SortBy="CreationTime")
    assert [each["EndpointConfigName"] for each in listed["EndpointConfigs"]] == [names[2], names[1]]
    more = made.sagemaker.list_endpoint_configs(
        NameContains="made-", MaxResults=2, SortBy="CreationTime", NextToken=listed["NextToken"]
    )
    assert more["EndpointConfigs"][0]["EndpointConfigName"] == names[0]
    assert names[0] in [each["ModelName"] for each in made.sagemaker.list_models(NameContains="made-")["Models"]]
    assert [each["EndpointName"] for each in made.sagemaker.list_endpoints(NameContains=ENDPOINT)["Endpoints"]] == [
        ENDPOINT
    ]


def test_a_scaled_variant_keeps_its_instance_type(made: Made) -> None:
    name = made.endpoint(made.config())
    made.settled(name)
    target = {
        "ServiceNamespace": "sagemaker",
        "ResourceId": f"endpoint/{name}/variant/{VARIANT}",
        "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
    }
    scaling = made.up.client("application-autoscaling")
    scaling.register_scalable_target(**target, MinCapacity=1, MaxCapacity=2)
    other = made.config(instance_type="ml.g5.2xlarge")
    code, message = refused(made.sagemaker.update_endpoint, EndpointName=name, EndpointConfigName=other)
    assert code == "ValidationException"
    assert "must be deregistered as scalable targets" in message
    scaling.deregister_scalable_target(**target)
    made.sagemaker.update_endpoint(EndpointName=name, EndpointConfigName=other)
    made.settled(name)


def test_throttled_calls_say_so(seeded: Up, faults: Callable[..., None]) -> None:
    faults("throttle", count=2, action="DescribeEndpoint")
    describe = seeded.client("sagemaker").describe_endpoint
    assert refused(describe, EndpointName=ENDPOINT)[0] == "ThrottlingException"
    assert seeded.client("sagemaker").list_endpoints()["Endpoints"]
    assert refused(describe, EndpointName=ENDPOINT)[0] == "ThrottlingException"
    assert describe(EndpointName=ENDPOINT)["EndpointStatus"] == "InService"


def test_logs_of_an_instance_carry_its_stages(seeded: Up) -> None:
    [instance] = seeded.instances()
    logs = seeded.client("logs")
    group = f"/aws/sagemaker/Endpoints/{ENDPOINT}"
    [stream] = logs.describe_log_streams(logGroupName=group, logStreamNamePrefix=f"{VARIANT}/{instance['id']}")[
        "logStreams"
    ]

    events = logs.get_log_events(logGroupName=group, logStreamName=stream["logStreamName"], startFromHead=True)
    lines = [event["message"] for event in events["events"]]
    assert lines[0] == "Starting the container"
    assert [line.split()[2] for line in lines if line.startswith("=== STAGE")] == ["container_started", "warmup_done"]
    assert "environment seeded" in lines


def test_late_logs_keep_their_time(made: Made) -> None:
    made.up.fault("late-logs", delay_s=1.0)
    name = made.endpoint(made.config())
    made.settled(name)
    logs = made.up.client("logs")
    group = f"/aws/sagemaker/Endpoints/{name}"

    def read() -> list[dict[str, Any]]:
        found = logs.describe_log_groups(logGroupNamePrefix=group)["logGroups"]
        return logs.filter_log_events(logGroupName=group)["events"] if found else []

    event = until(read)[0]
    assert event["ingestionTime"] - event["timestamp"] >= 900
