"""Frames as botocore reads them."""

import json

from botocore.eventstream import EventStreamBuffer

from rehearsal.dataplane import eventstream


def decode(data: bytes) -> list:
    buffer = EventStreamBuffer()
    buffer.add_data(data)
    return list(buffer)


def test_a_payload_part_survives_byte_by_byte_delivery() -> None:
    buffer = EventStreamBuffer()
    seen = []
    for index in range(len(whole := eventstream.payload_part(b"\x00\xffaudio"))):
        buffer.add_data(whole[index : index + 1])
        seen += list(buffer)
    assert [event.payload for event in seen] == [b"\x00\xffaudio"]
    assert seen[0].headers == {
        ":event-type": "PayloadPart",
        ":content-type": "application/octet-stream",
        ":message-type": "event",
    }


def test_several_frames_follow_each_other() -> None:
    data = eventstream.payload_part(b"a") + eventstream.payload_part(b"") + eventstream.payload_part(b"c" * 70_000)
    assert [len(event.payload) for event in decode(data)] == [1, 0, 70_000]


def test_an_exception_names_its_kind() -> None:
    [event] = decode(eventstream.exception("ModelStreamError", "gone", ErrorCode="StreamBroken"))
    assert event.headers[":exception-type"] == "ModelStreamError"
    assert json.loads(event.payload) == {"Message": "gone", "ErrorCode": "StreamBroken"}
