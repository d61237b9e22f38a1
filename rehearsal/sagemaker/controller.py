"""Moves endpoints from Creating, Updating and Deleting to where they end up, as their instances come and go."""

from __future__ import annotations

import asyncio

from rehearsal.sagemaker.endpoints import Deployment, Endpoint, Endpoints

TICK_S = 0.05


class Controller:
    """Looks at every endpoint a few times a second."""

    def __init__(self, endpoints: Endpoints) -> None:
        self._endpoints = endpoints

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            for endpoint in list(self._endpoints.all.values()):
                self.step(endpoint)
            await asyncio.sleep(TICK_S)

    def step(self, endpoint: Endpoint) -> None:
        """One look at one endpoint."""
        if endpoint.status == "Deleting":
            self._delete(endpoint)
        elif endpoint.status == "Creating":
            self._create(endpoint)
        elif endpoint.status == "RollingBack":
            endpoint.become("InService")
        elif endpoint.pending is not None:
            self._replace(endpoint, endpoint.pending)
        elif endpoint.status == "Updating":
            self._scale(endpoint)

    def _delete(self, endpoint: Endpoint) -> None:
        _retire(endpoint.live)
        if not any(fleet.leaving for fleet in endpoint.live.fleets):
            self._endpoints.remove(endpoint)

    def _create(self, endpoint: Endpoint) -> None:
        _adjust(endpoint.live)
        if reason := _failure(endpoint.live):
            _retire(endpoint.live)
            endpoint.become("Failed", reason)
        elif _settled(endpoint.live):
            endpoint.become("InService")

    def _replace(self, endpoint: Endpoint, pending: Deployment) -> None:
        """Blue/green: the new fleet comes up beside the old one, which serves until then."""
        _adjust(pending)
        if reason := _failure(pending):
            _retire(pending)
            endpoint.pending = None
            endpoint.become("RollingBack", reason)
        elif _settled(pending):
            old, endpoint.live, endpoint.pending = endpoint.live, pending, None
            _retire(old)
            endpoint.become("InService")

    def _scale(self, endpoint: Endpoint) -> None:
        _adjust(endpoint.live)
        if reason := _failure(endpoint.live):
            for fleet in endpoint.live.fleets:
                fleet.desired = endpoint.counts_before.get(fleet.variant, fleet.desired)
                fleet.retire_failed()
                fleet.adjust()
            endpoint.become("RollingBack", reason)
        elif _settled(endpoint.live):
            endpoint.become("InService")


def _adjust(deployment: Deployment) -> None:
    for fleet in deployment.fleets:
        fleet.adjust()


def _settled(deployment: Deployment) -> bool:
    return all(fleet.settled for fleet in deployment.fleets)


def _failure(deployment: Deployment) -> str | None:
    return next((fleet.failure for fleet in deployment.fleets if fleet.failure), None)


def _retire(deployment: Deployment) -> None:
    for fleet in deployment.fleets:
        fleet.retire_all()
