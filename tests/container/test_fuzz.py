"""Whatever arrives on either surface: no 500, no hang, no place lost."""

from __future__ import annotations

import asyncio
import json

import aiohttp
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
NEARLY = st.fixed_dictionaries(
    {},
    optional={
        "text": st.text(max_size=300) | ANY_JSON,
        "voice": st.sampled_from(["anna", "anna*0.5+bert*0.5", "anna*", "", "+", "a" * 600]) | ANY_JSON,
        "speed": st.floats() | st.integers() | ANY_JSON,
        "format": st.sampled_from(["wav", "pcm", "mp3", "flac"]) | ANY_JSON,
        "transport": st.sampled_from(["binary", "sse"]) | ANY_JSON,
        "request_id": st.text(max_size=10) | ANY_JSON,
        "timestamps": st.booleans() | ANY_JSON,
        "surprise": ANY_JSON,
    },
)
GOOD = st.fixed_dictionaries(
    {"text": st.text(st.characters(exclude_categories=["Cs"]), max_size=400).map(lambda text: "a" + text)},
    optional={
        "voice": st.sampled_from(["anna", "anna*0.5+bert*0.5"]),
        "speed": st.floats(0.5, 2.0),
        "format": st.sampled_from(["wav", "pcm", "mp3"]),
        "transport": st.sampled_from(["binary", "sse"]),
    },
)
BODIES = (
    st.binary(max_size=200)
    | (NEARLY | ANY_JSON).map(lambda value: json.dumps(value).encode())
    | NEARLY.map(lambda value: json.dumps(value).encode()[:-1])
)
HEADERS = st.fixed_dictionaries(
    {
        "Content-Type": st.sampled_from(
            ["application/json", "application/json; charset=utf-8", "text/html", ";", "a/b/c"]
        )
    },
    optional={
        "Accept": st.sampled_from(["*/*", "audio/wav", "audio/mpeg;q=x", "text/event-stream", ",,;", "image/*"])
        | st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=30),
        "Content-Encoding": st.sampled_from(["gzip", "identity", "zip bomb"]),
    },
)
NEARLY_BODIES = NEARLY.map(lambda value: json.dumps(value).encode())
JSON_HEADERS = st.just({"Content-Type": "application/json"})
ALLOWED = {200, 400, 406, 413, 415}
FUZZ = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.function_scoped_fixture],
    "phases": [Phase.explicit, Phase.generate],
}


def drive(start, each, strategy, examples):
    """Run ``each(container, example)`` for many examples against one container."""

    async def run() -> None:
        async with start(max_text_chars=350) as container:
            runner = asyncio.get_running_loop()

            @settings(max_examples=examples, **FUZZ)
            @given(strategy)
            def feed(example):
                asyncio.run_coroutine_threadsafe(each(container, example), runner).result(timeout=10)

            await asyncio.to_thread(feed)
            await container.empty()
            async with container.post({"text": "Hello"}) as response:
                assert response.status == 200
                await response.read()

    asyncio.run(run())


async def send(container, example):
    body, headers = example
    async with container.post(data=body, headers=headers) as response:
        data = await response.read()
        assert response.status in ALLOWED, (response.status, data)
        if response.status != 200:
            assert {"error", "message"} <= set(json.loads(data))
        else:
            assert data
    assert container.parts.admission.depth == 0


async def send_good(container, example):
    async with container.post(example) as response:
        data = await response.read()
        assert response.status == 200, data[:300]
        assert len(data) > 44


async def talk(container, frames):
    async with container.talk() as socket:
        for frame in frames:
            await (socket.send_bytes(frame) if isinstance(frame, bytes) else socket.send_str(frame))
        await socket.send_json({"type": "end"})
        async with asyncio.timeout(8):
            while (message := await socket.receive()).type in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY):
                if message.type is aiohttp.WSMsgType.TEXT:
                    assert json.loads(message.data).get("error") not in ("internal_error", "no_audio")
        assert socket.close_code in (1000, 1008)


def frames():
    typed = st.builds(lambda fields, kind: {**fields, "type": kind}, NEARLY, st.sampled_from(["speak", "cancel", 5]))
    as_text = (NEARLY | typed | ANY_JSON).map(json.dumps)
    return st.lists(as_text | st.binary(max_size=60) | as_text.map(str.encode), max_size=6)


@pytest.mark.parametrize(
    ("each", "strategy", "examples"),
    [
        (send, st.tuples(BODIES, HEADERS), 250),
        (send, st.tuples(NEARLY_BODIES, JSON_HEADERS), 250),
        (send_good, GOOD, 100),
        (talk, frames(), 100),
    ],
    ids=["bytes", "nearly right", "right", "websocket"],
)  # fmt: skip
def test_fuzz(start, each, strategy, examples):
    drive(start, each, strategy, examples)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("each", "strategy"),
    [(send, st.tuples(BODIES, HEADERS)), (send_good, GOOD), (talk, frames())],
    ids=["bytes", "right", "websocket"],
)
def test_fuzz_long(start, each, strategy):
    drive(start, each, strategy, 5_000)
