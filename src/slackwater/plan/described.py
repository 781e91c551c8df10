"""A plan as plain data, shared by the text, the JSON and the drawing of `explain`."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from slackwater.base.durations import render_ms
from slackwater.connectors.sink import Drop
from slackwater.formats.schemas import shown
from slackwater.plan.join_table import JoinTable
from slackwater.plan.lookup import LookUp
from slackwater.plan.plan import Feed, Plan, RowNode, SourcePlan, StepPlan
from slackwater.plan.row_functions import Decode, Map, RowOp, Select, TakeTime, Validate, Where, WithColumns


@dataclass(frozen=True, kw_only=True)
class FeedText:
    """A port of a step that takes rows; the port's name is empty if the step has only one."""

    step: str
    port: str


@dataclass(frozen=True, kw_only=True)
class RowsText:
    """A row function and the nodes after it; the root has no function."""

    name: str
    function: str
    """The kind of function, such as "decode"; empty for the root."""
    text: str
    """The function's arguments as the user wrote them."""
    outputs: tuple[str, ...]
    feeds: tuple[FeedText, ...]
    children: tuple[RowsText, ...]


@dataclass(frozen=True, kw_only=True)
class SourceText:
    """A source stream."""

    name: str
    source: str
    watermark: tuple[str, ...]
    """How its watermark is computed: one line, then further details."""
    rows: RowsText
    dead_letters: str
    """The output that the stream's dead letters go to."""


@dataclass(frozen=True, kw_only=True)
class FactText:
    """One fact about a step: a label and its text."""

    label: str
    text: str


@dataclass(frozen=True, kw_only=True)
class BehindText:
    """How far a chained step's watermark is behind that of a source stream."""

    stream: str
    by: str


@dataclass(frozen=True, kw_only=True)
class StepText:
    """A keyed step."""

    name: str
    stage: int
    spread: int
    facts: tuple[FactText, ...]
    """The step's key, window, state and so on, as its `describe` returns them."""
    behind: tuple[BehindText, ...]
    results: tuple[RowsText, ...]
    """The step's results, then its other outputs."""
    late: str | None
    """The output of late rows; None if rows are never late for this step."""
    dead_letters: str | None
    """The output of the step's own dead letters; None if they go to the output of a source."""


@dataclass(frozen=True, kw_only=True)
class SinkText:
    """A sink of an output."""

    sink: str
    promise: str
    """The sink's delivery guarantee; empty for rows that are dropped."""
    chosen: str
    """The options that differ from the default."""


@dataclass(frozen=True, kw_only=True)
class OutputText:
    """An output and its sinks; an output without sinks feeds the next step."""

    name: str
    kind: str
    is_default: bool
    """Whether it takes the rows of all outputs of its kind that the pipeline does not end itself."""
    sinks: tuple[SinkText, ...]


@dataclass(frozen=True, kw_only=True)
class PlanText:
    """A whole plan."""

    pipeline: str
    key_groups: int
    fingerprint: str
    sources: tuple[SourceText, ...]
    steps: tuple[StepText, ...]
    outputs: tuple[OutputText, ...]

    def output(self, name: str) -> OutputText:
        """Return an output by its name."""
        return next(output for output in self.outputs if output.name == name)

    def step(self, name: str) -> StepText:
        """Return a step by its name."""
        return next(step for step in self.steps if step.name == name)

    def to_json(self) -> str:
        """Return the plan as JSON."""
        return json.dumps(asdict(self), indent=2, ensure_ascii=False)


def describe(plan: Plan) -> PlanText:
    """Return a plan as data."""
    shared = {source.dead_letters for source in plan.sources}
    return PlanText(
        pipeline=plan.name,
        key_groups=plan.key_groups,
        fingerprint=plan.fingerprint,
        sources=tuple(
            SourceText(
                name=source.name,
                source=str(source.source),
                watermark=_watermark(source),
                rows=_rows(plan, source.rows),
                dead_letters=source.dead_letters,
            )
            for source in plan.sources
        ),
        steps=tuple(_step(plan, step, shared) for step in plan.steps),
        outputs=tuple(
            OutputText(
                name=output.name,
                kind=output.kind,
                is_default=output.is_default,
                sinks=tuple(
                    SinkText(
                        sink=str(sink),
                        promise="" if isinstance(sink, Drop) else sink.promise,
                        chosen=sink.chosen(),
                    )
                    for sink in output.sinks
                ),
            )
            for output in plan.outputs
        ),
    )


def _step(plan: Plan, step: StepPlan, shared: set[str]) -> StepText:
    return StepText(
        name=step.name,
        stage=step.stage,
        spread=step.spread,
        facts=tuple(FactText(label=label, text=text) for label, text in (*_unions(plan, step), *step.spec.describe())),
        behind=tuple(
            BehindText(stream=stream, by=render_ms(delay_ms)) for stream, delay_ms in step.behind_ms.items() if delay_ms
        ),
        results=tuple(_rows(plan, root) for root in step.roots),
        late=step.late,
        dead_letters=None if step.dead_letters in shared else step.dead_letters,
    )


def _unions(plan: Plan, step: StepPlan) -> list[tuple[str, str]]:
    """Return a fact for each port that reads a union, with the streams and steps that feed it."""
    roots = [source.rows for source in plan.sources] + [root for each in plan.steps for root in each.roots]
    found = []
    for port in step.spec.ports:
        names = [root.step for root in roots if _feeds(root, Feed(step.name, port))]
        if len(names) > 1:
            which = f"{port} rows are " if len(step.spec.ports) > 1 else ""
            found.append(("reads", f"{which}a union of {', '.join(names)}: the slowest watermark decides"))
    return found


def _feeds(node: RowNode, feed: Feed) -> bool:
    return feed in node.feeds or any(_feeds(child, feed) for child in node.children)


def _rows(plan: Plan, node: RowNode) -> RowsText:
    return RowsText(
        name=node.step,
        function="" if node.op is None else node.op.label,
        text="" if node.op is None else _op(node.op),
        outputs=node.outputs,
        feeds=tuple(
            FeedText(step=feed.step, port=feed.port if len(plan.by_name[feed.step].spec.ports) > 1 else "")
            for feed in node.feeds
        ),
        children=tuple(_rows(plan, child) for child in node.children),
    )


def _watermark(source: SourcePlan) -> tuple[str, ...]:
    time = source.time
    if time is None:
        return ("no event time: rows pass through, no state is kept",)
    if time.clock == "processing":
        return ("watermark: processing time",)
    slack = render_ms(time.out_of_orderness_ms)
    rule = f"watermark: largest {time.clock} time - {slack}, per partition, the slowest live one decides"
    idle = render_ms(time.idle_after_ms) if time.idle_after_ms is not None else "never"
    lines = [rule, f"a partition is idle after: {idle}"]
    if time.max_ahead_ms is not None:
        lines.append(f"more than {render_ms(time.max_ahead_ms)} ahead of the clock: dead letter")
    if time.max_drift_ms is not None:
        lines.append(f"more than {render_ms(time.max_drift_ms)} ahead of a stream it meets: waits, unread")
    return tuple(lines)


def _op(op: RowOp) -> str:
    match op:
        case Decode(format=form):
            return f"{form}: {shown(form.schema)}"
        case TakeTime():
            return op.written or op.clock
        case Map(function=function):
            return getattr(function, "__name__", "function")
        case Where() | WithColumns() | Select() | Validate() | LookUp() | JoinTable():
            return op.written
