"""The demo from start to finish: produce, process live, drain, finish, account."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import polars as pl
from rich.console import Console

from slackwater.base.errors import RunError, fault
from slackwater.base.stopping import stopped_by_signals
from slackwater.observe.metrics.report import BatchReport
from slackwater.observe.page.live import LivePage
from slackwater.pipeline import Pipeline
from slackwater.spark.job import Job
from slackwater.spark.options import RunOptions
from slackwater.spark.start import make_job
from slackwater.tools.demo.account import DemoAccount, DemoOutcome, settle
from slackwater.tools.demo.definition import ACTIVE, demo_pipeline
from slackwater.tools.demo.places import PLACES, Place, opened
from slackwater.tools.demo.producer import Producer
from slackwater.tools.demo.screen import Screen
from slackwater.tools.demo.statement import print_statement

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MARK: Final = ".slackwater-demo"
_PATIENCE_S: Final = 60.0
"""How long a batch may take before the demo reports it and ends without it."""


def run_demo(
    *,
    folder: Path,
    seconds: float,
    rate: int,
    seed: int,
    sink: str | None = None,
    page_port: int | None = None,
    show_data: bool = False,
    spark: SparkSession | None = None,
    console: Console | None = None,
) -> DemoAccount:
    """Run the demo in `folder`, print its progress and statement, and return the account.

    `sink` names another place that gets rows; `page_port` is the port of the live page, None for no page. With
    `show_data`, the page shows the data of late rows and dead letters.
    """
    began = time.monotonic()
    console = console or Console(width=None if sys.stdout.isatty() else 100)
    place = None if sink is None else PLACES[sink](folder=folder.absolute() / sink)
    if place is not None:
        place.check_packages()
    prepare_folder(folder)
    feed = Producer(folder=folder / "log", seconds=seconds, rate=rate, seed=seed)
    with ExitStack() as opened_here:
        if place is not None:
            opened_here.enter_context(_announced(place, console))
        pipeline = demo_pipeline(folder, place.sink() if place else None)  # its address is known once it has started
        page = None if page_port is None else opened_here.enter_context(_paged(pipeline, page_port, console))
        opened_here.enter_context(_quiet_stderr(folder / "spark.log"))
        screen = opened_here.enter_context(Screen(console=console, feed=feed))
        _process(pipeline, folder, feed, screen, spark, page=page, show_data=show_data)
        screen.say("accounting for every record")
        outcome = DemoOutcome(folder=folder)
        read = place.read() if place else None
        account = settle(outcome, screen.counts(), written=feed.written, damaged=feed.phones.damaged, read=read)
    print_statement(console, account, outcome, took_s=time.monotonic() - began, place=place)
    return account


@contextmanager
def _announced(place: Place, console: Console) -> Iterator[None]:
    """Start `place`, print how to look at it, and stop it at the end."""
    console.print(f"starting {place.title.partition(' ')[0]} …")
    with opened(place):
        console.print("look at it while the stream runs:")
        console.print(f"  {place.look}", soft_wrap=True, highlight=False, markup=False)
        yield


@contextmanager
def _paged(pipeline: Pipeline, port: int, console: Console) -> Iterator[LivePage | None]:
    """Open a page of the job and print its address; or print what to install for one."""
    with ExitStack() as stack:
        page = None
        try:
            page = stack.enter_context(LivePage(pipeline.plan(), port=port))
            text = f"page: {page.address}"
        except RunError as error:
            if error.code != "PAGE_PACKAGES":
                raise
            text = f"no page: {error}"
        console.print(text, soft_wrap=True, highlight=False, markup=False)
        yield page


def prepare_folder(folder: Path) -> None:
    """Create an empty folder; only a folder of an earlier demo is wiped."""
    if folder.exists() and any(folder.iterdir()):
        if not (folder / _MARK).exists():
            raise fault("DEMO_FOLDER", path=folder)
        shutil.rmtree(folder)
    (folder / "log").mkdir(parents=True)
    (folder / _MARK).touch()


def _process(
    pipeline: Pipeline,
    folder: Path,
    feed: Producer,
    screen: Screen,
    spark: SparkSession | None,
    *,
    page: LivePage | None,
    show_data: bool,
) -> None:
    def on_batch(report: BatchReport) -> None:
        screen.batch(report)
        if not feed.has_begun:
            # The first batch is empty and slow, because Spark and its workers start up; the stream starts after it.
            feed.start()
            screen.say("live")
        if report.rows_out.get(ACTIVE):
            files = folder / "out" / ACTIVE / f"batch-{report.batch:012d}" / "part-*.parquet"
            screen.show_active(pl.read_parquet(files))

    def on_phase(name: str) -> None:
        if name and not feed.has_begun:
            screen.say(name)
        if page is not None:
            page.phase(name)

    job = make_job(
        pipeline.plan(),
        RunOptions(spark=spark, checkpoint=folder / "checkpoint", trigger="1s", on_batch=on_batch, show_data=show_data),
        on_record=None if page is None else page.note,
        on_run=None if page is None else page.begin,
        on_phase=on_phase,
    )
    watch = threading.Thread(target=_stop_when_drained, args=(job, feed, screen), daemon=True)
    watch.start()
    with stopped_by_signals(feed.stop):  # the account is still printed
        job.run(finish=True)
    if page is not None:
        page.end(is_finished=job.is_finished)
    watch.join()


def _stop_when_drained(job: Job, feed: Producer, screen: Screen) -> None:
    """Wait until the producer is done and the job has read everything, then ask the job to stop."""
    try:
        while not feed.is_done:
            time.sleep(0.1)
        screen.say("draining the rest")
        batches, seen_at = len(screen.reports), time.monotonic()
        while screen.records < feed.written and time.monotonic() - seen_at < _PATIENCE_S:
            time.sleep(0.1)
            if len(screen.reports) > batches:
                batches, seen_at = len(screen.reports), time.monotonic()
        screen.say("firing the last windows")
    finally:
        job.stop()


@contextmanager
def _quiet_stderr(log: Path) -> Iterator[None]:
    """Redirect the standard error of Spark's processes, which inherit this process's, to a file."""
    sys.stderr.flush()
    kept = os.dup(2)
    with log.open("ab") as out:
        os.dup2(out.fileno(), 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)
