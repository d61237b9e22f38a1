"""/_rehearsal/: what really happened, and the faults."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from aiohttp import web

from rehearsal.errors import UsageError
from rehearsal.faults import KINDS, Faults
from rehearsal.fleet.variant import Fleet
from rehearsal.record import Record
from rehearsal.sagemaker.endpoints import Deployment, Endpoint, Endpoints
from rehearsal.settings import Settings

PREFIX = "/_rehearsal"


class Admin:
    """Read-only but for the faults."""

    def __init__(self, settings: Settings, endpoints: Endpoints, record: Record, faults: Faults) -> None:
        self._settings = settings
        self._endpoints = endpoints
        self._record = record
        self._faults = faults

    def add_routes(self, app: web.Application) -> None:
        """Below the prefix."""
        app.router.add_get(f"{PREFIX}/state", self._state)
        app.router.add_get(f"{PREFIX}/requests", self._requests)
        app.router.add_get(f"{PREFIX}/samples", self._samples)
        app.router.add_get(f"{PREFIX}/events", self._events)
        app.router.add_get(f"{PREFIX}/faults", self._list_faults)
        app.router.add_put(f"{PREFIX}/faults/{{name}}", self._set_fault)
        app.router.add_delete(f"{PREFIX}/faults", self._clear_fault)
        app.router.add_delete(f"{PREFIX}/faults/{{name}}", self._clear_fault)

    async def _state(self, _: web.Request) -> web.Response:
        return web.json_response(
            {
                "settings": asdict(self._settings),
                "connections": self._record.connections,
                "faults": self._faults.active(),
                "endpoints": [_endpoint(endpoint) for endpoint in self._endpoints.all.values()],
            }
        )

    async def _requests(self, request: web.Request) -> web.Response:
        return web.json_response(self._record.requests_since(int(request.query.get("after", 0))))

    async def _samples(self, request: web.Request) -> web.Response:
        after_ns = int(request.query.get("after_ns", 0))
        return web.json_response([asdict(each) for each in self._record.samples if each.at_ns > after_ns])

    async def _events(self, request: web.Request) -> web.Response:
        after_ns = int(request.query.get("after_ns", 0))
        return web.json_response([asdict(each) for each in self._record.events if each.at_ns > after_ns])

    async def _list_faults(self, _: web.Request) -> web.Response:
        known = {name: {"does": kind.does, "parameters": dict(kind.parameters)} for name, kind in KINDS.items()}
        return web.json_response({"known": known, "active": self._faults.active()})

    async def _set_fault(self, request: web.Request) -> web.Response:
        given: dict[str, Any] = await request.json() if request.can_read_body else {}
        try:
            self._faults.set(request.match_info["name"], {key: str(value) for key, value in given.items()})
        except UsageError as error:
            return web.json_response({"message": error.message, "hint": error.hint}, status=400)
        return web.json_response(self._faults.active())

    async def _clear_fault(self, request: web.Request) -> web.Response:
        self._faults.clear(request.match_info.get("name"))
        return web.json_response(self._faults.active())


def _endpoint(endpoint: Endpoint) -> dict[str, Any]:
    deployments: list[Deployment] = [each for each in (endpoint.live, endpoint.pending) if each]
    return {
        "name": endpoint.name,
        "status": endpoint.status,
        "failure_reason": endpoint.failure_reason,
        "config": endpoint.live.config_name,
        "variants": [_fleet(fleet) for deployment in deployments for fleet in deployment.fleets],
    }


def _fleet(fleet: Fleet) -> dict[str, Any]:
    return {
        "name": fleet.variant,
        "desired": fleet.desired,
        "current": fleet.current,
        "routing": fleet.routing,
        "leaving": len(fleet.leaving),
        "instances": [
            {
                "id": instance.id,
                "state": instance.state.value,
                "failure": instance.failure,
                "in_flight": instance.load.in_flight,
                "port": instance.container.port if instance.container else None,
                "pid": instance.container.pid if instance.container else None,
            }
            for instance in fleet.instances
        ],
    }
