"""A closed loop against one server, with its health checked all the while."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass

import aiohttp

from bench.engine import CORPUS
from bench.peers.designs import Design
from loadtest.stats import nearest_rank

TEXTS = tuple(text for text in CORPUS if 25 <= len(text) <= 60)
BYTES_PER_S = 48_000
PING_EVERY_S = 0.1


@dataclass(frozen=True, slots=True)
class Answer:
    first_byte_s: float
    audio_s: float


@dataclass(frozen=True, slots=True)
class Cell:
    """One design at one concurrency."""

    design: str
    concurrency: int
    answers: tuple[Answer, ...]
    health_s: tuple[float, ...]
    """How long each health check took."""
    elapsed_s: float

    def __add__(self, other: Cell) -> Cell:
        """Another round of the same."""
        return Cell(
            self.design,
            self.concurrency,
            self.answers + other.answers,
            self.health_s + other.health_s,
            self.elapsed_s + other.elapsed_s,
        )

    @property
    def rps(self) -> float:
        return len(self.answers) / self.elapsed_s

    @property
    def audio_s_per_s(self) -> float:
        return sum(answer.audio_s for answer in self.answers) / self.elapsed_s

    def ttfb_ms(self, q: float) -> float:
        return 1e3 * nearest_rank(sorted(answer.first_byte_s for answer in self.answers), q)


async def speak(client: aiohttp.ClientSession, design: Design, text: str) -> Answer:
    began_s = time.monotonic()
    first_s, received = 0.0, 0
    async with client.post(design.url + design.speech, json=design.asks(text)) as response:
        response.raise_for_status()
        async for piece in response.content.iter_any():
            first_s = first_s or time.monotonic() - began_s
            received += len(piece)
    return Answer(first_s, received / BYTES_PER_S)


async def closed_loop(
    client: aiohttp.ClientSession, design: Design, callers: int, seconds: float, texts: Iterator[str]
) -> Cell:
    """Every caller has one request outstanding until the time is up; what is under way then still counts."""
    answers, health_s = list[Answer](), list[float]()
    over = asyncio.Event()
    began_s = time.monotonic()

    async def caller() -> None:
        for text in texts:
            answers.append(await speak(client, design, text))
            if time.monotonic() - began_s >= seconds:
                return

    async def pinger() -> None:
        while not over.is_set():
            asked_s = time.monotonic()
            async with client.get(design.url + design.health) as response:
                response.raise_for_status()
            health_s.append(time.monotonic() - asked_s)
            await asyncio.sleep(PING_EVERY_S)

    watching = asyncio.create_task(pinger())
    await asyncio.gather(*(caller() for _ in range(callers)))
    elapsed_s = time.monotonic() - began_s
    over.set()
    await watching
    return Cell(design.name, callers, tuple(answers), tuple(health_s), elapsed_s)
