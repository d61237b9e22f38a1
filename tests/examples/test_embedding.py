"""The embedding example: a real vector, a bounded queue, the same response attributes as any container."""

import asyncio
import importlib.util
import math
from pathlib import Path

import pytest
from aiohttp.test_utils import TestClient, TestServer

_SPEC = importlib.util.spec_from_file_location("embedding_server", Path("examples/embedding/server.py"))
server = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(server)


def cosine(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def test_vectors_have_unit_length_and_near_texts_are_near():
    cat, cats, tax = (server.embed(text) for text in ("the cat sleeps", "the cats sleep", "quarterly tax form"))
    assert math.isclose(cosine(cat, cat), 1.0, abs_tol=1e-3)
    assert cosine(cat, cats) > 0.6 > cosine(cat, tax)


@pytest.fixture
async def client():
    app = server.application({"EMBED_SERVICE_MS": "30", "MAX_QUEUE_DEPTH": "2"})
    async with TestClient(TestServer(app)) as started:
        yield started


async def test_answers_with_attributes(client):
    response = await client.post("/invocations", json={"inputs": "hello"})
    assert response.status == 200
    assert len((await response.json())["embedding"]) == 256
    assert "queue_depth=1;" in response.headers["X-Amzn-SageMaker-Custom-Attributes"]


async def test_past_the_bound_is_refused_at_once(client):
    calls = [client.post("/invocations", json={"inputs": "hello"}) for _ in range(5)]
    statuses = sorted([r.status for r in await asyncio.gather(*calls)])
    assert statuses == [200, 200, 503, 503, 503]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"inputs": 3}', b'{"inputs": " "}'])
async def test_bad_bodies_are_400(client, body):
    assert (await client.post("/invocations", data=body)).status == 400
