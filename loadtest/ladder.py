"""The closed-loop ladder, a Locust file: N users with one request outstanding each, rung after rung.

``locust -f loadtest/ladder.py --headless …`` and ``python -m loadtest.ladder …`` are the same program; Locust's
``--processes``, ``--master`` and ``--worker`` spread the users.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from locust import LoadTestShape, User, constant, events, task
from locust.env import Environment

from loadtest import estimate, settings
from loadtest.agent import JOB, Agent
from loadtest.process import agent_of, is_worker, lead, leave, refuse_stray_words, run_locust, user
from loadtest.session import Session
from planner.errors import ExitCode, UsageError

SPAWN_RPS = 100
"""Locust warns above; ten thousand users start in under two minutes."""


class _This:
    """This process's parts."""

    agent: Agent | None = None
    session: Session | None = None


class LadderUser(User):
    """Speaks again as soon as the last answer is complete."""

    wait_time = constant(0)

    def on_start(self) -> None:
        """Connect outside any measured time."""
        assert _This.agent is not None
        self.speaker = user(_This.agent)
        self.speaker.connect()

    def on_stop(self) -> None:
        """Hang up."""
        self.speaker.leave()

    @task
    def speak(self) -> None:
        """One request."""
        self.speaker.speak()


class LadderShape(LoadTestShape):
    """Asks the session how many users there should be."""

    def tick(self) -> tuple[int, float] | None:
        """Called by Locust once a second."""
        assert _This.session is not None
        users = _This.session.tick()
        return None if users is None else (users, SPAWN_RPS)


def _add_arguments(parser: Any) -> None:
    settings.add_arguments(parser)
    refuse_stray_words(parser)


def _start(environment: Environment, **_: Any) -> None:
    _This.agent = agent_of(environment)
    if not is_worker(environment):
        session = lead(environment, lambda: _session(environment))
        assert isinstance(session, Session)
        _This.session = session


def _session(environment: Environment) -> Session:
    options: Any = environment.parsed_options
    checked = settings.parse(options)
    if not options.headless:
        raise UsageError("the ladder has no web interface", "add --headless")
    if checked.common.dry_run:
        print(estimate.describe(checked, options.instance_type))
        leave(ExitCode.DONE)
    # A request that is out when the rung ends is waited for; Locust kills it only past its own limit.
    environment.stop_timeout = checked.common.request_timeout_s
    runner: Any = environment.runner
    return Session(checked, lambda job: runner.send_message(JOB, job.message()), max(1, options.expect_workers or 1))


def main(argv: list[str] | None = None) -> int:
    """``python -m loadtest.ladder``."""
    return run_locust(str(Path(__file__).resolve()), sys.argv[1:] if argv is None else argv, settings.add_arguments)


if __name__ == "__main__":
    sys.exit(main())

events.init_command_line_parser.add_listener(_add_arguments)
events.init.add_listener(_start)
