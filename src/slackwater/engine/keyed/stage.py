"""KEYED: one stage of keyed steps in one key group, during one batch.

Opens the group's state, runs each step's operator, and sends the results on: to outputs, or as rows to
the steps of the next stage.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

import polars as pl

from slackwater.base.sealed import SealedFolder
from slackwater.base.stable_hash import hash_columns
from slackwater.connectors.shown_places import ShownPlaces
from slackwater.engine.dead_letters import bury
from slackwater.engine.enrichment.answers import Span
from slackwater.engine.enrichment.enrichment import Enrichment
from slackwater.engine.front.arrivals import Arrivals, placed_errors
from slackwater.engine.front.rows import RowFunctions
from slackwater.engine.key_groups import labels
from slackwater.engine.keyed.floor import STORED_FAILED, run_on_floor
from slackwater.engine.row_context import RowContext
from slackwater.engine.step_times import step_time
from slackwater.eventtime.clock import Clock
from slackwater.operators.state.counted_keys import has_turn
from slackwater.operators.state.packets import OUTPUT, STATS, TICK, Packet, stats, tick
from slackwater.operators.state.pieces import StepState
from slackwater.operators.state.store import Store, read_index, write_index
from slackwater.operators.step import PORT_ROWS, TIMER_FAILED, Emitted, Failed, StepRows
from slackwater.operators.whole_rows import STREAM, place_of_result, stream_of
from slackwater.plan.plan import Plan, RowNode, StepPlan

_COUNTED: Final = {TIMER_FAILED: "failed_timers", STORED_FAILED: "failed_in_state"}
"""What dead letters are counted as that are no rows of the batch, by reason."""


class Stage:
    """The keyed steps of one stage; created once per task."""

    def __init__(
        self, plan: Plan, number: int, enrichment: Enrichment | None = None, files: SealedFolder | None = None
    ) -> None:
        """Create a stage of `plan`; `files` are those of the checkpoint, if the plan's job has one."""
        self.plan = plan
        self.places = dict[str, ShownPlaces | None]()
        if files is not None:
            self.places = {each.name: each.source.shown_places(files, at) for at, each in enumerate(plan.sources)}
        self.enrichment = enrichment
        self.number = number
        self.steps = [step for step in plan.steps if step.stage == number]
        self.relayed = [step for step in plan.steps if step.spread > 1 and step.stage == number + 1]
        self.operators = {step.name: step.spec.operator() for step in self.steps}
        self.functions = {root.step: RowFunctions(root) for step in self.steps for root in step.roots}
        self.is_last = number == plan.stages - 1

    def run(self, key_group: int, packets: Iterable[Packet], store: Store, clock: Clock) -> Iterator[Packet]:
        """Run one batch of one key group; `packets` may come in any order."""
        rows = {step.name: StepRows() for step in (*self.steps, *self.relayed)}
        for packet in packets:
            if packet.kind == TICK:
                continue
            if packet.target in rows and packet.kind not in (OUTPUT, STATS):
                rows[packet.target].add(packet)
            else:
                yield packet
        place = f"state/{self.number}/{key_group}"
        index = read_index(store, place, clock.incarnation)
        arrivals = Arrivals(plan=self.plan, clock=clock, way_out=key_group)
        states = {}
        for step in self.steps:
            state = StepState.from_index(step.name, store, index.get(step.name))
            states[step.name] = state
            self._step(step, key_group, rows[step.name], state, arrivals)
        arrivals.order = f"\x00{key_group:06d}"
        for step in self.relayed:
            arrivals.relay(step, rows[step.name])
        if any(state.is_changed for state in states.values()):
            held = {name: state.to_index() for name, state in states.items() if state.pieces}
            write_index(store, held, place, clock.incarnation)
        yield from arrivals.flush()
        if not self.is_last:
            yield tick(key_group)
        keys = dict[str, list[int]]()
        with arrivals.measuring(self.steps[0].name if self.steps else ""):
            keys = self._keys(key_group, arrivals.clock.batch, states)
        has_news = arrivals.counts or arrivals.losses or keys or key_group == labels(self.plan.key_groups)[0]
        if has_news or any(state.pieces for state in states.values()):
            yield self._stats(key_group, arrivals, states, keys)

    def _keys(self, key_group: int, batch: int, states: dict[str, StepState]) -> dict[str, list[int]]:
        """Return the group's place and its number of keys, for each step whose keys it counts in this batch."""
        place, key_groups = labels(self.plan.key_groups).index(key_group), self.plan.key_groups
        return {
            name: [place, self.plan.by_name[name].spec.count_keys(state)]
            for name, state in states.items()
            if has_turn(state, place=place, key_groups=key_groups, batch=batch)
        }

    def _step(self, step: StepPlan, key_group: int, rows: StepRows, state: StepState, arrivals: Arrivals) -> None:
        time = step_time(step, arrivals.clock)
        operator = self.operators[step.name]
        with placed_errors(step):
            shown = run_on_floor(
                step.spec, rows, state, lambda some, of: operator.run(some, time, of, stagger=key_group)
            )
        state.commit()
        for what, number in shown.counts.items():
            arrivals.count(step.name, what, number)
        arrivals.order = f"{step.name}\x00{key_group:06d}"
        context = RowContext(
            source=step.name, partition=step.name, now_ms=arrivals.clock.now, enrichment=self.enrichment
        )
        for stream, late in _by_stream(step, shown.late):
            arrivals.count_rows(step.name, late.height)
            context.places = self.places.get(stream)
            arrivals.emit_late(step, late, context, stream)
        self._send(context.dead, step, step.dead_letters, arrivals, origin=step.name)
        context.dead, context.places = [], None
        for failed in shown.failed:
            self._bury(failed, step, arrivals)
        for root, frames in ((step.results, shown.results), *self._sides(step, shown)):
            if frames:
                placed = self._placed(pl.concat(frames), step, root, key_group, arrivals.clock)
                first = arrivals.clock.batch << 32
                partition = f"{root.step}/{key_group:06d}"
                context.stream = root.step
                context.span = Span(partition=partition, first=first, last=first + placed.height - 1)
                self.functions[root.step].run(placed, context, arrivals.arrive)
                arrivals.count_rows(root.step, placed.height)
                self._send(context.dead, step, step.dead_letters, arrivals, origin=root.step, what="dead_results")
                context.dead = []
        arrivals.count(step.name, "filtered", context.filtered)
        arrivals.count(step.name, "added", context.added)

    def _bury(self, failed: Failed, step: StepPlan, arrivals: Arrivals) -> None:
        """Turn failed rows into dead letters of their streams; a timer has no stream and goes to the first one's."""
        rows = failed.rows.with_columns(failed.messages.alias("__message"))
        if STREAM not in rows.columns:
            rows = rows.with_columns(stream_of("__part").alias(STREAM))
        streams = [port.streams for name, port in step.spec.ports.items() if failed.port in (None, name)]
        known = [*step.buried] if len(streams) != 1 or not streams[0] else [*streams[0]]
        of_one = known[0] if len(known) == 1 and failed.reason != TIMER_FAILED else step.name
        for (name,), part in rows.partition_by(STREAM, as_dict=True, maintain_order=True).items():
            # Rows of a union have the name of their stream; what was combined or stored without it has none.
            stream = name if name in step.buried else of_one
            places = self.places.get(stream) if failed.has_places else None
            context = RowContext(source=stream, partition=stream, now_ms=arrivals.clock.now, places=places)
            bury(part.drop("__message"), step.name, pl.Series([failed.reason]), part["__message"], context)
            what = _COUNTED.get(failed.reason, "dead")
            if stream == step.name:  # neither a record nor a result, so it was not counted before
                arrivals.count_rows(stream, part.height)
            output = step.buried.get(stream, step.dead_letters)
            self._send(context.dead, step, output, arrivals, origin=stream, what=what)

    @staticmethod
    def _send(
        dead: list[pl.DataFrame], step: StepPlan, name: str, arrivals: Arrivals, *, origin: str, what: str = "dead"
    ) -> None:
        """Send dead letters to their output, and count them under `what`: rows, timers and results separately.

        `origin` is the stream, or the output of a step, that their rows come from.
        """
        for letters in dead:
            arrivals.reasons.setdefault(step.name, Counter()).update(letters["reason"].to_list())
        arrivals.count(step.name, what, arrivals.bury(dead, name, origin=origin))

    @staticmethod
    def _sides(step: StepPlan, shown: Emitted) -> list[tuple[RowNode, list[pl.DataFrame]]]:
        return [(root, shown.sides.get(side, [])) for side, root in step.sides.items()]

    def _placed(self, rows: pl.DataFrame, step: StepPlan, root: RowNode, key_group: int, clock: Clock) -> pl.DataFrame:
        """Sort rows, and add the hidden columns that they need for the next step, or as dead letters.

        A row's place breaks ties in time. It begins with what the row follows from, so that ties do not depend on how
        rows were batched; the batch and a number make it unique. Results that are not emitted in the same order by a
        replay are sorted, also for sinks.
        """
        is_result, spec = root is step.results, step.spec
        moment = (spec.event_time if is_result else pl.col("event_time").dt.epoch("ms")).alias("__ts")
        lineage = [name for name in spec.lineage if name in rows.columns]
        if is_result and spec.result_order:
            rows = rows.sort([*spec.result_order, *lineage], maintain_order=True)
        if not (root.feeds or root.children or any(self.plan.trials[name] for name in root.outputs)):
            return rows.with_columns(moment)  # for their age alone
        if not lineage:
            lineage = ["__hash"]
            order = spec.result_order if is_result else []
            rows = rows.with_columns(pl.Series("__hash", hash_columns(rows, order or ["event_time"])))
        follows = {name: rows.schema[name] for name in lineage}
        return rows.with_columns(
            moment,
            place_of_result(follows, f"{root.step}/{key_group:06d}").alias("__part"),
            ((clock.batch << 32) + pl.int_range(pl.len(), dtype=pl.Int64)).alias("__off"),
            pl.lit(clock.now, dtype=pl.Int64).alias("__ingested"),
        )

    def _stats(
        self, key_group: int, arrivals: Arrivals, states: dict[str, StepState], keys: dict[str, list[int]]
    ) -> Packet:
        passed_ms = {step.name: step_time(step, arrivals.clock).watermark_ms for step in self.steps}
        held = {
            name: {
                **state.sizes,
                # An estimate that reads no piece: the rows of one piece end at nearly the same time.
                "open": sum(piece.rows for piece in state.pieces if piece.max_end_ms > passed_ms[name]),
            }
            for name, state in states.items()
        }
        for name, state in states.items():
            for part, port in self.plan.by_name[name].spec.state_parts.items():
                held[name][f"{PORT_ROWS}{port}"] = sum(piece.rows for piece in state.pieces if piece.part == part)
        facts: dict[str, Any] = {"now_ms": arrivals.clock.now, "counts": arrivals.counts, "state": held}
        facts["keys"] = keys
        facts["reasons"] = arrivals.reasons
        facts["losses"] = {name: each.to_json() for name, each in arrivals.losses.items()}
        facts["ages"] = arrivals.ages_facts()
        facts["samples"] = arrivals.samples.taken
        facts["skew"] = {name: skew.to_json() for name, skew in arrivals.skew.items()}
        if self.enrichment is not None:
            facts["lookups"] = self.enrichment.facts()
            self.enrichment.stats.clear()
        return stats(facts, f"keyed/{self.number}/{key_group}", (key_group,))


def _by_stream(step: StepPlan, late: Iterable[pl.DataFrame]) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield late rows with the stream or step that they come from; the rows of a union are split."""
    first, *others = step.buried
    for rows in late:
        if not others:
            yield first, rows
            continue
        for (name,), part in rows.group_by(stream_of("__part"), maintain_order=True):
            yield str(name) or step.name, part
