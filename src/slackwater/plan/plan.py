"""The plan: a pipeline with all names, types and places resolved. Both engines run plans, never definitions."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal, NamedTuple

import polars as pl

from slackwater.base.stable_text import stable_text
from slackwater.connectors.sink import Sink, Slot, Trial
from slackwater.connectors.source import Source
from slackwater.formats.undecoded import Undecoded
from slackwater.operators.identity import Identity
from slackwater.operators.step import KeyedStep
from slackwater.plan.join_table import JoinTable
from slackwater.plan.lookup import LookUp
from slackwater.plan.row_functions import RowOp, TakeTime

STAGE: Final = "stage"
"""The entry of a layout that holds the step's stage."""


class Feed(NamedTuple):
    """A port of a keyed step that takes rows."""

    step: str
    port: str


@dataclass(frozen=True, kw_only=True, eq=False)
class RowNode:
    """A row function and the nodes after it; streams that begin with the same functions share the nodes."""

    op: RowOp | None
    step: str
    """The function's name, `<stream>.<function>`, as shown in dead letters."""
    schema: pl.Schema
    """The user's columns after the function."""
    children: tuple[RowNode, ...] = ()
    outputs: tuple[str, ...] = ()
    feeds: tuple[Feed, ...] = ()
    """The ports of keyed steps that take the rows of this node."""
    undecoded: Undecoded | None = None
    """The columns that were not decoded, because no step reads them."""

    @property
    def all_outputs(self) -> list[str]:
        """The outputs of this node and of all nodes below it."""
        return [*self.outputs, *(name for child in self.children for name in child.all_outputs)]


class SkippedRows(NamedTuple):
    """A range of offsets of one partition, as dead letters show them, both ends included."""

    stream: str
    partition: str
    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.stream}/{self.partition}:{self.first}-{self.last}"

    def covers(self, partition: str, offsets: pl.Series) -> pl.Series:
        """Return which of the offsets of a partition are skipped."""
        if partition != self.partition:
            return pl.repeat(value=False, n=len(offsets), eager=True, dtype=pl.Boolean)
        return offsets.is_between(self.first, self.last)


@dataclass(frozen=True, kw_only=True, eq=False)
class SourcePlan:
    """One source stream: its source, its event time, and its row functions."""

    name: str
    source: Source
    time: TakeTime | None
    rows: RowNode
    dead_letters: str
    skipped: tuple[SkippedRows, ...] = ()
    """Rows that go to the dead letters unread, see `skipping.py`."""


@dataclass(frozen=True, kw_only=True, eq=False)
class StepPlan:
    """One keyed step."""

    spec: KeyedStep
    stage: int
    """The step's stage: stage 0 takes rows from sources, stage 1 the results of stage 0, and so on."""
    behind_ms: Mapping[str, int]
    """For each source stream of the rows, how long after its watermark the steps in between may still emit.

    The step's watermark is the smallest of the streams' watermarks, each minus its delay.
    """
    results: RowNode
    sides: Mapping[str, RowNode]
    """The step's other outputs, each with its row functions."""
    late: str | None
    """The output of late rows; None for a step that accepts rows however late they are."""
    dead_letters: str
    """The output of results that could not be processed further, and of timers that failed."""
    buried: Mapping[str, str] = field(default_factory=dict)
    """For each stream and step that feeds this one, the output of its rows on which this step fails."""
    unions: frozenset[str] = frozenset()
    """The ports that several streams feed."""
    spread: int = 1
    """How many key groups of the previous stage condense the rows of one key; 1 if there is no such stage."""

    @property
    def is_first(self) -> bool:
        """Whether all rows come from sources. A first step uses the batch's own watermark, others the previous one."""
        return self.stage == (self.spread > 1)

    @property
    def name(self) -> str:
        """The step's stable name."""
        return self.spec.name

    @property
    def roots(self) -> tuple[RowNode, ...]:
        """The root nodes of the step's results, then of its other outputs."""
        return (self.results, *self.sides.values())


