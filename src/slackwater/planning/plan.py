"""The plan: a pipeline with every name, type and place resolved. Both engines run plans, never definitions."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal, NamedTuple

import polars as pl

from slackwater.formats.undecoded import Undecoded
from slackwater.ground.stable_text import stable_text
from slackwater.lookups.definition import LookUp
from slackwater.planning.row_functions import RowOp, TakeTime
from slackwater.sinks.base import Sink, Slot, Trial
from slackwater.sources.base import Source
from slackwater.state.identity import Identity
from slackwater.state.step import KeyedStep
from slackwater.tables.definition import JoinTable

STAGE: Final = "stage"
"""The part of a layout that says in which stage a step is."""


class Feed(NamedTuple):
    """A port of a keyed step that takes rows."""

    step: str
    port: str


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
    feeds: tuple[Feed, ...] = ()
    """The keyed steps that take the rows from here."""
    undecoded: Undecoded | None = None
    """The columns of these rows that were left out in the decoding, because no step looks at them."""

    @property
    def all_outputs(self) -> list[str]:
        """The outputs that take rows from here or from what follows."""
        return [*self.outputs, *(name for child in self.children for name in child.all_outputs)]


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

    spec: KeyedStep
    stage: int
    """0 takes rows from sources; 1 takes results of stage 0; …"""
    behind_ms: Mapping[str, int]
    """For each source stream that rows come from, how long after its watermark the steps between may still emit.

    The step's watermark is the smallest of the streams' watermarks, each less its delay.
    """
    results: RowNode
    sides: Mapping[str, RowNode]
    """The step's other outputs, and what is done to their rows."""
    late: str | None
    """The output of late rows; None for a step that takes rows however late they are."""
    dead_letters: str
    """The output of results that could not be processed further, and of timers that failed."""
    buried: Mapping[str, str] = field(default_factory=dict)
    """For each stream and step that rows come from, the output of those on which the step fails."""
    spread: int = 1
    """How many key groups of the stage before condense the rows of one key; 1 if there is no such stage."""

    @property
    def is_first(self) -> bool:
        """Whether all rows come from sources: they belong to the batch's own watermark, results to the one before."""
        return self.stage == (self.spread > 1)

    @property
    def name(self) -> str:
        """The step's stable name."""
        return self.spec.name

    @property
    def roots(self) -> tuple[RowNode, ...]:
        """Where rows leave the step: its results, then its other outputs."""
        return (self.results, *self.sides.values())


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
    shows_data: bool = False
    """Whether samples of late rows and dead letters say what was in them; it decides nothing else."""

    @property
    def stages(self) -> int:
        """How many keyed stages follow each other."""
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
    def trials(self) -> dict[str, tuple[Trial, ...]]:
        """Per output, what finds rows that one of its sinks cannot write; dead letters have nowhere else to go."""
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
        """Per output of results, what tells them apart, if their step knows; in a union, the first step that does."""
        known = [(step.results, step.spec.identity) for step in reversed(self.steps)]
        return {name: identity for root, identity in known if identity is not None for name in root.all_outputs}

    @cached_property
    def layout(self) -> dict[str, dict[str, str]]:
        """What each step's state looks like; a checkpoint can only be continued by an equal one."""
        return {step.name: self.placed(step, step.spec.layout) for step in self.steps}

    @staticmethod
    def placed(step: StepPlan, layout: Mapping[str, str]) -> dict[str, str]:
        """Return a step's layout with where its state is: in the store of its stage."""
        return {STAGE: str(step.stage), **layout}

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything that decides what a batch's rows become."""
        said: list[str] = [self.name, str(self.key_groups), str(sorted(self.layout.items()))]
        said += [step.spec.rules for step in self.steps]
        roots = [source.rows for source in self.sources] + [root for step in self.steps for root in step.roots]
        for root in roots:
            said += _described(root)
        said += [f"{output} {trial.rule}" for output, trials in self.trials.items() for trial in trials]
        return hashlib.sha256("\n".join(said).encode()).hexdigest()[:16]


def _described(node: RowNode) -> list[str]:
    said = [f"{node.step} {_op_text(node.op)} {dict(node.schema)} {node.outputs} {node.feeds}"]
    return said + [line for child in node.children for line in _described(child)]


def _op_text(op: RowOp | None) -> str:
    if isinstance(op, LookUp | JoinTable):
        return op.rules
    return "" if op is None else f"{stable_text(op)} {[_digest(part) for part in _expressions(vars(op))]}"


def _expressions(value: object) -> list[pl.Expr]:
    """Return the expressions inside `value`, however deep."""
    if isinstance(value, Mapping):
        value = tuple(value.values())
    if isinstance(value, tuple | list):
        return [found for item in value for found in _expressions(item)]
    return [value] if isinstance(value, pl.Expr) else []


def _digest(expression: pl.Expr) -> str:
    """Return a hash of all of an expression; as text, long literals are cut short."""
    try:
        return hashlib.sha256(expression.meta.serialize()).hexdigest()[:16]
    except pl.exceptions.PolarsError:
        return ""  # it holds a Python function
