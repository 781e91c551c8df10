"""`python -m benchmarks.run`: the tables of `make bench`.

Compares with Spark's own windows case by case (`build/bench.json`), shows how Slackwater's own cost grows
(`build/growth.json`), and how long a start takes (`build/cold-start.json`). The case `latency`, only when asked for,
is `python -m benchmarks.latency` with its defaults.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any, Final, Self

from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from benchmarks import cold_start
from benchmarks.cases import CASES
from benchmarks.compare import Outcome, compare
from benchmarks.growth import POINTS, grow, growth_table
from benchmarks.latency.__main__ import main as latency
from benchmarks.queries import bench_session
from benchmarks.step_profile import profile_table

_LATENCY: Final = "latency"
MOST_WORKER_MB: Final = 1024
_SPEAK_EVERY_S: Final = 2.0
_WIDTH: Final = 140
"""Columns of the tables in a file or a pipe, where there is no terminal to say."""


class Speaker:
    """Says how a run gets on: in one changing line on a terminal, elsewhere in a line now and then."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.about = ""
        self._status = console.status("starting Spark") if console.is_terminal else None
        self._spoke = 0.0

    def __enter__(self) -> Self:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def __call__(self, text: str) -> None:
        """Say `text` about what is being done."""
        if self._status is not None:
            self._status.update(f"{self.about}: {text}")
        elif time.monotonic() - self._spoke >= _SPEAK_EVERY_S:
            self._spoke = time.monotonic()
            self.console.print(f"{self.about}: {text}", highlight=False)


def main() -> int:
    """Run what the command line asks for; 1 if a case is below its floor, or could not be run."""
    options = _options()
    console = Console()
    if not console.is_terminal:
        console.width = _WIDTH
    home = options.out.parent / f"bench-run-{os.getpid()}"
    failures: list[str] = []
    if options.latency and latency([]):
        failures.append("latency: see above")
    with Speaker(Console(stderr=True)) as speaker:
        if options.cold_start:
            failures += _start_cold(options, home, console, speaker)
        if options.cases or options.growth:
            failures += _run_warm(options, home, console, speaker)
    for failure in failures:
        console.print(failure, style="red", highlight=False, markup=False)
    return 1 if failures else 0


def _start_cold(options: argparse.Namespace, home: Path, console: Console, speaker: Speaker) -> list[str]:
    speaker.about = cold_start.NAME
    try:
        found = cold_start.measure(starts=options.batches, home=home, say=speaker)
    except Exception as error:  # noqa: BLE001  the other cases still have something to say
        return [f"{cold_start.NAME} could not be run: {type(error).__name__}: {error}"]
    finally:
        shutil.rmtree(home, ignore_errors=True)
    _write(options.out.parent / "cold-start.json", [found.entry])
    console.print(cold_start.cold_start_table(found))
    return [found.shortfall] if found.shortfall else []


def _run_warm(options: argparse.Namespace, home: Path, console: Console, speaker: Speaker) -> list[str]:
    failures = []
    spark = bench_session()
    try:
        if options.cases:
            failures += _compare_all(spark, options, home, console, speaker)
        if options.growth:
            failures += _grow_all(spark, options, home, console, speaker)
    finally:
        spark.stop()
        shutil.rmtree(home, ignore_errors=True)
    return failures


def _compare_all(
    spark: SparkSession, options: argparse.Namespace, home: Path, console: Console, speaker: Speaker
) -> list[str]:
    failures, outcomes = [], []
    for case in options.cases:
        speaker.about = case.name
        try:
            outcomes.append(compare(spark, case, measured=options.batches, home=home, say=speaker))
        except Exception as error:  # noqa: BLE001  the other cases still have something to say
            failures.append(f"{case.name} could not be run: {type(error).__name__}: {error}")
            continue
        _write(options.out, [_entry(outcome) for outcome in outcomes])
        failures += _shortfalls(outcomes[-1])
        if options.profile:
            console.print(profile_table(spark, outcomes[-1]))
    console.print(_table(outcomes))
    return failures


