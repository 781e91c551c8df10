"""A job: one pipeline running on Spark, batch after batch, until it is stopped or has come to the end.

One micro-batch, as the driver sees it (`_on_batch`):
1. hand the batch's clock to its tasks;
2. evaluate every partition: FRONT and KEYED run on the executors;
3. deliver each output to its sinks, which do nothing if they have the batch already;
4. write the clock of the next batch. Spark then commits the batch.

A driver holds the lock of its checkpoint while it runs, and looks at it before each of these steps.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from slackwater.crash_points import crash_point
from slackwater.delta.connector import delta_session_conf
from slackwater.engine.batch_stats import BatchStats
from slackwater.engine.ticking import final_clock, next_clock
from slackwater.errors import SlackwaterError, fault
from slackwater.eventtime.clock import Clock
from slackwater.eventtime.durations import Duration, duration_ms
from slackwater.eventtime.lateness import LatenessSketch
from slackwater.kafka.connector import connector_jars
from slackwater.runtime.alerts import report_barren, report_schemas, report_short_slack
from slackwater.runtime.backlog import report_left, report_strays
from slackwater.runtime.checkpoint import RETAIN, Checkpoint, existing_checkpoint, marked_outputs, open_checkpoint
from slackwater.runtime.damage import damage_of
from slackwater.runtime.dead_letter_share import DeadLetterShare
from slackwater.runtime.deliveries import Deliveries
from slackwater.runtime.delta_stream import changed_source
from slackwater.runtime.folders import check_folders, check_logs
from slackwater.runtime.intake import Intake, check_intake
from slackwater.runtime.lock import Lease, check_free, held
from slackwater.runtime.log_feed import LogFeed
from slackwater.runtime.outputs import EvaluatedBatch
from slackwater.runtime.query import packets
from slackwater.runtime.report import BatchReport
from slackwater.runtime.session import QUERY_CONF, UNPACKING_CONF, hush, spark_session, unhush
from slackwater.runtime.worker import CLOCK_PROPERTY, PlanHandle
from slackwater.runtime.worker_errors import unwrapped
from slackwater.sinks.delivery import StoppedWaitingError
from slackwater.sources.delta import DeltaSource
from slackwater.sources.kafka import KafkaSource
from slackwater.spark_settings import settings
from slackwater.stopping import stopped_by_signals

if TYPE_CHECKING:
    from slackwater.plan import Plan

ClockHook = Callable[[Clock], Clock]
_STARTS: Final = 3
_LISTED_S: Final = 10.0
_INITIALIZED_MS: Final = 60_000
_NOT_CONNECTED: Final = "failed to connect back"


class _Stopped(Exception):  # noqa: N818  not an error: how a batch that is not wanted any more is left
    """Raised in a batch that began after the job was asked to stop; Spark will run it again."""


@dataclass(kw_only=True)
class Job:
    """A pipeline on Spark. `run` blocks until the end; `stop` may come from another thread or a signal."""

    plan: Plan
    spark: SparkSession
    checkpoint: Checkpoint
    trigger_ms: int
    bounded: bool = False
    on_batch: Callable[[BatchReport], None] | None = None
    take_over: bool = False
    """Whether sinks that hold another run's rows, or whose marks are missing, are to be written to all the same."""
    clock_hook: ClockHook | None = None
    """For tests: sees, and may replace, every clock before it is written."""
    reports: list[BatchReport] = field(default_factory=list)
    lateness: dict[str, dict[str, LatenessSketch]] = field(default_factory=dict)
    """Per stream and partition, how late the rows of all batches since the start were."""
    dead_letters: DeadLetterShare = field(default_factory=DeadLetterShare)
    query: Any = None
    """PySpark's StreamingQuery, once it was started."""
    owed: int | None = None
    """The batch that was not delivered because the job was stopped while a sink was waited for."""
    ended: threading.Event = field(default_factory=threading.Event)
    """Set when `run` has returned or failed."""
    _stopping: threading.Event = field(default_factory=threading.Event)
    _between: threading.Event = field(default_factory=threading.Event)
    _failure: list[BaseException] = field(default_factory=list)
    _clock: Clock | None = None
    _backlog: dict[str, frozenset[str]] = field(default_factory=dict)
    _strays: set[str] = field(default_factory=set)
    _alerted: set[str] = field(default_factory=set)
    _intake: Intake = field(init=False)
    _deliveries: Deliveries | None = None
    _lease: Lease | None = None

    def run(self, *, finish: bool = False) -> None:
        """Run until stopped; a bounded run, or one told to `finish`, ends with the final watermark."""
        try:
            with held(self.checkpoint.path) as self._lease:
                self._locked(self._lease, finish=finish)
        finally:
            self.ended.set()

    def _locked(self, lease: Lease, *, finish: bool) -> None:
        check_folders(self.plan, self.checkpoint.home, self.spark.sparkContext)
        self._intake = Intake.open(self.plan, self.checkpoint, slots=self.spark.sparkContext.defaultParallelism)
        try:
            self._intake.check()
            self._run(lease, finish=finish)
        except Exception as error:
            # Whatever a driver that was replaced stumbles over, files of Spark's above all, this is the reason.
            if (lost := lease.lost()) is not None:
                raise lost from error
            if not isinstance(error, SlackwaterError) and (damage := damage_of(self.checkpoint.path, error)):
                raise damage from error
            raise
        finally:
            self._intake.close()

    def _run(self, lease: Lease, *, finish: bool) -> None:
        self._deliveries = Deliveries(
            plan=self.plan,
            checkpoint=self.checkpoint,
            lease=lease,
            is_stopping=self._stopping.is_set,
            take_over=self.take_over,
        )
        try:
            clock = self.checkpoint.next_clock()
            if clock.is_final and not (self.bounded or finish):
                facts = {"path": self.checkpoint.path, "batch": clock.batch}
                raise fault("CHECKPOINT_FINISHING", **facts, outputs=marked_outputs(self.plan))
            self._deliveries.open(clock)
            if not clock.is_final:
                report_strays(self.plan, self._intake.unread(), self._strays)
                self._intake.publish(all_of_it=self.bounded)
                self._query(available_now=self.bounded)
            if (self.bounded and not self._stopping.is_set()) or finish:
                self._finish()
        finally:
            self._deliveries.close()

    @property
    def is_finished(self) -> bool:
        """Whether a bounded run has come to its end: every window has fired."""
        return self.checkpoint.is_finished()

    def stop(self) -> None:
        """Ask the job to stop after the batch at hand."""
        self._stopping.set()

    @property
    def has_backlog(self) -> bool:
        """Whether a log holds files that no batch has read yet, as of the last batch."""
        return self._clock is None or any(self._backlog.values())

    def _finish(self) -> None:
        """Run one more batch, under the final watermark, so that every open window fires."""
        self._stopping.clear()
        if self.checkpoint.is_amid_batch() and not self.checkpoint.next_clock().is_final:
            self._query(available_now=True)  # a batch that was begun keeps its own clock
        clock = self.checkpoint.next_clock()
        if not clock.is_final:
            found = self._intake.unread()
            report_strays(self.plan, found, self._strays)
            report_left(self.plan, found)
            self.checkpoint.write_clock(final_clock(clock))
        self._query(available_now=True)
        # A stop may have come before the batch did; then it is still to be run.
        if self.checkpoint.next_batch() > clock.batch:
            self.checkpoint.mark_finished()

    def _query(self, *, available_now: bool) -> None:
        """Run the query until it ends; one that could not start its workers is started again."""
        for attempt in range(_STARTS):
            before = len(self.reports)
            try:
                self._start(available_now=available_now)
                logs = () if available_now else self._intake.logs.values()
                with LogFeed(logs, is_between=self._between.is_set, on_error=self._fail):
                    self._await()
            except Py4JJavaError as error:
                raise self._explained(error) from error
            except StreamingQueryException as error:
                # On a busy machine a fresh worker may miss Spark's time limit. Nothing was begun, so nothing is lost.
                unbegun = len(self.reports) == before and _NOT_CONNECTED in str(error)
                if not unbegun or attempt == _STARTS - 1:
                    raise self._explained(error) from error
            else:
                return

    def _explained(self, error: Exception) -> Exception:
        """Return what is known to be behind a failure of the query, else the failure itself."""
        return changed_source(self.plan, error) or self._intake.loss() or error

    def _start(self, *, available_now: bool) -> None:
        self._check_alone()
        handle = PlanHandle.of(self.plan)
        conf = {
            **QUERY_CONF,
            "spark.sql.shuffle.partitions": str(self.checkpoint.partitions),
            "spark.sql.streaming.minBatchesToRetain": str(RETAIN),
        }
        with settings(self.spark, conf):
            stream = packets(self.spark, self.plan, handle, bounded=available_now, logs=self._intake.logs)
            writer = (
                stream.writeStream.queryName(self.plan.name)
                .outputMode("append")
                .option("checkpointLocation", str(self.checkpoint.path))
                .foreachBatch(self._on_batch)
            )
            writer = (
                writer.trigger(availableNow=True)
                if available_now
                else writer.trigger(processingTime=f"{self.trigger_ms} milliseconds")
            )
            self.query = writer.start()
            # A source takes what the session is set to when Spark's thread comes to make it.
            with suppress(StreamingQueryException):  # which is raised again where the end of the query is awaited
                self.query._jsq.streamingQuery().awaitInitialization(_INITIALIZED_MS)  # noqa: SLF001  no public way

    def _check_alone(self) -> None:
        """Refuse to run beside itself; a query of this job that has ended may still be listed for a moment."""
        own = None if self.query is None else self.query.runId
        patience = time.monotonic() + _LISTED_S
        while same := [query.runId for query in self.spark.streams.active if query.name == self.plan.name]:
            if same != [own] or time.monotonic() > patience:
                raise fault("PIPELINE_RUNNING", name=self.plan.name)
            time.sleep(0.01)

    def _await(self) -> None:
        try:
            while not self.query.awaitTermination(0.2):
                # Between two batches is the only safe moment: inside the callback Spark's stop overflows,
                # and right after it the batch is not committed yet and would be run again.
                if self._stopping.is_set() and self._between.is_set() and not self.checkpoint.is_amid_batch():
                    # What Spark was about to begin is interrupted, which it would print as an error.
                    hush(self.spark, self.plan.name)
                    self.query.stop()
        except StreamingQueryException:
            if not self._failure:
                raise
        finally:
            unhush(self.spark, self.plan.name)
        if self._failure and not isinstance(self._failure[0], _Stopped | StoppedWaitingError):
            raise unwrapped(self._failure.pop())
        self._failure.clear()

    def _on_batch(self, frame: DataFrame, number: int) -> None:
        self._between.clear()
        try:
            if self._stopping.is_set():
                # Ends the query from inside, with nothing begun; Spark would print it as a failure.
                hush(self.spark, self.plan.name)
                raise _Stopped  # noqa: TRY301  caught below with all others
            self._batch(frame, number)
        except BaseException as error:
            self.owed = number if isinstance(error, StoppedWaitingError) else None
            if isinstance(error, StoppedWaitingError | SlackwaterError):
                hush(self.spark, self.plan.name)  # what is to be said is said by us; Spark would add its stack of calls
            self._failure.append(error)
            raise
        finally:
            self._between.set()

    def _batch(self, frame: DataFrame, number: int) -> None:
        began = time.monotonic()
        assert self._lease is not None, "taken before the query was started"
        self._lease.check()
        clock = self.checkpoint.begun_clock(number)
        self._intake.take(number)
        # This is the stream's own thread, and the jobs it starts carry its properties to every task.
        self.spark.sparkContext.setLocalProperty(CLOCK_PROPERTY, clock.to_property())  # 1
        batch = EvaluatedBatch.evaluate(frame, number)  # 2
        evaluated = time.monotonic()
        try:
            crash_point("evaluated", number)
            assert self._deliveries is not None, "opened before the query was started"
            with settings(frame.sparkSession, UNPACKING_CONF if batch.large else {}):
                marks = self._deliveries.deliver(batch, clock)  # 3
            delivered = time.monotonic()
            crash_point("delivered", number)
            found, processed = self._intake.look(clock)
            self._backlog = found.backlog
            following = next_clock(
                self.plan,
                clock,
                batch.stats,
                backlog=found.backlog,
                existing=found.known,
                gone=found.missing,
                may_idle=not self.bounded,
            )
            if self.clock_hook is not None:
                following = self.clock_hook(following)
            following = replace(following, marks=marks)
            self._lease.check()
            self.checkpoint.write_clock(following)  # 4
            crash_point("clock", number)
            if not clock.is_over:
                self._intake.commit(processed)
        finally:
            batch.release()
        self._clock = following
        self._note_lateness(batch.stats)
        ended = time.monotonic()
        report = BatchReport(
            batch=number,
            seconds=ended - began,
            stats=batch.stats,
            clock=clock,
            next_clock=following,
            rows_out=batch.rows,
            lag=found.lag,
            idle_after_ms={each.name: each.time.idle_after_ms for each in self.plan.sources if each.time is not None},
            timings_s={"evaluate": evaluated - began, "sinks": delivered - evaluated, "clock": ended - delivered},
        )
        self.reports.append(report)
        del self.reports[:-1000]
        if self.on_batch is not None:
            self.on_batch(report)
        report_strays(self.plan, found, self._strays)
        report_barren(self.plan, following, self._alerted)
        if clock.is_over:
            self._stopping.set()  # what arrived meanwhile could make more batches, with nothing in them for this run
        elif not self.bounded:
            self._intake.publish()

    def _fail(self, error: Exception) -> None:
        """End the job after the batch at hand, with an error that came up beside it."""
        self._failure.append(error)
        self.stop()

    def _note_lateness(self, stats: BatchStats) -> None:
        """Move a delivered batch's sketches into the total: kept in every report they would fill the memory."""
        for stream, sketches in stats.lateness.items():
            known = self.lateness.setdefault(stream, {})
            for name, sketch in sketches.items():
                known.setdefault(name, LatenessSketch.empty()).merge(sketch)
        stats.lateness.clear()
        assert self._clock is not None, "the clock that follows the batch"
        report_short_slack(self.plan, self.lateness, self._clock, now_ms=stats.now_ms, reported=self._alerted)
        report_schemas(stats, self._alerted)
        self.dead_letters.note(stats)


