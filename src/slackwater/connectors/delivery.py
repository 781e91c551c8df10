"""How a batch is written to a sink exactly once: one protocol for all sinks that promise it.

1. Open the slot, which fences earlier writers.
2. Read its last mark.
3. Judge the mark. If it is this batch's, the batch was delivered: do nothing. If it is the one from before this
   batch, continue. Any other mark is an error with options for the user, never a skip and never a second write.
4. Write the rows and the mark in one transaction.
5. The driver records the batch in the clock of the next one, where step 3 finds what the mark should have been before.

A large batch goes through the executors' slots in parallel, and then, without rows, through the driver's slot. So the
driver's mark is always the last batch's, and is enough to tell whether a sink belongs to another run.

A crash or a transient failure at any point leads back to step 1. A sink with a weaker guarantee skips steps 2 and 3
and writes no mark.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

from polars.exceptions import PanicException, PolarsError

from slackwater.base.backoff import Backoff, came_true
from slackwater.base.crash_points import crash_point
from slackwater.base.durations import roughly
from slackwater.base.errors import SlackwaterWarning, fault, fault_of_version, listed, notice
from slackwater.connectors.sink import (
    DamagedMarkError,
    Mark,
    MarkOfAnotherVersionError,
    Sink,
    SinkBatch,
    SinkWriter,
    Slot,
    Unavailable,
)
from slackwater.formats.row_json import json_objects

BACKOFF: Final = Backoff(first_s=0.2, longest_s=15.0)
REPORTED_EVERY_MS: Final = 60_000
"""How often a warning about a waiting batch is repeated."""


class SinkWarning(SlackwaterWarning):
    """A sink cannot be written to at the moment."""


class StoppedWaitingError(Exception):
    """The job was asked to stop while it waited for a sink; the batch will run again."""


@dataclass(frozen=True, kw_only=True)
class Expected:
    """The marks that a slot may hold when a batch is about to be delivered."""

    mark: Mark
    """The mark of this batch."""
    before: int | None
    """The last batch this run has recorded for the slot, or None: the batch before this one, or this one already."""
    takes_over: bool = False
    """Whether the user allows any other mark to be overwritten (`--take-over`)."""
    behind: int | None = None
    """The last batch this run has recorded for the secondary sink (see `SinkWriter.behind`)."""
    has_unmarked: bool = False
    """Whether this run has delivered here without marks, so that no batch number is known."""

    @property
    def came_before(self) -> bool:
        """Whether this run has delivered here before; if so, a missing target was removed."""
        return (self.before is not None or self.has_unmarked) and not self.takes_over

    def is_there(self, found: Mark | None, sink: Sink, slot: Slot) -> bool:
        """Return whether the slot already has the batch; raises if its mark cannot be explained."""
        if found == self.mark:
            return True
        if found is not None and self._is_foreign(found):
            self.check_run(found, sink, slot)
            return False
        last = None if found is None else found.batch
        if last == self.before != self.mark.batch:
            return False
        if self.takes_over:
            if found is not None:
                sink.check_take_over(found, self.mark.batch)
            return False
        facts = {"sink": sink, "output": slot.output, "pipeline": slot.pipeline, "slot": slot.number}
        if found is None or (self.before is not None and found.batch < self.before):
            words = "no mark" if found is None else f"the mark of batch {found.batch}"
            raise fault("SINK_MARK_MISSING", last=words, before=self.before, **facts)
        raise fault("SINK_OF_A_COPY", found=found.batch, batch=self.mark.batch, **facts)

    def check_run(self, found: Mark, sink: Sink, slot: Slot) -> None:
        """Raise if `found` is another run's mark, unless this run may and can take over."""
        if not self._is_foreign(found):
            return
        if self.takes_over:
            sink.check_take_over(found, self.mark.batch)
            return
        mine = f"run {self.mark.incarnation[:8]}" if self.mark.incarnation else "a new run"
        facts = {"sink": sink, "output": slot.output, "pipeline": slot.pipeline, "slot": slot.number}
        run = found.incarnation[:8]
        raise fault("SINK_OF_ANOTHER_RUN", found=run, mine=mine, remedy=sink.after_another_run, **facts)

    def _is_foreign(self, found: Mark) -> bool:
        return found.incarnation != self.mark.incarnation


