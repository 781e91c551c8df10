"""The planner: checks a pipeline's definitions against each other and resolves them into a plan."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import get_args

import polars as pl

from slackwater.aggregates.base import Aggregate
from slackwater.errors import refuse
from slackwater.formats.dead_letters import DEAD_LETTER_SCHEMA
from slackwater.ground.expressions import check_clear, check_column_name, unknown_column
from slackwater.ground.folders import lies_in
from slackwater.planning.plan import Feed, OutputPlan, Plan, RowNode, SourcePlan, StepPlan
from slackwater.planning.pruning import without_unread
from slackwater.planning.row_functions import RowOp, TakeTime
from slackwater.planning.row_schemas import schema_after
from slackwater.sinks.base import EVERYTHING, Change, Delivery, Sink, Slot
from slackwater.sources.base import Source
from slackwater.streams import Ended, Step, Stream
from slackwater.triggers import schedule
from slackwater.windows.spec import ROWS, WindowSpec

RESERVED_RESULTS = ("window_start", "window_end", "pane", "pane_index", "is_retraction", "watermark")
_CHANGES: dict[Change, str] = {"append": "new rows", "update": "updates", "retract": "retractions"}
RESERVED_LATE = ("event_time", "late_by_ms", "watermark", "windows", "step")


def plan_pipeline(name: str, outputs: Iterable[Ended], *, key_groups: int) -> Plan:
    """Return the plan of a pipeline, or refuse it with the first thing that cannot be right."""
    return _Planner().plan(name, outputs, key_groups)


@dataclass
class _Origin:
    """Everything that hangs on one source or one step."""

    name: str
    paths: list[tuple[tuple[RowOp, ...], str, str]] = field(default_factory=list)
    """(row functions, "output" or "step", its name), in the order they were written."""

    def add(self, ops: tuple[RowOp, ...], kind: str, name: str) -> None:
        if (ops, kind, name) not in self.paths:
            self.paths.append((ops, kind, name))


class _Planner:
    def __init__(self) -> None:
        self.sources: dict[str, Source] = {}
        self.steps: dict[str, Step] = {}
        self.origins: dict[str, _Origin] = {}
        self.sinks: dict[str, list[Sink]] = {}
        self.kinds: dict[str, str] = {}
        self.outputs: dict[str, OutputPlan] = {}
        self.plans: dict[str, StepPlan] = {}

    def plan(self, name: str, outputs: Iterable[Ended], key_groups: int) -> Plan:
        for ended in outputs:
            self._collect(ended)
        sources = tuple(self._source(stream) for stream in self.sources)
        steps = [self.plans[step] for step in self.steps]
        self._check_ended(name)
        return Plan(
            name=name,
            key_groups=key_groups,
            sources=sources,
            steps=tuple(sorted(steps, key=lambda step: step.stage)),
            outputs=tuple(self.outputs[output] for output in sorted(self.outputs)),
        )

    def _collect(self, ended: Ended) -> None:
        """Find every stream and step that leads to an output."""
        of, kind = ended.output.of, ended.output.kind
        if kind == "late":
            assert isinstance(of, Step)
            name = f"{of.name}.late"
            self._reach_step(of)
        else:
            assert isinstance(of, Stream)
            self._reach(of)
            if kind == "dead_letters":
                name = f"{of.name}.dead_letters"
            else:
                name = of.name if isinstance(of.origin, Step) and not of.ops else self._rows_name(of)
                self.origins[of.name].add(of.ops, "output", name)
        self.kinds[name] = (
            "results" if kind == "rows" and isinstance(of, Stream) and isinstance(of.origin, Step) else kind
        )
        self.sinks.setdefault(name, []).append(ended.sink)

    def _rows_name(self, stream: Stream) -> str:
        for ops, kind, name in self.origins[stream.name].paths:
            if kind == "output" and ops == stream.ops:
                return name
        number = sum(kind == "output" and bool(ops) for ops, kind, _ in self.origins[stream.name].paths)
        return f"{stream.name}.rows" + (f"-{number + 1}" if number else "")

    def _reach(self, stream: Stream) -> None:
        self.origins.setdefault(stream.name, _Origin(name=stream.name))
        if isinstance(stream.origin, Step):
            self._reach_step(stream.origin)
            return
        known = self.sources.setdefault(stream.name, stream.origin)
        if known is not stream.origin:
            raise refuse("STREAM_NAME_TWICE", name=stream.name)

    def _reach_step(self, step: Step) -> None:
        known = self.steps.get(step.name)
        if known is step:
            return
        if known is not None or step.name in self.sources:
            raise refuse("STEP_NAME_TWICE", name=step.name)
        self.steps[step.name] = step
        self.origins.setdefault(step.name, _Origin(name=step.name))
        before = step.windowed.keyed.stream
        self._reach(before)
        self.origins[before.name].add(before.ops, "step", step.name)

    def _source(self, name: str) -> SourcePlan:
        source = self.sources[name]
        times = {id(op): op for ops, _, _ in self.origins[name].paths for op in ops if isinstance(op, TakeTime)}
        if len(times) > 1:
            raise refuse("EVENT_TIME_TWICE", stream=name)
        root = RowNode(op=None, step=name, schema=source.schema or source.metadata)
        rows = self._tree(root, self.origins[name].paths, is_bytes=source.schema is None, has_time=False)
        rows = without_unread(rows, {step: plan.spec for step, plan in self.plans.items()})
        dead = f"{name}.dead_letters"
        self._output(dead, DEAD_LETTER_SCHEMA)
        [time] = times.values() or [None]
        return SourcePlan(name=name, source=source, time=time, rows=rows, dead_letters=dead)

    def _tree(
        self, node: RowNode, paths: Iterable[tuple[tuple[RowOp, ...], str, str]], *, is_bytes: bool, has_time: bool
    ) -> RowNode:
        """Return `node` with everything that hangs on it, each row function checked against its input."""
        outputs, feeds, below = [], [], {}  # type: ignore[var-annotated]  # seen from what is added
        for ops, kind, name in paths:
            if ops:
                below.setdefault(id(ops[0]), (ops[0], []))[1].append((ops[1:], kind, name))
                continue
            if is_bytes:
                raise refuse("DECODE_MISSING", stream=node.step)
            if kind == "output":
                outputs.append(name)
                self._output(name, node.schema)
            else:
                feeds.append(Feed(name, ROWS))
                if not has_time:
                    raise refuse("EVENT_TIME_MISSING", step=name, stream=node.step.split(".")[0])
                self._specify(name, node.schema)
        children = []
        for op, rest in below.values():
            stream = node.step if node.op is None else node.step.rsplit(".", 1)[0]
            step = f"{stream}.{op.label}"
            schema = schema_after(op, node.schema, step=step, is_bytes=is_bytes, has_time=has_time)
            child = RowNode(op=op, step=step, schema=schema)
            still_bytes = is_bytes and op.label != "decode"
            children.append(
                self._tree(child, rest, is_bytes=still_bytes, has_time=has_time or isinstance(op, TakeTime))
            )
        return RowNode(
            op=node.op,
            step=node.step,
            schema=node.schema,
            children=tuple(children),
            outputs=tuple(outputs),
            feeds=tuple(feeds),
        )

    def _specify(self, name: str, schema: pl.Schema) -> None:
        """Check a keyed step against the rows it gets, then everything that hangs on its results."""
        step = self.steps[name]
        windowed = step.windowed
        _check_columns(step, schema)
        spec = WindowSpec(
            name=name,
            keys=windowed.keyed.keys,
            row_schema=schema,
            window=windowed.window,
            lateness_ms=windowed.lateness_ms,
            schedule=schedule(windowed.trigger),
            accumulation=windowed.accumulation,
            aggregates=dict(step.aggregates),
            semantics=windowed.semantics,
        )
        if not spec.window.has_end and spec.lateness_ms:
            raise refuse("GLOBAL_LATENESS", step=name)
        results = spec.result_types  # types of all aggregates are checked here
        before = windowed.keyed.stream.origin
        sources: tuple[str, ...] = (windowed.keyed.stream.name,)
        stage, delay = 0, 0
        if isinstance(before, Step):
            upstream = self._upstream(before.name, name)
            stage, sources = upstream.stage + 1, upstream.sources
            delay = upstream.delay_ms + upstream.spec.emission_delay_ms
        root = RowNode(op=None, step=name, schema=results)
        late = f"{name}.late"
        self._output(late, spec.late_types)
        # Chained steps look their upstream up, so it must stand here before its results are walked.
        self.plans[name] = StepPlan(
            spec=spec, stage=stage, sources=sources, delay_ms=delay, results=root, late=late, dead_letters=""
        )
        paths = self.origins[name].paths
        tree = self._tree(root, paths, is_bytes=False, has_time=True)
        dead = f"{name}.dead_letters"
        if dead in self.sinks or any(ops for ops, _, _ in paths):
            self._output(dead, DEAD_LETTER_SCHEMA)
        else:  # what a next step cannot evaluate or a sink cannot write, and nobody asked for apart
            dead = f"{sources[0]}.dead_letters"
        self.plans[name] = StepPlan(
            spec=spec, stage=stage, sources=sources, delay_ms=delay, results=tree, late=late, dead_letters=dead
        )

    def _upstream(self, before: str, step: str) -> StepPlan:
        upstream = self.plans[before]
        upstream.spec.check_next(step)
        return upstream

    def _output(self, name: str, schema: pl.Schema) -> None:
        kind = self.kinds.get(name, "late" if name.endswith(".late") else "dead_letters")
        sinks = tuple(self.sinks.get(name, ()))
        self.outputs[name] = OutputPlan(name=name, kind=kind, schema=schema, sinks=sinks)  # type: ignore[arg-type]  # one of the kinds

    def _check_ended(self, pipeline: str) -> None:
        """Refuse outputs that go nowhere, streams that a sink cannot take, and outputs that would mix."""
        self._check_used()
        for output in self.outputs.values():
            owner = output.name.rsplit(".", 1)[0]
            if not output.sinks and output.kind == "late":
                raise refuse("LATE_UNHANDLED", step=owner)
            if not output.sinks and output.kind == "dead_letters":
                raise refuse("DEAD_LETTERS_UNHANDLED", stream=owner)
            identity = self._check_takes(output) if output.kind == "results" else ()
            slot = Slot(pipeline=pipeline, output=output.name, schema=output.schema)
            for number, sink in enumerate(output.sinks):
                _check_promise(sink, output.name)
                sink.check(slot, identity)
                others = output.sinks[:number]
                if sink.uses_marks and str(sink) in map(str, others):
                    raise refuse("SINK_TWICE", sink=sink, output=output.name)
        self._check_places()

    def _check_places(self) -> None:
        """Refuse outputs that would be written into one place, into one another, or into what is read."""
        read = [(source.place, f"stream `{name}`") for name, source in self.sources.items()]
        taken: list[tuple[str, str]] = [(place, whose) for place, whose in read if place is not None]
        for output in self.outputs.values():
            for place in (sink.place for sink in output.sinks if sink.place is not None):
                mine = (place, f"output `{output.name}`")
                for other in taken:
                    _check_apart(mine, other)
                taken.append(mine)

    def _check_used(self) -> None:
        """Refuse a stream or a step whose rows reach neither a sink nor another step."""
        for origin in self.origins.values():
            if not origin.paths:
                what = "step" if origin.name in self.steps else "stream"
                raise refuse("RESULTS_UNHANDLED", what=f"{what} `{origin.name}`")

    def _check_takes(self, output: OutputPlan) -> tuple[str, ...]:
        """Refuse results that a sink cannot take; return the columns they are keyed by."""
        [owner] = [step for step in self.plans.values() if output.name in _outputs_below(step.results)]
        spec, need = owner.spec, owner.spec.emits
        for sink in output.sinks:
            if need not in sink.takes:
                takes = " and ".join(_CHANGES[change] for change in _CHANGES if change in sink.takes)
                how = f" ({sink.for_retractions})" if need == "retract" and sink.for_retractions else ""
                facts = {"output": output.name, "sink": sink, "need": _CHANGES[need], "takes": takes, "how": how}
                raise refuse("SINK_CANNOT_TAKE", **facts)
            if sink.replaced_by:
                key = ", ".join(sink.replaced_by)
                spec.check_replaces(sink.replaced_by, output=output.name, sink=sink, key=key)
        return spec.keys


def _check_apart(mine: tuple[str, str], other: tuple[str, str]) -> None:
    """Refuse two places, each with what it is of, that are one or of which one holds the other."""
    is_inside, is_around = lies_in(mine[0], other[0]), lies_in(other[0], mine[0])
    if is_inside and is_around and other[1].startswith("output "):
        first, second = (whose.removeprefix("output ") for _, whose in (other, mine))
        raise refuse("SINK_SHARED", place=mine[0], first=first, second=second)
    if is_inside or is_around:
        (inner, who), (outer, whose) = (mine, other) if is_inside else (other, mine)
        how = "is the same folder as" if is_inside and is_around else "is inside"
        raise refuse("FOLDERS_NESTED", inner=inner, who=who, how=how, outer=outer, other=whose)


def _check_promise(sink: Sink, output: str) -> None:
    """Refuse a sink whose class promises, or takes, what there is not."""
    if sink.delivery not in get_args(Delivery):
        raise refuse("SINK_PROMISE", sink=sink, output=output, what="delivery", got=repr(sink.delivery))
    if unknown := sorted(map(repr, set(sink.takes) - EVERYTHING)):
        raise refuse("SINK_PROMISE", sink=sink, output=output, what="takes", got=", ".join(unknown))


def _check_columns(step: Step, schema: pl.Schema) -> None:
    """Refuse a keyed step whose keys, gap or aggregates do not fit the rows it gets."""
    name, keyed, window = step.name, step.windowed.keyed, step.windowed.window
    for key in keyed.keys:
        if key not in schema:
            raise unknown_column(key, schema, step=name)
        if schema[key].is_nested() or key in RESERVED_RESULTS:
            raise refuse("KEY_TYPE", step=name, key=key, dtype=schema[key])
    for column in schema:
        # Results carry the watermark that made them; as late rows they show the one that judged them.
        is_own = column == "watermark" and isinstance(keyed.stream.origin, Step)
        if column in RESERVED_LATE and not is_own:
            raise refuse("LATE_COLUMN_TAKEN", step=name, column=column)
    window.check(schema, step=name)
    for alias, aggregate in step.aggregates.items():
        _check_aggregate(step, alias, aggregate, schema)


def _check_aggregate(step: Step, alias: str, aggregate: Aggregate, schema: pl.Schema) -> None:
    check_column_name(alias, place=f" in step `{step.name}`")
    if alias.startswith("__"):
        raise refuse("RESERVED_COLUMN", name=alias)
    if alias in RESERVED_RESULTS or alias in step.windowed.keyed.keys:
        raise refuse("AGGREGATE_NAME_TAKEN", step=step.name, alias=alias)
    check_clear(schema, aggregate.inputs(), step=f"{step.name}, aggregate {alias}")
    for expression in aggregate.inputs():
        for column in expression.meta.root_names():
            if column and column not in schema:  # the empty name is an element of a list
                raise unknown_column(column, schema, step=f"{step.name}, aggregate `{alias}`")


def _outputs_below(node: RowNode) -> list[str]:
    return [*node.outputs, *(name for child in node.children for name in _outputs_below(child))]
