"""A client that leaves frees its place at once, before and after the first byte, and the engine with it."""

from __future__ import annotations

import asyncio
import json
import random

import pytest

TEXT = "One sentence that is long enough to be a piece of its own, surely. " * 8


async def raw_request(container, payload):
    host, port = container.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    body = json.dumps(payload).encode()
    writer.write(
        b"POST /invocations HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n" % len(body) + body
    )
    return reader, writer


async def test_gone_while_queued(start):
    async with start() as container:
        container.engine.gate.clear()
        connections = [await raw_request(container, {"text": TEXT}) for _ in range(10)]
        async with asyncio.timeout(5):
            while container.parts.admission.depth < 10:
                await asyncio.sleep(0.005)
        for _, writer in connections:
            writer.close()
        async with asyncio.timeout(2):
            while container.parts.admission.depth or container.parts.scheduler.waiting:
                await asyncio.sleep(0.005)
        container.engine.gate.set()
        await container.empty()
        assert len(container.engine.calls) == 1, "only the piece that was already running was made"


async def test_gone_after_the_first_byte(start, scripted):
    async with start(scripted(call_s=0.03)) as container:
        reader, writer = await raw_request(container, {"text": TEXT})
        assert (await reader.read(12)).startswith(b"HTTP/1.1 200")
        writer.transport.abort()
        await container.empty(within_s=1)
        made = len(container.engine.calls)
        await asyncio.sleep(0.1)
        assert len(container.engine.calls) == made < 8


async def test_a_reader_that_stops_reading_meets_its_deadline(start, scripted):
    class Verbose(scripted):
        def synthesise(self, batch):
            return [samples.repeat(40) for samples in super().synthesise(batch)]

    async with start(Verbose(), request_deadline_s=0.5) as container:
        _, writer = await raw_request(container, {"text": TEXT})
        await asyncio.sleep(0.1)
        assert container.parts.admission.depth == 1
        await container.empty(within_s=3)
        writer.transport.abort()


@pytest.mark.parametrize("surface", ["http", "websocket"])
async def test_a_hundred_disconnects_leave_every_gauge_at_zero(start, scripted, surface):
    random.seed(5)
    async with start(scripted(call_s=0.002), max_queue_depth=20) as container:

        async def once():
            if surface == "http":
                _, writer = await raw_request(container, {"text": TEXT})
                await asyncio.sleep(random.random() * 0.03)
                writer.transport.abort()
            else:
                socket = await container.talk()
                await socket.send_json({"text": TEXT})
                await asyncio.sleep(random.random() * 0.03)
                socket._response.connection.transport.abort()

        for _ in range(10):
            await asyncio.gather(*(once() for _ in range(10)))
        await container.empty()
        async with asyncio.timeout(2):
            while container.parts.sessions:
                await asyncio.sleep(0.01)
        async with container.post({"text": "Hello"}) as response:
            assert response.status == 200
            await response.read()
        async with container.client.get(f"{container.url}/metrics") as response:
            lines = (await response.text()).splitlines()
        for gauge in ("queue_depth", "segments_waiting", "engine_calls_running", "websocket_sessions"):
            assert f"speech_{gauge} 0" in lines
        counted = sum(int(line.split()[-1]) for line in lines if line.startswith("speech_requests_total{"))
        assert counted == 101
