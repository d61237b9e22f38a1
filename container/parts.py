"""The container's parts, made once and handed to both surfaces."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from aiohttp import web

from container.accounting import Account, Accounts
from container.admission import Admission, Slot
from container.engine.base import Engine
from container.errors import RequestError
from container.health import Health
from container.metrics import Metrics
from container.order import Deadline, Fifo
from container.request import SpeechRequest, parse_request
from container.scheduler import Scheduler
from container.segmentation import in_one, segment
from container.settings import Settings
from container.synthesis import Synthesis


class Session(Protocol):
    """An open bidirectional stream, as far as draining cares."""

    def end(self, code: int, reason: bytes) -> None:
        """Close when what was asked for has been spoken."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Event-loop objects; make them inside the loop."""

    settings: Settings
    engine: Engine
    health: Health
    admission: Admission
    scheduler: Scheduler
    synthesis: Synthesis
    metrics: Metrics
    accounts: Accounts
    sessions: set[Session]
    """Open WebSocket sessions."""
    boot_id: str

    def refusal(self) -> RequestError | None:
        """Why nobody can be served now; None when this container is up."""
        return self.health.refusal() or self.admission.refusal()

    def admit(self, account: Account) -> Slot:
        """A slot when this container can serve at all and has room."""
        if refusal := self.health.refusal():
            raise refusal
        account.admitted_s = time.monotonic()
        return self.admission.admit()

    def parse(self, fields: dict[str, Any]) -> SpeechRequest:
        voices = self.engine.voices()
        return parse_request(
            fields,
            voices=voices,
            default_voice=self.settings.default_voice or voices[0],
            max_text_chars=self.settings.max_text_chars,
        )

    def attributes(self, slot: Slot, account: Account, service_s: float) -> str:
        """What SageMaker forwards to the client in X-Amzn-SageMaker-Custom-Attributes."""
        wait_ms = (account.wait_s or 0.0) * 1000
        return (
            f"boot_id={self.boot_id};queue_depth={slot.depth};wait_ms={wait_ms:.3f};service_ms={service_s * 1000:.3f}"
        )


PARTS = web.AppKey("parts", Parts)


def assemble(settings: Settings, engine: Engine) -> Parts:
    health = Health(engine)
    admission = Admission(settings.max_queue_depth, settings.retry_after_s)
    fifo = settings.scheduler == "fifo"
    order = Fifo() if fifo else Deadline(settings.starvation_s, settings.first_delay_bound_s)
    sessions: set[Session] = set()
    metrics = Metrics(
        depth=lambda: admission.depth,
        waiting=lambda: scheduler.waiting,
        running=lambda: scheduler.running,
        sessions=lambda: len(sessions),
        ready=lambda: health.ready,
    )
    scheduler = Scheduler(engine, order, on_dead=health.die, on_batch=metrics.batch)
    return Parts(
        settings=settings,
        engine=engine,
        health=health,
        admission=admission,
        scheduler=scheduler,
        synthesis=Synthesis(engine, scheduler, in_one if fifo else partial(segment, first=settings.first_piece_chars)),
        metrics=metrics,
        accounts=Accounts(metrics),
        sessions=sessions,
        boot_id=uuid.uuid4().hex[:12],
    )
