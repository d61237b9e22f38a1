"""Metric math: the operators and the functions that dashboards and alarms of endpoints use."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

Series = dict[float, float]
"""Period start → value."""
Value = float | Series | list["Value"]


class ExpressionError(Exception):
    """An expression CloudWatch, or the rehearsal, does not understand."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What an expression is evaluated in."""

    series: Mapping[str, Series]
    periods: tuple[float, ...]
    """Every period start of the query's range; FILL fills these."""
    period_s: float


def evaluate(expression: str, scope: Scope) -> Series:
    """The series an expression describes."""
    try:
        tree = ast.parse(_python(expression), mode="eval")
    except SyntaxError:
        raise ExpressionError(f"Unsupported expression: {expression}") from None
    value = _value(tree.body, scope)
    if isinstance(value, dict):
        return value
    if isinstance(value, list):
        raise ExpressionError(f"Expression returns several time series: {expression}")
    return dict.fromkeys(scope.periods, value)


def names(expression: str) -> set[str]:
    """Ids an expression refers to."""
    try:
        tree = ast.parse(_python(expression), mode="eval")
    except SyntaxError:
        raise ExpressionError(f"Unsupported expression: {expression}") from None
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in called} - {"REPEAT"}


def _python(expression: str) -> str:
    text = expression.strip().replace("&&", " and ").replace("||", " or ")
    return re.sub(r"\b(AND|OR)\b", lambda found: found.group().lower(), text).replace("^", "**")


def _divide(left: float, right: float) -> float:
    return left / right if right else math.nan


_BINARY: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: _divide,
    ast.Pow: operator.pow,
}
_COMPARE: dict[type[ast.cmpop], Callable[[float, float], float]] = {
    ast.Gt: lambda left, right: float(left > right),
    ast.GtE: lambda left, right: float(left >= right),
    ast.Lt: lambda left, right: float(left < right),
    ast.LtE: lambda left, right: float(left <= right),
    ast.Eq: lambda left, right: float(left == right),
    ast.NotEq: lambda left, right: float(left != right),
}


def _value(node: ast.expr, scope: Scope) -> Value:
    match node:
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.Name(id=name) if name in scope.series:
            return scope.series[name]
        case ast.List(elts=items):
            return [_value(item, scope) for item in items]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _pairwise(operator.mul, -1.0, _value(operand, scope))
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _BINARY:
            return _pairwise(_BINARY[type(sign)], _value(left, scope), _value(right, scope))
        case ast.Compare(left=left, ops=[sign], comparators=[right]) if type(sign) in _COMPARE:
            return _pairwise(_COMPARE[type(sign)], _value(left, scope), _value(right, scope))
        case ast.BoolOp(op=sign, values=[left, right]):
            both = min if isinstance(sign, ast.And) else max
            return _pairwise(lambda a, b: float(both(bool(a), bool(b))), _value(left, scope), _value(right, scope))
        case ast.Call(func=ast.Name(id=function), args=arguments):
            return _call(function, arguments, scope)
    raise ExpressionError(f"Unsupported expression: {ast.unparse(node)}")


def _pairwise(function: Callable[[float, float], float], left: Value, right: Value) -> Value:
    """Scalars spread over series; two series meet where both have data."""
    if isinstance(left, list) or isinstance(right, list):
        raise ExpressionError("Operators take time series, not arrays of them")
    if isinstance(left, dict) and isinstance(right, dict):
        return {at: function(left[at], right[at]) for at in left if at in right}
    if isinstance(left, dict):
        return {at: function(value, float(right)) for at, value in left.items()}  # type: ignore[arg-type]
    if isinstance(right, dict):
        return {at: function(left, value) for at, value in right.items()}
    return function(left, right)


def _call(function: str, arguments: list[ast.expr], scope: Scope) -> Value:
    if function == "FILL":
        return _fill(_series(_value(arguments[0], scope)), arguments[1], scope)
    if function == "METRICS":
        return list(scope.series.values())
    if function == "PERIOD":
        return scope.period_s
    values = [_value(argument, scope) for argument in arguments]
    if function == "IF" and len(values) in (2, 3):
        return _if(*values)
    if function in _REDUCE and len(values) == 1:
        return _reduce(_REDUCE[function], values[0])
    if function in _EACH and len(values) == 1:
        return {at: float(_EACH[function](value)) for at, value in _series(values[0]).items()}
    raise ExpressionError(f"Unsupported function: {function}")


_REDUCE: dict[str, Callable[[list[float]], float]] = {
    "SUM": sum,
    "MAX": max,
    "MIN": min,
    "AVG": lambda values: sum(values) / len(values),
}
_EACH: dict[str, Callable[[float], float]] = {"ABS": abs, "CEIL": math.ceil, "FLOOR": math.floor}


def _reduce(function: Callable[[list[float]], float], value: Value) -> Value:
    """Of one series: a scalar. Of an array: a series, over whatever has data at each time."""
    if isinstance(value, list):
        members = [_series(item) for item in value]
        times: Iterable[float] = sorted({at for member in members for at in member})
        return {at: function([member[at] for member in members if at in member]) for at in times}
    values = list(_series(value).values())
    return function(values) if values else {}


def _if(condition: Value, then: Value, otherwise: Value | None = None) -> Value:
    if not isinstance(condition, dict):
        chosen = then if condition else otherwise
        return {} if chosen is None else chosen
    picked: Series = {}
    for at, true in condition.items():
        branch = then if true else otherwise
        value = branch.get(at) if isinstance(branch, dict) else branch
        if isinstance(value, float):
            picked[at] = value
    return picked


def _fill(series: Series, filler: ast.expr, scope: Scope) -> Series:
    if isinstance(filler, ast.Name) and filler.id == "REPEAT":
        filled: Series = {}
        last: float | None = None
        for at in scope.periods:
            last = series.get(at, last)
            if last is not None:
                filled[at] = last
        return filled
    value = _value(filler, scope)
    if isinstance(value, float):
        return {at: series.get(at, value) for at in scope.periods}
    raise ExpressionError("FILL takes a number or REPEAT")


def _series(value: Value) -> Series:
    if isinstance(value, dict):
        return value
    raise ExpressionError("A time series is needed here")
