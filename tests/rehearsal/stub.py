"""A container small enough to start at once; the request's body says how it behaves."""

import asyncio
import json
import os
import secrets
import signal
import time

from aiohttp import web

STARTED = time.monotonic()
BOOT_ID = secrets.token_hex(6)
PIECE = b"\x01\x02" * 240


def mark(stage: str) -> None:
    now_ms = int(time.time() * 1000)
    print(f"=== STAGE {stage} t={now_ms} elapsed_s={time.monotonic() - STARTED:.3f} ===", flush=True)


class Stub:
    def __init__(self) -> None:
        self.held = 0
        self.gone = 0

    async def ping(self, _: web.Request) -> web.Response:
        return web.Response(status=int(os.environ.get("STUB_PING", "200")))

    async def invocations(self, request: web.Request) -> web.StreamResponse:
        asked = json.loads(await request.read() or b"{}")
        self.held += 1
        depth = self.held
        try:
            return await self._answer(request, asked, depth)
        except asyncio.CancelledError:
            self.gone += 1
            raise
        finally:
            self.held -= 1

    async def bidirectional(self, request: web.Request) -> web.WebSocketResponse:
        """Echoes binary frames; ``bye`` ends well, ``fail`` ends badly."""
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_str("hello")
        async for message in socket:
            if message.data == b"bye":
                await socket.close()
            elif message.data == b"fail":
                await socket.close(code=1011)
            else:
                await socket.send_bytes(b"echo:" + message.data)
        return socket

    async def _answer(self, request: web.Request, asked: dict, depth: int) -> web.StreamResponse:
        if asked.get("exit"):
            os._exit(3)
        await asyncio.sleep(asked.get("first_s", 0))
        if status := asked.get("status"):
            return web.json_response({"error": "queue_saturated", "gone": self.gone}, status=status)
        attributes = asked.get("attributes", f"boot_id={BOOT_ID};queue_depth={depth}")
        response = web.StreamResponse(
            headers={
                "Content-Type": request.headers.get("Accept", "audio/pcm"),
                "X-Amzn-SageMaker-Custom-Attributes": attributes,
                "X-Private": "stays inside",
            }
        )
        await response.prepare(request)
        for _ in range(asked.get("pieces", 3)):
            await response.write(PIECE)
            await asyncio.sleep(asked.get("gap_s", 0))
        if asked.get("cut"):
            request.transport.abort()
        return response


async def main() -> None:
    mark("container_started")
    stub = Stub()
    app = web.Application()
    app.router.add_get("/ping", stub.ping)
    app.router.add_post("/invocations", stub.invocations)
    app.router.add_get("/invocations-bidirectional-stream", stub.bidirectional)
    runner = web.AppRunner(app, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", int(os.environ["SAGEMAKER_BIND_TO_PORT"])).start()
    mark("warmup_done")
    print(f"environment {os.environ.get('STUB_NOTE', '-')}", flush=True)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await stop.wait()
    print("stopping", flush=True)
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(main())
