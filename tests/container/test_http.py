"""POST /invocations as a client meets it."""

from __future__ import annotations

import asyncio
import base64
import gzip
import io
import itertools
import json
import re
import wave

import aiohttp
import pytest

PARAGRAPH = (
    "The harbour was quiet before the storm arrived. Nobody had expected it so early in the year, and most of the "
    "boats were still out. By noon the first of them came back. The others followed one by one until evening."
)
JSON = {"Content-Type": "application/json"}


async def test_wav_has_one_header_and_every_sample(start):
    async with start() as container, container.post({"text": PARAGRAPH}) as response:
        body = await response.read()
        spoken = sum(len(text) for call in container.engine.calls for text in call)
    assert response.status == 200
    assert response.headers["Content-Type"] == "audio/wav"
    assert body.count(b"RIFF") == 1
    with wave.open(io.BytesIO(body)) as reader:
        assert (reader.getnchannels(), reader.getsampwidth(), reader.getframerate()) == (1, 2, 24_000)
    assert len(body) - 44 == spoken * 2_400 * 2
    assert len(container.engine.calls) > 1


async def test_short_text_gets_an_exact_wav_header(start):
    async with start() as container, container.post({"text": "Hello there."}) as response:
        body = await response.read()
    with wave.open(io.BytesIO(body)) as reader:
        assert reader.getnframes() == 12 * 2_400


async def test_pcm_is_bare_and_loudness_survives(start):
    async with start() as container, container.post({"text": "Hello", "format": "pcm"}) as response:
        body = await response.read()
    assert response.headers["Content-Type"] == "audio/pcm"
    assert len(body) == 5 * 2_400 * 2
    assert int.from_bytes(body[:2], "little", signed=True) == pytest.approx(0.5 * 32_767, abs=1)


async def test_first_audio_leaves_before_the_rest_is_made(start):
    async with start() as container:
        container.engine.gate.clear()
        call = asyncio.create_task(container.post({"text": PARAGRAPH, "format": "pcm"}).__aenter__())
        await asyncio.to_thread(container.engine.entered.wait, 5)
        assert not call.done(), "headers must not leave before there is audio"
        container.engine.call_s = 0.05
        container.engine.gate.set()
        response = await call
        first = await response.content.readany()
        assert first
        assert len(container.engine.calls) < 4
        await response.read()
        response.release()


async def test_custom_attributes_tell_boot_depth_and_times(start):
    async with start() as container, container.post({"text": "Hello"}) as response:
        value = response.headers["X-Amzn-SageMaker-Custom-Attributes"]
        await response.read()
    assert re.fullmatch(r"boot_id=[0-9a-f]{12};queue_depth=1;wait_ms=\d+\.\d+;service_ms=\d+\.\d+", value)


async def test_sse_carries_timings_and_ends_with_done(start):
    request = {"text": PARAGRAPH, "transport": "sse", "timestamps": True, "request_id": "r-1"}
    async with start() as container, container.post(request) as response:
        raw = (await response.read()).decode()
    assert response.headers["Content-Type"] == "text/event-stream"
    events = [
        (block.split("\n")[0].removeprefix("event: "), json.loads(block.split("\n")[1].removeprefix("data: ")))
        for block in raw.strip().split("\n\n")
    ]
    names = [name for name, _ in events]
    assert names == ["audio"] * (len(events) - 1) + ["done"]
    audio = [data for name, data in events if name == "audio"]
    assert " ".join(data["text"] for data in audio) == PARAGRAPH
    assert all(later["start_s"] == sooner["end_s"] for sooner, later in itertools.pairwise(audio))
    seconds = sum(len(base64.b64decode(data["audio"])) for data in audio) / 48_000
    assert events[-1][1]["audio_s"] == pytest.approx(seconds)
    assert events[-1][1]["request_id"] == "r-1"


