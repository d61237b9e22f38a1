"""CPU and memory of a process group."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from rehearsal.fleet.usage import Usage


def test_a_busy_child_is_seen_and_a_dead_one_reads_zero() -> None:
    burn = "import time\nend = time.monotonic() + 5\nwhile time.monotonic() < end: pass"
    with subprocess.Popen([sys.executable, "-c", burn], start_new_session=True) as child:
        usage = Usage()
        usage.read(child.pid)
        time.sleep(0.1)
        busy = usage.read(child.pid)
        assert busy["CPUUtilization"] >= 0
        assert 0 < busy["MemoryUtilization"] < 50
        os.killpg(child.pid, 9)
        child.wait()
        assert usage.read(child.pid) == {"CPUUtilization": 0.0, "MemoryUtilization": 0.0}
