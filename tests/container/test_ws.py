"""The bidirectional stream."""

from __future__ import annotations

import asyncio
import json

import aiohttp
import pytest

TEXT = "One sentence that is long enough to be a piece of its own, surely. " * 4


async def until(socket, kind):
    """Messages up to and including the first of ``kind``, and the audio bytes between."""
    messages, audio = [], b""
    async with asyncio.timeout(5):
        while True:
            frame = await socket.receive()
            if frame.type is aiohttp.WSMsgType.BINARY:
                audio += frame.data
                messages.append("audio")
                continue
            assert frame.type is aiohttp.WSMsgType.TEXT, frame
            messages.append(json.loads(frame.data))
            if messages[-1]["type"] == kind:
                return messages, audio


async def test_start_audio_complete(start):
    async with start() as container, container.talk() as socket:
        await socket.send_json({"type": "speak", "text": TEXT, "request_id": "u1"})
        messages, audio = await until(socket, "complete")
    first, *_, last = messages
    assert first["type"] == "start"
    assert (first["request_id"], first["format"], first["sample_rate_hz"]) == ("u1", "pcm", 24_000)
    assert first["queue_depth"] == 1
    assert messages.count("audio") == len(container.engine.calls) > 1
    assert last["audio_s"] == pytest.approx(len(audio) / 48_000)


async def test_audio_comes_before_the_text_is_finished(start):
    async with start() as container, container.talk() as socket:
        container.engine.gate.clear()
        await socket.send_json({"text": TEXT})
        await asyncio.to_thread(container.engine.entered.wait, 5)
        container.engine.call_s = 0.1
        container.engine.gate.set()
        assert (await socket.receive_json())["type"] == "start"
        await socket.receive_bytes()
        assert container.parts.scheduler.waiting > 0
        await until(socket, "complete")


async def test_binary_frames_carry_json_too(start):
    async with start() as container, container.talk() as socket:
        await socket.send_bytes(json.dumps({"text": "Hello"}).encode())
        _, audio = await until(socket, "complete")
        assert len(audio) == 5 * 2_400 * 2


async def test_a_message_in_fragments(start):
    async with start() as container, container.talk() as socket:
        data = json.dumps({"text": "Hello"}).encode()
        writer = socket._writer
        assert writer is not None
        transport = writer.transport
        for opcode, piece in [(0x02, data[:4]), (0x00, data[4:9]), (0x80, data[9:])]:
            transport.write(bytes([opcode, 0x80 | len(piece), 0, 0, 0, 0]) + piece)
        _, audio = await until(socket, "complete")
        assert audio


async def test_several_utterances_in_turn(start):
    async with start() as container, container.talk() as socket:
        for number in range(3):
            await socket.send_json({"text": f"Utterance {number}", "request_id": str(number)})
        seen = []
        for _ in range(3):
            messages, audio = await until(socket, "complete")
            seen.append(messages[-1]["request_id"])
            assert len(audio) == len("Utterance 0") * 2_400 * 2
        assert seen == ["0", "1", "2"]
        assert container.parts.admission.depth == 0


async def test_timestamps_precede_their_audio(start):
    async with start() as container, container.talk() as socket:
        await socket.send_json({"text": TEXT, "timestamps": True})
        messages, _ = await until(socket, "complete")
    timings = [message for message in messages if message != "audio" and message["type"] == "timing"]
    assert " ".join(timing["text"] for timing in timings) == TEXT.strip()
    assert messages.index("audio") == messages.index(timings[0]) + 1


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ("not json", "invalid_json"),
        ("[]", "invalid_json"),
        ('{"type": "dance"}', "unknown_type"),
        ('{"type": ["speak"]}', "unknown_type"),
        ("{}", "invalid_request"),
        ('{"text": "hi", "speed": 9}', "invalid_request"),
        ('{"text": "hi", "voice": "zoe"}', "unknown_voice"),
        ('{"text": "hi", "transport": "sse"}', "invalid_request"),
        (b"\xff\xfe\x00", "invalid_json"),
    ],
)
async def test_bad_messages_are_answered_and_the_session_goes_on(start, frame, code):
    async with start() as container, container.talk() as socket:
        await (socket.send_bytes(frame) if isinstance(frame, bytes) else socket.send_str(frame))
        messages, _ = await until(socket, "error")
        assert messages[-1]["error"] == code
        await socket.send_json({"text": "Hello"})
        await until(socket, "complete")


async def test_unspeakable_text_is_an_error_for_that_utterance(start):
    async with start() as container, container.talk() as socket:
        await socket.send_json({"text": "unspeakable", "request_id": "bad"})
        messages, _ = await until(socket, "error")
        assert (messages[-1]["error"], messages[-1]["request_id"]) == ("unspeakable_text", "bad")
        await socket.send_json({"text": "Hello"})
        await until(socket, "complete")
        assert container.parts.admission.depth == 0


async def test_too_many_bad_messages_close_the_session(start):
    async with start() as container, container.talk() as socket:
        for _ in range(11):
            await socket.send_str("nonsense")
        async with asyncio.timeout(5):
            while (await socket.receive()).type != aiohttp.WSMsgType.CLOSE:
                pass
        assert socket.close_code == aiohttp.WSCloseCode.POLICY_VIOLATION


async def test_an_oversized_message_closes_with_1009(start):
    async with start() as container, container.talk() as socket:
        await socket.send_str("x" * 100_000)
        async with asyncio.timeout(5):
            await socket.receive()
        assert socket.close_code == aiohttp.WSCloseCode.MESSAGE_TOO_BIG


