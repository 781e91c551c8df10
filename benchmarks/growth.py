"""How Slackwater's own cost grows: with keys, with the size of a batch, and with the windows that are open."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

from pyspark.sql import SparkSession
from rich.table import Table

import slackwater as sw
from benchmarks.data import Events, batches
from benchmarks.processes import WorkerMemory
from benchmarks.queries import OUT_OF_ORDERNESS_S, log_of, our_job
from benchmarks.sides import OurSide, put
from benchmarks.workloads import Counts, ValueState, Workload
from slackwater.base.errors import counted


@dataclass(frozen=True, kw_only=True)
class Point:
    """One row of the table: a workload over JSON lines, with one thing larger than before."""

    axis: str
    size: int
    events: Events
    then: Events | None = None
    """What the measured batches read, if it is something else than the ones before."""
    workload: Workload = field(default_factory=Counts)
    out_of_orderness_s: int = OUT_OF_ORDERNESS_S
    warm_up: int = 2
    measured: int = 3

    @property
    def rows_measured(self) -> int:
        """The rows of a measured batch."""
        return (self.then or self.events).rows_per_batch

    def batches(self, folder: Path) -> Iterator[tuple[list[Path], int]]:
        """Yield the files of each batch in turn, and how many rows they have."""
        if self.then is None:
            parts = [(self.events, self.warm_up + self.measured)]
        else:
            parts = [(self.events, self.warm_up), (self.then, self.measured)]
        for part, (events, count) in enumerate(parts):
            for files in batches(events, folder / str(part), count):
                yield files, events.rows_per_batch

    def __str__(self) -> str:
        return sized(self.size, self.axis)


def sized(size: int, axis: str) -> str:
    """Return a point by its size: 1 open window, 1,000 open windows."""
    return counted(size, axis.removesuffix("s")) if axis.endswith("s") else f"{size:,} {axis}"


def _points() -> Iterator[Point]:
    for keys in (10_000, 100_000, 1_000_000):
        yield Point(axis="keys", size=keys, events=Events(keys=keys, format="json"))
    many = Events(keys=10_000_000, format="json")
    yield Point(axis="keys", size=many.keys, events=many, warm_up=1, measured=2)
    for rows in (1_000, 10_000, 100_000, 1_000_000):
        files = 1 if rows < 1_000_000 else 2
        events = Events(keys=100_000, format="json", rows_per_batch=rows, files_per_batch=files)
        yield Point(axis="rows a batch", size=rows, events=events, measured=10 if rows < 1_000_000 else 3)
    large = Events(keys=100_000, format="json", rows_per_batch=10_000_000)
    yield Point(axis="rows a batch", size=large.rows_per_batch, events=large, warm_up=1, measured=2)
    hot = Events(keys=100_000, format="json", rows_per_batch=10_000_000, hot=0.9)
    yield Point(axis="% of the rows have one key", size=90, events=hot, warm_up=1, measured=2)
    for windows in (1, 10, 100, 1_000):
        # Each batch moves on by one window, and its rows are spread over all that are open.
        open_s = max(OUT_OF_ORDERNESS_S, 60 * (windows - 1))
        spread = Events(keys=1_000, format="json", rows_per_s=2_000_000 // 60, disorder_ms=open_s * 500)
        yield Point(axis="open windows", size=windows, events=spread, out_of_orderness_s=open_s)
    for sessions in (100_000, 1_000_000):
        # Each batch opens the sessions of 10,000 other keys, and none of them ends.
        workload = Counts(window=sw.session("10d"))
        events = _arrivals(sessions, 10_000)
        yield Point(axis="open sessions", size=sessions, events=events, workload=workload, warm_up=sessions // 10_000)
    for keys in (10_000, 100_000, 1_000_000, 10_000_000):
        # Once all keys are there, each batch touches 2,000 of them, however many there are.
        filling = _arrivals(keys, min(keys, 200_000))
        count = keys // min(keys, 200_000)
        then = replace(filling, visitors=2_000, rows_per_batch=4_000, first=count * filling.rows_per_batch)
        yield Point(
            axis="keys of state", size=keys, events=filling, then=then, workload=ValueState(), warm_up=count, measured=5
        )


def _arrivals(keys: int, visitors: int) -> Events:
    """Return events of which each batch has two rows of each of `visitors` other keys, on average."""
    rows = 2 * visitors
    each_s = 30  # how long visitors stay
    return Events(keys=keys, visitors=visitors, format="json", rows_per_batch=rows, rows_per_s=rows // each_s)


POINTS: Final = tuple(_points())
_DIGITS: Final = {"batch_seconds": 2, "state_mb": 1}


def grow(spark: SparkSession, point: Point, *, home: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Run one point and return its row of the table; its events are thrown away afterwards."""
    name = f"growth-{point.axis.replace('%', 'percent').replace(' ', '-')}-{point.size}"
    home = home / name  # not the last point's: Spark may still be tidying up its state
    shutil.rmtree(home, ignore_errors=True)
    folder = home / "ours-in"
    folder.mkdir(parents=True)
    job = our_job(
        spark,
        log_of(point.events, folder),
        point.workload,
        name=name,
        home=home,
        out_of_orderness_s=point.out_of_orderness_s,
    )
    side = OurSide(job=job, deliver=partial(put, folder=folder))
    memory = WorkerMemory()
    count = point.warm_up + point.measured
    try:
        for number, (files, rows) in enumerate(point.batches(home / "data"), 1):
            with memory.sampled():
                report = side.batch(files, rows)
            say(f"batch {number} of {count}: {report.seconds:.2f} s")
        times = side.finish()[point.warm_up :]
    finally:
        side.close()
    shutil.rmtree(home, ignore_errors=True)
    seconds = median(batch.seconds for batch in times)
    [held] = report.stats.state.values()
    return {
        "axis": point.axis,
        "size": point.size,
        "keys": point.events.keys,
        "rows_per_batch": point.rows_measured,
        "warm_batches": len(times),
        "batch_seconds": round(seconds, 3),
        "rows_per_s": round(point.rows_measured / seconds, 1),
        "panes_per_batch": median(batch.report.total("panes") for batch in times if batch.report is not None),
        "state_rows": held["rows"],
        "state_mb": round(held["bytes"] / 1e6, 2),
        "peak_worker_mb": round(memory.peak_mb, 1),
    }


def growth_table(entries: list[dict[str, Any]]) -> Table:
    """Return the second table of `make bench`."""
    table = Table(
        title="How cost grows (JSON lines; one-minute count and sum unless it says otherwise)", title_justify="left"
    )
    columns = {
        "keys": "keys",
        "rows_per_batch": "rows a batch",
        "warm_batches": "batches",
        "batch_seconds": "batch, s",
        "rows_per_s": "rows/s",
        "panes_per_batch": "panes a batch",
        "state_rows": "state, rows",
        "state_mb": "state, MB",
        "peak_worker_mb": "peak worker, MB",
    }
    table.add_column("what grows")
    for title in columns.values():
        table.add_column(title, justify="right")
    axis = None
    for entry in entries:
        if axis not in (None, entry["axis"]):
            table.add_section()
        axis = entry["axis"]
        cells = [f"{entry[name]:,.{_DIGITS.get(name, 0)}f}" for name in columns]
        table.add_row(sized(entry["size"], entry["axis"]), *cells)
    return table
