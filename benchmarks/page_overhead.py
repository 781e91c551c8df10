"""`python -m benchmarks.page_overhead`: what metrics, history and a page with ten open tabs cost a job.

Two jobs of one session run the same batches in turn. One has the monitor, its history, and a page that ten readers in
another process listen to, over connections of their own; the other has none of it. What tasks count beside their rows
is part of both. The ratio is that of the medians of warm batches, by Spark's own progress; at most 2 % is allowed.
"""

from __future__ import annotations

import argparse
import os
import random
import selectors
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

from benchmarks.cases import CASES, Case, small
from benchmarks.compare import DATA, data_name
from benchmarks.data import batches
from benchmarks.queries import bench_session, log_of, our_job
from benchmarks.sides import OurSide, put
from slackwater.observe.metrics.monitor import Monitor
from slackwater.observe.page.live import LivePage
from slackwater.spark import job as job_module

NAMES: Final = ("json-1k", "tiny-batch")
TABS: Final = 10
MOST: Final = 1.02
_BARE: Final = "bare"
_AT_ONCE: Final = 1 << 16


class SilentMonitor(Monitor):
    """A monitor that makes no record and writes no history."""

    def note(self, *_report: Any, **_known: Any) -> Any:  # noqa: ANN401  nothing is done with it
        """Do nothing."""


def _monitor(**options: Any) -> Monitor:  # noqa: ANN401  as Monitor's
    return SilentMonitor(**options) if options["plan"].name.startswith(_BARE) else Monitor(**options)


def main() -> int:
    """Measure both cases; 1 if one of them costs too much."""
    options = _options()
    if options.read:
        return read(options.read, options.tabs)
    setattr(job_module, "Monitor", _monitor)  # noqa: B010  the bare side has none
    home = Path("build") / f"page-overhead-{os.getpid()}"
    spark, failed = bench_session(), False
    try:
        for name in options.only:
            ratio = measure(spark, CASES[name], options, home / name)
            failed |= ratio > MOST
            print(f"{name}: {ratio:.4f} times the time of a job without metrics, history and page", flush=True)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return int(failed)


def measure(spark: SparkSession, case: Case, options: argparse.Namespace, home: Path) -> float:
    """Return how many times as long a batch takes with everything as without."""
    shutil.rmtree(home, ignore_errors=True)
    dice, warm_up = random.Random(1), options.warm_up + case.warm_up
    with ExitStack() as stack:
        bare, watched = _side(spark, case, home / _BARE, _BARE), _side(spark, case, home / "watched", "watched")
        for side in (bare, watched):
            stack.callback(side.close)
        stack.enter_context(tabs_on(watched, options.tabs))
        for number, (files, rows) in enumerate(_files(case, options.batches * case.batches_factor, options.warm_up)):
            for file in files:
                file.read_bytes()
            # Neither side is always the first.
            for side in dice.sample([bare, watched], 2):
                side.batch(files, rows)
            print(f"  {case.name}: batch {number + 1 - warm_up}", file=sys.stderr, flush=True)
        times = [[batch.seconds for batch in side.finish()][warm_up:] for side in (bare, watched)]
    print(f"{case.name}: {median(times[0]):.3f} s bare, {median(times[1]):.3f} s watched", flush=True)
    return median(times[1]) / median(times[0])


@contextmanager
def tabs_on(side: OurSide, tabs: int) -> Iterator[None]:
    """Have a page of a job, and readers of it in another process."""
    with LivePage(side.job.plan) as page:
        side.job.on_record = page.note
        command = [sys.executable, "-m", "benchmarks.page_overhead", "--read", page.address, "--tabs", str(tabs)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as readers:
            assert readers.stdout is not None
            readers.stdout.readline()  # all of them are connected
            try:
                yield
            finally:
                readers.terminate()


def read(address: str, tabs: int) -> int:
    """Listen to a page as some tabs would, until the process is ended."""
    place, waiting = urlsplit(address), selectors.DefaultSelector()
    for _ in range(tabs):
        tab = socket.create_connection((place.hostname, place.port or 80))
        tab.sendall(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
        tab.recv(_AT_ONCE)
        waiting.register(tab, selectors.EVENT_READ)
    print(f"{tabs} tabs listen", flush=True)
    while waiting.get_map():
        for key, _ in waiting.select():
            assert isinstance(key.fileobj, socket.socket)
            if not key.fileobj.recv(_AT_ONCE):
                waiting.unregister(key.fileobj)
    return 0


def _side(spark: SparkSession, case: Case, home: Path, name: str) -> OurSide:
    folder = home / "in"
    folder.mkdir(parents=True)
    deliver: Callable[[list[Path]], None] = partial(put, folder=folder)
    source = log_of(case.events, folder)
    job = our_job(spark, source, case.workload, name=f"{name}-{case.name}", home=home)
    return OurSide(job=job, deliver=deliver)


def _files(case: Case, measured: int, small_ones: int) -> Iterator[tuple[list[Path], int]]:
    """Yield the files of each batch and its rows: small ones, some that warm up, and those that count."""
    first = small(case.events)
    for files in batches(first, DATA / f"{data_name(case)}-small", small_ones):
        yield files, first.rows_per_batch
    for files in batches(case.events, DATA / data_name(case), case.warm_up + measured):
        yield files, case.events.rows_per_batch


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=NAMES, default=list(NAMES), help="only these cases")
    parser.add_argument("--batches", type=int, default=15, help="batches that count; of tiny-batch six times as many")
    parser.add_argument("--warm-up", type=int, default=40, help="small batches before them")
    parser.add_argument("--tabs", type=int, default=TABS, help="tabs that listen to the page")
    parser.add_argument("--read", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
