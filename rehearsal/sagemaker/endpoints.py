"""Endpoints: what callers may do to them and what DescribeEndpoint says."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from rehearsal.aws.service import ApiError, Operation, Params
from rehearsal.fleet.instance import Spec, Surroundings
from rehearsal.fleet.variant import Fleet
from rehearsal.sagemaker.catalog import Catalog
from rehearsal.sagemaker.listing import listed
from rehearsal.sagemaker.names import already_exists, arn, not_found
from rehearsal.sagemaker.quota import Quotas

STARTUP_TIMEOUT_S = 600.0
"""SageMaker's default when the variant names none."""
DEFAULT_INSTANCE_TYPE = "ml.m5.large"

ScalingRegistration = Callable[[str, str], bool]
"""Whether (endpoint, variant) is a registered scalable target."""


@dataclass(eq=False)
class Deployment:
    """An endpoint configuration turned into fleets."""

    config_name: str
    fleets: list[Fleet]
    started_s: float = field(default_factory=time.time)


@dataclass(eq=False)
class Endpoint:
    """One endpoint; its controller moves it from state to state."""

    name: str
    arn: str
    status: str
    live: Deployment
    """What serves, or what is being created."""
    pending: Deployment | None = None
    """What an update is bringing up."""
    failure_reason: str | None = None
    created_s: float = field(default_factory=time.time)
    modified_s: float = field(default_factory=time.time)
    deployment_config: Params | None = None
    counts_before: dict[str, int] = field(default_factory=dict)
    """Desired counts to fall back to when a scale-out fails."""

    def fleet(self, variant: str) -> Fleet | None:
        """The live fleet of a variant."""
        return next((fleet for fleet in self.live.fleets if fleet.variant == variant), None)

    def become(self, status: str, failure_reason: str | None = None) -> None:
        """Change status; a reason given earlier stays until the next update begins."""
        self.status = status
        self.modified_s = time.time()
        self.failure_reason = failure_reason or self.failure_reason


