"""Start, first audio and schedulers side by side in one run: whole requests in turn against first audio first.

``published`` is what the published container does: float32, one whole request at a time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp

BYTES_PER_S = 48_000
SCHEDULERS = ("fifo", "deadline")
SERVERS: dict[str, dict[str, str]] = {
    "published": {"SCHEDULER": "fifo", "PRECISION": "fp32"},
    "fifo": {"SCHEDULER": "fifo"},
    "deadline": {"SCHEDULER": "deadline"},
}
PARAGRAPH = (
    "The old lighthouse keeper climbed the stairs every evening at six. He lit the lamp, checked the clock, and wrote "
    "the weather down. Ships passed without a sound. Some nights the fog was so thick that he rang the bell until the "
    "morning. Nobody ever thanked him for it. He did not mind at all. The sea, he used to say, keeps its own accounts "
    "and pays what it owes."
)
SENTENCES = (
    "The train to the coast leaves at ten past nine.",
    "We had not expected so many people on a weekday.",
    "She opened the window and listened to the rain.",
    "Nobody in the office knew where the keys had gone.",
    "It took them most of the morning to find the road again.",
    "There was bread on the table, and a note beside it.",
    "He promised to call as soon as the meeting was over.",
    "The museum is closed on Mondays, except in August.",
    "After the second bridge the valley became narrow and dark.",
    "They spoke quietly so that the children would not wake.",
)


@dataclass
class Spoken:
    """What one request was like for its caller; seconds."""

    first_audio_s: float
    total_s: float
    audio_s: float
    stalled_s: float
    """Silence in the middle for a listener who plays audio as it comes."""


@dataclass
class Load:
    """A closed loop over a fixed list of texts."""

    spoken: list[Spoken]
    elapsed_s: float
    ping_s: list[float] = field(default_factory=list)

    @property
    def p95_first_audio_s(self) -> float:
        return quantile([one.first_audio_s for one in self.spoken], 0.95)

    @property
    def audio_per_s(self) -> float:
        return sum(one.audio_s for one in self.spoken) / self.elapsed_s

    def summary(self) -> dict[str, float]:
        return {
            "requests": len(self.spoken),
            "ttfab_p50_s": quantile([one.first_audio_s for one in self.spoken], 0.5),
            "ttfab_p95_s": self.p95_first_audio_s,
            "completion_p95_s": quantile([one.total_s for one in self.spoken], 0.95),
            "audio_s_per_s": self.audio_per_s,
            "requests_per_s": len(self.spoken) / self.elapsed_s,
            "ping_max_ms": max(self.ping_s) * 1000,
        }


def quantile(values: Sequence[float], q: float) -> float:
    """Nearest rank."""
    return sorted(values)[min(len(values) - 1, int(q * len(values)))]


def corpus(requests: int, seed: int) -> list[str]:
    """Two to four sentences each: 100 to 220 characters."""
    chooser = random.Random(seed)
    return [" ".join(chooser.sample(SENTENCES, chooser.randint(2, 4))) for _ in range(requests)]


class Server:
    """One container process."""

    def __init__(self, name: str, engine: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.url = f"http://127.0.0.1:{probe.getsockname()[1]}"
        port = self.url.rpartition(":")[2]
        settings = {**SERVERS[name], "ENGINE": engine, "PORT": port, "HOST": "127.0.0.1"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "container.server", "serve"],
            env={**os.environ, "REQUEST_DEADLINE_S": "59", **settings},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    async def ready(self, client: aiohttp.ClientSession, within_s: float = 120.0) -> None:
        end_s = time.monotonic() + within_s
        while time.monotonic() < end_s:
            if self._process.poll() is not None:
                raise RuntimeError(f"the container ended with status {self._process.returncode}")
            try:
                async with client.get(f"{self.url}/ping") as response:
                    if response.status == 200:
                        return
            except aiohttp.ClientConnectionError:
                pass
            await asyncio.sleep(0.05)
        raise RuntimeError(f"the container was not ready within {within_s:g} s")

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(timeout=30)


async def speak(client: aiohttp.ClientSession, url: str, text: str) -> Spoken:
    began_s = time.monotonic()
    first_s = dry_s = stalled_s = 0.0
    received = 0
    async with client.post(f"{url}/invocations", json={"text": text, "format": "pcm"}) as response:
        response.raise_for_status()
        async for piece in response.content.iter_any():
            now_s = time.monotonic()
            if not received:
                first_s = dry_s = now_s
            stalled_s += max(0.0, now_s - dry_s)
            dry_s = max(dry_s, now_s) + len(piece) / BYTES_PER_S
            received += len(piece)
    return Spoken(first_s - began_s, time.monotonic() - began_s, received / BYTES_PER_S, stalled_s)


async def closed_loop(client: aiohttp.ClientSession, url: str, texts: Sequence[str], callers: int) -> Load:
    waiting, spoken, pings = list(reversed(texts)), list[Spoken](), list[float]()

    async def caller() -> None:
        while waiting:
            spoken.append(await speak(client, url, waiting.pop()))

    async def pinger() -> None:
        while True:
            began_s = time.monotonic()
            async with client.get(f"{url}/ping") as response:
                response.raise_for_status()
            pings.append(time.monotonic() - began_s)
            await asyncio.sleep(0.1)

    watching = asyncio.create_task(pinger())
    began_s = time.monotonic()
    await asyncio.gather(*(caller() for _ in range(callers)))
    elapsed_s = time.monotonic() - began_s
    watching.cancel()
    return Load(spoken, elapsed_s, pings)


@asynccontextmanager
async def servers(engine: str) -> AsyncIterator[tuple[aiohttp.ClientSession, dict[str, Server]]]:
    """The containers, loaded and idle; only one at a time gets work."""
    running = {name: Server(name, engine) for name in SERVERS}
    timeout = aiohttp.ClientTimeout(total=120)
    try:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout) as client:
            for server in running.values():
                await server.ready(client)
            yield client, running
    finally:
        for server in running.values():
            server.stop()


async def start(engine: str) -> float:
    """Seconds until a container, started with nothing else to do, answers /ping with 200; stopped again."""
    began_s = time.monotonic()
    server = Server("deadline", engine)
    try:
        async with aiohttp.ClientSession() as client:
            await server.ready(client)
        return time.monotonic() - began_s
    finally:
        server.stop()


async def compare(engine: str, callers: int, requests: int, repeats: int, seed: int) -> dict[str, Any]:
    starts_s = [await start(engine) for _ in range(repeats)]
    async with servers(engine) as (client, running):
        alone: dict[str, list[Spoken]] = {name: [] for name in running}
        for _ in range(repeats):
            for name, server in running.items():
                alone[name].append(await speak(client, server.url, PARAGRAPH))
        loads = {}
        for name in SCHEDULERS:
            loads[name] = await closed_loop(client, running[name].url, corpus(requests, seed), callers)
    first_s = {name: statistics.median(one.first_audio_s for one in spoken) for name, spoken in alone.items()}
    fifo, deadline = (loads[name] for name in SCHEDULERS)
    return {
        "engine": engine,
        "callers": callers,
        "starts_s": starts_s,
        "paragraph": {
            "characters": len(PARAGRAPH),
            "ttfab_s": first_s,
            "times_sooner_than_published": first_s["published"] / first_s["deadline"],
            "times_sooner_than_fifo": first_s["fifo"] / first_s["deadline"],
            "stalled_s": max(one.stalled_s for one in alone["deadline"]),
        },
        "load": {name: load.summary() for name, load in loads.items()},
        "ttfab_p95_deadline_over_fifo": deadline.p95_first_audio_s / fifo.p95_first_audio_s,
        "throughput_deadline_over_fifo": fifo.elapsed_s / deadline.elapsed_s,
    }


def show(result: dict[str, Any]) -> None:
    paragraph, load = result["paragraph"], result["load"]
    starts = ", ".join(f"{start_s:.1f}" for start_s in result["starts_s"])
    print(f"engine {result['engine']}, from start to /ping 200: {starts} s")
    print(f"one paragraph of {paragraph['characters']} characters, nobody else:")
    first_s = paragraph["ttfab_s"]
    print(f"  first audio, whole paragraph in float32   {first_s['published']:7.2f} s")
    print(f"  first audio, whole paragraph              {first_s['fifo']:7.2f} s")
    print(f"  first audio, streamed                     {first_s['deadline']:7.2f} s")
    print(f"  sooner than published                     {paragraph['times_sooner_than_published']:7.1f} x (aim: >= 8)")
    print(f"  sooner than whole, same engine            {paragraph['times_sooner_than_fifo']:7.1f} x")
    print(f"  silence in the middle                     {paragraph['stalled_s']:7.2f} s (aim: 0)")
    print(f"{result['callers']} callers, two to four sentences each, the same texts in the same order:")
    print(f"  {'':24}{'fifo':>10}{'deadline':>10}")
    for name in load["fifo"]:
        print(f"  {name:24}{load['fifo'][name]:10.2f}{load['deadline'][name]:10.2f}")
    print(f"  ratio of ttfab_p95       {result['ttfab_p95_deadline_over_fifo']:10.2f} (aim: at most 0.50)")
    print(
        f"  ratio of throughput      {result['throughput_deadline_over_fifo']:10.2f} (same texts; aim: at least 0.95)"
    )


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.container", description=__doc__)
    parser.add_argument("--engine", default="kokoro", choices=("kokoro", "onnx", "replay"))
    parser.add_argument("--callers", type=int, default=8)
    parser.add_argument("--requests", type=int, default=24)
    parser.add_argument("--repeats", type=int, default=3, help="starts, and turns of the single paragraph (3)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the containers must not outlive this process
    result = asyncio.run(compare(options.engine, options.callers, options.requests, options.repeats, options.seed))
    print(json.dumps(result, indent=2)) if options.json else show(result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
