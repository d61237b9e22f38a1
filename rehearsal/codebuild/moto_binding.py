"""CodeBuild's protocols are moto's; the store is ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moto.codebuild.responses import CodeBuildResponse
from moto.core.responses import ActionResult, BaseResponse

from rehearsal.codebuild.store import CodeBuild, Params

OPERATIONS = (
    "create_project",
    "update_project",
    "batch_get_projects",
    "list_projects",
    "delete_project",
    "start_build",
    "batch_get_builds",
    "list_builds",
    "list_builds_for_project",
    "stop_build",
)


def bind(store: CodeBuild) -> None:
    """From now on moto's CodeBuild asks ``store``."""
    response: Any = CodeBuildResponse
    response.__init__ = _parsing
    for name in OPERATIONS:
        setattr(response, name, _asking(getattr(store, name)))


def _parsing(response: Any) -> None:
    """moto parses the whole request only when told to."""
    BaseResponse.__init__(response, service_name="codebuild")
    response.automated_parameter_parsing = True


def _asking(operation: Callable[[Params], Params]) -> Callable[[Any], ActionResult]:
    def answer(response: Any) -> ActionResult:
        return ActionResult(operation(dict(response.params)))

    return answer
