"""The instances of one production variant, and which of them takes the next request."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from rehearsal.fleet.instance import Instance, Spec, State, Surroundings
from rehearsal.fleet.load import Load

Routing = Literal["LEAST_OUTSTANDING_REQUESTS", "RANDOM"]


@dataclass(eq=False)
class Fleet:
    """Keeps as many instances as desired; the last to come is the first to go."""

    endpoint: str
    variant: str
    spec: Spec
    around: Surroundings
    desired: int
    weight: float = 1.0
    routing: Routing = "RANDOM"
    instances: list[Instance] = field(default_factory=list)
    load: Load = field(default_factory=Load)
    """Of all instances together."""
    leaving: set[asyncio.Task[None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._turn = itertools.count()

    @property
    def current(self) -> int:
        """Instances that SageMaker counts: those that came into service and were not asked to leave."""
        return sum(instance.counted for instance in self.instances)

    @property
    def settled(self) -> bool:
        """Exactly the desired instances serve."""
        return len(self.instances) == self.desired and all(instance.serving for instance in self.instances)

    @property
    def failure(self) -> str | None:
        """Why one of the instances will never serve."""
        return next((instance.failure for instance in self.instances if instance.failure), None)

    def adjust(self) -> None:
        """Launch what is missing, retire what is too much."""
        while len(self.instances) < self.desired:
            self.instances.append(Instance(self.endpoint, self.variant, self.spec, self.around))
        while len(self.instances) > self.desired:
            self._retire(self.instances.pop())

    def retire_failed(self) -> None:
        """Let go of instances that will never serve."""
        for instance in [each for each in self.instances if each.state is State.FAILED]:
            self.instances.remove(instance)
            self._retire(instance)

    def retire_all(self) -> None:
        """Let go of every instance."""
        self.desired = 0
        while self.instances:
            self._retire(self.instances.pop())

    def choose(self) -> Instance | None:
        """The instance for the next request; None when none serves. Ties take turns."""
        serving = [instance for instance in self.instances if instance.serving]
        serving = [instance for instance in serving if instance.routed] or serving
        if not serving:
            return None
        if self.routing == "RANDOM":
            return random.choice(serving)
        turn = next(self._turn)
        least = min(instance.load.in_flight for instance in serving)
        idlest = [instance for instance in serving if instance.load.in_flight == least]
        return idlest[turn % len(idlest)]

    @contextmanager
    def occupying(self, instance: Instance) -> Iterator[None]:
        """While a request is with an instance, from its routing to its last byte."""
        self.load.enter()
        instance.enter()
        try:
            yield
        finally:
            instance.load.leave()
            self.load.leave()

    def _retire(self, instance: Instance) -> None:
        task = asyncio.create_task(instance.stop())
        self.leaving.add(task)
        task.add_done_callback(self.leaving.discard)
