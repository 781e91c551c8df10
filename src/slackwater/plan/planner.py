"""The planner: checks a pipeline's definitions against each other and resolves them into a plan.

1. `_collect` walks back from every output and finds the sources and steps that lead to it.
2. `_tree` walks forward from every source and checks each row function against its input. A step is resolved when
   the columns of all its ports are known; then the walk continues from its results.
3. Columns that nothing reads are left out of the decoding, and the outputs are checked (`ends.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import polars as pl

from slackwater.base.call_sites import blame, blamed
from slackwater.base.errors import DefinitionError, listed, near_miss, refuse
from slackwater.connectors.source import Source
from slackwater.formats.ddl import check_distinct_names
from slackwater.formats.dead_letter_columns import DEAD_LETTER_SCHEMA
from slackwater.operators.ports import Port
from slackwater.plan.defaults import Defaults, Kind
from slackwater.plan.ends import check_ends
from slackwater.plan.enrichments import check_enrichments
from slackwater.plan.plan import Feed, OutputPlan, Plan, RowNode, SourcePlan, StepPlan
from slackwater.plan.pruning import without_unread
from slackwater.plan.row_functions import RowOp, TakeTime
from slackwater.plan.row_schemas import check_keys, schema_after
from slackwater.plan.streams import Branch, Ended, KeyedStream, Step, Stream, Union, branches


def plan_pipeline(name: str, outputs: Iterable[Ended], *, key_groups: int, defaults: Defaults | None = None) -> Plan:
    """Return the plan of a pipeline, or raise the first error found in it."""
    plan = _Planner(defaults or Defaults()).plan(name, outputs, key_groups)
    check_enrichments(plan)
    return plan


class _Path(NamedTuple):
    """A path of rows from their origin: row functions, then an output or a port of a step."""

    ops: tuple[RowOp, ...]
    end: str | Feed


@dataclass
class _Origin:
    """All paths that begin at one source, or at one output of a step."""

    name: str
    of: Stream | Step
    paths: list[_Path] = field(default_factory=list)
    """The paths in the order in which they were written."""

    @property
    def written(self) -> tuple[object, ...]:
        """The definitions that created it, the best one to point an error at first."""
        if isinstance(self.of, Step):
            return (self.of,)
        return (self.of, *self.of.ops) if self.of.side else (self.of.origin,)

    def add(self, ops: tuple[RowOp, ...], end: str | Feed) -> None:
        if (path := _Path(ops, end)) not in self.paths:
            self.paths.append(path)


class _Planner:
    def __init__(self, defaults: Defaults) -> None:
        self.defaults = defaults
        self.sources: dict[str, Source] = {}
        self.steps: dict[str, Step] = {}
        self.origins: dict[str, _Origin] = {}
        self.ended: dict[str, list[Ended]] = {}
        self.outputs: dict[str, OutputPlan] = {}
        self.kinds: dict[str, Kind] = {}
        self.unions: dict[str, Union] = {}
        self.awaited: dict[str, int] = {}
        """Per step, how many branches are left to walk before the columns of all its ports are known."""
        self.ports: dict[str, dict[str, Port]] = {}
        self.plans: dict[str, StepPlan] = {}

    def plan(self, name: str, outputs: Iterable[Ended], key_groups: int) -> Plan:
        for ended in outputs:
            self._collect(ended)
        for taken in (name for name in self.defaults.names if name in self.steps):
            raise blamed(refuse("OUTPUT_NAME_TAKEN", name=taken), self.steps[taken])
        sources = [self._source(stream) for stream in self.sources]
        specs = {step: plan.spec for step, plan in self.plans.items()}
        steps = [self.plans[step] for step in self.steps]
        plan = Plan(
            name=name,
            key_groups=key_groups,
            sources=tuple(replace(source, rows=without_unread(source.rows, specs)) for source in sources),
            steps=tuple(sorted(steps, key=lambda step: step.stage)),
            outputs=tuple(self.outputs[output] for output in sorted(self.outputs)),
        )
        for origin in self.origins.values():
            step = self.plans.get(origin.name)
            if not origin.paths and not (step is not None and step.spec.may_end_unused):
                what = "step" if origin.name in self.steps else "stream"
                raise blamed(refuse("RESULTS_UNHANDLED", what=f"{what} `{origin.name}`"), *origin.written)
        for source in sources:
            meets_none = all(set(step.behind_ms) <= {source.name} for step in steps if source.name in step.behind_ms)
            if source.time is not None and source.time.max_drift_ms is not None and meets_none:
                raise blamed(refuse("DRIFT_ALONE", stream=source.name), source.time)
        written: dict[str, Sequence[object]] = {**self.ended, **{name: [self.defaults] for name in self.defaults.names}}
        check_ends(plan, self.outputs.values(), written, {**self.sources, **self.steps})
        return plan

    def _collect(self, ended: Ended) -> None:
        """Find every stream and step that leads to an output."""
        of, kind = ended.output.of, ended.output.kind
        name = ended.output.name
        if isinstance(of, Step):
            self._reach_step(of)
        else:
            self._reach(of)
            if kind == "rows":
                name = self._rows_name(of)
        self._keep(name, ended)

    def _keep(self, name: str, ended: Ended) -> None:
        of, kind = ended.output.of, ended.output.kind
        if kind == "rows" and isinstance(of, Stream):
            found = branches(of)
            for branch in found:
                self.origins[branch.name].add(branch.ops, name)
            shows = any(isinstance(branch.origin, Step) and not branch.side for branch in found)
            self.kinds[name] = "results" if shows else "rows"
        else:
            self.kinds[name] = kind
        self.ended.setdefault(name, []).append(ended)

    def _rows_name(self, stream: Stream) -> str:
        if isinstance(stream.origin, Step) and not stream.ops:
            return stream.name
        first, *_ = branches(stream)
        taken = [path for path in self.origins[first.name].paths if isinstance(path.end, str)]
        for path in taken:
            if path.ops == first.ops and self._is_rows_of(path.end, stream):
                return str(path.end)
        number = sum(self._is_rows_of(path.end, stream) for path in taken)
        return f"{stream.name}.rows" + (f"-{number + 1}" if number else "")

    @staticmethod
    def _is_rows_of(output: str | Feed, stream: Stream) -> bool:
        return isinstance(output, str) and output.startswith(f"{stream.name}.rows")

    def _reach(self, stream: Stream) -> None:
        if isinstance(stream.origin, Union):
            known = self.unions.setdefault(stream.name, stream.origin)
            if known is not stream.origin or stream.name in self.origins:
                raise blamed(refuse("STREAM_NAME_TWICE", name=stream.name), stream.origin)
            for each in stream.origin.streams:
                self._reach(each)
            return
        if isinstance(stream.origin, Step):
            self._reach_step(stream.origin)
            self.origins.setdefault(stream.name, _Origin(name=stream.name, of=stream))
            return
        if self.sources.setdefault(stream.name, stream.origin) is not stream.origin or stream.name in self.unions:
            raise blamed(refuse("STREAM_NAME_TWICE", name=stream.name), stream.origin)
        self.origins.setdefault(stream.name, _Origin(name=stream.name, of=stream))

    def _reach_step(self, step: Step) -> None:
        known = self.steps.get(step.name)
        if known is step:
            return
        if known is not None or step.name in self.sources:
            raise blamed(refuse("STEP_NAME_TWICE", name=step.name), step)
        self.steps[step.name] = step
        self.origins.setdefault(step.name, _Origin(name=step.name, of=step))
        self.ports[step.name] = {}
        self.awaited[step.name] = 0
        for port, keyed in step.inputs.items():
            self._reach(keyed.stream)
            for branch in branches(keyed.stream):
                self.origins[branch.name].add(branch.ops, Feed(step.name, port))
                self.awaited[step.name] += 1

    def _source(self, name: str) -> SourcePlan:
        source, paths = self.sources[name], self.origins[name].paths
        times = {id(op): op for path in paths for op in path.ops if isinstance(op, TakeTime)}
        if len(times) > 1:
            raise blamed(refuse("EVENT_TIME_TWICE", stream=name), [*times.values()][-1])
        beside = pl.Schema({column: dtype for column, (dtype, _) in source.metadata.items()})
        if not isinstance(source.schema, pl.Schema | None):
            raise blamed(refuse("SOURCE_SCHEMA", source=source, stream=name, got=repr(source.schema)), source)
        root = RowNode(op=None, step=name, schema=source.schema or beside)
        rows = self._tree(root, paths, is_bytes=source.schema is None, has_time=False)
        dead = self._output(f"{name}.dead_letters", DEAD_LETTER_SCHEMA, "dead_letters")
        [time] = times.values() or [None]
        if time is not None and time.max_drift_ms is not None and source.read_limit is None:
            raise blamed(refuse("DRIFT_SOURCE", stream=name, source=source), time)
        return SourcePlan(name=name, source=source, time=time, rows=rows, dead_letters=dead)

    def _tree(
        self, node: RowNode, paths: Iterable[_Path], *, is_bytes: bool, has_time: bool, stream: str = ""
    ) -> RowNode:
        """Return `node` with all nodes below it, each row function checked against its input.

        `stream` is the name prefix of functions without their own name; it defaults to the node's name.
        """
        stream = stream or node.step
        outputs: list[str] = []
        feeds: list[Feed] = []
        below: dict[int, tuple[RowOp, list[_Path]]] = {}
        for ops, end in paths:
            if ops:
                below.setdefault(id(ops[0]), (ops[0], []))[1].append(_Path(ops[1:], end))
                continue
            if is_bytes:
                raise blamed(refuse("DECODE_MISSING", stream=node.step), *self._written(end))
            if isinstance(end, str):
                outputs.append(end)
                self._output(end, node.schema, self.kinds[end])
            else:
                feeds.append(end)
                if not has_time:
                    missing = refuse("EVENT_TIME_MISSING", step=end.step, stream=node.step.split(".")[0])
                    raise blamed(missing, *self._written(end))
                self._arrive(end, node.schema)
        children = []
        for op, rest in below.values():
            step = getattr(op, "name", None) or f"{stream}.{op.label}"
            with blame(op):
                schema = schema_after(op, node.schema, step=step, is_bytes=is_bytes, has_time=has_time)
                check_distinct_names(schema, place=f" in `{step}`")
            child = RowNode(op=op, step=step, schema=schema)
            still_bytes = is_bytes and op.label != "decode"
            timed = has_time or isinstance(op, TakeTime)
            children.append(self._tree(child, rest, is_bytes=still_bytes, has_time=timed, stream=stream))
        return replace(node, children=tuple(children), outputs=tuple(outputs), feeds=tuple(feeds))

    def _arrive(self, feed: Feed, schema: pl.Schema) -> None:
        """Record the columns that arrive at a port; resolve its step once all of its branches have arrived."""
        step = self.steps[feed.step]
        keyed = step.inputs[feed.port]
        known = self.ports[step.name].setdefault(feed.port, Port(schema=schema, keys=keyed.keys))
        if dict(known.schema) != dict(schema):
            raise blamed(_unequal(f"step `{step.name}`", known.schema, schema), keyed.stream.origin)
        with blame(keyed, step):
            check_keys(step.name, keyed.keys, schema)
        self.awaited[step.name] -= 1
        if self.awaited[step.name] == 0:
            self._resolve(step)

    def _resolve(self, step: Step) -> None:
        """Check a keyed step against the rows it receives, then everything below its results."""
        name = step.name
        ports = {
            port: replace(self.ports[name][port], own=self._own(keyed), streams=_streams(keyed))
            for port, keyed in step.inputs.items()
        }
        with blame(step):
            spec = step.definition.resolve(name, ports).asked(self._asked(name))
            if any(isinstance(path.end, Feed) for path in self.origins[name].paths):
                spec = spec.chained()
            for schema in (spec.result_types, *spec.sides.values(), spec.late_types or ()):
                check_distinct_names(schema, place=f" in the rows of step `{name}`")
        stage, behind_ms = 0, dict[str, int]()
        for branch in _branches(step):
            before, delays_ms = self._before(branch, step)
            stage = max(stage, before + 1)
            for source, delay_ms in delays_ms.items():
                behind_ms[source] = max(behind_ms.get(source, 0), delay_ms)
        spread = max(keyed.spread for keyed in step.inputs.values())
        if spread > 1:
            with blame(*step.inputs.values()):
                spec.check_spread()
            stage += 1  # the stage before it condenses
        late = None
        if spec.late_types is not None:
            late = self._output(f"{name}.late", spec.late_types, "late")
        elif f"{name}.late" in self.ended:
            raise blamed(refuse("LATE_NEVER", step=name), *self.ended[f"{name}.late"])
        root = RowNode(op=None, step=name, schema=spec.result_types)
        plan = StepPlan(
            spec=spec,
            stage=stage,
            unions=frozenset(name for name, port in ports.items() if len(port.streams) > 1),
            spread=spread,
            behind_ms=behind_ms,
            results=root,
            sides={},
            late=late,
            dead_letters="",
        )
        # Chained steps look up their upstream step here, so it must be registered before its results are walked.
        self.plans[name] = plan
        results = self._tree(root, self.origins[name].paths, is_bytes=False, has_time=True)
        sides = {side: self._side(name, side, schema) for side, schema in spec.sides.items()}
        self._check_sides(name, spec.sides)
        has_own = self._has_letters(plan)
        own = f"{name}.dead_letters"
        letters = self._output(own, DEAD_LETTER_SCHEMA, "dead_letters") if has_own else self._first_letters(plan)
        buried = {branch.name: letters if has_own else self._buried(branch) for branch in _branches(step)}
        self.plans[name] = replace(plan, results=results, sides=sides, dead_letters=letters, buried=buried)

    def _own(self, keyed: KeyedStream) -> frozenset[str]:
        """Return the columns that Slackwater added to the rows of every preceding step."""
        before = [branch.origin for branch in branches(keyed.stream)]
        own = [self.plans[each.name].spec.own_columns if isinstance(each, Step) else frozenset() for each in before]
        return frozenset.intersection(*own)

    def _before(self, branch: Branch, step: Step) -> tuple[int, Mapping[str, int]]:
        """Return the stage of what precedes `step` on a branch, and how far behind its sources it emits."""
        if not isinstance(branch.origin, Step):
            return -1, {branch.name: 0}
        upstream = self.plans[branch.origin.name]
        if not branch.side:
            with blame(step):
                upstream.spec.check_next(step.name)
        delay_ms = upstream.spec.emission_delay_ms
        return upstream.stage, {source: behind_ms + delay_ms for source, behind_ms in upstream.behind_ms.items()}

    def _side(self, step: str, side: str, schema: pl.Schema) -> RowNode:
        name = f"{step}.{side}"
        if name not in self.origins:
            raise blamed(refuse("SIDE_UNHANDLED", step=step, side=side), self.steps[step])
        root = RowNode(op=None, step=name, schema=schema)
        return self._tree(root, self.origins[name].paths, is_bytes=False, has_time=True)

    def _asked(self, step: str) -> frozenset[str]:
        """Return the sides of a step that the pipeline uses."""
        prefix, others = f"{step}.", {*self.sources, *self.steps}
        asked = (stream for stream in self.origins if stream.startswith(prefix) and stream not in others)
        return frozenset(stream.removeprefix(prefix) for stream in asked)

    def _check_sides(self, step: str, known: Mapping[str, pl.Schema]) -> None:
        """Reject side outputs that the pipeline uses but the step does not have."""
        for side in sorted(self._asked(step) - {*known}):
            facts = {"hint": near_miss(side, known), "known": listed(known, near=side)}
            unknown = refuse("SIDE_UNKNOWN", step=step, side=side, **facts)
            raise blamed(unknown, *self.origins[f"{step}.{side}"].written)

    def _has_letters(self, step: StepPlan) -> bool:
        """Return whether a step has its own output of dead letters: if used or if row functions follow."""
        names = [step.name, *(f"{step.name}.{side}" for side in step.spec.sides)]
        is_followed = any(path.ops for name in names for path in self.origins[name].paths)
        return is_followed or f"{step.name}.dead_letters" in self.ended

    def _buried(self, branch: Branch) -> str:
        """Return the output for a branch's rows on which a step fails: the dead letters of their stream."""
        if isinstance(branch.origin, Step):
            return self._first_letters(self.plans[branch.origin.name])
        return self._end(f"{branch.name}.dead_letters", "dead_letters")

    def _first_letters(self, step: StepPlan) -> str:
        """Return the output of the dead letters of the first source before a step."""
        return self._end(f"{next(iter(step.behind_ms))}.dead_letters", "dead_letters")

    def _end(self, name: str, kind: Kind) -> str:
        """Return the name of an output or, if the pipeline leaves it open, of the default output of its kind."""
        return name if name in self.ended or not self.defaults.sinks(kind) else kind

    def _output(self, name: str, schema: pl.Schema, kind: Kind) -> str:
        """Plan an output, and return the name of the one that takes its rows."""
        sinks = tuple(ended.sink for ended in self.ended.get(name, ()))
        is_default = name != (name := self._end(name, kind))
        if is_default:
            schema, sinks = self.defaults.schema(kind), self.defaults.sinks(kind)
        made = OutputPlan(name=name, kind=kind, schema=schema, sinks=sinks, is_default=is_default)
        known = self.outputs.setdefault(name, made)
        if dict(known.schema) != dict(schema):
            raise blamed(_unequal(f"output `{name}`", known.schema, schema), *self.ended.get(name, ()))
        return name

    def _written(self, end: str | Feed) -> Sequence[object]:
        """Return the definitions of an output's ends, or of the step that is fed."""
        return self.ended[end] if isinstance(end, str) else (self.steps[end.step],)


def _branches(step: Step) -> list[Branch]:
    return [branch for keyed in step.inputs.values() for branch in branches(keyed.stream)]


def _streams(keyed: KeyedStream) -> tuple[str, ...]:
    return tuple(dict.fromkeys(branch.name for branch in branches(keyed.stream)))


def _unequal(place: str, first: pl.Schema, other: pl.Schema) -> DefinitionError:
    lacking = [f"{name} {dtype}" for name, dtype in first.items() if other.get(name) != dtype]
    strange = [f"{name} {dtype}" for name, dtype in other.items() if first.get(name) != dtype]
    return refuse(
        "UNION_COLUMNS",
        place=place,
        first=listed(lacking) if lacking else "nothing",
        other=listed(strange) if strange else "nothing",
    )
