"""A working day in seconds: mixed traffic, rude clients, garbage, saturation. Memory and gauges stay flat."""

from __future__ import annotations

import asyncio
import json
import random
import time
import urllib.request

import aiohttp
import pytest

SENTENCES = (
    "It rained.",
    "The train to the coast leaves at ten past nine.",
    "Nobody saw him go or asked him why.",
)
GARBAGE = (b"", b"{", b"[1]", b'{"text": 5}', b"\xff\xfe", b'{"text": "hi", "speed": 1e9}', b'{"text": "\\ud800"}')


class Traffic:
    """Random requests over both surfaces; what the clients saw."""

    def __init__(self, port: int, seed: int) -> None:
        self._url = f"http://127.0.0.1:{port}"
        self._random = random.Random(seed)
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
            "text": " ".join(self._random.choices(SENTENCES, k=self._random.randint(1, 12))),
            "voice": self._random.choice(["af_heart", "am_adam", "af_heart*0.3+bf_emma*0.7"]),
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


@pytest.mark.e2e
@pytest.mark.parametrize("requests", [600, pytest.param(2_000, marks=pytest.mark.slow)])
def test_soak(container_process, requests):
    with container_process("serve", REPLAY_SERVICE_MEAN_MS="4", MAX_QUEUE_DEPTH="12") as running:
        running.wait_ready()
        asyncio.run(Traffic(running.port, seed=1).run(200, callers=16))
        before_mib = running.rss_mib
        traffic = Traffic(running.port, seed=2)
        asyncio.run(traffic.run(requests - 200, callers=16))
        end_s = time.monotonic() + 5
        while (left := gauges(running))["speech_queue_depth"] and time.monotonic() < end_s:
            time.sleep(0.05)
        grown_mib = running.rss_mib - before_mib
        defects = [line for line in running.output if "traceback" in line or '"level": "error"' in line]
    for name in ("queue_depth", "segments_waiting", "engine_calls_running", "websocket_sessions"):
        assert left[f"speech_{name}"] == 0
    assert grown_mib < 30
    assert set(traffic.statuses) <= {200, 400, 503}
    assert traffic.statuses[200] > 0.3 * traffic.sent
    counted = sum(value for name, value in left.items() if name.startswith("speech_requests_total"))
    logged = sum('"event": "request"' in line for line in running.output)
    assert counted == logged >= 0.9 * requests
    assert defects == []


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
        traffic = Traffic(port, seed=3)

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
