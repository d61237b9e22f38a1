"""Loading, warm-up, watching, dying, draining: with a scripted engine, and as a real process."""

from __future__ import annotations

import asyncio
import http.client
import re
import signal
import threading
import time

import pytest

from container.engine.base import EngineDead
from container.lifecycle import bring_up, drain, keep_watch
from container.stages import Stages


async def ping(container) -> int:
    async with container.client.get(f"{container.url}/ping") as response:
        return response.status


async def test_ping_is_503_until_a_real_synthesis_succeeded(start, capsys):
    async with start(warm=False) as container:
        assert await ping(container) == 503
        async with container.post({"text": "Hello"}) as response:
            assert (response.status, (await response.json())["error"]) == (503, "not_ready")
        container.engine.gate.clear()
        task = asyncio.create_task(bring_up(container.parts, Stages(time.time())))
        await asyncio.to_thread(container.engine.entered.wait, 5)
        assert await ping(container) == 503
        container.engine.gate.set()
        await task
        assert await ping(container) == 200
    spoken = [text for call in container.engine.calls for text in call]
    assert min(map(len, spoken)) < 10 < 40 < max(map(len, spoken)), "short and long"
    names = re.findall(r"=== STAGE (\w+) t=\d{13} elapsed_s=\d+\.\d{3} ===", capsys.readouterr().out)
    assert names == ["framework_init", "weights_ready", "warmup_done"]


async def test_a_warm_up_that_fails_never_becomes_ready(start):
    async with start(warm=False) as container:
        container.engine.broken = EngineDead("no device")
        with pytest.raises(Exception, match="engine has failed"):
            await bring_up(container.parts, Stages(time.time()))
        assert await ping(container) == 503


async def test_ping_fails_as_soon_as_the_engine_says_it_died(start):
    async with start() as container:
        assert await ping(container) == 200
        container.engine.living = False
        assert await ping(container) == 503


async def test_ping_fails_when_a_synthesis_finds_the_engine_dead(start):
    async with start() as container:
        container.engine.broken = EngineDead("device lost")
        async with container.post({"text": "Hello"}) as response:
            assert (response.status, (await response.json())["error"]) == (503, "engine_dead")
        assert await ping(container) == 503


async def test_the_watchdog_ends_a_stuck_engine(start):
    async with start(engine_stall_s=0.2) as container:
        watch = asyncio.create_task(keep_watch(container.parts))
        container.engine.gate.clear()
        began_s = time.monotonic()
        async with container.post({"text": "Hello"}) as response:
            assert response.status == 503
        assert time.monotonic() - began_s < 10
        assert await ping(container) == 503
        await watch


async def test_the_watchdog_fails_those_who_wait_for_an_engine_that_died_idle(start):
    async with start() as container:
        watch = asyncio.create_task(keep_watch(container.parts))
        container.engine.living = False
        async with asyncio.timeout(5):
            await watch
        assert container.parts.health.dead is not None


async def test_drain_finishes_what_plays_and_admits_nobody(start):
    async with start(drain_s=5.0) as container:
        container.engine.gate.clear()
        call = asyncio.create_task(container.post({"text": "Hello"}).__aenter__())
        await asyncio.to_thread(container.engine.entered.wait, 5)
        draining = asyncio.create_task(drain(container.parts))
        await asyncio.sleep(0.02)
        assert await ping(container) == 503
        async with container.post({"text": "Too late"}) as refused:
            assert (refused.status, (await refused.json())["error"]) == (503, "draining")
        assert not draining.done()
        container.engine.gate.set()
        response = await call
        assert len(await response.read()) == 44 + 5 * 2_400 * 2
        response.release()
        await draining


async def test_drain_closes_idle_sessions_at_once_and_busy_ones_after_their_utterance(start):
    async with start(drain_s=5.0) as container, container.talk() as idle, container.talk() as busy:
        container.engine.gate.clear()
        await busy.send_json({"text": "Hello"})
        await asyncio.to_thread(container.engine.entered.wait, 5)
        draining = asyncio.create_task(drain(container.parts))
        async with asyncio.timeout(1):
            await idle.receive()
        assert idle.close_code == 1001
        container.engine.gate.set()
        assert (await busy.receive_json())["type"] == "start"
        assert await busy.receive_bytes()
        assert (await busy.receive_json())["type"] == "complete"
        await busy.receive()
        assert busy.close_code == 1001
        await draining


