"""How far one load process can be trusted: a null server, and what the client adds to it.

The null server writes its first part 100 ms after the request and stamps every part as it writes it. All that a
ladder would measure beyond that is the client: added time to first audio, and how late our stamp of a part is behind
the server's own stamp of the same bytes.
"""

from __future__ import annotations

import argparse
import json
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from loadtest.stats import nearest_rank
from loadtest.verdict import ClientLoad, client_bound
from planner.artifacts.base import write_atomically
from planner.errors import AwsError, FactFails, UsageError, exit_status

FIRST_PART_MS = 100.0
STAMP = struct.Struct(">4sIQ")
LAG_LIMIT_MS = 5.0
LAG_LIMIT_AT = 50
"""The receipt lag that must hold, and the number of streams at which it must."""
HEADER = (
    f"{'client':<7} {'N':>5} {'requests/s':>11} {'added p50 ms':>13} {'added p95 ms':>13} {'lag p95 ms':>11} "
    f"{'cpu':>5}  verdict"
)


@dataclass(frozen=True)
class Calibration:
    """One client at one concurrency."""

    client: str
    concurrency: int
    requests_per_s: float
    added_p50_ms: float
    added_p95_ms: float
    receipt_lag_p95_ms: float
    cpu_share: float
    failed: int
    bound: str

    def line(self) -> str:
        """For the table."""
        failed = f"; {self.failed} failed" if self.failed else ""
        return (
            f"{self.client:<7} {self.concurrency:>5} {self.requests_per_s:>11.1f} {self.added_p50_ms:>13.1f} "
            f"{self.added_p95_ms:>13.1f} {self.receipt_lag_p95_ms:>11.1f} {self.cpu_share:>5.0%}  "
            f"{self.bound or 'trustworthy'}{failed}"
        )


def main(argv: list[str] | None = None) -> int:
    """Run every client at every concurrency and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.harness", description=__doc__)
    parser.add_argument("--concurrency", default="1,50,200,1000")
    parser.add_argument("--clients", default="lean,boto3")
    parser.add_argument("--seconds", type=float, default=10.0, help="measured seconds for each line")
    parser.add_argument("--out", default="artifacts", help="where harness.json goes")
    options = parser.parse_args(argv)
    try:
        levels = [int(item) for item in options.concurrency.split(",")]
    except ValueError:
        raise UsageError(f"--concurrency {options.concurrency}: not whole numbers", "for example 1,50,200") from None
    print(HEADER)
    found: list[Calibration] = []
    with null_server() as url:
        for concurrency in levels:
            for client in options.clients.split(","):
                found.append(calibrate(url, client, concurrency, options.seconds))
                print(found[-1].line(), flush=True)
    write_atomically(Path(options.out) / "harness.json", json.dumps([asdict(each) for each in found], indent=2) + "\n")
    judge(found)
    return 0


def judge(found: list[Calibration]) -> None:
    """Raise when the default client's receipt lag is over the limit where it must hold."""
    for each in found:
        if each.client == "lean" and each.concurrency == LAG_LIMIT_AT and each.receipt_lag_p95_ms > LAG_LIMIT_MS:
            raise FactFails(
                f"receipt lag is {each.receipt_lag_p95_ms:.1f} ms at p95 with {LAG_LIMIT_AT} streams",
                "close what else runs on this machine, or spread the load: --processes 2",
            )


@contextmanager
def null_server() -> Iterator[str]:
    """``python -m rehearsal null`` in a process of its own."""
    command = [sys.executable, "-m", "rehearsal", "null", "--port", "0", "--mode", "realistic"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        if "http://" not in line:
            raise AwsError("the null server did not start", "run `python -m rehearsal null` to see why")
        yield line[line.index("http://") :].split()[0]
    finally:
        server.terminate()
        server.wait(timeout=10)


def calibrate(url: str, client: str, concurrency: int, seconds: float) -> Calibration:
    """One line of the table, measured in a fresh process that runs the ladder's own users."""
    command = [sys.executable, "-m", "bench.harness_load", client, str(concurrency), f"{seconds:g}"]
    environment = os.environ | {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": "null",
        "AWS_SECRET_ACCESS_KEY": "null",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise AwsError(f"the load process for {client} at N={concurrency} failed", "read its output above")
    return summarise(client, concurrency, json.loads(done.stdout))


def summarise(client: str, concurrency: int, raw: dict[str, list[float] | float]) -> Calibration:
    """From the load process's raw figures."""

    def ranked(name: str, q: float) -> float:
        values = raw[name]
        assert isinstance(values, list)
        return nearest_rank(sorted(values), q) if values else float("inf")

    def number(name: str) -> float:
        value = raw[name]
        assert not isinstance(value, list)
        return value

    added_p50_ms, added_p95_ms = (ranked("ttfab_ms", q) - FIRST_PART_MS for q in (0.5, 0.95))
    load = ClientLoad(ranked("gap_ms", 0.95), ranked("loop_lag_ms", 0.95), number("cpu_share"))
    return Calibration(
        client=client,
        concurrency=concurrency,
        requests_per_s=number("requests_per_s"),
        added_p50_ms=added_p50_ms,
        added_p95_ms=added_p95_ms,
        receipt_lag_p95_ms=ranked("lag_ms", 0.95),
        cpu_share=number("cpu_share"),
        failed=int(number("failed")),
        bound=client_bound(load, ranked("ttfab_ms", 0.5)),
    )


if __name__ == "__main__":
    sys.exit(exit_status(main))
