"""One container process: its environment, its port, its output, its end."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

COMMAND = (sys.executable, "-m", "container.server", "serve")
TETHER = Path(__file__).with_name("tether.py")
KILL_AFTER_S = 30.0
"""SageMaker's SIGKILL comes this long after SIGTERM."""
LONGEST_LINE_BYTES = 1 << 20

_INHERITED = ("PATH", "HOME", "LANG", "TMPDIR", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "SSL_CERT_FILE")
_INHERITED_PREFIXES = ("LC_", "XDG_", "HF_", "PIP_", "UV_", "CUDA_", "NVIDIA_", "OMP_", "HTTP_", "HTTPS_", "NO_PROXY")


class Container:
    """A started process; ``exited`` tells when it is gone."""

    def __init__(self, process: asyncio.subprocess.Process, port: int, on_line: Callable[[str], None]) -> None:
        self._process = process
        self.port = port
        self._output = asyncio.create_task(self._forward(on_line))

    @classmethod
    async def start(
        cls, environment: Mapping[str, str], on_line: Callable[[str], None], command: Sequence[str] = COMMAND
    ) -> Container:
        """Start it on a free port; the model's environment wins over what SageMaker sets."""
        port = _free_port()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", str(TETHER), str(os.getpid()), *command),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={**_inherited(), "HOST": "127.0.0.1", **environment, "SAGEMAKER_BIND_TO_PORT": str(port)},
            start_new_session=True,
            limit=LONGEST_LINE_BYTES,
        )
        return cls(process, port, on_line)

    @property
    def pid(self) -> int:
        """Also its process group."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.returncode

    async def exited(self) -> int:
        """Wait for its end, its last line included."""
        code = await self._process.wait()
        await self._output
        return code

    async def stop(self, kill_after_s: float = KILL_AFTER_S) -> None:
        """SIGTERM, then SIGKILL to the whole group when it takes too long."""
        if self._process.returncode is None:
            self._process.send_signal(signal.SIGTERM)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), kill_after_s)
        self.kill()
        await self.exited()

    def kill(self) -> None:
        """SIGKILL to the whole group."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    async def _forward(self, on_line: Callable[[str], None]) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            on_line(line.decode("utf-8", "replace").rstrip("\n"))


def _inherited() -> dict[str, str]:
    """What a process needs to run here at all; settings come from the model's environment alone."""
    return {
        name: value
        for name, value in os.environ.items()
        if name in _INHERITED or name.upper().startswith(_INHERITED_PREFIXES)
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
