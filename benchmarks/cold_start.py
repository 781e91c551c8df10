"""The case `cold-start`: from the command to the results of a thousand rows, and back to the prompt.

`slackwater run … --bounded` beside scripts in plain PySpark that read and write the same, in turn, each in a process
of its own with a JVM of its own. The first start of each side does not count: it fills the caches of the disk, and
leaves the bytecode of what it imports.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

import polars as pl
from rich.table import Table

from benchmarks.data import Events, batches

NAME: Final = "cold-start"
LEAST_RATIO: Final = 0.67
"""Of the first rival's seconds to ours: 1.5 times as long at most."""
_ROWS: Final = 1_000
_EVENTS: Final = Events(keys=50, format="json", rows_per_batch=_ROWS, files_per_batch=1, rows_per_s=1)
_DATA: Final = Path("build/bench-data/cold-start")
_HERE: Final = Path(__file__).resolve().parent
_RIVALS: Final = {"PySpark, availableNow": "stream", "PySpark, batch": "batch"}


@dataclass(frozen=True, kw_only=True)
class ColdStart:
    """Seconds from the command to its end, start by start."""

    ours: list[float]
    rivals: dict[str, list[float]]
    """Of each rival; the first is the one with a floor."""

    @property
    def ratios(self) -> dict[str, float]:
        """How many times as long as ours each rival took, at the medians."""
        return {name: median(seconds) / median(self.ours) for name, seconds in self.rivals.items()}

    @property
    def ratio(self) -> float:
        """The ratio that has a floor."""
        return next(iter(self.ratios.values()))

    @property
    def entry(self) -> dict[str, Any]:
        """What is kept of it."""
        return {
            "case": NAME,
            "ours_s": round(median(self.ours), 2),
            "rivals_s": {name: round(median(seconds), 2) for name, seconds in self.rivals.items()},
            "ratio": round(self.ratio, 3),
            "ratios": {name: round(ratio, 3) for name, ratio in self.ratios.items()},
        }

    @property
    def shortfall(self) -> str | None:
        """What is wrong with it."""
        if self.ratio >= LEAST_RATIO:
            return None
        return f"{NAME}: plain PySpark takes {self.ratio:.2f} times as long; it must be at least {LEAST_RATIO}"


def measure(*, starts: int, home: Path, say: Callable[[str], None]) -> ColdStart:
    """Start every side `starts` times in turn, after once each that does not count."""
    [files] = batches(_EVENTS, _DATA, 1)
    log = home / "log" / "0"
    log.mkdir(parents=True)
    for file in files:
        shutil.copy2(file, log)
    found = ColdStart(ours=[], rivals={name: [] for name in _RIVALS})
    for number in range(starts + 1):
        folder = home / str(number)
        took = {"ours": _ours(folder / "ours", log.parent)}
        took |= {name: _plain(folder / kind, log, kind) for name, kind in _RIVALS.items()}
        say(f"start {number} of {starts}: " + ", ".join(f"{name} {seconds:.1f} s" for name, seconds in took.items()))
        _check_results(folder)
        if number:
            found.ours.append(took.pop("ours"))
            for name, times in found.rivals.items():
                times.append(took[name])
    return found


def _ours(folder: Path, log: Path) -> float:
    pipeline = str(_HERE / "cold_start_pipeline.py")
    command = ["-m", "slackwater", "run", pipeline, "--bounded", "--checkpoint", str(folder / "checkpoint")]
    return _seconds(command, folder, COLD_START_LOG=str(log), COLD_START_OUT=str(folder / "out"))


def _plain(folder: Path, log: Path, kind: str) -> float:
    return _seconds([str(_HERE / "plain_spark.py"), str(log), str(folder / "out"), kind], folder)


def _seconds(arguments: list[str], folder: Path, **variables: str) -> float:
    """Run Python to its end; what it leaves behind, such as a JVM on its way out, is not waited for."""
    folder.mkdir(parents=True)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with (folder / "log.txt").open("w") as log:
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, *arguments], env={**environment, **variables}, stdout=log, stderr=log, check=False
        )
        seconds = time.monotonic() - began
    if done.returncode:
        message = f"{' '.join(arguments)} ended with {done.returncode}: {(folder / 'log.txt').read_text()[-2_000:]}"
        raise RuntimeError(message)
    return seconds


def _check_results(folder: Path) -> None:
    """Fail unless Slackwater shows what the batch computes, and the stream shows nothing else."""
    columns = ["key", "window_start", "n", "total"]
    ours, *others = (
        pl.read_parquet(folder / files)
        .select(pl.col("key"), pl.col("window_start").dt.epoch("ms"), "n", pl.col("total").round(6))
        .sort(columns)
        for files in ("ours/out/results/batch-*/*.parquet", "batch/out/*.parquet", "stream/out/*.parquet")
    )
    batch, stream = others
    if not ours.equals(batch) or not stream.join(ours, on=columns, how="anti").is_empty():
        message = f"Slackwater shows {ours.height} windows, the batch {batch.height}, and they differ"
        raise RuntimeError(message)


def cold_start_table(found: ColdStart) -> Table:
    """Return the case as a table."""
    table = Table(title=f"From the command to the end, {_ROWS:,} rows", title_justify="left")
    table.add_column("case")
    table.add_column("ours, s", justify="right")
    table.add_column("beside")
    for column in ("s", "ratio", "least ratio"):
        table.add_column(column, justify="right")
    table.add_column("verdict")
    verdict = "[green]good[/green]" if found.shortfall is None else "[red]too slow[/red]"
    own, judged = [NAME, f"{median(found.ours):.1f}"], [f"{LEAST_RATIO}", verdict]
    for name, seconds in found.rivals.items():
        table.add_row(*own, name, f"{median(seconds):.1f}", f"{found.ratios[name]:.2f}", *judged)
        own, judged = ["", ""], []
    return table