@pytest.mark.parametrize(
    ("accept", "body", "status", "content_type"),
    [
        (None, {}, 200, "audio/wav"),
        ("*/*", {}, 200, "audio/wav"),
        ("audio/mpeg", {}, 200, "audio/mpeg"),
        ("audio/pcm", {}, 200, "audio/pcm"),
        ("audio/wav;q=0.1, audio/mpeg;q=0.9", {}, 200, "audio/mpeg"),
        ("text/event-stream", {}, 200, "text/event-stream"),
        ("text/event-stream, */*;q=0.1", {"format": "mp3"}, 200, "text/event-stream"),
        ("application/octet-stream", {"format": "pcm"}, 200, "audio/pcm"),
        ("*/*", {"format": "mp3"}, 200, "audio/mpeg"),
        ("audio/mpeg", {"format": "wav"}, 406, "application/json"),
        ("image/png", {}, 406, "application/json"),
        ("audio/*;q=0", {}, 406, "application/json"),
        ("audio/wav", {"transport": "sse"}, 406, "application/json"),
        (";;;=,,q", {}, 406, "application/json"),
    ],
)
async def test_negotiation(start, accept, body, status, content_type):
    headers = {} if accept is None else {"Accept": accept}
    async with start() as container, container.post({"text": "Hello", **body}, headers=headers) as response:
        assert (response.status, response.content_type) == (status, content_type)
        await response.read()


@pytest.mark.parametrize(
    ("data", "headers", "status", "code"),
    [
        (b"", JSON, 400, "invalid_json"),
        (b"{", JSON, 400, "invalid_json"),
        (b"\xff\xfe", JSON, 400, "invalid_json"),
        (b"[" * 50_000, JSON, 400, "invalid_json"),
        (b'{"text": "a", "speed": NaN}', JSON, 400, "invalid_request"),
        (b'{"text": "a", "speed": 1e999}', JSON, 400, "invalid_request"),
        (b"[]", JSON, 400, "invalid_json"),
        (b"null", JSON, 400, "invalid_json"),
        (b"{}", JSON, 400, "invalid_request"),
        (b'{"text": "hello \\ud800"}', JSON, 400, "invalid_request"),
        (b'{"text": "an unspeakable thing"}', JSON, 400, "unspeakable_text"),
        (b'{"text": "hello", "voice": "zoe"}', JSON, 400, "unknown_voice"),
        (b'{"text": "hello"}', {"Content-Type": "text/plain"}, 415, "unsupported_media_type"),
        (b'{"text": "hello"}', {"Content-Type": "application/json; charset=latin-1"}, 415, "unsupported_media_type"),
        (b'{"text": "' + b"a" * 70_000 + b'"}', JSON, 413, "body_too_large"),
        (
            gzip.compress(b'{"text": "hi"}', mtime=0),
            {**JSON, "Content-Encoding": "gzip"},
            415,
            "unsupported_media_type",
        ),
        (io.BytesIO(b"a" * 5_000_000), JSON, 413, "body_too_large"),
    ],
)
async def test_bad_requests_have_one_shape_and_leave_nothing(start, data, headers, status, code):
    async with start() as container:
        async with container.post(data=data, headers=headers) as response:
            body = await response.json()
            assert response.status == status
            assert isinstance(body["error"], str)
            assert isinstance(body["message"], str)
            assert code in (None, body["error"])
        assert container.parts.admission.depth == 0
        async with container.post({"text": "Hello"}) as response:
            assert response.status == 200
            await response.read()


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/nope", 404), ("GET", "/invocations", 405)])
async def test_wrong_paths_answer_json_too(start, method, path, status):
    async with start() as container, container.client.request(method, container.url + path) as response:
        assert response.status == status
        assert set(await response.json()) == {"error", "message"}


async def test_a_body_that_never_arrives_is_408_and_holds_no_slot(start):
    async def endless():
        yield b'{"text":'
        await asyncio.sleep(30)

    async with start(body_timeout_s=0.1) as container:
        async with container.post(data=endless(), headers=JSON) as response:
            assert response.status == 408
            assert (await response.json())["error"] == "request_timeout"
        assert container.parts.admission.depth == 0


