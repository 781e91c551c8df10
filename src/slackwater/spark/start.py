"""Creating a job for a plan, with all checks that are possible before Spark starts and before the first batch.

The JVM is started as soon as the checks are done; PySpark and the modules that need it are imported meanwhile.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from slackwater.base.errors import SlackwaterError, SlackwaterWarning, fault, notice
from slackwater.base.folders import plain_path
from slackwater.base.open_files import check_open_files
from slackwater.base.stopping import stopped_by_signals
from slackwater.engine.checkpoint.checkpoint import existing_checkpoint, open_checkpoint
from slackwater.engine.checkpoint.lock import check_free, held
from slackwater.engine.outputs.deliveries import prepare_without_spark
from slackwater.observe.metrics.monitor import OnRecord
from slackwater.plan.skipping import skipping
from slackwater.spark.folders import check_logs
from slackwater.spark.intake import check_intake
from slackwater.spark.options import RunOptions
from slackwater.spark.portable import check_portable
from slackwater.spark.session_conf import start_jvm, with_retries
from slackwater.spark.warm_up import warm_up

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from slackwater.plan.plan import Plan
    from slackwater.spark.job import ClockHook, Job

_SHORT_BYTES: Final = 64 << 20
"""A bounded run over logs of up to this size ends before the JVM's optimising compiler pays off."""


def make_job(
    plan: Plan,
    options: RunOptions,
    *,
    on_start: Callable[[], None] | None = None,
    on_record: OnRecord | None = None,
    on_run: OnRecord | None = None,
    on_phase: Callable[[str], None] | None = None,
    clock_hook: ClockHook | None = None,
) -> Job:
    """Prepare a plan to run on Spark, with all checks that are possible before the first batch.

    `on_start` is called after the checks that need no Spark; `on_record` with the figures of each batch; `on_run`
    before the first batch, with all figures at 0; `on_phase` at the beginning of each phase of the start, and of each
    batch, with its name, which is empty between batches.
    """
    begin = on_phase or _nothing
    begin("checking sources and sinks")
    plan = skipping(replace(plan, shows_data=options.show_data), options.skip_rows)
    path = plain_path(options.checkpoint or Path(".slackwater") / plan.name)
    if options.spark is None:
        check_open_files()
    check_portable(plan)
    check_free(path)
    found = existing_checkpoint(path, plan, accept_changes=options.accept_changes)
    marks: dict[str, Any] = {"marks": {}}
    if found is not None:
        clock = found.next_clock()
        marks = {"marks": found.noted_marks(clock), "mark": found.begun_mark(clock.batch)}
    check_logs(plan)
    waiting = check_intake(plan, found)
    prepared = frozenset[str]()
    if options.spark is None:
        prepared = prepare_without_spark(plan, **marks, take_over=options.take_over)
    if on_start is not None:
        on_start()
    facts: dict[str, Any] = {"master": options.master, "name": plan.name, "conf": {}}
    if options.spark is None:
        begin("fetching connectors")
        facts["conf"] = _needed(plan)
        begin("starting the JVM")
    is_short = options.bounded and waiting is not None and waiting <= _SHORT_BYTES
    jvm = start_jvm(**facts, is_short=is_short) if options.spark is None else None
    from slackwater.spark.job import Job  # noqa: PLC0415  see the top
    from slackwater.spark.session import spark_session  # noqa: PLC0415  see the top

    session = options.spark or spark_session(**facts, jvm=jvm)
    if jvm is not None and (options.master or "local").startswith("local"):
        warm_up(session)
    begin("opening the checkpoint")
    _check_session(session)
    if (partitions := options.partitions) is None:
        partitions = _power_of_two_at_most(min(plan.key_groups, max(1, session.sparkContext.defaultParallelism)))
    elif partitions < 1 or plan.key_groups % partitions:
        raise fault("PARTITIONS", got=partitions, key_groups=plan.key_groups)
    with held(path):
        opened = open_checkpoint(path, plan, partitions=partitions, accept_changes=options.accept_changes)
    return Job(
        plan=plan,
        spark=session,
        checkpoint=opened,
        options=options,
        on_record=on_record,
        on_run=on_run,
        prepared=prepared,
        clock_hook=clock_hook,
        on_phase=on_phase,
    )


def _check_session(session: SparkSession) -> None:
    """Reject a session that computes tasks twice at a time; warn about one that does not retry them."""
    if session.sparkContext.getConf().get("spark.speculation", "false") == "true":
        raise fault("SPECULATION")
    if (better := with_retries(given := str(session.sparkContext.master))) != given:
        warnings.warn(notice("SPARK_WITHOUT_RETRIES", master=given, better=better), SlackwaterWarning, stacklevel=3)


def _needed(plan: Plan) -> dict[str, str]:
    """Return the settings that sources and sinks of `plan` prefer to have when the session starts."""
    wanted = [sink.session_conf() for output in plan.outputs for sink in output.sinks]
    wanted += [source.source.session_conf() for source in plan.sources]
    needed: dict[str, list[str]] = {}
    for name, value in (setting for conf in wanted for setting in conf.items()):
        needed.setdefault(name, []).extend(value.split(","))
    return {name: ",".join(dict.fromkeys(values)) for name, values in needed.items()}


def run_pipeline(plan: Plan, options: RunOptions, **hooks: Any) -> Job:  # noqa: ANN401  those of make_job
    """Run a plan on Spark until Ctrl-C, SIGTERM or, if bounded, the end of its input; return the job."""
    stopped = threading.Event()

    def stop() -> None:
        stopped.set()
        (hooks.get("on_phase") or _nothing)("stopping")

    with stopped_by_signals(stop):
        try:
            job = make_job(plan, options, **hooks)
        except SlackwaterError as error:
            # A signal to the whole process group ends the JVM as well; that is no failure to start.
            if stopped.is_set() and error.code == "SPARK_START":
                raise SystemExit(0) from error
            raise
    with stopped_by_signals(job.stop):
        if not stopped.is_set():
            job.run()
    return job


def _power_of_two_at_most(number: int) -> int:
    return 1 << (number.bit_length() - 1)


def _nothing(_phase: str) -> None:
    """Ignore the beginning of a phase."""
