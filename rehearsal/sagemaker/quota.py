"""Service quotas of endpoint instances, and SageMaker's refusal when one would be passed."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable

from rehearsal.aws.service import ApiError, Operation, Params, service_model
from rehearsal.faults import Faults
from rehearsal.fleet.variant import Fleet
from rehearsal.settings import ACCOUNT, Settings

KNOWN_CODES = {"ml.g5.xlarge": "L-1928E07B"}
"""AWS's own; the others are made up here, alike for every run."""


class Quotas:
    """How many instances of each type the account may run."""

    def __init__(self, settings: Settings, faults: Faults) -> None:
        self._settings = settings
        self._faults = faults

    def operations(self) -> dict[str, Operation]:
        """The part of Service Quotas that reads."""
        return {
            "GetServiceQuota": self._get,
            "GetAWSDefaultServiceQuota": self._get,
            "ListServiceQuotas": self._list,
            "ListAWSDefaultServiceQuotas": self._list,
        }

    @property
    def limit(self) -> int:
        """The same for every type."""
        if self._faults.on("quota"):
            return int(self._faults.number("quota", "value"))
        return self._settings.instance_quota

    def check(self, running: Iterable[Fleet], wanted: dict[str, int], changed: Iterable[Fleet]) -> None:
        """Refuse when ``changed`` fleets, at their ``wanted`` counts, would pass a quota."""
        running, changed = list(running), list(changed)
        used = Counter[str]()
        for fleet in running:
            used[fleet.spec.instance_type] += fleet.desired
        for fleet in changed:
            present = fleet.desired if fleet in running else 0
            delta = wanted.get(fleet.variant, fleet.desired) - present
            kind = fleet.spec.instance_type
            if delta > 0 and used[kind] + delta > self.limit:
                raise ApiError(
                    "ResourceLimitExceeded",
                    f"The account-level service limit '{kind} for endpoint usage' is {self.limit} Instances, with "
                    f"current utilization of {used[kind]} Instances and a request delta of {delta} Instances. Please "
                    "use AWS Service Quotas to request an increase for this quota. If AWS Service Quotas is not "
                    "available, contact AWS support to request an increase for this quota.",
                )
            used[kind] += delta

    def _get(self, params: Params) -> Params:
        _only_sagemaker(params)
        for quota in self._all():
            if quota["QuotaCode"] == params["QuotaCode"]:
                return {"Quota": quota}
        raise ApiError("NoSuchResourceException", "The request failed because the specified quota does not exist.")

    def _list(self, params: Params) -> Params:
        _only_sagemaker(params)
        return {"Quotas": self._all()}

    def _all(self) -> list[Params]:
        types = service_model("sagemaker").shape_for("ProductionVariantInstanceType").metadata["enum"]
        return [self._quota(kind) for kind in types]

    def _quota(self, instance_type: str) -> Params:
        code = quota_code(instance_type)
        return {
            "ServiceCode": "sagemaker",
            "ServiceName": "Amazon SageMaker",
            "QuotaArn": f"arn:aws:servicequotas:{self._settings.region}:{ACCOUNT}:sagemaker/{code}",
            "QuotaCode": code,
            "QuotaName": f"{instance_type} for endpoint usage",
            "Value": float(self.limit),
            "Unit": "None",
            "Adjustable": True,
            "GlobalQuota": False,
        }


def quota_code(instance_type: str) -> str:
    """AWS's code where we know it."""
    made_up = "L-" + hashlib.sha256(instance_type.encode()).hexdigest()[:8].upper()
    return KNOWN_CODES.get(instance_type, made_up)


def _only_sagemaker(params: Params) -> None:
    if params["ServiceCode"] != "sagemaker":
        raise ApiError("NoSuchResourceException", "The rehearsal has quotas of the service sagemaker only.")
