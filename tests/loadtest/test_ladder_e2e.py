"""The ladder as a user runs it, against a rehearsal with the replay engine at 20 ms a request, one at a time."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from planner.artifacts import records
from planner.artifacts.qmax import Qmax
from planner.artifacts.records import Anchor, RequestRecord

pytestmark = pytest.mark.e2e

ENDPOINT = "speech-kokoro-82m"
QUICK_STAGES = "provisioning=0.1,container_start=0,health_check=0,routing=0"
SERVICE = ["REPLAY_SERVICE_MEAN_MS=20", "REPLAY_SERVICE_P95_MS=21"]
REPLAY = [*SERVICE, "REPLAY_STAGES_S=framework_init=0,weights_ready=0,warmup_done=0"]
SEED = ["--engine", "replay", *(item for value in REPLAY for item in ("--env", value))]
QUICK = ["--hold-s", "3.5", "--measure-window-s", "2.5", "--idle-s", "0.2", "--slo-ms", "250", "--force"]
ROOT = Path(__file__).resolve().parents[2]
LOCUSTFILE = str(ROOT / "loadtest" / "ladder.py")


@dataclass
class Rehearsed:
    """A rehearsal, and commands that talk to it from a directory of their own."""

    environment: dict[str, str]
    directory: Path

    def start(self, *arguments: str, locust: bool = False, **options: Any) -> subprocess.Popen[str]:
        program = ["-m", "locust", "-f", LOCUSTFILE, "--headless"] if locust else ["-m", "loadtest.ladder"]
        base = ["--endpoint", ENDPOINT, "--model", "m", "--out", str(self.directory / "out")]
        return subprocess.Popen(
            [sys.executable, *program, *base, *arguments],
            env=self.environment,
            cwd=self.directory,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            **options,
        )

    def run(self, *arguments: str, **options: Any) -> tuple[int, str, str]:
        process = self.start(*arguments, **options)
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err

    def measure(self, *arguments: str) -> tuple[int, str, str]:
        """As run; once more when the ladder itself says that this machine was too busy to measure."""
        for _ in range(3):
            code, out, err = self.run(*arguments)
            if "client-bound" not in out and "shift inside" not in out and "drift inside" not in out:
                break
            shutil.rmtree(self.directory / "out")
        return code, out, err

    def command(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", *arguments],
            env=self.environment,
            cwd=self.directory,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.environment['AWS_ENDPOINT_URL']}/_rehearsal/{path}", timeout=10) as answer:
            return json.load(answer)

    def artifact(self) -> Qmax:
        (path,) = (self.directory / "out").glob("qmax-*.json")
        return Qmax.load(path)

    def lines(self) -> list[Anchor | RequestRecord]:
        (path,) = (self.directory / "out").glob("qmax-*.requests.jsonl")
        return list(records.read(path))

    def left_behind(self) -> list[str]:
        """Journals in the working directory, tags on the endpoint, load processes."""
        journals = [str(path) for path in (self.directory / ".headroom").rglob("*.json")]
        mine = [p.pid for p in psutil.process_iter() if _works_in(p, self.directory)]
        return [*journals, *self.tags(), *map(str, mine)]

    def tags(self) -> list[str]:
        code = (
            "import boto3; s=boto3.client('sagemaker');"
            f"a=s.describe_endpoint(EndpointName='{ENDPOINT}')['EndpointArn'];"
            "print(*[t['Key'] for t in s.list_tags(ResourceArn=a)['Tags'] if t['Key'].startswith('headroom:')])"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], env=self.environment, capture_output=True, text=True, check=True, timeout=30
        )
        return done.stdout.split()


def _works_in(process: psutil.Process, directory: Path) -> bool:
    try:
        return process.cwd() == str(directory)
    except (psutil.AccessDenied, psutil.NoSuchProcess):
        return False


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    # Commands run in directories of their own and still run this checkout.
    own = os.environ | {"HEADROOM_REHEARSAL_DIR": str(tmp_path_factory.mktemp("rehearsal")), "PYTHONPATH": str(ROOT)}

    def rehearsal(*arguments: str) -> str:
        command = [sys.executable, "-m", "rehearsal", *arguments]
        return subprocess.run(command, env=own, stdout=subprocess.PIPE, text=True, check=True, timeout=100).stdout

    rehearsal("up", "--stages", QUICK_STAGES, "--seed", *SEED)
    try:
        exports = (line.removeprefix("export ").partition("=") for line in rehearsal("env").splitlines())
        yield own | {name: value for name, equals, value in exports if equals}
    finally:
        rehearsal("down")


@pytest.fixture
def rehearsed(shared: dict[str, str], tmp_path: Path) -> Rehearsed:
    return Rehearsed(shared, tmp_path)


def wait_for(process: subprocess.Popen[str], text: str, limit_s: float = 40) -> str:
    """Read stderr until ``text`` is in it."""
    assert process.stderr is not None
    seen = ""
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        line = process.stderr.readline()
        seen += line
        if text in seen:
            return seen
        if not line and process.poll() is not None:
            break
    raise AssertionError(f"never said {text!r}: {seen}")


def test_a_whole_run(rehearsed: Rehearsed) -> None:
    code, out, err = rehearsed.measure("--rungs", "1,4,24", *QUICK)
    assert code == 0, err
    found = rehearsed.artifact()
    # 20 ms a request, one at a time: 4 wait 80 ms, 24 wait 480 ms, the SLO is 250 ms.
    assert (found.outcome, found.q_max, found.bracketed) == ("found", 4, True), out + err
    assert "Q_max = 4" in out
    assert "hold no whole 10 s period of CloudWatch" in err.partition("N=1 ")[0]
    assert "\r" not in err
    assert found.fingerprint is not None
    assert found.fingerprint.container_env["REPLAY_SERVICE_MEAN_MS"] == "20"
    by_rung = {rung.concurrency: rung for rung in found.ladder}
    assert by_rung[24].ttfab_ms is not None
    assert by_rung[24].ttfab_ms.p50 == pytest.approx(480, rel=0.1)
    for concurrency, rung in by_rung.items():
        assert rung.in_flight_mean == pytest.approx(concurrency, rel=0.05)
    assert all(rung.achieved_rps == pytest.approx(50, rel=0.3) for n, rung in by_rung.items() if n > 1)
    assert {path.suffix for path in (rehearsed.directory / "out").iterdir()} == {".json", ".jsonl", ".png", ".svg"}
    sent = [line for line in rehearsed.lines() if isinstance(line, RequestRecord)]
    assert Counter(line.outcome for line in sent).keys() == {"ok"}
    first_ns = min(line.sent_ns for line in sent)
    served = [trace for trace in rehearsed.get("requests") if trace["arrival_ns"] >= first_ns]
    judge_by_the_server(sent, served, users=1 + 4 + 24)
    assert rehearsed.left_behind() == []


def judge_by_the_server(sent: list[RequestRecord], served: list[dict[str, Any]], users: int) -> None:
    """The rehearsal's own account of the run against our records; both read this machine's monotonic clock."""
    assert len(served) == len(sent), "one attempt a request, none forgotten"
    assert len({trace["connection"] for trace in served}) == users, "one connection a user, reused"
    edges = [(trace["arrival_ns"], 1) for trace in served] + [(trace["end_ns"], -1) for trace in served]
    level = most = 0
    for _, step in sorted(edges):
        level += step
        most = max(most, level)
    assert most == 24, "never more than N in flight"
    ours = sorted(line.first_audio_ns - line.sent_ns for line in sent if line.first_audio_ns is not None)
    theirs = sorted(trace["first_byte_ns"] - trace["arrival_ns"] for trace in served)
    assert 0 < (ours[len(ours) // 2] - theirs[len(theirs) // 2]) / 1e6 < 20


def test_n_is_split_exactly_over_two_processes(rehearsed: Rehearsed) -> None:
    code, _, err = rehearsed.measure("--rungs", "4,24", "--processes", "2", *port(), *QUICK)
    assert code == 0, err
    found = rehearsed.artifact()
    assert (found.q_max, found.bracketed, found.method.load_processes) == (4, True, 2)
    lines = rehearsed.lines()
    workers = {line.worker for line in lines if isinstance(line, Anchor)}
    assert len(workers) == 2
    assert {line.worker for line in lines if isinstance(line, RequestRecord)} == workers
    assert most_in_flight([line for line in lines if isinstance(line, RequestRecord)]) == {0: 4, 1: 24}
    assert rehearsed.left_behind() == []


@pytest.mark.slow
def test_a_master_and_two_workers_as_locust_files(rehearsed: Rehearsed) -> None:
    both = port()
    bind, connect = both[:2], both[2:]
    master = rehearsed.start("--rungs", "4,24", "--master", "--expect-workers", "2", *bind, *QUICK, locust=True)
    workers = [rehearsed.start("--worker", *connect, locust=True) for _ in range(2)]
    _, err = master.communicate(timeout=120)
    for worker in workers:
        worker.communicate(timeout=30)
    assert master.returncode == 0, err
    assert rehearsed.artifact().q_max == 4


def test_a_killed_worker_voids_its_rung(rehearsed: Rehearsed) -> None:
    master = rehearsed.start("--rungs", "1,4", "--processes", "2", *port(), *QUICK, "--hold-s", "6")
    seen = wait_for(master, "N=1 ")
    time.sleep(3)
    victim, _ = psutil.Process(master.pid).children()
    victim.kill()
    _, err = master.communicate(timeout=60)
    verdicts = {rung.concurrency: rung for rung in rehearsed.artifact().ladder}
    assert verdicts[4].verdict == "invalid", seen + err
    assert "worker lost" in verdicts[4].reasons[0]
    assert master.returncode == 0
    assert rehearsed.left_behind() == []


@pytest.mark.parametrize(
    ("number", "moment"),
    [
        (signal.SIGINT, "writing the journal"),
        pytest.param(signal.SIGTERM, "frozen", marks=pytest.mark.slow),
        pytest.param(signal.SIGINT, "frozen", marks=pytest.mark.slow),
        (signal.SIGTERM, "N=1 "),
        pytest.param(signal.SIGINT, "restoring", marks=pytest.mark.slow),
    ],
)
def test_an_interrupted_run_restores(rehearsed: Rehearsed, number: signal.Signals, moment: str) -> None:
    process = rehearsed.start("--rungs", "1,4", *QUICK)
    wait_for(process, moment)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert "as it was before" in err
    assert not list((rehearsed.directory / "out").glob("qmax-*")), out
    assert rehearsed.left_behind() == []


def test_after_kill_9_the_next_run_refuses_and_thaw_restores(rehearsed: Rehearsed) -> None:
    process = rehearsed.start("--rungs", "4", "--processes", "2", *port(), *QUICK)
    wait_for(process, "rungs 4")
    process.kill()
    # Its pipes stay open until the load processes it forked have gone too.
    process.communicate(timeout=10)
    assert rehearsed.tags()
    code, _, err = rehearsed.run("--rungs", "4", *QUICK)
    assert code == 2
    assert "make thaw" in err
    rehearsed.command("scripts.thaw", "--endpoint", ENDPOINT, "--variant", "primary")
    assert rehearsed.left_behind() == []


def test_an_endpoint_that_is_deleted_meanwhile(rehearsed: Rehearsed) -> None:
    process = rehearsed.start("--rungs", "1", *QUICK, "--hold-s", "40")
    wait_for(process, "rungs 1")
    try:
        delete = f"import boto3; boto3.client('sagemaker').delete_endpoint(EndpointName='{ENDPOINT}')"
        subprocess.run([sys.executable, "-c", delete], env=rehearsed.environment, check=True, timeout=30)
        _, err = process.communicate(timeout=60)
    finally:
        rehearsed.command("rehearsal", "up", "--seed", *SEED)
    assert process.returncode == 5
    assert "was deleted while it was frozen" in err
    assert "Traceback" not in err
    assert rehearsed.left_behind() == []


def test_an_slo_below_the_service_time(rehearsed: Rehearsed) -> None:
    code, out, err = rehearsed.measure("--rungs", "4,16", *QUICK, "--slo-ms", "5")
    assert code == 3, err
    assert "no concurrency meets" in err
    assert rehearsed.artifact().outcome == "none_meets_slo"
    assert "N=16" not in err
    assert "SLO of 5 ms" in out


@pytest.mark.parametrize("fault", [["stream-error"], pytest.param(["stall"], marks=pytest.mark.slow)])
def test_an_endpoint_that_breaks_every_answer(rehearsed: Rehearsed, fault: list[str]) -> None:
    rehearsed.command("rehearsal", "fault", *fault)
    try:
        code, _, err = rehearsed.run("--rungs", "4", *QUICK, "--hold-s", "40", "--request-timeout-s", "1")
    finally:
        rehearsed.command("rehearsal", "fault", *fault, "--clear")
    assert code == 5, err
    assert "nothing but failures" in err
    assert not list((rehearsed.directory / "out").glob("qmax-*.json"))
    assert rehearsed.left_behind() == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--endpoint", "nothing"], ["no endpoint is named 'nothing'", ENDPOINT]),
        (["--variant", "nothing"], ["no variant 'nothing'", "primary"]),
        (["--rungs", "0,-1,x"], ["0, -1, x"]),
        (["-u", "5", "--processes", "2"], ["-u cannot be combined"]),
        (["--processes", "9999"], ["--processes 9999 is more than"]),
        (["--out", "/dev/null/below"], ["/dev/null/below: cannot be written"]),
    ],
)
def test_bad_input_freezes_nothing(rehearsed: Rehearsed, arguments: list[str], words: list[str]) -> None:
    code, out, err = rehearsed.run(*arguments)
    assert code == 2
    assert out == ""
    assert "Traceback" not in err
    for word in words:
        assert word in err
    assert rehearsed.left_behind() == []


def test_without_credentials(rehearsed: Rehearsed) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        rehearsed.environment = {key: value for key, value in rehearsed.environment.items() if key != name}
    code, _, err = rehearsed.run("--rungs", "1")
    assert (code, "credentials" in err) == (2, True)


def test_a_dry_run_calls_no_aws(rehearsed: Rehearsed) -> None:
    nobody = socket.create_server(("127.0.0.1", 0))
    rehearsed.environment = rehearsed.environment | {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{nobody.getsockname()[1]}"}
    code, out, err = rehearsed.run("--dry-run")
    nobody.settimeout(0.01)
    with pytest.raises(TimeoutError):
        nobody.accept()
    nobody.close()
    assert code == 0, err
    assert "wall clock" in out
    assert "$" in out


def port() -> list[str]:
    """Locust's own port, free for this test."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        number = str(probe.getsockname()[1])
    return ["--master-bind-port", number, "--master-port", number]


def most_in_flight(sent: list[RequestRecord]) -> dict[int, int]:
    """Highest overlap of requests in each rung."""
    found: dict[int, int] = {}
    for rung in {line.rung for line in sent}:
        edges = sorted(
            [(line.sent_ns, 1) for line in sent if line.rung == rung]
            + [(line.done_ns, -1) for line in sent if line.rung == rung],
            key=lambda edge: (edge[0], edge[1]),
        )
        level = most = 0
        for _, step in edges:
            level += step
            most = max(most, level)
        found[rung] = most
    return found
