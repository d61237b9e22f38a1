"""The command line: up, env, status, logs, down, fault, null."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from rehearsal import commands
from rehearsal.faults import KINDS
from rehearsal.settings import (
    DEFAULT_STAGES_S,
    STAGE_NAMES,
    AlarmStatistic,
    MetricScope,
    Settings,
    default_region,
    parse_choice,
    parse_pairs,
    parse_port,
    parse_scale,
    parse_seconds,
    parse_stages,
)

DEFAULT_ENDPOINT = "speech-kokoro-82m"
DEFAULT_VARIANT = "primary"


def main(argv: Sequence[str] | None = None) -> int:
    """Parse and run one command; RehearsalError for everything expected to go wrong."""
    arguments = _parser().parse_args(argv)
    result: int = arguments.run(arguments)
    return result


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m rehearsal", description=__doc__)
    commands_of = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_up(commands_of)
    for name, run, text in (
        ("env", commands.env, "print what a shell needs to talk to it"),
        ("down", commands.down, "stop it and every instance"),
    ):
        commands_of.add_parser(name, help=text).set_defaults(run=lambda _, run=run: run())
    status = commands_of.add_parser("status", help="endpoints, instances and faults")
    status.add_argument("--json", action="store_true")
    status.set_defaults(run=lambda arguments: commands.status(as_json=arguments.json))
    logs = commands_of.add_parser("logs", help="what the instances printed")
    logs.add_argument("--endpoint", default=DEFAULT_ENDPOINT)
    logs.add_argument("--server", action="store_true", help="what the rehearsal itself printed")
    logs.set_defaults(run=lambda arguments: commands.logs(arguments.endpoint, of_server=arguments.server))
    _add_fault(commands_of)
    _add_null(commands_of)
    return parser


def _add_up(commands_of: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    up = commands_of.add_parser("up", help="start it; says so when it is already up")
    up.add_argument("--port", default="0", help="default: any free port")
    up.add_argument("--foreground", action="store_true", help="stay attached to this terminal")
    up.add_argument("--seed", action="store_true", help="create a ready endpoint without Terraform")
    up.add_argument("--endpoint", default=DEFAULT_ENDPOINT, help="name of the seeded endpoint")
    up.add_argument("--variant", default=DEFAULT_VARIANT, help="name of the seeded variant")
    up.add_argument("--instance-type", default="ml.g5.xlarge", help="of the seeded variant")
    up.add_argument("--engine", choices=("kokoro", "onnx", "replay"), help="ENGINE of the seeded model")
    up.add_argument("--env", action="append", default=[], metavar="KEY=VALUE", help="environment of the seeded model")
    up.add_argument("--command", default="", help="what instances run instead of the container server")
    up.add_argument(
        "--stages",
        help=f"seconds of {', '.join(STAGE_NAMES)} around a container's own start, as name=s,... (default: "
        + ",".join(f"{name}={seconds:g}" for name, seconds in DEFAULT_STAGES_S.items())
        + ")",
    )
    up.add_argument("--time-scale", default="1", help="scripted stages run this many times faster")
    up.add_argument("--metric-scope", default="per_instance", help="what ConcurrentRequestsPerModel counts")
    up.add_argument("--alarm-statistic", default="Maximum", help="of the alarms that target tracking manages")
    up.add_argument("--invocation-limit-s", default="60", help="SageMaker's ceiling on an invocation")
    up.add_argument("--instance-quota", type=int, default=20, help="instances of one type the account may run")
    up.add_argument("--bidi", action="store_true", help="serve the HTTP/2 bidirectional API too")
    up.set_defaults(run=_up)


def _up(arguments: argparse.Namespace) -> int:
    settings = Settings(
        port=parse_port("--port", arguments.port),
        region=default_region(),
        command=arguments.command,
        stages_s=dict(DEFAULT_STAGES_S) if arguments.stages is None else parse_stages(arguments.stages),
        time_scale=parse_scale("--time-scale", arguments.time_scale),
        metric_scope=parse_choice("--metric-scope", arguments.metric_scope, MetricScope),
        alarm_statistic=parse_choice("--alarm-statistic", arguments.alarm_statistic, AlarmStatistic),
        invocation_limit_s=parse_seconds("--invocation-limit-s", arguments.invocation_limit_s),
        instance_quota=arguments.instance_quota,
        bidi=arguments.bidi,
    )
    environment = {"ENGINE": arguments.engine} if arguments.engine else {}
    environment.update(parse_pairs("--env", arguments.env))
    seed = None
    if arguments.seed:
        seed = commands.seed_of(
            arguments.endpoint, arguments.variant, arguments.instance_type, environment, arguments.command
        )
    return commands.up(settings, seed, foreground=arguments.foreground)


def _add_fault(commands_of: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    described = "\n".join(
        f"  {name:16} {kind.does}" + ("".join(f"\n{'':21}{key}={default}" for key, default in kind.parameters.items()))
        for name, kind in KINDS.items()
    )
    fault = commands_of.add_parser(
        "fault",
        help="switch a fault on or off",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"faults and their parameters:\n{described}",
    )
    fault.add_argument("name", nargs="?", help="without a name: what is on; with --clear: all")
    fault.add_argument("parameters", nargs="*", metavar="KEY=VALUE")
    fault.add_argument("--clear", action="store_true", help="switch it off")
    fault.set_defaults(
        run=lambda arguments: commands.fault(
            arguments.name, parse_pairs("fault", arguments.parameters), clear=arguments.clear
        )
    )


def _add_null(commands_of: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    null = commands_of.add_parser("null", help="a data plane without a container, to calibrate load generators")
    null.add_argument("--port", type=int, default=0)
    null.add_argument("--mode", choices=("instant", "realistic", "stall"), default="realistic")
    null.set_defaults(run=lambda arguments: commands.null(arguments.port, arguments.mode))
