"""Open-loop traffic, a Locust file: requests leave when they are due, whatever the endpoint does.

``locust -f loadtest/surge.py --headless …`` and ``python -m loadtest.surge …`` are the same program. Each Locust worker
runs one user, which sends that worker's share of the schedule; latency counts from the time a request was due.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import gevent
from locust import LoadTestShape, User, constant, events, task
from locust.env import Environment

from loadtest import traffic
from loadtest.agent import Agent
from loadtest.job import Job
from loadtest.open_session import OpenSession, Order, describe_plan
from loadtest.openloop import Pacer, Schedule
from loadtest.process import agent_of, is_worker, lead, leave, refuse_stray_words, run_locust
from planner.errors import ExitCode, UsageError

ORDER = "headroom_order"
"""Conductor to load processes."""


class _This:
    """This process's parts."""

    agent: Agent | None = None
    session: OpenSession | None = None
    order: dict[str, Any] | None = None


class SurgeUser(User):
    """Sends one load process's share; there is one in each."""

    wait_time = constant(1)

    @task
    def send(self) -> None:
        """The whole schedule, once."""
        agent, order, _This.order = _This.agent, _This.order, None
        if agent is None or order is None:
            return
        agent.users += 1
        try:
            _send(agent, order)
        finally:
            agent.users -= 1


def _send(agent: Agent, order: dict[str, Any]) -> None:
    whole = Schedule(order["due_s"], order["stretch"])
    mine = traffic.share(whole, order["shares"][agent.name], len(order["shares"]))
    pacer = Pacer(agent, lambda record: agent.keep(record, None), lambda: False)
    pacer.warm(order["warm"])
    pacer.run(mine, order["start_utc_ns"] - agent.anchor.utc_ns + agent.anchor.monotonic_ns)


class SurgeShape(LoadTestShape):
    """One user for each load process until the last answer is in."""

    def tick(self) -> tuple[int, float] | None:
        """Called by Locust once a second."""
        assert _This.session is not None
        users = _This.session.tick()
        return None if users is None else (users, 100)


def _add_arguments(parser: Any) -> None:
    traffic.add_arguments(parser)
    refuse_stray_words(parser)


def _start(environment: Environment, **_: Any) -> None:
    runner: Any = environment.runner
    agent = _This.agent = agent_of(environment)
    if agent is not None:

        def on_order(environment: Environment, msg: Any, **_: Any) -> None:  # noqa: ARG001
            agent.begin(Job(**msg.data["job"]), msg.data["shares"].get(agent.name, 0))
            # Counted from here on, so that nobody takes the pause before the first request for the end.
            _This.order = msg.data

        runner.register_message(ORDER, on_order)
    if not is_worker(environment):
        session = lead(environment, lambda: _session(environment))
        assert isinstance(session, OpenSession)
        _This.session = session


def _session(environment: Environment) -> OpenSession:
    options: Any = environment.parsed_options
    surge = traffic.parse(options)
    if not options.headless:
        raise UsageError("the open loop has no web interface", "add --headless")
    if surge.common.dry_run:
        print(describe_plan(surge))
        leave(ExitCode.DONE)
    runner: Any = environment.runner

    def announce(order: Order) -> None:
        runner.send_message(ORDER, order.message())
        gevent.sleep(0)

    return OpenSession(surge, announce, max(1, options.expect_workers or 1))


def main(argv: list[str] | None = None) -> int:
    """``python -m loadtest.surge``."""
    return run_locust(str(Path(__file__).resolve()), sys.argv[1:] if argv is None else argv, traffic.add_arguments)


if __name__ == "__main__":
    sys.exit(main())

events.init_command_line_parser.add_listener(_add_arguments)
events.init.add_listener(_start)