@pytest.mark.parametrize("broken", [b"zz\r\nhello\r\n0\r\n\r\n", b"5\r\nhello...\r\n", b"-5\r\n"])
async def test_malformed_chunks_are_400_and_the_server_goes_on(start, broken, caplog):
    head = (
        b"POST /invocations HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    async with start() as container:
        host, port = container.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(head + broken)
        answer = await asyncio.wait_for(reader.read(), 5)
        assert b" 400 " in answer.split(b"\r\n")[0]
        writer.close()
        assert (await read(container, {"text": "Hello"}))[0] == 200
    assert not [record for record in caplog.records if record.exc_info]


async def test_text_over_the_limit_is_413(start):
    async with start(max_text_chars=10) as container, container.post({"text": "eleven chars"}) as response:
        assert response.status == 413
        assert (await response.json())["error"] == "text_too_long"


async def test_saturation_is_refused_at_once_with_retry_after(start):
    async with start(max_queue_depth=2) as container:
        container.engine.gate.clear()
        calls = [asyncio.create_task(read(container, {"text": "Hello"})) for _ in range(2)]
        while container.parts.admission.depth < 2:
            await asyncio.sleep(0.005)
        async with asyncio.timeout(1), container.post({"text": "Hello"}) as response:
            body = await response.json()
        assert (response.status, body["error"]) == (503, "queue_saturated")
        assert int(response.headers["Retry-After"]) >= 1
        async with container.client.get(f"{container.url}/ping") as ping:
            assert ping.status == 200, "saturation is no illness"
        container.engine.gate.set()
        assert [status for status, _ in await asyncio.gather(*calls)] == [200, 200]
        await container.empty()


async def test_unbounded_without_a_limit(start):
    async with start() as container:
        answers = await asyncio.gather(*(read(container, {"text": "Hello"}) for _ in range(100)))
    assert {status for status, _ in answers} == {200}


async def test_deadline_before_the_first_byte_is_504(start):
    async with start(request_deadline_s=0.1) as container:
        container.engine.gate.clear()
        async with container.post({"text": "Hello"}) as response:
            assert response.status == 504
            assert (await response.json())["error"] == "deadline_exceeded"
        assert container.parts.admission.depth == 0


async def test_expired_requests_never_reach_the_engine(start):
    async with start(request_deadline_s=0.1) as container:
        container.engine.gate.clear()
        await asyncio.gather(*(read(container, {"text": f"Request {number}"}) for number in range(5)))
        container.engine.gate.set()
        await container.empty()
        assert len(container.engine.calls) == 1


@pytest.mark.parametrize("format_name", ["wav", "pcm", "mp3"])
async def test_failure_after_the_first_byte_breaks_the_stream(start, format_name):
    async with start() as container:
        container.engine.call_s = 0.05
        async with container.post({"text": PARAGRAPH, "format": format_name}) as response:
            assert response.status == 200
            await response.content.readany()
            container.engine.broken = RuntimeError("boom")
            with pytest.raises(aiohttp.ClientPayloadError):
                await response.read()
        await container.empty()


async def test_failure_after_the_first_byte_is_an_event_in_sse(start):
    async with start(request_deadline_s=0.12) as container:
        container.engine.call_s = 0.05
        async with container.post({"text": PARAGRAPH, "transport": "sse"}) as response:
            raw = (await response.read()).decode()
        last = raw.strip().split("\n\n")[-1]
        assert last.startswith("event: error\n")
        assert json.loads(last.split("data: ")[1])["error"] == "deadline_exceeded"
        await container.empty()


async def test_metrics_count_every_outcome_and_end_at_zero(start):
    async with start(max_queue_depth=1) as container:
        await read(container, {"text": "Hello"})
        await read(container, {"text": 5})
        async with container.client.get(f"{container.url}/metrics") as response:
            text = await response.text()
    assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert 'speech_requests_total{outcome="ok"} 1' in text
    assert 'speech_requests_total{outcome="invalid_request"} 1' in text
    assert "speech_first_audio_seconds_count 1" in text
    assert "speech_completion_seconds_count 1" in text
    assert "speech_queue_depth 0" in text


async def test_logs_never_hold_the_text(start, caplog):
    caplog.set_level("INFO", logger="container")
    async with start() as container:
        await read(container, {"text": "Hello confidential words"})
        await read(container, {"text": "unspeakable confidential words"})
    logged = [(record.getMessage(), getattr(record, "fields", {})) for record in caplog.records]
    assert any(fields.get("outcome") == "ok" for _, fields in logged)
    assert "confidential" not in repr(logged)


async def read(container, payload):
    async with container.post(payload) as response:
        return response.status, await response.read()
