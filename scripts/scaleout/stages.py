"""The stages of one scale-out as they were seen, their durations and shares."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise

from planner.artifacts.ttotal import STAGES, Stage, StageDuration
from scripts.aws.logs import LogLine, parse_marker

# Seconds from the stage before, in the one published run (ml.g5.xlarge, first scale-out of a new image).
TYPICAL_S = {
    "instance_logging": 180.8,
    "container_started": 3.7,
    "framework_init": 0.1,
    "weights_ready": 6.5,
    "warmup_done": 1.0,
    "in_service": 20.7,
    "first_traffic": 5.0,
    "traffic_recovered": 47.4,
}
_FROM_CONTAINER = frozenset({"container_started", "framework_init", "weights_ready", "warmup_done"})


@dataclass
class StageLog:
    """Collects moments; the first sighting of a stage counts."""

    seen: dict[str, Stage] = field(default_factory=dict)
    _by_stream: dict[str, dict[str, Stage]] = field(default_factory=dict)

    def add(self, name: str, at: datetime, source: str, *, bounded: bool = False) -> None:
        """A stage that an API reported."""
        self.seen.setdefault(name, Stage(name=name, at=at, source=source, bounded=bounded))

    def add_lines(self, lines: Iterable[LogLine]) -> None:
        """Lines of new instances: the first line of a stream, and the container's own markers."""
        for line in lines:
            stream = self._by_stream.setdefault(line.stream, {})
            first = Stage(name="instance_logging", at=line.at, source="logs", bounded=True)
            stream.setdefault("instance_logging", first)
            marker = parse_marker(line.message)
            if marker and marker.name in _FROM_CONTAINER:
                stream.setdefault(marker.name, Stage(name=marker.name, at=marker.at, source="container"))

    @property
    def waiting_for(self) -> str:
        """The next stage that nobody has seen yet."""
        seen = {stage.name for stage in self.stages()}
        reached = max((STAGES.index(name) for name in seen), default=0)
        return next((name for name in STAGES[reached + 1 :] if name not in seen), STAGES[-1])

    def since(self, default: datetime) -> datetime:
        """When the latest stage was reached."""
        return max((stage.at for stage in self.stages()), default=default)

    def stages(self) -> list[Stage]:
        """In order. A bound that lies after a later stage moves back to it: it cannot have been later."""
        merged = self.seen | self._best_stream()
        ordered = [merged[name] for name in STAGES if name in merged]
        for index in range(len(ordered) - 2, -1, -1):
            later = ordered[index + 1]
            if ordered[index].bounded and ordered[index].at > later.at:
                ordered[index] = ordered[index].model_copy(update={"at": later.at})
        return sorted(ordered, key=lambda stage: stage.at)

    def _best_stream(self) -> dict[str, Stage]:
        """The instance that came furthest; of equals the first, its clock started the wait."""
        streams = sorted(self._by_stream.values(), key=lambda stages: stages["instance_logging"].at)
        return max(streams, key=len, default={})


def durations(stages: list[Stage]) -> list[StageDuration]:
    """Between neighbours; shares sum to 100."""
    total_s = (stages[-1].at - stages[0].at).total_seconds() if len(stages) > 1 else 0.0
    if total_s <= 0:
        return []
    spans = [(a.name, b.name, (b.at - a.at).total_seconds()) for a, b in pairwise(stages)]
    return [
        StageDuration(start=start, end=end, seconds=seconds, share_pct=100 * seconds / total_s)
        for start, end, seconds in spans
    ]


def dominant(parts: list[StageDuration]) -> str | None:
    """The longest one, as ``start → end``."""
    longest = max(parts, key=lambda part: part.seconds, default=None)
    return f"{longest.start} → {longest.end}" if longest else None
