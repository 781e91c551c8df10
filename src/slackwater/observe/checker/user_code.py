"""The user's code in a plan: map functions, processes, accumulators, functions in expressions."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import polars as pl

from slackwater.observe.checker.code_reading import Use, uses_of
from slackwater.operators.aggregates.user_defined import Accumulated, Accumulator
from slackwater.operators.process.base import FrameProcess, Process
from slackwater.operators.process.step import ProcessStep
from slackwater.operators.step import KeyedStep
from slackwater.operators.windows.counted import CountSpec
from slackwater.operators.windows.spec import WindowSpec
from slackwater.plan.plan import Plan, RowNode
from slackwater.plan.row_functions import Map, Select, Validate, Where, WithColumns

_PYTHON: Final = re.compile(r"\[([\d,]{31,})\]")
_PICKLE: Final = b"\x80\x05\x95"
"""The first bytes of a pickle, which follow a prefix added by Polars."""


class UserCode(NamedTuple):
    """A piece of the user's code and the names it uses."""

    where: str
    """The name of the step or stream in findings."""
    uses: tuple[Use, ...]
    is_per_event: bool
    """Whether it is called for every event instead of for frames."""


def user_code(plan: Plan) -> Iterator[UserCode]:
    """Yield every piece of the user's code in a plan that runs on events."""
    roots = [source.rows for source in plan.sources] + [root for step in plan.steps for root in step.roots]
    for node in (node for root in roots for node in _below(root)):
        if isinstance(node.op, Map):
            yield UserCode(
                f"step `{node.step}`", tuple(uses_of(node.op.function, takes_frame=True)), is_per_event=False
            )
        elif node.op is not None:
            for function in _functions(_expressions(node.op)):
                yield UserCode(f"step `{node.step}`", tuple(uses_of(function)), is_per_event=True)
    for step in plan.steps:
        yield from _of_step(step.spec, f"step `{step.name}`")


def _of_step(spec: KeyedStep, where: str) -> Iterator[UserCode]:
    if isinstance(spec, ProcessStep):
        is_per_event = isinstance(spec.process, Process)
        yield UserCode(where, tuple(_of_object(spec.process, (Process, FrameProcess))), is_per_event=is_per_event)
    if isinstance(spec, WindowSpec | CountSpec):
        for aggregate in spec.aggregates.values():
            if isinstance(aggregate, Accumulated):
                yield UserCode(where, tuple(_of_object(aggregate.cls, (Accumulator,))), is_per_event=True)
    reads = [each for port in spec.ports for each in spec.reads(port)]
    for function in _functions([*reads, *_expressions(vars(spec))]):
        yield UserCode(where, tuple(uses_of(function)), is_per_event=True)


def _of_object(given: object, bases: tuple[type, ...]) -> list[Use]:
    """Return what the methods of a user's object or class use, including those of its parents up to `bases`."""
    cls = given if isinstance(given, type) else type(given)
    owner = None if isinstance(given, type) else given
    return sorted({use for method in methods_of(cls, bases) for use in uses_of(method, owner)})


def methods_of(cls: type, bases: tuple[type, ...]) -> list[Any]:
    """Return the methods of a user's class that run on events, including those of its parents up to `bases`."""
    return [
        member
        for parent in cls.__mro__
        if issubclass(parent, bases) and parent not in bases
        for name, member in vars(parent).items()
        if callable(member) and name != "__init__"  # runs once, when the pipeline is built
    ]


def _below(node: RowNode) -> Iterator[RowNode]:
    yield node
    for child in node.children:
        yield from _below(child)


def _expressions(value: object) -> list[pl.Expr]:
    """Return the expressions in an operation or in the fields of a step, at any depth."""
    if isinstance(value, pl.Expr):
        return [value]
    if isinstance(value, Where | WithColumns | Select | Validate) or type(value).__module__.startswith("slackwater."):
        value = getattr(value, "__dict__", {})
    if isinstance(value, Mapping):
        value = tuple(value.values())
    return [found for each in value for found in _expressions(each)] if isinstance(value, tuple | list) else []


def _functions(expressions: list[pl.Expr]) -> Iterator[Any]:
    """Yield the Python functions inside expressions, which Polars stores as pickles."""
    for text in {_serialized(expression) for expression in expressions}:
        for found in _PYTHON.finditer(text):
            raw = bytes(int(number) % 256 for number in found[1].split(","))
            if (at := raw.find(_PICKLE)) >= 0:
                try:
                    yield pickle.loads(raw[at:])  # noqa: S301  made from the user's own function, in this process
                except Exception:  # noqa: BLE001, S112  functions that cannot be unpickled are skipped
                    continue


def _serialized(expression: pl.Expr) -> str:
    try:
        return expression.meta.serialize(format="json")
    except pl.exceptions.PolarsError:
        return ""
