"""The rehearsal itself: everything put together on one port, until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import os
import shlex
import signal
from collections.abc import Coroutine, Sequence
from typing import Any

from aiohttp import ClientSession, ClientTimeout, TCPConnector, web

from rehearsal.admin import Admin
from rehearsal.autoscaling.registry import Registry
from rehearsal.autoscaling.scaler import Scaler
from rehearsal.aws.front import LARGEST_BODY_BYTES, ControlPlane
from rehearsal.aws.moto_bridge import MotoBridge
from rehearsal.aws.moto_repairs import repair
from rehearsal.aws.service import JsonService
from rehearsal.cloudwatch import moto_binding as cloudwatch_binding
from rehearsal.cloudwatch.alarm_book import AlarmBook
from rehearsal.cloudwatch.alarms import Evaluator
from rehearsal.cloudwatch.metric_filters import MetricFilters
from rehearsal.cloudwatch.publisher import Publisher
from rehearsal.cloudwatch.store import MetricStore
from rehearsal.codebuild import moto_binding as codebuild_binding
from rehearsal.codebuild.runs import Runs
from rehearsal.codebuild.store import CodeBuild
from rehearsal.codebuild.work import Work
from rehearsal.dataplane import tls
from rehearsal.dataplane.bidi import Bidi
from rehearsal.dataplane.connections import Connections
from rehearsal.dataplane.distort import Distorter
from rehearsal.dataplane.http2 import start as start_http2
from rehearsal.dataplane.invoke import DataPlane
from rehearsal.errors import RehearsalError
from rehearsal.faults import Faults
from rehearsal.fleet.container import COMMAND
from rehearsal.fleet.instance import Surroundings
from rehearsal.fleet.logs import LogSink
from rehearsal.record import Record
from rehearsal.sagemaker.catalog import Catalog
from rehearsal.sagemaker.controller import Controller
from rehearsal.sagemaker.endpoints import Endpoints
from rehearsal.sagemaker.quota import Quotas
from rehearsal.settings import Settings
from rehearsal.state import Running, StateDir

log = logging.getLogger(__name__)

HOST = "127.0.0.1"
"""With ``localhost`` S3 clients go virtual-host style and fail."""
KEEPALIVE_S = 75.0
STOP_CONTAINERS_WITHIN_S = 5.0
LOOK_AFTER_STATE_EVERY_S = 2.0


class Rehearsal:
    """All parts, wired."""

    def __init__(self, settings: Settings, state: StateDir, http: ClientSession) -> None:
        faults, record = Faults(), Record()
        self.metrics = MetricStore()
        logs = LogSink(settings.region, faults, MetricFilters(settings.region, self.metrics))
        command: Sequence[str] = shlex.split(settings.command) or COMMAND
        around = Surroundings(settings, faults, record, logs, http, state, command)
        catalog = Catalog(settings.region)
        quotas = Quotas(settings, faults)
        self.alarms = AlarmBook(settings.region)
        self.registry = Registry(settings, self.alarms, self._variant_exists)
        self.endpoints = Endpoints(catalog, quotas, around, self.registry.is_registered)
        cloudwatch_binding.bind(self.metrics)
        codebuild_binding.bind(CodeBuild(settings.region, Runs(settings, Work(settings.region), logs).start))
        repair()
        self.publisher = Publisher(settings, self.metrics, self.endpoints, record, faults)
        self.controller = Controller(self.endpoints)
        self.scaler = Scaler(self.registry, self.endpoints, Evaluator(self.metrics, self.alarms))
        self.moto = MotoBridge()
        services = {
            "SageMaker": JsonService("sagemaker", {**catalog.operations(), **self.endpoints.operations()}),
            "AnyScaleFrontendService": JsonService("application-autoscaling", self.registry.operations()),
            "ServiceQuotasV20190624": JsonService("service-quotas", quotas.operations()),
        }
        self._control = ControlPlane(services, self.moto, faults)
        self._admin = Admin(settings, self.endpoints, record, faults)
        self.data = DataPlane(
            settings, self.endpoints, http, record, self.publisher, Distorter(faults), Connections(record)
        )

    def application(self) -> web.Application:
        """Data plane, admin, and everything else to the control plane."""
        app = web.Application(client_max_size=LARGEST_BODY_BYTES, handler_args={"auto_decompress": False})
        self.data.add_routes(app)
        self._admin.add_routes(app)
        app.router.add_route("*", "/{tail:.*}", self._control.handle)
        return app

    def tasks(self) -> list[Coroutine[Any, Any, None]]:
        """What runs beside the requests."""
        return [self.controller.run(), self.publisher.run(), self.scaler.run()]

    async def stop_instances(self) -> None:
        """End every container, in parallel and soon."""
        fleets = [
            fleet
            for endpoint in self.endpoints.all.values()
            for deployment in (endpoint.live, endpoint.pending)
            if deployment
            for fleet in deployment.fleets
        ]
        leaving = [task for fleet in fleets for task in fleet.leaving]
        stops = [
            instance.stop(drain_s=0, kill_after_s=STOP_CONTAINERS_WITHIN_S)
            for fleet in fleets
            for instance in fleet.instances
        ]
        await asyncio.gather(*stops)
        if leaving:
            await asyncio.wait(leaving, timeout=STOP_CONTAINERS_WITHIN_S)

    def _variant_exists(self, endpoint: str, variant: str) -> bool:
        found = self.endpoints.all.get(endpoint)
        return found is not None and found.fleet(variant) is not None


async def serve(settings: Settings, state: StateDir) -> None:
    """Run until SIGTERM or SIGINT; announce in the state directory when ready."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    connector = TCPConnector(limit=0, keepalive_timeout=KEEPALIVE_S)
    async with ClientSession(connector=connector, timeout=ClientTimeout(total=None), auto_decompress=False) as http:
        rehearsal = Rehearsal(settings, state, http)
        runner = web.AppRunner(
            rehearsal.application(), access_log=None, handler_cancellation=True, keepalive_timeout=KEEPALIVE_S
        )
        await runner.setup()
        port = await _listen(runner, settings.port)
        background = [_started(task, stop) for task in rehearsal.tasks()]
        bidi_url, bidi_ca, http2 = None, None, None
        if settings.bidi:
            identity = tls.create(state.path)
            http2 = start_http2(Bidi(rehearsal.data), identity)
            bidi_url, bidi_ca = http2.url, str(identity.bundle)
        url = f"http://{HOST}:{port}"
        state.announce(Running(os.getpid(), port, url, settings.region, bidi_url, bidi_ca))
        log.info("up at %s", url)
        background.append(_started(_until_forgotten(state, stop), stop))
        try:
            await stop.wait()
        finally:
            state.withdraw()
            for task in background:
                task.cancel()
            await asyncio.gather(*background, return_exceptions=True)
            if http2:
                await http2.close()
            await rehearsal.stop_instances()
            await runner.cleanup()
            rehearsal.moto.close()


async def _until_forgotten(state: StateDir, stop: asyncio.Event) -> None:
    """Without its state directory nobody could ever stop this process; so it stops itself."""
    while state.announces(os.getpid()):
        await asyncio.sleep(LOOK_AFTER_STATE_EVERY_S)
    log.warning("%s no longer names this process", state.path)
    stop.set()


async def _listen(runner: web.AppRunner, port: int) -> int:
    site = web.TCPSite(runner, HOST, port, backlog=4096)
    try:
        await site.start()
    except OSError as error:
        raise RehearsalError(
            f"port {port} cannot be used: {error.strerror}", "leave --port out for a free one"
        ) from None
    address = runner.addresses[0]
    return int(address[1])


def _started(task: Coroutine[Any, Any, None], stop: asyncio.Event) -> asyncio.Task[None]:
    """A background task that fails is a bug: say so, and end, since nothing works properly without it."""

    def ended(done: asyncio.Task[None]) -> None:
        if not done.cancelled() and (error := done.exception()):
            log.critical("the rehearsal failed", exc_info=error)
            stop.set()

    started = asyncio.create_task(task)
    started.add_done_callback(ended)
    return started
