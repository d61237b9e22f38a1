"""Speaks the lines of loadtest.bidi_process and no bidirectional stream: ``fake_sessions.py BEHAVIOUR LOG NAME``.

Writes every command to LOG. After ``users`` it reports one answered request each 20 ms; when stdin ends, a cut one.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time

BEHAVIOUR, LOG, NAME = sys.argv[1:]
OFF_NS = 5_000_000_000 if BEHAVIOUR == "other-clock" else 0


def report(run: int, outcome: str, error: str | None) -> None:
    now = time.monotonic_ns()
    heard = now if outcome == "ok" else None
    # worker run rung intended sent headers first_audio done outcome error status bytes chars text
    row = [NAME, run, 0, now, now, heard, heard, now, outcome, error, 200, 48, 9, 3]
    row += ["0123456789ab", 2, None, None]  # boot_id queue_depth service_ms, then the gap
    status = {"worker": NAME, "anchor": [now, time.time_ns() + OFF_NS], "rows": [row]}
    sys.stdout.write(json.dumps(status) + "\n")
    sys.stdout.flush()


def main() -> None:
    run, users, pending = 0, 0, b""
    with open(LOG, "a") as log:
        while True:
            if select.select([0], [], [], 0.02)[0]:
                heard = os.read(0, 1 << 20)
                if not heard:
                    break
                pending += heard
                *lines, pending = pending.split(b"\n")
                for command in map(json.loads, lines):
                    log.write(json.dumps(command) + "\n")
                    log.flush()
                    run = command["job"]["run"] if "job" in command else run
                    users = command.get("users", users)
            if users:
                report(run, "ok", f"pid {os.getpid()}")
            if users and BEHAVIOUR == "dies":
                sys.exit(7)
    if BEHAVIOUR == "stuck":
        time.sleep(60)
    report(run, "cancelled", None)


main()
