"""The plan: a pipeline with every name, type and place resolved. Both engines run plans, never definitions."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import polars as pl

from slackwater.operators.spec import WindowSpec
from slackwater.rowops import RowOp, TakeTime
from slackwater.sinks.base import Sink
from slackwater.sources.base import Source


@dataclass(frozen=True, kw_only=True, eq=False)
class RowNode:
    """A row function and what follows it; streams that share their first functions share the nodes."""

    op: RowOp | None
    step: str
    """The function's name, `<stream>.<function>`, as dead letters show it."""
    schema: pl.Schema
    """The user's columns after the function."""
    children: tuple[RowNode, ...] = ()
    outputs: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    """The keyed steps that take the rows from here."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SourcePlan:
    """One source stream: where its rows come from, what time they have, what is done to them."""

    name: str
    source: Source
    time: TakeTime | None
    rows: RowNode
    dead_letters: str


@dataclass(frozen=True, kw_only=True, eq=False)
class StepPlan:
    """One keyed step."""

    spec: WindowSpec
    stage: int
    """0 takes rows from sources; 1 takes results of stage 0; …"""
    sources: tuple[str, ...]
    """The source streams whose watermarks decide, the smallest of them at each moment."""
    delay_ms: int
    """How long after the sources' watermark the steps before this one may still emit."""
    results: RowNode
    late: str
    dead_letters: str

    @property
    def name(self) -> str:
        """The step's stable name."""
        return self.spec.name


@dataclass(frozen=True, kw_only=True, eq=False)
class OutputPlan:
    """One output: its rows' columns and the sinks it ends in."""

    name: str
    kind: Literal["rows", "results", "late", "dead_letters"]
    schema: pl.Schema
    sinks: tuple[Sink, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """A whole pipeline, ready to run."""

    name: str
    key_groups: int
    sources: tuple[SourcePlan, ...]
    steps: tuple[StepPlan, ...]
    outputs: tuple[OutputPlan, ...]

    @property
    def stages(self) -> int:
        """How many keyed stages follow each other."""
        return max((step.stage for step in self.steps), default=-1) + 1

    @cached_property
    def by_name(self) -> dict[str, StepPlan]:
        """The steps by name."""
        return {step.name: step for step in self.steps}

    @cached_property
    def layout(self) -> dict[str, dict[str, str]]:
        """What each step's state looks like; a checkpoint can only be continued by an equal one."""
        return {
            step.name: {
                "stage": str(step.stage),
                "keys": str({key: str(step.spec.row_schema[key]) for key in step.spec.keys}),
                "window": repr(step.spec.window),
                "accumulation": step.spec.accumulation,
                "aggregates": repr(step.spec.aggregates),
                "state": str({name: str(dtype) for name, dtype in step.spec.state_types.items()}),
            }
            for step in self.steps
        }

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything that decides what a batch's rows become."""
        said: list[str] = [self.name, str(self.key_groups), str(sorted(self.layout.items()))]
        said += [repr((step.spec.lateness_ms, step.spec.schedule, step.spec.semantics)) for step in self.steps]
        for root in (*(source.rows for source in self.sources), *(step.results for step in self.steps)):
            said += _described(root)
        return hashlib.sha256("\n".join(said).encode()).hexdigest()[:16]


def _described(node: RowNode) -> list[str]:
    said = [f"{node.step} {_op_text(node.op)} {dict(node.schema)} {node.outputs} {node.steps}"]
    return said + [line for child in node.children for line in _described(child)]


def _op_text(op: RowOp | None) -> str:
    if op is None:
        return ""
    parts = []
    for name, value in vars(op).items():
        code = getattr(value, "__code__", None)
        text = f"{code.co_code.hex()}{code.co_names}{_constants(code.co_consts)}" if code else str(value)
        parts.append(f"{name}={text}")
    return f"{type(op).__name__}({', '.join(parts)})"


def _constants(constants: tuple[object, ...]) -> str:
    # The repr of a nested function holds its address, which differs from run to run.
    return str([item.co_code.hex() if hasattr(item, "co_code") else repr(item) for item in constants])
