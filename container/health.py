"""What /ping may say: loading, ready, or dead for a reason."""

from __future__ import annotations

from container.engine.base import Engine
from container.errors import RequestError, unavailable
from container.logs import log


class Health:
    """Ready only after a real synthesis succeeded, and never again after the engine died."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._warm = False
        self.loading = False
        self.dead: str | None = None

    def warm(self) -> None:
        self._warm = True

    def die(self, reason: str) -> None:
        if self.dead is None:
            self.dead = reason
            log.error("engine_dead", extra={"fields": {"reason": reason}})

    @property
    def ready_once(self) -> bool:
        return self._warm

    @property
    def ready(self) -> bool:
        return self._warm and self.dead is None and self._engine.alive()

    def refusal(self) -> RequestError | None:
        """Why a request cannot be served now; None when it can."""
        if self.ready:
            return None
        if self.dead is not None or self._warm:
            return unavailable("engine_dead", "the speech engine has failed; this container will be replaced", 5)
        return unavailable("not_ready", "the model is still loading", 5)