async def test_cancel_stops_the_engine_and_the_next_is_spoken(start, scripted):
    async with start(scripted(call_s=0.05)) as container, container.talk() as socket:
        await socket.send_json({"text": TEXT * 4, "request_id": "long"})
        await socket.send_json({"text": "Hello", "request_id": "next"})
        assert (await socket.receive_json())["type"] == "start"
        await socket.receive_bytes()
        await socket.send_json({"type": "cancel", "request_id": "long"})
        messages, _ = await until(socket, "cancelled")
        assert messages[-1]["request_id"] == "long"
        messages, _ = await until(socket, "complete")
        assert messages[-1]["request_id"] == "next"
        assert len(container.engine.calls) < 6


async def test_cancel_everything(start):
    async with start() as container, container.talk() as socket:
        container.engine.gate.clear()
        for number in range(4):
            await socket.send_json({"text": "Hello", "request_id": str(number)})
        await asyncio.to_thread(container.engine.entered.wait, 5)
        await socket.send_json({"type": "cancel"})
        await until(socket, "cancelled")
        container.engine.gate.set()
        await container.empty()
        assert len(container.engine.calls) == 1


async def test_speak_and_cancel_in_one_breath_ends_silent(start):
    async with start() as container, container.talk() as socket:
        container.engine.gate.clear()
        for number in range(30):
            await socket.send_json({"text": "Hello", "request_id": f"r{number}"})
            await socket.send_json({"type": "cancel", "request_id": f"r{number}"})
            await asyncio.sleep(0.001 * (number % 4))
        container.engine.gate.set()
        await container.empty()
        await socket.send_json({"text": "And now", "request_id": "last"})
        messages, _ = await until(socket, "complete")
        assert messages[-1]["request_id"] == "last"


async def test_too_many_pending_are_refused(start):
    async with start(ws_max_pending=2) as container, container.talk() as socket:
        container.engine.gate.clear()
        await socket.send_json({"text": "Hello"})
        await asyncio.to_thread(container.engine.entered.wait, 5)
        for _ in range(3):
            await socket.send_json({"text": "Hello"})
        messages, _ = await until(socket, "error")
        assert messages[-1]["error"] == "too_many_pending"
        container.engine.gate.set()
        for _ in range(3):
            await until(socket, "complete")


async def test_one_counter_for_both_surfaces(start):
    async with start(max_queue_depth=1) as container, container.talk() as socket, container.talk() as other:
        assert container.parts.admission.depth == 0, "a silent session takes no place"
        container.engine.gate.clear()
        await socket.send_json({"text": "Hello"})
        await asyncio.to_thread(container.engine.entered.wait, 5)
        async with container.post({"text": "Hello"}) as response:
            assert response.status == 503
        await other.send_json({"text": "Hello"})
        messages, _ = await until(other, "error")
        assert messages[-1]["error"] == "queue_saturated"
        assert messages[-1]["retry_after_s"] >= 1
        container.engine.gate.set()
        await until(socket, "complete")


async def test_pings_are_answered_while_busy(start):
    async with start() as container, container.talk(autoping=False) as socket:
        container.engine.gate.clear()
        await socket.send_json({"text": "Hello"})
        await asyncio.to_thread(container.engine.entered.wait, 5)
        await socket.ping(b"alive?")
        async with asyncio.timeout(1):
            while (frame := await socket.receive()).type is not aiohttp.WSMsgType.PONG:
                pass
        assert frame.data == b"alive?"
        container.engine.gate.set()


async def test_idle_sessions_are_closed(start):
    async with start(ws_idle_timeout_s=0.1) as container, container.talk() as socket:
        async with asyncio.timeout(2):
            frame = await socket.receive()
        assert frame.type is aiohttp.WSMsgType.CLOSE
        assert (socket.close_code, frame.extra) == (aiohttp.WSCloseCode.OK, "idle")


async def test_a_busy_session_is_not_idle(start):
    async with start(ws_idle_timeout_s=0.1) as container, container.talk() as socket:
        container.engine.gate.clear()
        await socket.send_json({"text": "Hello"})
        await asyncio.sleep(0.4)
        container.engine.gate.set()
        await until(socket, "complete")


async def test_end_finishes_what_was_asked_and_closes(start):
    async with start() as container, container.talk() as socket:
        await socket.send_json({"text": "Hello"})
        await socket.send_json({"type": "end"})
        await until(socket, "complete")
        async with asyncio.timeout(2):
            frame = await socket.receive()
        assert (frame.type, socket.close_code) == (aiohttp.WSMsgType.CLOSE, aiohttp.WSCloseCode.OK)


async def test_deadline_is_an_error_message(start):
    async with start(request_deadline_s=0.1) as container, container.talk() as socket:
        container.engine.gate.clear()
        await socket.send_json({"text": "Hello"})
        messages, _ = await until(socket, "error")
        assert messages[-1]["error"] == "deadline_exceeded"
        container.engine.gate.set()


async def test_a_plain_get_is_told_to_upgrade(start):
    path = "/invocations-bidirectional-stream"
    async with start() as container, container.client.get(container.url + path) as response:
        assert response.status == 426
        assert (await response.json())["error"] == "upgrade_required"


async def test_not_ready_refuses_the_handshake(start):
    async with start(warm=False) as container:
        with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
            async with container.talk():
                pass
        assert caught.value.status == 503
