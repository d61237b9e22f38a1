"""Joins our load processes to Locust: messages, exit codes, and an end that always restores."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import gevent
import psutil
from locust.env import Environment
from locust.runners import MasterRunner, WorkerRunner

from loadtest.agent import JOB, STATUS, Agent
from loadtest.bidi import CountedUser, Relay
from loadtest.hold import Hold
from loadtest.job import Job
from planner.errors import ExitCode, HeadroomError, UsageError, report

PROCESSES_PER_CORE = 8


class Lead(Protocol):
    """What a load command's conducting process does besides sending load."""

    def receive(self, status: dict[str, Any]) -> None:
        """A report of a load process."""

    def finish(self) -> None:
        """Restore, then publish; raises HeadroomError for every other end."""


class User(Protocol):
    """What a Locust user drives."""

    def connect(self) -> None:
        """Before the first request."""

    def speak(self) -> None:
        """One request."""

    def leave(self) -> None:
        """After the last."""


def agent_of(environment: Environment) -> Agent | None:
    """Start reporting if this process carries users; None on a master."""
    runner: Any = environment.runner
    if isinstance(runner, MasterRunner):
        return None
    agent = Agent(runner.send_message)

    def on_job(environment: Environment, msg: Any, **_: Any) -> None:  # noqa: ARG001
        job = Job(**msg.data)
        if job.api == "bidi":
            _relay(agent).begin(job, runner.worker_index)
        else:
            agent.begin(job, runner.worker_index)

    runner.register_message(JOB, on_job)
    gevent.spawn(agent.watch)
    if is_worker(environment) and getattr(environment.parsed_options, "processes", None):
        gevent.spawn(_end_with, os.getppid())
    return agent


def _end_with(parent: int) -> None:
    """A forked load process of a conductor that was killed would load the endpoint for another minute."""
    while os.getppid() == parent:
        gevent.sleep(1)
    os._exit(int(ExitCode.INTERRUPTED))


def user(agent: Agent) -> User:
    """A new load user of this process."""
    return CountedUser(agent.relay) if isinstance(agent.relay, Relay) else agent.speaker()


def _relay(agent: Agent) -> Relay:
    if not isinstance(agent.relay, Relay):
        agent.relay = Relay(agent)
    return agent.relay


def is_worker(environment: Environment) -> bool:
    """Whether another process conducts."""
    return isinstance(environment.runner, WorkerRunner)


def lead(environment: Environment, create: Callable[[], Lead]) -> Lead:
    """Set the conducting process up; a failure ends the program here, with the children that Locust forked."""
    logging.getLogger("locust.stats_logger").setLevel(logging.ERROR)
    # A signal is answered in one sentence; gevent would print its traceback first.
    gevent.get_hub().NOT_ERROR += (KeyboardInterrupt,)
    logging.getLogger("locust.runners").addFilter(_not_an_interrupt)
    runner: Any = environment.runner
    ready: list[Lead] = []

    def on_status(environment: Environment, msg: Any, **_: Any) -> None:  # noqa: ARG001
        for listening in ready:
            listening.receive(msg.data)

    # Before anything that takes time: load processes report from their first moment.
    runner.register_message(STATUS, on_status)
    try:
        found = create()
    except HeadroomError as error:
        report(error)
        leave(error.exit_code)
    except BaseException:
        stop_children()
        raise
    ready.append(found)

    def on_stopping(**_: Any) -> None:
        # Whoever is still speaking when the load ends was interrupted: do not wait for them.
        environment.stop_timeout = 0

    environment.events.test_stopping.add_listener(on_stopping)

    def on_quitting(**_: Any) -> None:
        environment.process_exit_code = int(ended(found.finish))

    environment.events.quitting.add_listener(on_quitting)
    return found


def _not_an_interrupt(line: logging.LogRecord) -> bool:
    return not (line.exc_info and line.exc_info[0] is KeyboardInterrupt)


def ended(finish: Callable[[], None]) -> ExitCode:
    """Finish and turn the exception tree into the exit code."""
    try:
        finish()
    except HeadroomError as error:
        report(error)
        return error.exit_code
    return ExitCode.DONE


def leave(code: int) -> None:
    """Exit before Locust runs."""
    stop_children()
    sys.stdout.flush()
    sys.exit(int(code))


def stop_children() -> None:
    """Workers that Locust forked would wait minutes for a master that is gone."""
    for child in psutil.Process().children():
        child.terminate()


def refuse_stray_words(parser: argparse.ArgumentParser) -> None:
    """Locust takes any word for a user class, and leaves with 1 after it has forked; here every setting is a flag."""

    def refuse(word: str) -> str:
        report(UsageError(f"{word}: not a flag of this command", "every setting is a flag: see --help"))
        sys.exit(int(ExitCode.USAGE))

    for action in parser._actions:
        if action.dest == "user_classes":
            action.type = refuse


def _unknown_flags(arguments: list[str], add_flags: Callable[[argparse.ArgumentParser], None]) -> UsageError | None:
    """Locust would take the value of an unknown flag for a user class, or suggest another flag."""
    from locust.argument_parser import get_empty_argument_parser, setup_parser_arguments

    parser = get_empty_argument_parser(add_help=False)
    setup_parser_arguments(parser)
    add_flags(parser)
    unknown = [word for word in parser.parse_known_args(arguments)[1] if word.startswith("-")]
    if not unknown:
        return None
    verb = "is not a flag" if len(unknown) == 1 else "are not flags"
    return UsageError(f"{', '.join(unknown)} {verb} of this command", "--help lists them")


def _too_many_processes(arguments: list[str]) -> UsageError | None:
    """Locust would fork any number."""
    reader = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    reader.add_argument("--processes")
    given = reader.parse_known_args(arguments)[0].processes
    most = PROCESSES_PER_CORE * (os.cpu_count() or 1)
    if given is None or not given.isdigit() or int(given) <= most:
        return None
    return UsageError(f"--processes {given} is more than {most} on {os.cpu_count()} cores", "a process needs a core")


def run_locust(locustfile: str, arguments: list[str], add_flags: Callable[[argparse.ArgumentParser], None]) -> int:
    """``locust -f locustfile --headless`` in this process, quiet apart from what we print ourselves."""
    if {"-h", "--help"} & set(arguments):
        print(_help(locustfile, add_flags))
        return int(ExitCode.DONE)
    refused = _unknown_flags(arguments, add_flags) or _too_many_processes(arguments)
    if refused is not None:
        report(refused)
        return int(refused.exit_code)
    from locust.main import main as locust_main

    sys.argv = ["locust", "-f", locustfile, "--headless", "--only-summary", "--loglevel", "ERROR", *arguments]
    try:
        locust_main()
    except SystemExit as ended_with:
        code = ended_with.code
        return code if isinstance(code, int) else int(ExitCode.DONE if code is None else ExitCode.BUG)
    except KeyboardInterrupt:
        # Ctrl-C between two of Locust's own waits.
        stop_children()
        if Hold.current is not None:
            ended(Hold.current.interrupt)
        return int(ExitCode.INTERRUPTED)
    return int(ExitCode.DONE)


def _help(locustfile: str, add_flags: Callable[[argparse.ArgumentParser], None]) -> str:
    """Our own flags: Locust prints its help before it reads a Locust file, so without them."""
    parser = argparse.ArgumentParser(
        prog=f"python -m loadtest.{Path(locustfile).stem}",
        description="Further flags are Locust's own; --processes, --master and --worker spread the load.",
    )
    add_flags(parser)
    return parser.format_help()
