"""A job: one pipeline running on Spark, batch after batch, until it is stopped or its input ends.

One micro-batch, as the driver sees it (`_on_batch`):
1. read the tables that are due, and hand the batch's clock, which names their versions, to its tasks;
2. evaluate every partition: FRONT and KEYED run on the executors;
3. deliver each output to its sinks, which do nothing if they already have the batch;
4. write the clock of the next batch. Spark then commits the batch.

A driver holds the lock of its checkpoint while it runs, and checks it before each of these steps.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from slackwater.base.crash_points import crash_point
from slackwater.base.errors import SlackwaterError, fault
from slackwater.base.spark_settings import settings
from slackwater.connectors.delivery import StoppedWaitingError
from slackwater.engine.alignment import Ahead, ahead
from slackwater.engine.batch_stats import BatchStats
from slackwater.engine.checkpoint.checkpoint import Checkpoint, marked_outputs
from slackwater.engine.checkpoint.lock import Lease, held
from slackwater.engine.next_clock import final_clock, next_clock
from slackwater.engine.outputs.deliveries import Deliveries
from slackwater.eventtime.clock import Clock
from slackwater.eventtime.measured_lateness import LatenessSketch
from slackwater.observe.metrics.monitor import Monitor, OnRecord
from slackwater.observe.metrics.report import BatchReport
from slackwater.spark.alerts import report_barren, report_schemas, report_short_slack, report_skew
from slackwater.spark.clock_steps import ClockSteps
from slackwater.spark.dead_letter_share import DeadLetterShare
from slackwater.spark.dependencies import DependencyWait
from slackwater.spark.failures import cause_of, is_worker_missing, note_failing_batch, reason_of, unwrapped
from slackwater.spark.folders import check_folders
from slackwater.spark.intake import Intakes
from slackwater.spark.options import RunOptions
from slackwater.spark.read_limits import ReadLimits
from slackwater.spark.session import UNPACKING_CONF, hush, unhush
from slackwater.spark.skipped_rows import SkippedSoFar
from slackwater.spark.source_lister import SourceLister
from slackwater.spark.spark_times import last_times_s
from slackwater.spark.streaming_query import check_alone, start_query
from slackwater.spark.worker import CLOCK_PROPERTY

if TYPE_CHECKING:
    from slackwater.plan.plan import Plan

ClockHook = Callable[[Clock], Clock]
_STARTS: Final = 3


class _Stopped(Exception):  # noqa: N818  not an error: it ends a batch that is no longer wanted
    """Raised in a batch that began after the job was asked to stop; Spark will replay the batch."""


@dataclass(kw_only=True, repr=False)
class Job:
    """A pipeline on Spark. `run` blocks until the job ends; `stop` may be called from another thread or a signal."""

    plan: Plan
    spark: SparkSession
    checkpoint: Checkpoint
    options: RunOptions = field(default_factory=RunOptions)
    on_record: OnRecord | None = None
    """Called with the record of each batch and the merged record of this run."""
    on_run: OnRecord | None = None
    """Called before the first batch, with all counts at 0."""
    prepared: frozenset[str] = frozenset()
    """The sinks that were prepared before Spark was started."""
    on_phase: Callable[[str], None] | None = None
    """Called at the beginning of each phase of the start and of each batch, with its name; empty between batches."""
    clock_hook: ClockHook | None = None
    """For tests: called with every clock before it is written, and may replace it."""
    reports: list[BatchReport] = field(default_factory=list)
    lateness: dict[str, dict[str, LatenessSketch]] = field(default_factory=dict)
    """The measured lateness of this run's rows, per stream and partition."""
    dead_letters: DeadLetterShare = field(default_factory=DeadLetterShare)
    skipped: SkippedSoFar = field(default_factory=SkippedSoFar)
    query: Any = None
    """PySpark's StreamingQuery, once started."""
    owed: int | None = None
    """The batch that was not delivered because the job was stopped while waiting for a sink."""
    ended: threading.Event = field(default_factory=threading.Event)
    """Set when `run` has returned or failed."""
    _stopping: threading.Event = field(default_factory=threading.Event)
    _restarting: threading.Event = field(default_factory=threading.Event)
    _between: threading.Event = field(default_factory=threading.Event)
    _failure: list[BaseException] = field(default_factory=list)
    _clock: Clock | None = None
    _alerted: set[str] = field(default_factory=set)
    _intakes: Intakes = field(init=False)
    _over: int | None = None
    """The batch that ran under the final watermark."""
    _deliveries: Deliveries = field(init=False)
    _dependencies: DependencyWait = field(init=False)
    _limits: ReadLimits | None = None
    """The read limits of the current query; None until it has started."""
    _lease: Lease | None = None
    _monitor: Monitor = field(init=False)

    def run(self, *, finish: bool = False) -> None:
        """Run until stopped; a bounded run, or one with `finish`, ends with the final watermark."""
        try:
            with held(self.checkpoint.path) as self._lease:
                self._locked(self._lease, finish=finish)
        finally:
            self.ended.set()

    def _locked(self, lease: Lease, *, finish: bool) -> None:
        check_folders(self.plan, self.checkpoint.home, self.spark.sparkContext)
        self._monitor = Monitor(
            plan=self.plan,
            checkpoint=self.checkpoint.path,
            on_record=self.on_record,
            on_run=self.on_run,
            lateness=self.lateness,
        )
        self._intakes = Intakes.open(self.plan, self.checkpoint, slots=self.spark.sparkContext.defaultParallelism)
        try:
            self._run(lease, finish=finish)
        except Exception as error:
            reason = reason_of(error, lease, self.checkpoint, self.spark)
            if lease.lost() is None:
                note_failing_batch(reason or error, self.checkpoint, self._intakes)
            if reason is not None:
                raise reason from error
            raise
        finally:
            self._intakes.close()
            self._monitor.close()

    def _run(self, lease: Lease, *, finish: bool) -> None:
        self._deliveries = Deliveries(
            plan=self.plan,
            checkpoint=self.checkpoint,
            lease=lease,
            is_stopping=self._stopping.is_set,
            take_over=self.options.take_over,
            prepared=self.prepared,
        )
        self._dependencies = DependencyWait(
            plan=self.plan, checkpoint=self.checkpoint, is_stopping=self._stopping.is_set, check_owner=lease.check
        )
        try:
            clock = self.checkpoint.next_clock()
            if clock.is_final and not (self.options.bounded or finish):
                facts = {"path": self.checkpoint.path, "batch": clock.batch}
                raise fault("CHECKPOINT_FINISHING", **facts, outputs=marked_outputs(self.plan))
            self._deliveries.open(clock)
            if not clock.is_final:
                self._intakes.report()
                self._intakes.publish(all_of_it=self.options.bounded)
                self._query(available_now=self.options.bounded)
            if self._over is None and ((self.options.bounded and not self._stopping.is_set()) or finish):
                self._finish()
            # If the job was stopped before the final batch, that batch must still run.
            if self._over is not None and self.checkpoint.committed_batch() >= self._over:
                self.checkpoint.mark_finished()
            if self.owed is None:
                self.skipped.report(self.plan)
        finally:
            self._deliveries.close()

    def __repr__(self) -> str:
        return f"<Job {self.plan.name}, checkpoint {self.checkpoint.path}, next batch {self.checkpoint.next_batch()}>"

    @property
    def is_finished(self) -> bool:
        """Whether a bounded run is complete: every window has fired."""
        return self.checkpoint.is_finished()

    def stop(self) -> None:
        """Ask the job to stop after the current batch."""
        self._stopping.set()

    def _finish(self) -> None:
        """Run one more batch, under the final watermark, so that every open window fires.

        The query of a bounded run over logs includes that batch, unless it was stopped or killed before it.
        """
        self._stopping.clear()
        if self.checkpoint.is_amid_batch() and not self.checkpoint.next_clock().is_final:
            self._query(available_now=True)  # a batch that has begun keeps its own clock
        clock = self.checkpoint.next_clock()
        if not clock.is_final:
            self._intakes.report(left=True)
            self.checkpoint.write_clock(final_clock(clock))
        self._query(available_now=True)

    def _query(self, *, available_now: bool) -> None:
        """Run the query until it ends; restart it if the machine's clock was set back."""
        steps = ClockSteps()  # one for all queries, so that a step between two is noticed as well
        while self._queried(steps, available_now=available_now):
            pass

    def _queried(self, steps: ClockSteps, *, available_now: bool) -> bool:
        """Run the query until it ends, and return whether to run it again; restart it if it could not start workers."""
        for attempt in range(_STARTS):
            before, self._limits = len(self.reports), None
            try:
                self._phase("starting the query")
                check_alone(self.spark, self.plan.name, self.query)
                self.query = start_query(
                    self.spark,
                    self.plan,
                    checkpoint=self.checkpoint,
                    intakes=self._intakes.streams,
                    trigger_ms=None if available_now else self.options.trigger_ms,
                    on_batch=self._on_batch,
                )
                self._limits = ReadLimits(self.plan, self.query, self.spark.sparkContext._jvm)  # noqa: SLF001  no public way
                self._phase("planning the first batch" if not self.reports else "")
                listed = () if available_now else self._intakes.listed
                with SourceLister(listed, is_between=self._between.is_set, on_error=self._fail):
                    is_set_back = self._await(steps, waits=not available_now and self.options.trigger_ms > 0)
            except Py4JJavaError as error:
                raise cause_of(error, self.plan, self._intakes) from error
            except StreamingQueryException as error:
                # No batch has begun, so a restart loses nothing.
                unbegun = len(self.reports) == before and is_worker_missing(error)
                if not unbegun or attempt == _STARTS - 1:
                    raise cause_of(error, self.plan, self._intakes) from error
            else:
                return is_set_back
        raise AssertionError("the last attempt has returned or raised")

    def _await(self, steps: ClockSteps, *, waits: bool) -> bool:
        """Wait for the query's end; return whether it was stopped because it `waits` for a time that was set back."""
        is_set_back = False
        try:
            while not self.query.awaitTermination(0.2):
                is_set_back = is_set_back or (waits and steps.is_set_back())
                if is_set_back:
                    self._restarting.set()  # a batch that begins before the stop takes effect must not be interrupted
                # Only between two batches is it safe to stop: inside the callback, Spark's stop overflows the stack,
                # and right after it the batch is not committed yet and would be replayed.
                is_wanted = self._stopping.is_set() or is_set_back
                if is_wanted and self._between.is_set() and not self.checkpoint.is_amid_batch():
                    # The stop interrupts whatever Spark was about to begin, and Spark would log that as an error.
                    hush(self.spark, self.plan.name)
                    self.query.stop()
        except StreamingQueryException:
            if not self._failure:
                raise
        finally:
            self._restarting.clear()
            unhush(self.spark, self.plan.name)
        if self._failure and not isinstance(self._failure[0], _Stopped | StoppedWaitingError):
            raise unwrapped(self._failure.pop())
        self._failure.clear()
        return is_set_back and not self._stopping.is_set()

    def _on_batch(self, frame: DataFrame, number: int) -> None:
        self._between.clear()
        self._phase(f"running batch {number}")
        try:
            if self._stopping.is_set() or self._restarting.is_set():
                # Ends the query from inside before the batch does anything; Spark would log it as a failure.
                hush(self.spark, self.plan.name)
                raise _Stopped  # noqa: TRY301  caught below with all other errors
            self._batch(frame, number)
            self._phase("")
        except BaseException as error:
            self.owed = number if isinstance(error, StoppedWaitingError) else None
            if isinstance(error, StoppedWaitingError | SlackwaterError):
                hush(self.spark, self.plan.name)  # Slackwater reports it; Spark would add its stack trace
            self._failure.append(error)
            raise
        finally:
            self._between.set()

    def _batch(self, frame: DataFrame, number: int) -> None:
        began, began_at_ms = time.monotonic(), self._monitor.now_ms()
        assert self._lease is not None, "taken before the query was started"
        self._lease.check()
        clock = self._dependencies.completed(self.checkpoint.begun_clock(number))
        self._intakes.take(number)
        # This is the stream's own thread: the Spark jobs it starts pass its local properties to every task.
        self.spark.sparkContext.setLocalProperty(CLOCK_PROPERTY, clock.to_property())  # 1
        batch = self._dependencies.evaluated(frame, number)  # 2
        evaluated = time.monotonic()
        # Clocks of other machines may be off; clamp the phase to the duration of the evaluation.
        front_s = min(max(0.0, (batch.stats.front_ended_ms - began_at_ms) / 1_000), evaluated - began)
        try:
            crash_point("evaluated", number)
            with settings(frame.sparkSession, UNPACKING_CONF if batch.large else {}):
                marks = self._deliveries.deliver(batch, clock)  # 3
            delivered, delivered_at_ms = time.monotonic(), self._monitor.now_ms()
            crash_point("delivered", number)
            found = self._intakes.look(clock)
            following = next_clock(
                self.plan,
                clock,
                batch.stats,
                backlog=found.backlog,
                existing=found.known,
                gone=found.missing,
                may_idle=not self.options.bounded,
                ending=frozenset(found.complete) if self.options.bounded else frozenset(),
            )
            if self.clock_hook is not None:
                following = self.clock_hook(following)
            following = replace(following, marks=marks)
            is_last = self.options.bounded and self._intakes.is_at_end and not self._stopping.is_set()
            self._lease.check()
            self.checkpoint.write_clock(final_clock(following) if is_last else following)  # 4
            crash_point("clock", number)
            if not clock.is_over:
                self._intakes.commit()
            waiting = self._align(following)
        finally:
            batch.release()
        self._clock = following
        ended = time.monotonic()
        report = BatchReport(
            batch=number,
            seconds=ended - began,
            stats=batch.stats,
            clock=clock,
            next_clock=following,
            rows_out=batch.rows,
            lag=found.lag,
            is_bounded=self.options.bounded,
            ahead=waiting,
            idle_after_ms={each.name: each.time.idle_after_ms for each in self.plan.sources if each.time is not None},
            timings_s={
                "front": front_s,
                "keyed": evaluated - began - front_s,
                "sinks": delivered - evaluated,
                "clock": ended - delivered,
            },
        )
        self._monitor.note(
            report,
            delivered_at_ms=delivered_at_ms,
            sinks=self._deliveries.stats,
            spark_s=last_times_s(self.query),
        )
        self._alert(batch.stats, following)
        self.reports.append(report)
        del self.reports[:-1000]
        if self.options.on_batch is not None:
            self.options.on_batch(report)
        self._intakes.report(left=is_last)
        self._over = number if clock.is_final else None
        if clock.is_over:
            self._stopping.set()  # data that arrived meanwhile could cause more batches, empty for this run
        elif not self.options.bounded:
            self._intakes.publish()

    def _align(self, following: Clock) -> dict[str, Ahead]:
        """Make the next batch read nothing from streams that are too far ahead, and return those streams."""
        times = [source.time for source in self.plan.sources if source.time is not None]
        if self._limits is None or all(time.max_drift_ms is None for time in times):
            return {}
        # A live stream may always bring more rows; if it does not, it becomes idle and is no longer waited for.
        may_bring = lambda stream: not self.options.bounded or self._intakes.brings(stream)  # noqa: E731  short enough
        waiting = ahead(self.plan, following, brings=may_bring)
        self._limits.hold(waiting)
        return waiting

    def _alert(self, stats: BatchStats, following: Clock) -> None:
        """Issue the warnings that the statistics of a batch call for."""
        stats.move_lateness(self.lateness)
        stats.drop_details()
        report_short_slack(self.plan, self.lateness, following, now_ms=stats.now_ms, reported=self._alerted)
        report_schemas(stats, self._alerted)
        report_skew(stats, self._alerted)
        report_barren(self.plan, following, self._alerted)
        self.dead_letters.note(stats)
        self.skipped.note(stats)

    def _phase(self, name: str) -> None:
        if self.on_phase is not None:
            self.on_phase(name)

    def _fail(self, error: Exception) -> None:
        """End the job after the current batch, with an error from another thread."""
        self._failure.append(error)
        self.stop()