def make_job(
    plan: Plan,
    *,
    spark: SparkSession | None = None,
    checkpoint: str | Path | None = None,
    bounded: bool = False,
    trigger: Duration = "1s",
    master: str | None = None,
    partitions: int | None = None,
    accept_changes: bool = False,
    take_over: bool = False,
    on_start: Callable[[], None] | None = None,
    on_batch: Callable[[BatchReport], None] | None = None,
    clock_hook: ClockHook | None = None,
) -> Job:
    """Prepare a plan to run on Spark, with all that can be checked before the first batch."""
    trigger_ms = duration_ms(trigger, what="`trigger`", least_ms=0)
    path = Path(checkpoint or Path(".slackwater") / plan.name).absolute()
    check_free(path)
    found = existing_checkpoint(path, plan, accept_changes=accept_changes)
    if found is not None:
        found.noted_marks(found.next_clock())
    check_logs(plan)
    check_intake(plan, found)
    if on_start is not None:
        on_start()
    session = spark or spark_session(master=master, name=plan.name, conf=_needed(plan))
    if session.sparkContext.getConf().get("spark.speculation", "false") == "true":
        raise fault("SPECULATION")
    if partitions is None:
        partitions = _power_of_two_at_most(min(plan.key_groups, max(1, session.sparkContext.defaultParallelism)))
    elif partitions < 1 or plan.key_groups % partitions:
        raise fault("PARTITIONS", got=partitions, key_groups=plan.key_groups)
    with held(path):
        opened = open_checkpoint(path, plan, partitions=partitions, accept_changes=accept_changes)
    return Job(
        plan=plan,
        spark=session,
        checkpoint=opened,
        trigger_ms=trigger_ms,
        bounded=bounded,
        on_batch=on_batch,
        take_over=take_over,
        clock_hook=clock_hook,
    )