class Endpoints:
    """The store behind the endpoint operations."""

    def __init__(self, catalog: Catalog, quotas: Quotas, around: Surroundings, is_scaled: ScalingRegistration) -> None:
        self._catalog = catalog
        self._quotas = quotas
        self._around = around
        self._is_scaled = is_scaled
        self.all: dict[str, Endpoint] = {}

    def operations(self) -> dict[str, Operation]:
        """By AWS's names."""
        return {
            "CreateEndpoint": self._create,
            "DescribeEndpoint": lambda params: self._describe(self.get(params["EndpointName"])),
            "ListEndpoints": self._list,
            "UpdateEndpoint": self._update,
            "UpdateEndpointWeightsAndCapacities": self._update_counts,
            "DeleteEndpoint": self._delete,
        }

    def get(self, name: str) -> Endpoint:
        """An endpoint that exists."""
        if name not in self.all:
            raise not_found("endpoint", self._arn(name))
        return self.all[name]

    def remove(self, endpoint: Endpoint) -> None:
        """A deletion is complete."""
        del self.all[endpoint.name]
        self._catalog.forget_tags(endpoint.arn)

    def set_desired(self, name: str, variant: str, desired: int) -> None:
        """What Application Auto Scaling calls."""
        counts = [{"VariantName": variant, "DesiredInstanceCount": desired}]
        self._update_counts({"EndpointName": name, "DesiredWeightsAndCapacities": counts})

    def _arn(self, name: str) -> str:
        return arn(self._around.settings.region, "endpoint", name)

    def _create(self, params: Params) -> Params:
        name = params["EndpointName"]
        if name in self.all:
            raise already_exists("endpoint", self._arn(name))
        deployment = self._deploy(name, params["EndpointConfigName"], {})
        self._quotas.check(self._running(), {}, deployment.fleets)
        self.all[name] = Endpoint(
            name, self._arn(name), "Creating", deployment, deployment_config=params.get("DeploymentConfig")
        )
        self._catalog.tag(self._arn(name), params.get("Tags"))
        return {"EndpointArn": self._arn(name)}

    def _update(self, params: Params) -> Params:
        endpoint = self._changeable(params["EndpointName"])
        retained = {}
        if params.get("RetainAllVariantProperties"):
            excluded = {item["VariantPropertyType"] for item in params.get("ExcludeRetainedVariantProperties", [])}
            if "DesiredInstanceCount" not in excluded:
                retained = {fleet.variant: fleet.desired for fleet in endpoint.live.fleets}
        deployment = self._deploy(endpoint.name, params["EndpointConfigName"], retained)
        self._refuse_scaled_changes(endpoint, deployment)
        self._quotas.check(self._running(), {}, deployment.fleets)
        endpoint.pending = deployment
        endpoint.failure_reason = None
        endpoint.deployment_config = params.get("DeploymentConfig") or endpoint.deployment_config
        endpoint.become("Updating")
        return {"EndpointArn": endpoint.arn}

    def _update_counts(self, params: Params) -> Params:
        endpoint = self._changeable(params["EndpointName"])
        changes: list[tuple[Fleet, Params]] = []
        for change in params["DesiredWeightsAndCapacities"]:
            fleet = endpoint.fleet(change["VariantName"])
            if fleet is None:
                raise ApiError(
                    "ValidationException",
                    f'The variant name(s) "{change["VariantName"]}" is/are not present within endpoint configuration '
                    f'"{endpoint.live.config_name}".',
                )
            if change.get("DesiredInstanceCount") == 0:
                raise ApiError("ValidationException", "The desired instance count of a variant must be at least 1.")
            changes.append((fleet, change))
        wanted = {fleet.variant: change.get("DesiredInstanceCount", fleet.desired) for fleet, change in changes}
        self._quotas.check(self._running(), wanted, [fleet for fleet, _ in changes])
        endpoint.counts_before = {fleet.variant: fleet.desired for fleet in endpoint.live.fleets}
        for fleet, change in changes:
            fleet.desired = change.get("DesiredInstanceCount", fleet.desired)
            fleet.weight = change.get("DesiredWeight", fleet.weight)
        endpoint.failure_reason = None
        endpoint.become("Updating")
        return {"EndpointArn": endpoint.arn}

    def _delete(self, params: Params) -> Params:
        endpoint = self.get(params["EndpointName"])
        if endpoint.status in ("Creating", "Updating", "RollingBack"):
            raise ApiError("ValidationException", f'Cannot update in-progress endpoint "{endpoint.arn}".')
        endpoint.become("Deleting")
        return {}

    def _list(self, params: Params) -> Params:
        return listed(params, "Endpoints", "Endpoint", map(self._describe, self.all.values()))

    def _changeable(self, name: str) -> Endpoint:
        endpoint = self.get(name)
        if endpoint.status not in ("InService", "Failed"):
            raise ApiError("ValidationException", f'Cannot update in-progress endpoint "{endpoint.arn}".')
        return endpoint

    def _refuse_scaled_changes(self, endpoint: Endpoint, deployment: Deployment) -> None:
        """A registered variant can neither vanish nor change its instance type."""
        after = {fleet.variant: fleet.spec.instance_type for fleet in deployment.fleets}
        stuck = [
            fleet.variant
            for fleet in endpoint.live.fleets
            if after.get(fleet.variant) != fleet.spec.instance_type and self._is_scaled(endpoint.name, fleet.variant)
        ]
        if stuck:
            raise ApiError(
                "ValidationException",
                f'The variant(s) "{", ".join(stuck)}" must be deregistered as scalable targets with AWS Auto Scaling '
                "before they can be removed or have their instance type updated.",
            )

    def _running(self) -> list[Fleet]:
        deployments = [
            each for endpoint in self.all.values() for each in (endpoint.live, endpoint.pending) if each is not None
        ]
        return [fleet for deployment in deployments for fleet in deployment.fleets]

    def _deploy(self, endpoint: str, config_name: str, desired: dict[str, int]) -> Deployment:
        config = self._catalog.config(config_name)
        fleets = [
            Fleet(
                endpoint=endpoint,
                variant=variant["VariantName"],
                spec=self._spec(variant),
                around=self._around,
                desired=desired.get(variant["VariantName"], variant.get("InitialInstanceCount", 1)),
                weight=variant["InitialVariantWeight"],
                routing=variant.get("RoutingConfig", {}).get("RoutingStrategy", "RANDOM"),
            )
            for variant in config["ProductionVariants"]
        ]
        return Deployment(config_name, fleets)

    def _spec(self, variant: Params) -> Spec:
        model = self._catalog.model(variant["ModelName"])
        container = model.get("PrimaryContainer") or model["Containers"][0]
        return Spec(
            image=container.get("Image", ""),
            environment=dict(container.get("Environment", {})),
            instance_type=variant.get("InstanceType", DEFAULT_INSTANCE_TYPE),
            startup_timeout_s=variant.get("ContainerStartupHealthCheckTimeoutInSeconds", STARTUP_TIMEOUT_S),
        )

    def _describe(self, endpoint: Endpoint) -> Params:
        answer: Params = {
            "EndpointName": endpoint.name,
            "EndpointArn": endpoint.arn,
            "EndpointConfigName": endpoint.live.config_name,
            "EndpointStatus": endpoint.status,
            "CreationTime": endpoint.created_s,
            "LastModifiedTime": endpoint.modified_s,
        }
        if endpoint.status != "Creating":
            answer["ProductionVariants"] = _summaries(endpoint.live.fleets)
        if endpoint.failure_reason:
            answer["FailureReason"] = endpoint.failure_reason
        if endpoint.deployment_config:
            answer["LastDeploymentConfig"] = endpoint.deployment_config
        if endpoint.pending:
            answer["PendingDeploymentSummary"] = {
                "EndpointConfigName": endpoint.pending.config_name,
                "StartTime": endpoint.pending.started_s,
                "ProductionVariants": _summaries(endpoint.pending.fleets),
            }
        return answer


def _summaries(fleets: Iterable[Fleet]) -> list[Params]:
    return [
        {
            "VariantName": fleet.variant,
            "DeployedImages": [{"SpecifiedImage": fleet.spec.image, "ResolvedImage": fleet.spec.image}],
            "CurrentWeight": fleet.weight,
            "DesiredWeight": fleet.weight,
            "CurrentInstanceCount": fleet.current,
            "DesiredInstanceCount": fleet.desired,
            "RoutingConfig": {"RoutingStrategy": fleet.routing},
        }
        for fleet in fleets
    ]
