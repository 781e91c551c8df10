"""The sinks of a job, on the driver: which slots a batch goes through, and the last batch in each slot."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from slackwater.base.crash_points import crash_point
from slackwater.connectors.delivery import Expected, OpenSlot
from slackwater.connectors.delivery_stats import SinkStats
from slackwater.connectors.sink import Mark, Sink, SinkBatch, Slot
from slackwater.connectors.sink_names import named

if TYPE_CHECKING:
    from slackwater.engine.checkpoint.checkpoint import Checkpoint
    from slackwater.engine.checkpoint.lock import Lease
    from slackwater.engine.outputs.evaluated import EvaluatedBatch
    from slackwater.eventtime.clock import Clock, Marks
    from slackwater.plan.plan import Plan


_BEHIND: Final = "behind"
"""The clock's key for a sink's secondary sink, such as the one for refused rows (see `SinkWriter.behind`)."""
_UNMARKED: Final = "unmarked"
"""The clock's key, instead of slots, for a sink that keeps no marks: it has been delivered to."""
_OF_A_NEW_RUN: Final = Mark(incarnation="", batch=0, token="")
"""The mark of the first batch of a run that has no checkpoint yet."""


@dataclass(kw_only=True)
class Deliveries:
    """All sinks of a plan, each open for its output."""

    plan: Plan
    checkpoint: Checkpoint
    lease: Lease
    is_stopping: Callable[[], bool]
    take_over: bool = False
    """Whether to write to sinks even if this run cannot explain their marks."""
    prepared: frozenset[str] = frozenset()
    """The sinks that were prepared before Spark started."""
    stats: dict[str, SinkStats] = field(default_factory=dict)
    """The statistics of each sink for the last batch."""
    _open_slots: dict[str, OpenSlot] = field(default_factory=dict)
    _ours: set[tuple[str, int]] = field(default_factory=set)
    """The slots that this run has written to, whose marks can therefore be explained."""

    def open(self, clock: Clock) -> None:
        """Prepare and open every sink, and check that this run can continue from its mark."""
        begun, noted = self.checkpoint.begun_mark(clock.batch), self.checkpoint.noted_marks(clock)
        for output in self.plan.outputs:
            slot = self.plan.slot(output)
            for name, sink in named(output.name, output.sinks).items():
                self._open_slots[name] = OpenSlot(
                    sink=sink, slot=slot, is_stopping=self.is_stopping, check_owner=self.lease.check
                )
                expected = self._expected(name, 0, begun, noted)
                if self._open_slots[name].check(expected, is_prepared=name in self.prepared):
                    self.checkpoint.check_begun_delivery(clock.batch)

    def deliver(self, batch: EvaluatedBatch, clock: Clock) -> Marks:
        """Deliver a batch to every sink; return the last batch of every slot."""
        marks = {name: dict(slots) for name, slots in clock.marks.items()}
        self.stats = {
            name: SinkStats(output=open_slot.slot.output, last_batch=_last_batch(marks.get(name, {})))
            for name, open_slot in self._open_slots.items()
        }
        if not any(batch.rows.values()):
            return marks
        self.lease.check()
        layout = self.checkpoint.begin_delivery(batch.number, self.plan.fingerprint, self._layout(batch))
        mark, noted = self.checkpoint.begun_mark(batch.number), self.checkpoint.noted_marks(clock)

        def expect(name: str, slot: int) -> Expected:
            return self._expected(name, slot, mark, noted)

        for name, open_slot in self._open_slots.items():
            rows = batch.sink_batch(open_slot.slot.output, open_slot.slot.schema)
            if rows.rows == 0:
                continue
            self.lease.check()
            if open_slot.sink.delivery == "at_most_once" and not self.checkpoint.begin_attempt(name, batch.number):
                continue
            began, waited_s, retries = time.monotonic(), open_slot.waited_s, open_slot.retries
            written = self._deliver(
                batch, name, rows, {number: expect(name, number) for number in range(layout[name] + 1)}
            )
            self.stats[name] = SinkStats(
                output=open_slot.slot.output,
                rows=rows.rows,
                seconds=time.monotonic() - began,
                waited_s=open_slot.waited_s - waited_s,
                retries=open_slot.retries - retries,
                last_batch=batch.number,
            )
            slots = map(str, written) if open_slot.sink.uses_marks else [_UNMARKED]
            marks.setdefault(name, {}).update(dict.fromkeys(slots, batch.number))
            if (behind := open_slot.behind()) is not None:
                marks[name][_BEHIND] = behind
            self._ours.update((name, number) for number in written)
            crash_point("delivering", batch.number)
        return marks

    def _deliver(self, batch: EvaluatedBatch, name: str, rows: SinkBatch, expected: dict[int, Expected]) -> list[int]:
        """Deliver one output to one sink; return the slots that now have the batch."""
        open_slot, [driver, *others] = self._open_slots[name], list(expected.values())
        if not others:
            open_slot.deliver(rows, driver)
            return [0]
        if open_slot.sink.uses_marks:
            open_slot.judge(driver)
        write = _SlotWriter(open_slot.sink, open_slot.slot, expected, self.lease)
        parts = batch.in_parallel(open_slot.slot.output, open_slot.slot.schema, write)
        if open_slot.sink.uses_marks:
            nothing = SinkBatch(batch=rows.batch, schema=rows.schema, rows=0, frames=lambda: iter(()))
            open_slot.deliver(nothing, driver)
        return [0, *(part + 1 for part in parts)]

    def close(self) -> None:
        """Close every sink."""
        for open_slot in self._open_slots.values():
            open_slot.close()

    def _layout(self, batch: EvaluatedBatch) -> dict[str, int]:
        """Return the number of executor slots each sink is written through; 0 means in one go, by the driver."""
        return {
            name: self.checkpoint.partitions
            if open_slot.sink.has_slots and batch.is_large(open_slot.slot.output)
            else 0
            for name, open_slot in self._open_slots.items()
        }

    def _expected(self, name: str, slot: int, mark: Mark, marks: Marks) -> Expected:
        return Expected(
            mark=mark,
            before=marks.get(name, {}).get(str(slot)),
            takes_over=self.take_over and (name, slot) not in self._ours,
            behind=marks.get(name, {}).get(_BEHIND),
            has_unmarked=_UNMARKED in marks.get(name, {}),
        )


