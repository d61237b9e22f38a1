"""What each command does."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from rehearsal.errors import RehearsalError, UsageError
from rehearsal.settings import ACCESS_KEY, SECRET_KEY, Settings
from rehearsal.state import Running, StateDir, start_ticks

READY_WITHIN_S = 60.0
DOWN_WITHIN_S = 45.0
NOT_UP = RehearsalError("the rehearsal is not up", "python -m rehearsal up")


def up(settings: Settings, seed: Any, *, foreground: bool) -> int:
    """Start the server unless it runs; seed when asked."""
    state = StateDir.from_environment()
    if foreground:
        return _serve_here(settings, state, seed)
    with state.starting():
        running = _already_up(state)
        if running:
            _say(f"already up at {running.url}")
        else:
            running = _launch(settings, state)
            _say(f"up at {running.url}")
    if seed:
        _seed(running, seed)
    print(running.url)
    return 0


def env() -> int:
    """Shell lines for ``eval``."""
    running = _running()
    values = {
        "AWS_ENDPOINT_URL": running.url,
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_REGION": running.region,
        "AWS_DEFAULT_REGION": running.region,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_MAX_ATTEMPTS": "3",
        "CHECKPOINT_DISABLE": "1",
    }
    if running.bidi_url and running.bidi_ca:
        values["AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME_HTTP2"] = running.bidi_url
        values["SSL_CERT_FILE"] = running.bidi_ca
    print("unset AWS_PROFILE AWS_SESSION_TOKEN")
    for name, value in values.items():
        print(f"export {name}={shlex.quote(value)}")
    return 0


def status(*, as_json: bool) -> int:
    """What runs; exit 3 when nothing does."""
    running = StateDir.from_environment().running()
    if running is None:
        print(json.dumps({"up": False}) if as_json else "not up")
        return 3
    state = _ask(running, "GET", "state")
    if as_json:
        print(json.dumps({"up": True, "url": running.url, "pid": running.pid, **state}, indent=2))
        return 0
    print(f"up at {running.url} (pid {running.pid})")
    for endpoint in state["endpoints"]:
        print(f"{endpoint['name']}: {endpoint['status']} {endpoint['failure_reason'] or ''}".rstrip())
        for variant in endpoint["variants"]:
            print(f"  {variant['name']}: {variant['current']} of {variant['desired']} instances")
            for instance in variant["instances"]:
                print(f"    {instance['id']} {instance['state']}, {instance['in_flight']} in flight")
    for name, parameters in state["faults"].items():
        print(f"fault {name} {' '.join(f'{key}={value}' for key, value in parameters.items())}".rstrip())
    return 0


def logs(endpoint: str, *, of_server: bool) -> int:
    """The instances' log streams in order of time, or the server's own log."""
    state = StateDir.from_environment()
    if of_server:
        print(state.log.read_text() if state.log.exists() else "", end="")
        return 0
    running = _running()
    from rehearsal.reading import log_lines

    for line in log_lines(running.url, running.region, endpoint):
        print(line)
    return 0


def down() -> int:
    """Stop the server and wait until nothing of it is left."""
    state = StateDir.from_environment()
    with state.starting():
        running = state.running()
        if running is None and not state.alive():
            state.kill_leftovers()
            _say("not up")
            return 0
        if running is None:
            raise RehearsalError("the rehearsal is still starting", "try again in a moment")
        os.kill(running.pid, signal.SIGTERM)
        deadline = time.monotonic() + DOWN_WITHIN_S
        while state.alive() or start_ticks(running.pid):
            if time.monotonic() > deadline:
                os.kill(running.pid, signal.SIGKILL)
                time.sleep(0.2)
                break
            time.sleep(0.05)
        state.withdraw()
        state.kill_leftovers()
    _say("down")
    return 0


def fault(name: str | None, parameters: Mapping[str, str], *, clear: bool) -> int:
    """Set or clear a fault; prints what is on."""
    running = _running()
    if clear:
        active = _ask(running, "DELETE", f"faults/{name}" if name else "faults")
    elif name:
        active = _ask(running, "PUT", f"faults/{name}", dict(parameters))
    else:
        active = _ask(running, "GET", "faults")["active"]
    print(json.dumps(active, indent=2))
    return 0


def null(port: int, mode: Any) -> int:
    """Serve the null data plane until interrupted."""
    from rehearsal.dataplane.null import serve

    asyncio.run(serve(port, mode, lambda url: print(url, flush=True)))
    return 0


def seed_of(endpoint: str, variant: str, instance_type: str, environment: dict[str, str], command: str) -> Any:
    """What ``--seed`` creates; another command's image is its script."""
    from rehearsal import image
    from rehearsal.seed import Seed

    files = image.container_sources()
    if command:
        scripts = [Path(word) for word in shlex.split(command) if word.endswith(".py")]
        missing = [str(path) for path in scripts if not path.is_file()]
        if missing:
            raise UsageError(f"--command: no such file: {', '.join(missing)}")
        files = {path.name: path.read_bytes() for path in scripts} or {"command": command.encode()}
    return Seed(endpoint, variant, instance_type, environment, image.Image.of(files))


def _launch(settings: Settings, state: StateDir) -> Running:
    state.withdraw()
    if found := state.kill_leftovers():
        _say(f"cleaned up {found} container(s) of a rehearsal that was killed")
    state.settings.write_text(settings.to_json())
    with state.log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "rehearsal.serve", str(state.path)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    running = state.wait_running(READY_WITHIN_S, lambda: process.poll() is None)
    if running is None:
        process.kill()
        raise RehearsalError(f"the rehearsal did not start:\n{_tail(state.log)}", f"all of it is in {state.log}")
    return running


def _serve_here(settings: Settings, state: StateDir, seed: Any) -> int:
    from rehearsal.serve import run

    if seed:
        threading.Thread(target=_seed_when_ready, args=(state, seed), daemon=True).start()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    return run(settings, state)


def _seed_when_ready(state: StateDir, seed: Any) -> None:
    running = state.wait_running(READY_WITHIN_S, lambda: True)
    if running:
        _seed(running, seed)


def _already_up(state: StateDir) -> Running | None:
    if not state.alive():
        return None
    return state.wait_running(READY_WITHIN_S, state.alive)


def _seed(running: Running, seed: Any) -> None:
    from rehearsal.seed import create

    try:
        created = create(running.url, running.region, seed, _progress())
    except ClientError as error:
        raise UsageError(f"--seed: {error}", "check the names on the command line") from None
    if not created:
        _say(f"{seed.endpoint} was there already: its model, variant and environment stay as they are")
    _say(f"{seed.endpoint} is in service")


def _running() -> Running:
    running = StateDir.from_environment().running()
    if running is None:
        raise NOT_UP
    return running


def _ask(running: Running, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    request = urllib.request.Request(
        f"{running.url}/_rehearsal/{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        problem = json.load(error)
        raise UsageError(problem["message"], problem["hint"]) from None


def _progress() -> Any:
    """A line that is rewritten on a terminal and silent elsewhere."""
    if not sys.stderr.isatty():
        return lambda _: None
    return lambda text: print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def _say(text: str) -> None:
    if sys.stderr.isatty():
        text = f"\r\033[K{text}"
    print(text, file=sys.stderr)


def _tail(path: Path, lines: int = 15) -> str:
    return "\n".join(path.read_text().splitlines()[-lines:])
