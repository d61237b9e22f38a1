"""AWS JSON 1.1 services of our own: dispatch by operation, inputs checked against the SDK's own service model."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import botocore.session
from botocore.model import ServiceModel

Params = dict[str, Any]
Operation = Callable[[Params], Params]


class ApiError(Exception):
    """An answer AWS gives instead of a result."""

    def __init__(self, code: str, message: str, status: int = 400, **fields: Any) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status
        self.fields = fields

    def body(self) -> bytes:
        """The JSON body every SDK parses."""
        return json.dumps(
            {"__type": self.code, "message": self.message, "Message": self.message, **self.fields}
        ).encode()


class JsonService:
    """One service: its operations by name, its inputs validated as AWS validates them."""

    def __init__(self, name: str, operations: Mapping[str, Operation]) -> None:
        self.name = name
        self.operations = operations

    def call(self, operation: str, body: bytes) -> Params:
        """Run one operation; ApiError when AWS would refuse."""
        handler = self.operations.get(operation)
        if handler is None:
            raise ApiError("UnknownOperationException", f"{self.name} {operation} is not part of the rehearsal")
        try:
            params = json.loads(body or b"{}")
        except ValueError:
            raise ApiError("SerializationException", "the body is not JSON") from None
        shape = service_model(self.name).operation_model(operation).input_shape
        problems = list(_problems(shape, params, "")) if shape else []
        if problems:
            count = f"{len(problems)} validation error{'s' if len(problems) > 1 else ''} detected: "
            raise ApiError("ValidationException", count + "; ".join(problems))
        return handler(params)


@lru_cache
def service_model(name: str) -> ServiceModel:
    """The SDK's description of a service."""
    return botocore.session.get_session().get_service_model(name)


_KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "long": (int,),
    "float": (int, float),
    "double": (int, float),
    "boolean": (bool,),
    "timestamp": (int, float, str),
    "structure": (dict,),
    "map": (dict,),
    "list": (list,),
}


def _problems(shape: Any, value: Any, path: str) -> Iterator[str]:
    kind = _KINDS.get(shape.type_name)
    if kind and (not isinstance(value, kind) or (isinstance(value, bool) and bool not in kind)):
        yield f"Value at '{path}' failed to satisfy constraint: Member must be of type {shape.type_name}"
        return
    if shape.type_name == "structure":
        for name in shape.required_members:
            if value.get(name) is None:
                yield f"Value null at '{_member(path, name)}' failed to satisfy constraint: Member must not be null"
        for name, member in shape.members.items():
            if value.get(name) is not None:
                yield from _problems(member, value[name], _member(path, name))
    elif shape.type_name == "list":
        yield from _size(shape, value, path)
        for index, item in enumerate(value, 1):
            yield from _problems(shape.member, item, f"{path}.{index}.member")
    elif shape.type_name == "map":
        yield from _size(shape, value, path)
    elif shape.type_name == "string":
        yield from _text(shape, value, path)
    elif shape.type_name in ("integer", "long", "float", "double"):
        yield from _range(shape, value, path)


def _text(shape: Any, value: str, path: str) -> Iterator[str]:
    if shape.enum and value not in shape.enum:
        allowed = ", ".join(shape.enum)
        yield _constraint(value, path, f"Member must satisfy enum value set: [{allowed}]")
        return
    yield from _size(shape, value, path)
    pattern = shape.metadata.get("pattern")
    if pattern and not _matches(pattern, value):
        yield _constraint(value, path, f"Member must satisfy regular expression pattern: {pattern}")


def _size(shape: Any, value: Any, path: str) -> Iterator[str]:
    low, high = shape.metadata.get("min"), shape.metadata.get("max")
    if low is not None and len(value) < low:
        yield _constraint(value, path, f"Member must have length greater than or equal to {low}")
    if high is not None and len(value) > high:
        yield _constraint(value, path, f"Member must have length less than or equal to {high}")


def _range(shape: Any, value: float, path: str) -> Iterator[str]:
    low, high = shape.metadata.get("min"), shape.metadata.get("max")
    if low is not None and value < low:
        yield _constraint(value, path, f"Member must have value greater than or equal to {low}")
    if high is not None and value > high:
        yield _constraint(value, path, f"Member must have value less than or equal to {high}")


def _constraint(value: Any, path: str, rule: str) -> str:
    return f"Value '{value}' at '{path}' failed to satisfy constraint: {rule}"


def _member(path: str, name: str) -> str:
    spelled = name[:1].lower() + name[1:]
    return f"{path}.{spelled}" if path else spelled


def _matches(pattern: str, value: str) -> bool:
    """Patterns are Java's; one that Python cannot read is not checked."""
    try:
        return re.fullmatch(pattern, value) is not None
    except re.error:
        return True
