"""A working day in seconds: mixed traffic, rude clients, garbage, saturation. Memory and gauges stay flat."""

from __future__ import annotations

import asyncio
import json
import random
import time
import urllib.request
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest

SENTENCES = (
    "It rained.",
    "The train to the coast leaves at ten past nine.",
    "Nobody saw him go or asked him why.",
)
PUBLISHED = ("af_heart", "am_adam")
GARBAGE = (b"", b"{", b"[1]", b'{"text": 5}', b"\xff\xfe", b'{"text": "hi", "speed": 1e9}', b'{"text": "\\ud800"}')


class Traffic:
    """Random requests over both surfaces; what the clients saw."""

    def __init__(self, port: int, seed: int, longest: int = 12, speakers: tuple[str, str] = PUBLISHED) -> None:
        """``longest``: sentences in a request at most; ``speakers``: the container's voices."""
        self._url = f"http://127.0.0.1:{port}"
        self._longest = longest
        self._random = random.Random(seed)
        one, other = speakers
        self._voices = (one, other, f"{one}*0.3+{other}*0.7")
        self.sent = 0
        self.statuses: dict[int, int] = {}

    async def run(self, requests: int, callers: int) -> None:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as client:
            await asyncio.gather(*(self._caller(client, requests // callers) for _ in range(callers)))

    async def _caller(self, client: aiohttp.ClientSession, requests: int) -> None:
        for _ in range(requests):
            self.sent += 1
            dice = self._random.random()
            if dice < 0.05:
                await self._post(client, self._random.choice(GARBAGE))
            elif dice < 0.25:
                await self._leave_early(client)
            elif dice < 0.35:
                await self._talk(client)
            else:
                await self._post(client, json.dumps(self._request()).encode())

    def _request(self) -> dict[str, object]:
        return {
            "text": " ".join(self._random.choices(SENTENCES, k=self._random.randint(1, self._longest))),
            "voice": self._random.choice(self._voices),
            "speed": self._random.choice([0.8, 1.0, 1.5]),
            "format": self._random.choice(["wav", "pcm", "mp3"]),
            "transport": self._random.choice(["binary", "sse"]),
        }

    async def _post(self, client: aiohttp.ClientSession, body: bytes) -> None:
        headers = {"Content-Type": "application/json"}
        async with client.post(f"{self._url}/invocations", data=body, headers=headers) as response:
            await response.read()
            self.statuses[response.status] = self.statuses.get(response.status, 0) + 1

    async def _leave_early(self, client: aiohttp.ClientSession) -> None:
        try:
            async with asyncio.timeout(self._random.random() * 0.05):
                await self._post(client, json.dumps(self._request()).encode())
        except TimeoutError:
            pass

    async def _talk(self, client: aiohttp.ClientSession) -> None:
        async with client.ws_connect(f"{self._url}/invocations-bidirectional-stream") as socket:
            await socket.send_json({"text": self._random.choice(SENTENCES)})
            await socket.send_json({"type": "end"})
            async for _ in socket:
                pass


def gauges(running) -> dict[str, float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{running.port}/metrics") as response:
        lines = response.read().decode().splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}


@dataclass(frozen=True)
class Endured:
    """What is left when the traffic is over."""

    grown_mib: float
    gauges: dict[str, float]
    traffic: Traffic
    logged: int
    defects: list[str]


def endure(running, first: int, then: int, callers: int, **kind: Any) -> Endured:
    """``first`` requests to reach the steady state, ``then`` more that should not change it."""
    running.wait_ready()
    asyncio.run(Traffic(running.port, 1, **kind).run(first, callers))
    before_mib = running.rss_mib
    traffic = Traffic(running.port, 2, **kind)
    asyncio.run(traffic.run(then, callers))
    end_s = time.monotonic() + 5
    while (left := gauges(running))["speech_queue_depth"] and time.monotonic() < end_s:
        time.sleep(0.05)
    return Endured(
        grown_mib=running.rss_mib - before_mib,
        gauges=left,
        traffic=traffic,
        logged=sum('"event": "request"' in line for line in running.output),
        defects=[line for line in running.output if "traceback" in line or '"level": "error"' in line],
    )


def check_nothing_leaked(found: Endured, requests: int) -> None:
    for name in ("queue_depth", "segments_waiting", "engine_calls_running", "websocket_sessions"):
        assert found.gauges[f"speech_{name}"] == 0
    assert set(found.traffic.statuses) <= {200, 400, 503}
    assert found.traffic.statuses[200] > 0.3 * found.traffic.sent
    counted = sum(value for name, value in found.gauges.items() if name.startswith("speech_requests_total"))
    assert counted == found.logged >= 0.9 * requests
    assert found.defects == []


@pytest.mark.e2e
@pytest.mark.parametrize("requests", [600, pytest.param(2_000, marks=pytest.mark.slow)])
def test_soak(container_process, requests):
    with container_process("serve", REPLAY_SERVICE_MEAN_MS="4", MAX_QUEUE_DEPTH="12") as running:
        found = endure(running, 200, requests - 200, callers=16)
    check_nothing_leaked(found, requests)
    assert found.grown_mib < 30


@pytest.mark.e2e
@pytest.mark.kokoro
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_soak_with_real_speech(container_process):
    with container_process("serve", ENGINE="kokoro", MAX_QUEUE_DEPTH="12") as running:
        found = endure(running, 200, 400, callers=4, longest=2, speakers=("jf_alpha", "jm_kumo"))
    check_nothing_leaked(found, 600)
    print(f"grown by {found.grown_mib:.0f} MiB")
    assert found.grown_mib < 60


@pytest.mark.e2e
@pytest.mark.parametrize(("seconds", "limit_s"), [(4, 2.0), pytest.param(60, 0.5, marks=pytest.mark.slow)])
def test_ping_answers_at_twice_the_bound(container_process, seconds, limit_s):
    """SageMaker gives a ping 2 s; the long run, alone on the machine, a quarter of that."""
    waits_s: list[float] = []
    statuses: list[int] = []

    async def ping(client: aiohttp.ClientSession, url: str) -> None:
        began_s = time.monotonic()
        async with client.get(url) as response:
            await response.read()
            statuses.append(response.status)
        waits_s.append(time.monotonic() - began_s)

    async def press(port: int) -> None:
        end_s = time.monotonic() + seconds
        traffic = Traffic(port, 3)

        async def caller(client: aiohttp.ClientSession) -> None:
            while time.monotonic() < end_s:
                await traffic._post(client, json.dumps(traffic._request()).encode())
                await asyncio.sleep(0.02)

        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as client:
            callers = [asyncio.create_task(caller(client)) for _ in range(16)]
            while time.monotonic() < end_s:
                await ping(client, f"http://127.0.0.1:{port}/ping")
                await asyncio.sleep(0.05)
            await asyncio.gather(*callers)
        assert traffic.statuses.get(503, 0) > 0, "the bound was really exceeded"

    with container_process("serve", REPLAY_SERVICE_MEAN_MS="100", MAX_QUEUE_DEPTH="8") as running:
        running.wait_ready()
        asyncio.run(press(running.port))
    assert set(statuses) == {200}
    assert max(waits_s) < limit_s


@pytest.mark.e2e
def test_two_containers_on_one_machine_share_nothing(container_process, tmp_path):
    with container_process("serve", HOME=str(tmp_path)) as one, container_process("serve", HOME=str(tmp_path)) as two:
        for running in (one, two):
            running.wait_ready()
        one.process.kill()
        one.process.wait()
        with two.speak() as response:
            assert response.status == 200
            response.read()
        two.connection.close()
    assert list(tmp_path.rglob("*")) == []