def _needed(plan: Plan) -> dict[str, str]:
    """Return what a session for `plan` is better started with than given later."""
    wanted = [sink.session_conf() for output in plan.outputs for sink in output.sinks]
    if any(isinstance(source.source, KafkaSource) for source in plan.sources):
        wanted.append({"spark.jars": ",".join(connector_jars())})
    if any(isinstance(source.source, DeltaSource) for source in plan.sources):
        wanted.append(delta_session_conf())
    needed: dict[str, list[str]] = {}
    for name, value in (setting for conf in wanted for setting in conf.items()):
        needed.setdefault(name, []).extend(value.split(","))
    return {name: ",".join(dict.fromkeys(values)) for name, values in needed.items()}


def run_pipeline(plan: Plan, **options: Any) -> Job:  # noqa: ANN401  as make_job's
    """Run a plan on Spark until Ctrl-C, SIGTERM or, if bounded, the end of its input; returns the job.

    Options: `spark` (a session), `checkpoint` (a folder; `.slackwater/<name>` unless told otherwise),
    `bounded`, `trigger` (the pause between batches), `master`, `partitions`, `accept_changes`, `take_over`,
    `on_start` (called when what needs no Spark was checked), `on_batch`.
    """
    stopped = threading.Event()
    with stopped_by_signals(stopped.set):
        job = make_job(plan, **options)
    with stopped_by_signals(job.stop):
        if not stopped.is_set():
            job.run()
    return job


def _power_of_two_at_most(number: int) -> int:
    return 1 << (number.bit_length() - 1)
