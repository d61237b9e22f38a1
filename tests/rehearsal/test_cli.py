"""Up, down and what lies between, as a user types it."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rehearsal.state import start_ticks
from tests.rehearsal.conftest import ENDPOINT, Up, until

pytestmark = pytest.mark.e2e


def pids(up: Up) -> list[int]:
    state = json.loads(up.run("status", "--json").out)
    return [state["pid"], *[instance["pid"] for instance in up.instances()]]


def test_up_twice_env_and_down(fresh: Up) -> None:
    fresh.start("--seed")
    again = fresh.run("up")
    assert (again.code, again.out.strip()) == (0, fresh.url)
    assert "already up" in again.err
    shell = fresh.run("env").out
    assert f"export AWS_ENDPOINT_URL={fresh.url}" in shell
    script = 'import boto3; print(boto3.client("sts").get_caller_identity()["Account"])'
    line = f"{shell}\n{sys.executable} -c {shlex.quote(script)}"
    seen = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True)
    assert seen.stdout.strip() == "123456789012"
    assert f"{ENDPOINT}: InService" in fresh.run("status").out
    assert "STAGE container_started" in fresh.run("logs", "--endpoint", ENDPOINT).out
    running = pids(fresh)
    assert fresh.run("down").code == 0
    assert [pid for pid in running if start_ticks(pid)] == []
    assert fresh.run("down").code == 0
    assert json.loads(fresh.run("status", "--json").out) == {"up": False}


def test_the_users_own_aws_configuration_is_not_looked_at(fresh: Up, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    fresh.start("--seed")
    assert "STAGE" in fresh.run("logs", "--endpoint", ENDPOINT).out


def test_a_killed_rehearsal_leaves_no_container_and_the_next_up_works(fresh: Up) -> None:
    fresh.start("--seed")
    server, container = pids(fresh)
    os.kill(server, signal.SIGKILL)
    until(lambda: start_ticks(container) == 0, timeout_s=5)
    assert json.loads(fresh.run("status", "--json").out) == {"up": False}
    fresh.start()
    assert fresh.truth("state")["endpoints"] == []


def test_a_server_without_its_state_directory_ends_itself(fresh: Up) -> None:
    fresh.start("--seed")
    running = pids(fresh)
    shutil.rmtree(fresh.directory)
    until(lambda: not [pid for pid in running if start_ticks(pid)], timeout_s=20)


def test_leftovers_of_a_killed_rehearsal_are_killed(tmp_path: Path) -> None:
    from rehearsal.state import StateDir

    state = StateDir(tmp_path)
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as leftover:
        state.note_process(leftover.pid)
        (tmp_path / "processes").open("a").write("1 12345\n")
        assert state.kill_leftovers() == 1
        assert leftover.wait(5) == -signal.SIGKILL


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["up", "--stages", "boot=1"], "unknown stage 'boot'"),
        (["up", "--stages", "provisioning=long"], "not a number of seconds"),
        (["up", "--env", "KEY"], "not KEY=VALUE"),
        (["up", "--metric-scope", "galaxy"], "not one of per_instance, variant_total"),
        (["up", "--seed", "--command", "python nowhere.py"], "no such file: nowhere.py"),
        (["up", "--time-scale", "0"], "greater than zero"),
        (["up", "--port", "99999999"], "--port: '99999999' is not a port"),
        (["up", "--port", "x"], "--port: 'x' is not a port"),
    ],
)
def test_bad_input_is_told_and_nothing_starts(fresh: Up, arguments: list[str], message: str) -> None:
    done = fresh.run(*arguments)
    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err
    assert not (fresh.directory / "running.json").exists()


def test_names_that_aws_refuses(fresh: Up) -> None:
    done = fresh.run("up", "--seed", "--endpoint", "a b")
    assert done.code == 2
    assert "failed to satisfy constraint" in done.err
    assert "Traceback" not in done.err


def test_a_state_directory_that_cannot_be_made(fresh: Up) -> None:
    fresh.directory.write_text("")
    for command in ("up", "status", "down"):
        done = fresh.run(command)
        assert done.code == 2
        assert "cannot be used" in done.err
        assert "HEADROOM_REHEARSAL_DIR" in done.err


@pytest.mark.parametrize("command", ["env", "logs", "fault"])
def test_without_a_rehearsal(fresh: Up, command: str) -> None:
    done = fresh.run(command)
    assert done.code == 5
    assert "python -m rehearsal up" in done.err


def test_a_taken_port_is_named(fresh: Up, seeded: Up) -> None:
    port = seeded.url.rpartition(":")[2]
    done = fresh.run("up", "--port", port)
    assert done.code == 5
    assert f"port {port} cannot be used" in done.err


def test_faults_are_listed_set_and_cleared(seeded: Up) -> None:
    assert json.loads(seeded.run("fault", "late-logs", "delay_s=3").out) == {"late-logs": {"delay_s": 3.0}}
    assert "late-logs" in seeded.run("status").out
    assert json.loads(seeded.run("fault", "late-logs", "--clear").out) == {}
    unknown = seeded.run("fault", "gremlins")
    assert (unknown.code, "no-capacity" in unknown.err) == (2, True)
    wrong = seeded.run("fault", "late-logs", "speed=1")
    assert (wrong.code, "it takes delay_s" in wrong.err) == (2, True)


def test_memory_of_an_idle_server(seeded: Up) -> None:
    state = json.loads(seeded.run("status", "--json").out)
    status = Path(f"/proc/{state['pid']}/status").read_text()
    [resident] = [line for line in status.splitlines() if line.startswith("VmRSS")]
    assert int(resident.split()[1]) < 400 * 1024