def _grow_all(
    spark: SparkSession, options: argparse.Namespace, home: Path, console: Console, speaker: Speaker
) -> list[str]:
    failures, entries = [], []
    for point in options.points:
        speaker.about = f"growth, {point}"
        try:
            entries.append(grow(spark, point, home=home, say=speaker))
        except Exception as error:  # noqa: BLE001  as above
            failures.append(f"growth, {point} could not be run: {type(error).__name__}: {error}")
            continue
        _write(options.out.parent / "growth.json", entries)
    console.print(growth_table(entries))
    return failures


def _options() -> argparse.Namespace:
    apart = (cold_start.NAME, _LATENCY)
    known = ", ".join([*CASES, *apart])
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument("--only", metavar="CASE,CASE", help=f"only these cases, of: {known}")
    parser.add_argument("--growth", action="store_true", help="only how cost grows (with --only: that as well)")
    axes = ", ".join(dict.fromkeys(point.axis for point in POINTS))
    parser.add_argument(
        "--axis",
        metavar="NAME",
        help=f"with --growth: only rows whose axis has this in it, of: {axes}".replace("%", "%%"),
    )
    parser.add_argument(
        "--batches", type=int, default=5, metavar="N", help="warm batches, or cold starts, a side (default 5)"
    )
    parser.add_argument("--profile", action="store_true", help="show where each batch's time goes, by step")
    parser.add_argument("--out", type=Path, default=Path("build/bench.json"), metavar="FILE")
    options = parser.parse_args()
    if options.batches < 1:
        parser.error(f"--batches must be at least 1; got {options.batches}")
    names = [name.strip() for name in (options.only or "").split(",") if name.strip()]
    if unknown := [name for name in names if name not in (*CASES, *apart)]:
        parser.error(f"--only takes known cases; got {', '.join(unknown)}; known are: {known}")
    everything = not names and not options.growth
    options.cases = list(CASES.values()) if everything else [CASES[name] for name in names if name in CASES]
    options.latency = _LATENCY in names
    options.cold_start = everything or cold_start.NAME in names
    options.growth = options.growth or everything
    options.points = [point for point in POINTS if (options.axis or "") in point.axis]
    if not options.points:
        parser.error(f"--axis takes a part of: {axes}; got {options.axis}")
    return options


def _entry(outcome: Outcome) -> dict[str, Any]:
    return {
        "case": outcome.case.name,
        "ours_rows_per_s": round(outcome.ours_rows_per_s, 1),
        "rivals_rows_per_s": {name: round(rows, 1) for name, rows in outcome.rivals_rows_per_s.items()},
        "ratio": round(outcome.ratio, 3),
        "ratios": {name: round(ratio, 3) for name, ratio in outcome.ratios.items()},
        "peak_worker_mb": round(outcome.peak_worker_mb, 1),
    }


def _shortfalls(outcome: Outcome) -> list[str]:
    case = outcome.case
    found = []
    if outcome.ratio < case.least_ratio:
        found.append(
            f"{case.name} is {outcome.ratio:.2f} times as fast as Spark; it must be at least {case.least_ratio}"
        )
    if outcome.peak_worker_mb >= MOST_WORKER_MB:
        found.append(
            f"{case.name}: a Python worker held {outcome.peak_worker_mb:,.0f} MB; it must stay under {MOST_WORKER_MB}"
        )
    return found


def _table(outcomes: list[Outcome]) -> Table:
    table = Table(title="Beside Spark's own operators", title_justify="left")
    table.add_column("case")
    table.add_column("ours, rows/s", justify="right")
    table.add_column("beside")
    for column in ("rows/s", "ratio", "least ratio", "peak worker, MB"):
        table.add_column(column, justify="right")
    table.add_column("verdict")
    for outcome in outcomes:
        own = [outcome.case.name, f"{outcome.ours_rows_per_s:,.0f}"]
        judged = [f"{outcome.case.least_ratio}", f"{outcome.peak_worker_mb:,.0f}", _verdict(outcome)]
        for name, rows_per_s in outcome.rivals_rows_per_s.items():
            table.add_row(*own, name, f"{rows_per_s:,.0f}", f"{outcome.ratios[name]:.2f}", *judged)
            own, judged = ["", ""], []
    return table


def _verdict(outcome: Outcome) -> str:
    if outcome.ratio < outcome.case.least_ratio:
        return "[red]too slow[/red]"
    return "[red]too much memory[/red]" if outcome.peak_worker_mb >= MOST_WORKER_MB else "[green]good[/green]"


def _write(path: Path, entries: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(entries, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