async def test_drain_gives_up_in_time(start):
    async with start(drain_s=0.1) as container:
        container.engine.gate.clear()
        call = asyncio.create_task(container.post({"text": "Hello"}).__aenter__())
        await asyncio.to_thread(container.engine.entered.wait, 5)
        async with asyncio.timeout(2):
            await drain(container.parts)
        container.engine.gate.set()
        (await call).release()


@pytest.mark.e2e
def test_serve_prints_stages_and_answers_once_warm(container_process):
    with container_process("serve", "--whatever", REPLAY_STAGES_S="framework_init=0.1,weights_ready=0.3") as running:
        running.wait_ready()
        with running.speak() as response:
            assert response.status == 200
            assert len(response.read()) > 44
        running.connection.close()
        lines = [line for line in running.output if line.startswith("=== STAGE")]
    pattern = re.compile(r"^=== STAGE (\w+) t=(\d+) elapsed_s=(\d+\.\d{3}) ===$")
    stages = [match.groups() for match in map(pattern.match, lines) if match]
    assert [name for name, _, _ in stages] == ["container_started", "framework_init", "weights_ready", "warmup_done"]
    elapsed_s = [float(elapsed) for _, _, elapsed in stages]
    assert elapsed_s == sorted(elapsed_s)
    assert elapsed_s[2] - elapsed_s[1] == pytest.approx(0.3, abs=0.15)


@pytest.mark.e2e
def test_sigterm_lets_a_stream_finish_and_exits_0_with_idle_connections_open(container_process):
    with container_process("serve", REPLAY_SERVICE_MEAN_MS="1500") as running:
        running.wait_ready()
        idle = http.client.HTTPConnection("127.0.0.1", running.port, timeout=5)
        idle.request("GET", "/ping")
        idle.getresponse().read()
        answers: list[bytes] = []
        caller = threading.Thread(target=lambda: answers.append(running.speak().read()))
        caller.start()
        time.sleep(0.5)
        began_s = time.monotonic()
        running.process.send_signal(signal.SIGTERM)
        caller.join(timeout=10)
        status = running.process.wait(timeout=10)
        took_s = time.monotonic() - began_s
        idle.close()
        running.connection.close()
    assert len(answers[0]) > 44
    assert status == 0
    assert took_s < 5


@pytest.mark.e2e
def test_sigterm_while_loading_exits_at_once(container_process):
    with container_process("serve", REPLAY_STAGES_S="weights_ready=20") as running:
        while not any("framework_init" in line for line in running.output):
            time.sleep(0.02)
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(timeout=6) == 0


@pytest.mark.e2e
def test_bad_settings_are_all_named_and_exit_2(container_process):
    with container_process("serve", MAX_QUEUE_DEPTH="many", SCHEDULER="lifo") as running:
        assert running.process.wait(timeout=10) == 2
        running._reader.join(timeout=5)
    errors = [line for line in running.output if line.startswith("error:")]
    assert len(errors) == 2
    assert not any("Traceback" in line for line in running.output)


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("environment", "words"),
    [({"HOST": "nowhere.invalid"}, "cannot listen"), ({"ENGINE": "kokoro", "DEVICE": "cuda"}, "DEVICE=cuda")],
)
def test_a_machine_that_cannot_serve_these_settings(container_process, monkeypatch, environment, words):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with container_process("serve", **environment) as running:
        assert running.process.wait(timeout=40) == 2
        running._reader.join(timeout=5)
    assert [words in line for line in running.output if line.startswith("error:")] == [True]
    assert not any("Traceback" in line for line in running.output)


async def test_a_default_voice_that_does_not_exist_is_found_before_ready(start):
    async with start(warm=False, default_voice="zoe") as container:
        with pytest.raises(Exception, match="zoe"):
            await bring_up(container.parts, Stages(time.time()))
        assert await ping(container) == 503
