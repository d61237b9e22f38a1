"""The closed loop against a server of known behaviour, and the table against figures made by hand."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from bench.peers.__main__ import main
from bench.peers.designs import OURS, Design
from bench.peers.load import TEXTS, Answer, Cell, closed_loop
from bench.peers.table import table
from planner.errors import ExitCode, exit_status

HALF_A_SECOND = bytes(24_000)


def cell(design: str, answers: list[tuple[float, float]], health_s: tuple[float, ...], elapsed_s: float) -> Cell:
    return Cell(design, 4, tuple(Answer(*each) for each in answers), health_s, elapsed_s)


def test_texts_have_the_length_that_is_stated() -> None:
    assert len(TEXTS) >= 5
    assert all(25 <= len(text) <= 60 for text in TEXTS)


def test_rates_and_ratios() -> None:
    ours = cell(OURS, [(0.2, 1.5), (0.1, 1.5), (0.3, 3.0)], (0.001, 0.004), elapsed_s=2.0)
    peer = cell("other", [(0.8, 2.0), (0.4, 1.0)], (0.1, 2.5), elapsed_s=4.0)
    assert table([ours, peer]).splitlines()[2:] == [
        "| Headroom | 4 | 1.50 | 1.00 | 200 | 1.00 | 300 | 3.00 | 4 | 3 |",
        "| other | 4 | 0.50 | 0.33 | 400 | 2.00 | 800 | 0.75 | 2500 | 2 |",
    ]


def test_rounds_add_up() -> None:
    first = cell("x", [(0.1, 1.0)], (0.001,), elapsed_s=1.0)
    second = cell("x", [(0.3, 1.0), (0.2, 1.0)], (0.2,), elapsed_s=2.0)
    both = first + second
    assert (both.rps, both.audio_s_per_s, max(both.health_s)) == (1.0, 1.0, 0.2)
    assert both.ttfb_ms(0.5) == pytest.approx(200)


@asynccontextmanager
async def one_at_a_time(held_s: float) -> AsyncIterator[Design]:
    """Speech takes ``held_s``, in turns; a health check waits for its turn too."""
    turn = asyncio.Lock()

    async def speech(request: web.Request) -> web.StreamResponse:
        assert (await request.json())["input"] in TEXTS
        async with turn:
            await asyncio.sleep(held_s)
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(HALF_A_SECOND)
        await asyncio.sleep(held_s)
        await response.write(HALF_A_SECOND)
        return response

    async def health(_request: web.Request) -> web.Response:
        async with turn:
            return web.Response()

    app = web.Application()
    app.router.add_post("/speech", speech)
    app.router.add_get("/well", health)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    try:
        yield Design("test", (), f"http://127.0.0.1:{port}", "/well", "/speech", {}, "input")
    finally:
        await runner.cleanup()


async def test_a_server_that_speaks_in_turns() -> None:
    """Three callers and 0.05 s each: whoever is not alone waits for the others, and so does the health check."""
    async with one_at_a_time(held_s=0.05) as design, aiohttp.ClientSession() as client:
        found = await closed_loop(client, design, callers=3, seconds=0.4, texts=itertools.cycle(TEXTS))
    assert len(found.answers) >= 6
    assert {answer.audio_s for answer in found.answers} == {1.0}
    assert 49 <= found.ttfb_ms(0.5) <= 1e3 * found.elapsed_s
    assert max(found.health_s) >= 0.045
    assert found.rps <= 1 / 0.05


async def test_a_server_that_refuses_is_an_error() -> None:
    async with one_at_a_time(held_s=0.0) as design, aiohttp.ClientSession() as client:
        wrong = Design("test", (), design.url, design.health, "/nowhere", {}, "input")
        with pytest.raises(aiohttp.ClientResponseError):
            await closed_loop(client, wrong, callers=1, seconds=0.1, texts=itertools.cycle(TEXTS))


def test_an_interpreter_without_the_peer_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = exit_status(lambda: main(["--kokoro-onnx-python", str(tmp_path / "python")]))
    assert status == ExitCode.USAGE
    assert "pip install kokoro-onnx" in capsys.readouterr().err
