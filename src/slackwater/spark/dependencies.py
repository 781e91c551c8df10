"""Tables and stores that a batch needs: the driver waits until they can be reached or the job is stopped."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, TypeVar

from slackwater.base.backoff import came_true
from slackwater.base.durations import roughly
from slackwater.base.errors import RunError, SlackwaterWarning, notice
from slackwater.connectors.delivery import BACKOFF, REPORTED_EVERY_MS, StoppedWaitingError
from slackwater.engine.checkpoint.checkpoint import Checkpoint
from slackwater.engine.enrichment.table_versions import TableUnavailable, due_tables, with_tables
from slackwater.engine.outputs.evaluated import EvaluatedBatch
from slackwater.eventtime.clock import Clock
from slackwater.spark.failures import unwrapped

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from slackwater.plan.plan import Plan

T = TypeVar("T")
_BACKOFF: Final = replace(BACKOFF, jitter=0.0)  # there is one driver


class OutsideWarning(SlackwaterWarning):
    """A store or table is currently unreachable."""


@dataclass(kw_only=True)
class DependencyWait:
    """The driver's handling of tables and stores."""

    plan: Plan
    checkpoint: Checkpoint
    is_stopping: Callable[[], bool]
    check_owner: Callable[[], None] = lambda: None
    """Raises if another driver has taken over the job; called before a batch's table versions are written."""
    run_again: int = field(init=False)
    """The batch that had begun before this start, and whose tables were chosen then; -1 if there is none."""
    _is_read: bool = False

    def __post_init__(self) -> None:
        self.run_again = self.checkpoint.next_batch() if self.checkpoint.is_amid_batch() else -1

    def completed(self, clock: Clock) -> Clock:
        """Return the clock of a new batch, completed with its table versions and persisted.

        A batch that is partly delivered needs the answers that it had.

        The first batch after a start reads all tables, later ones those that are due. A batch that had begun before
        the start keeps its versions, if it had got that far.
        """
        self.checkpoint.check_answers(clock.batch)
        due = due_tables(self.plan, clock, all_of_them=not self._is_read and clock.batch != self.run_again)
        if not due:
            return clock

        def read() -> Clock:
            return with_tables(self.plan, clock, self.checkpoint.snapshots, due)

        def words(error: Exception, waited: str) -> str:
            assert isinstance(error, TableUnavailable)
            return notice("TABLE_WAITING", batch=clock.batch, waited=waited, **error.facts)

        made = self._patiently(clock.batch, read, lambda error: isinstance(error, TableUnavailable), words)
        self.check_owner()
        self.checkpoint.complete_clock(made)
        self._is_read = self._is_read or clock.batch != self.run_again
        return made

    def evaluated(self, frame: DataFrame, number: int) -> EvaluatedBatch:
        """Evaluate a batch; start over while one of its lookups cannot reach its store."""

        def is_waiting(error: Exception) -> bool:
            found = unwrapped(error)
            return isinstance(found, RunError) and found.code == "LOOKUP_UNAVAILABLE"

        def words(error: Exception, waited: str) -> str:
            found = unwrapped(error)
            assert isinstance(found, RunError)
            return notice("LOOKUP_WAITING", batch=number, waited=waited, why=found.message)

        return self._patiently(number, lambda: EvaluatedBatch.evaluate(frame, number), is_waiting, words)

    def _patiently(
        self,
        batch: int,
        act: Callable[[], T],
        may_pass: Callable[[Exception], bool],
        words: Callable[[Exception, str], str],
    ) -> T:
        """Call `act`; after a failure that may be temporary, warn, wait and retry."""
        began, pauses, reported_ms = time.monotonic(), _BACKOFF.pauses(), 0
        while True:
            try:
                done = act()
            except Exception as error:
                if not may_pass(error):
                    raise
                waited_ms = round((time.monotonic() - began) * 1_000)
                if waited_ms >= reported_ms:
                    warnings.warn(words(error, roughly(waited_ms // 1_000 * 1_000)), OutsideWarning, stacklevel=2)
                    reported_ms = waited_ms + REPORTED_EVERY_MS
                if came_true(self.is_stopping, within_s=next(pauses)):
                    raise StoppedWaitingError from error
            else:
                if reported_ms:
                    waited = roughly(round((time.monotonic() - began) * 1_000))
                    warnings.warn(notice("STORE_BACK", batch=batch, waited=waited), OutsideWarning, stacklevel=2)
                return done