@dataclass(kw_only=True)
class OpenSlot:
    """One slot of one sink, opened when needed and reopened after a failure."""

    sink: Sink
    slot: Slot
    is_stopping: Callable[[], bool] = lambda: False
    check_owner: Callable[[], None] = lambda: None
    """Raises if another driver now runs this job; called before the slot is opened and before it is written to."""
    retries: int = 0
    """Retries since this was created."""
    waited_s: float = 0.0
    """Time spent waiting to retry, since this was created."""
    _writer: SinkWriter | None = None
    _found: Mark | None = None

    def prepare(self, *, came_before: bool) -> None:
        """Prepare the sink, once, before the first batch; `came_before`: whether this run has written to it before."""
        with self._reachable():
            self.sink.check(self.slot)
            self.sink.prepare(replace(self.slot, delivered_before=came_before))

    def look(self, expected: Expected) -> None:
        """Check, as far as possible without opening the sink, that it does not hold another run's rows."""
        with self._reachable(), self._marks_read():
            found = self.sink.last_mark(self.slot) if self.sink.uses_marks else None
        if found is not None:
            expected.check_run(found, self.sink, self.slot)

    def check(self, expected: Expected, *, is_prepared: bool = False) -> bool:
        """Prepare the sink unless it is prepared already, and check that this run can continue from its mark.

        Returns whether the slot already has the batch.
        """
        if not is_prepared:
            self.prepare(came_before=expected.came_before)
        self.slot = replace(self.slot, behind=None if expected.takes_over else expected.behind)
        with self._reachable():
            self._open()
            return self.sink.uses_marks and expected.is_there(self._found, self.sink, self.slot)

    @contextmanager
    def _reachable(self) -> Iterator[None]:
        """Close the slot after an error inside; before the first batch, an unavailable sink is an error at once."""
        try:
            yield
        except BaseException as error:
            self.close()
            if isinstance(error, Unavailable):
                raise fault("SINK_UNREACHABLE", sink=self.sink, output=self.slot.output, why=error) from error
            raise

    def deliver(self, batch: SinkBatch, expected: Expected) -> None:
        """Deliver a batch with the sink's guarantee, waiting while the sink is unavailable."""
        batch.is_stopping, batch.check_owner = self.is_stopping, self.check_owner
        if self.sink.delivery == "at_most_once":
            self._deliver_or_lose(batch)
        else:
            self._patiently(batch.batch, lambda: self._deliver(batch, expected))

    def behind(self) -> int | None:
        """Return the last batch that wrote to this sink's secondary sink."""
        return self.slot.behind if self._writer is None else self._writer.behind()

    def judge(self, expected: Expected) -> None:
        """Raise if the slot's mark cannot be explained."""

        def look() -> None:
            self._open()
            expected.is_there(self._found, self.sink, self.slot)

        self._patiently(expected.mark.batch, look)

    def _patiently(self, batch: int, act: Callable[[], None]) -> None:
        """Run `act`; while the sink is unavailable, wait and run it again, reopening the slot."""
        began, pauses, reported_ms = time.monotonic(), BACKOFF.pauses(), 0
        while True:
            try:
                act()
            except Unavailable as failure:
                self.close()
                facts = {"sink": self.sink, "output": self.slot.output, "why": failure}
                waited_ms = round((time.monotonic() - began) * 1_000)
                if waited_ms >= self.sink.retry_for_ms:
                    raise fault("SINK_GAVE_UP", batch=batch, waited=roughly(waited_ms), **facts) from failure
                if waited_ms >= reported_ms:
                    patience = roughly(self.sink.retry_for_ms - waited_ms)
                    _warn(notice("SINK_WAITING", patience=patience, **facts))
                    reported_ms = waited_ms + REPORTED_EVERY_MS
                left_s = (self.sink.retry_for_ms - waited_ms) / 1_000
                self._wait(min(left_s, next(pauses)))
                self.retries += 1
            else:
                if reported_ms:
                    waited = roughly(round((time.monotonic() - began) * 1_000))
                    facts = {"sink": self.sink, "output": self.slot.output, "batch": batch, "waited": waited}
                    _warn(notice("SINK_BACK", **facts))
                return

    def _deliver(self, batch: SinkBatch, expected: Expected) -> None:
        """Go through the protocol once; the numbers refer to its steps."""
        writer = self._open()  # 1, 2
        crash_point("opened", batch.batch)
        if not self.sink.uses_marks or not expected.is_there(self._found, self.sink, self.slot):  # 3
            self._write(writer, batch, expected.mark if self.sink.delivery == "exactly_once" else None)  # 4
            self._found = expected.mark
        crash_point("committed", batch.batch)

    def _deliver_or_lose(self, batch: SinkBatch) -> None:
        try:
            self._write(self._open(), batch, None)
        except Unavailable as failure:
            self.close()
            facts = {"sink": self.sink, "output": self.slot.output, "why": failure, "batch": batch.batch}
            _warn(notice("SINK_LOST", **facts))

    def _write(self, writer: SinkWriter, batch: SinkBatch, mark: Mark | None) -> None:
        self.check_owner()
        try:
            writer.write(batch, mark)
        except (PolarsError, PanicException) as error:
            columns = _unwritable(batch)
            if not columns:
                raise
            facts = {"sink": self.sink, "output": self.slot.output, "batch": batch.batch, "cause": error}
            raise fault("SINK_VALUE", columns=columns, **facts) from error

    def _open(self) -> SinkWriter:
        if self._writer is None:
            self.check_owner()
            with self._marks_read():
                writer = self.sink.open(self.slot)
                if not hasattr(writer, "write"):
                    got = f"`{type(writer).__name__}`"
                    raise fault("SINK_WRITER", sink=self.sink, output=self.slot.output, got=got)
                self._writer = writer
                self._found = self._writer.mark() if self.sink.uses_marks else None
            if not isinstance(self._found, Mark | None):
                raise fault("SINK_MARK", sink=self.sink, output=self.slot.output, got=repr(self._found))
        return self._writer

    @contextmanager
    def _marks_read(self) -> Iterator[None]:
        try:
            yield
        except MarkOfAnotherVersionError as error:
            what = f"the mark of output `{self.slot.output}` in {self.sink}"
            raise fault_of_version("SINK_MARK_DAMAGED", what=what, why=error) from error
        except DamagedMarkError as error:
            raise fault("SINK_MARK_DAMAGED", sink=self.sink, output=self.slot.output, why=error) from error

    def _wait(self, seconds: float) -> None:
        began = time.monotonic()
        if came_true(self.is_stopping, within_s=seconds):
            raise StoppedWaitingError
        self.waited_s += time.monotonic() - began

    def close(self) -> None:
        """Close the slot; anything uncommitted is lost."""
        writer, self._writer = self._writer, None
        if writer is not None:
            self.slot = replace(self.slot, behind=writer.behind())
            writer.close()


def _unwritable(batch: SinkBatch) -> str:
    """Return the columns with a value that cannot be converted to text; empty if there are none."""
    found = dict[str, None]()
    for frame in batch.frames():
        for name in frame.columns:
            try:
                json_objects(frame.select(name))
            except (PolarsError, PanicException):
                found[name] = None
    return listed(f"`{name}`" for name in found) if found else ""


def _warn(text: str) -> None:
    warnings.warn(text, SinkWarning, stacklevel=4)
