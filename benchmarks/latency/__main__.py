"""`python -m benchmarks.latency`: how long a result takes, from the produce call of its event to the receive.

Events go to a real Kafka broker at a steady rate; a stock `read_committed` consumer receives the results. Each side
runs in a process of its own with its defaults, as fast as it can: Slackwater with its sink that is exactly once, Spark
with its own operators and its own sink, which is at least once.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.latency.measure import CASES, QUANTILES, SIDES, Latency, measure

_FLOORS: Final = {
    ("filter", 1_000): (0.45, 0.9),
    ("process", 1_000): (0.7, 1.2),
    ("window", 1_000): (0.7, 1.2),
    ("join", 1_000): (0.7, 1.2),
    ("process", 20_000): (1.5, 3.0),
    ("window", 20_000): (1.5, 3.0),
    ("join", 20_000): (1.5, 3.0),
}
"""The p50 and p99, in seconds, that Slackwater may take at most."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 if a case is slower than its floor, lost or doubled a result, or could not be run."""
    options = _options(arguments)
    console = Console(width=None if sys.stdout.isatty() else 140)
    found: list[Latency] = []
    failures: list[str] = []
    for case, rate, side in itertools.product(options.cases, options.rates, options.sides):
        about = f"{case}, {rate:,} a second, {side}"
        with tempfile.TemporaryDirectory(prefix="slackwater-latency-") as home:
            say = partial(_say, console, about)
            try:
                found.append(measure(case, side, rate=rate, seconds=options.seconds, home=Path(home), say=say))
            except RuntimeError as error:
                failures.append(f"{about}: {error}")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps([each.entry for each in found], indent=1) + "\n")
    console.print(_table(found))
    failures += [text for each in found for text in _failures(each)]
    for text in failures:
        console.print(text, style="red", highlight=False)
    return 1 if failures else 0


def _say(console: Console, about: str, text: str) -> None:
    console.print(f"{about}: {text}", style="dim", highlight=False)


def _failures(found: Latency) -> list[str]:
    if found.side != "ours":
        return []
    texts = []
    if found.lost or found.doubled:
        texts.append(f"{found.case}: {found.lost} results lost, {found.doubled} doubled")
    floor = _FLOORS.get((found.case, found.rate))
    if floor is not None and (found.quantiles_s[0] > floor[0] or found.quantiles_s[2] > floor[1]):
        p50, p99 = found.quantiles_s[0], found.quantiles_s[2]
        seen = f"p50 {p50:.2f} s and p99 {p99:.2f} s"
        texts.append(f"{found.case}, {found.rate:,} a second: {seen}; at most {floor[0]} and {floor[1]}")
    return texts


def _table(found: list[Latency]) -> Table:
    table = Table(title="Seconds from the produce call to the receive", title_justify="left")
    for title in ("case", "events/s", "side"):
        table.add_column(title, justify="right" if title == "events/s" else "left")
    for title in (*(f"p{100 * share:g}" for share in QUANTILES), "results", "lost", "doubled"):
        table.add_column(title, justify="right")
    for each in found:
        seconds = (f"{value:.2f}" for value in each.quantiles_s)
        table.add_row(
            each.case, f"{each.rate:,}", each.side, *seconds, f"{each.results:,}", str(each.lost), str(each.doubled)
        )
    return table


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.latency", description=__doc__)
    parser.add_argument("--cases", default=",".join(CASES), metavar="CASE,CASE", help=f"of: {', '.join(CASES)}")
    parser.add_argument("--rates", default="1000,20000", metavar="N,N", help="events a second (default 1000,20000)")
    parser.add_argument("--sides", default=",".join(SIDES), metavar="SIDE", help=f"of: {', '.join(SIDES)}")
    parser.add_argument("--seconds", type=float, default=60, metavar="S", help="how long to measure (default 60)")
    parser.add_argument("--out", type=Path, default=Path("build/latency.json"), metavar="FILE")
    options = parser.parse_args(arguments)
    options.cases = options.cases.split(",")
    options.sides = options.sides.split(",")
    if unknown := {*options.cases} - {*CASES} | {*options.sides} - {*SIDES}:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    options.rates = [int(rate) for rate in options.rates.split(",")]
    return options


if __name__ == "__main__":
    sys.exit(main())