def _last_batch(marks: Mapping[str, int]) -> int | None:
    return max((batch for slot, batch in marks.items() if slot != _BEHIND), default=None)


@dataclass(frozen=True)
class _SlotWriter:
    """Delivers one slot's rows, in a task on an executor."""

    sink: Sink
    slot: Slot
    expected: dict[int, Expected]
    lease: Lease

    def __call__(self, part: int, rows: SinkBatch) -> None:
        number = part + 1
        slot = replace(self.slot, number=number, behind=None, delivered_before=False)
        open_slot = OpenSlot(sink=self.sink, slot=slot, check_owner=self.lease.check)
        try:
            open_slot.deliver(rows, self.expected[number])
        finally:
            open_slot.close()


def prepare_without_spark(plan: Plan, marks: Marks, *, take_over: bool, mark: Mark = _OF_A_NEW_RUN) -> frozenset[str]:
    """Prepare every sink that needs no Spark, so that errors show before Spark starts; return the sinks' names.

    `marks` are those recorded in the checkpoint, `mark` is that of the next batch.
    """
    found = set()
    for output in plan.outputs:
        for name, sink in named(output.name, output.sinks).items():
            if not sink.needs_spark:
                came_before = bool(marks.get(name)) and not take_over
                open_slot = OpenSlot(sink=sink, slot=plan.slot(output))
                open_slot.prepare(came_before=came_before)
                open_slot.look(Expected(mark=mark, before=None, takes_over=take_over))
                found.add(name)
    return frozenset(found)