@dataclass(frozen=True, kw_only=True, eq=False)
class OutputPlan:
    """One output: the columns of its rows, and its sinks."""

    name: str
    kind: Literal["rows", "results", "late", "dead_letters"]
    schema: pl.Schema
    sinks: tuple[Sink, ...]
    is_default: bool = False
    """Whether it takes the rows of all outputs of its kind that the pipeline does not end itself."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """A whole pipeline, ready to run."""

    name: str
    key_groups: int
    sources: tuple[SourcePlan, ...]
    steps: tuple[StepPlan, ...]
    outputs: tuple[OutputPlan, ...]
    shows_data: bool = False
    """Whether samples of late rows and dead letters include their data; it affects nothing else."""

    @property
    def stages(self) -> int:
        """The number of keyed stages."""
        return max((step.stage for step in self.steps), default=-1) + 1

    @cached_property
    def by_name(self) -> dict[str, StepPlan]:
        """The steps by name."""
        return {step.name: step for step in self.steps}

    @cached_property
    def output_by_name(self) -> dict[str, OutputPlan]:
        """The outputs by name."""
        return {output.name: output for output in self.outputs}

    @cached_property
    def shared(self) -> frozenset[str]:
        """The default outputs, each of which takes the rows of several steps or streams."""
        return frozenset(output.name for output in self.outputs if output.is_default)

    @cached_property
    def trials(self) -> dict[str, tuple[Trial, ...]]:
        """Per output, checks for rows that its sinks cannot write; none for dead letters, which have no fallback."""
        return {
            output.name: tuple(trial for sink in output.sinks if (trial := sink.trial(self.slot(output))))
            for output in self.outputs
            if output.kind != "dead_letters"
        }

    def slot(self, output: OutputPlan) -> Slot:
        """Return the driver's slot of an output."""
        identity = self.identities.get(output.name)
        return Slot(pipeline=self.name, output=output.name, schema=output.schema, identity=identity)

    @cached_property
    def identities(self) -> dict[str, Identity]:
        """Per output of results, the identity of a result if the step declares one; in a union, the first step's."""
        known = [(step.results, step.spec.identity) for step in reversed(self.steps)]
        return {name: identity for root, identity in known if identity is not None for name in root.all_outputs}

    @cached_property
    def layout(self) -> dict[str, dict[str, str]]:
        """The layout of each step's state; a checkpoint can only be continued with an equal layout."""
        return {step.name: self.placed(step, step.spec.layout) for step in self.steps}

    @staticmethod
    def placed(step: StepPlan, layout: Mapping[str, str]) -> dict[str, str]:
        """Return a step's layout with its stage, because each stage has its own state store."""
        return {STAGE: str(step.stage), **layout}

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything that determines the results of a batch."""
        lines: list[str] = [self.name, str(self.key_groups), str(sorted(self.layout.items()))]
        lines += [step.spec.rules for step in self.steps]
        roots = [source.rows for source in self.sources] + [root for step in self.steps for root in step.roots]
        for root in roots:
            lines += _described(root)
        lines += [str(rows) for source in self.sources for rows in source.skipped]
        lines += [f"{step.name} shares {step.late}" for step in self.steps if step.late in self.shared]
        lines += [f"{output} {trial.rule}" for output, trials in self.trials.items() for trial in trials]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def _described(node: RowNode) -> list[str]:
    lines = [f"{node.step} {_op_text(node.op)} {dict(node.schema)} {node.outputs} {node.feeds}"]
    return lines + [line for child in node.children for line in _described(child)]


def _op_text(op: RowOp | None) -> str:
    if isinstance(op, LookUp | JoinTable):
        return op.rules
    return "" if op is None else f"{stable_text(op)} {[_digest(part) for part in _expressions(vars(op))]}"


def _expressions(value: object) -> list[pl.Expr]:
    """Return the expressions inside `value`, at any depth."""
    if isinstance(value, Mapping):
        value = tuple(value.values())
    if isinstance(value, tuple | list):
        return [found for item in value for found in _expressions(item)]
    return [value] if isinstance(value, pl.Expr) else []


def _digest(expression: pl.Expr) -> str:
    """Return a hash of the whole expression; its text would not do, because long literals are cut short."""
    try:
        return hashlib.sha256(expression.meta.serialize()).hexdigest()[:16]
    except pl.exceptions.PolarsError:
        return ""  # it contains a Python function
