"""What a killed job's output has lost or doubled: row by row against an undisturbed run, and event by event."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import polars as pl

from tests.matrix.targets import Target

Pipeline = Literal["pipeline", "large_pipeline", "steps_pipeline"]
_JOINS: Final = ("pairs", "priced", "shared")
_KEPT: Final = ("first", "earliest", "latest")
_OTHERS: Final = ("spending", "tested", "per_digit", "paired")
OUTPUTS: Final[dict[Pipeline, tuple[str, ...]]] = {
    "pipeline": ("per_minute", "per_minute.late", "visits", "visits.late", "dead_letters"),
    "large_pipeline": ("counted", "per_amount"),
    "steps_pipeline": (
        *(name + part for name in (*_JOINS, *_KEPT, *_OTHERS) for part in ("", ".late")),
        *(f"{name}.duplicates" for name in _KEPT),
        *("arriving", "dozens", "spending.alerts", "arriving.alerts", "dead_letters"),
    ),
}
RESULTS: Final = ("per_minute", "visits", "counted", "per_amount")
"""Outputs that go to the sink that is tried."""
_WITH_IDS: Final = ("per_minute", "visits")
_ID: Final = re.compile(rb'"id": (\d+)')
_OF_THE_MOMENT: Final = ("processed_at", "message")
"""Columns that tell the time of day at which a batch was processed."""
_OF_THE_BATCH: Final = ("watermark", "late_by_ms")
"""Columns that tell where the batches were cut."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What is wrong with a job's output; all zero when nothing is."""

    missing_rows: int
    extra_rows: int
    lost_events: int
    doubled_events: int
    same_batches: bool
    """Whether the batches were cut as in the undisturbed run; if not, columns that tell of it are left out."""
    examples: tuple[str, ...]

    @property
    def lost(self) -> int:
        """Everything that should be there and is not."""
        return self.missing_rows + self.lost_events

    @property
    def doubled(self) -> int:
        """Everything that is there and should not be."""
        return self.extra_rows + self.doubled_events


def compare(
    job: Path, reference: Path, events: int, target: Target | None = None, outputs: Sequence[str] = OUTPUTS["pipeline"]
) -> Verdict:
    """Compare the output of the job in folder `job` with that of the undisturbed one in `reference`.

    Results in the sink of a `target` are compared row by row; in files, each event is accounted for as well.
    """
    same_batches = cuts(job / "checkpoint") == cuts(reference / "checkpoint")
    missing, extra = Counter[str](), Counter[str]()
    for name in outputs:
        if target is not None and name in RESULTS:
            wanted, found = (target.content(f"{folder.name}-{name}") for folder in (reference, job))
        else:
            wanted = _texts(name, read(reference / "out" / name), exact=same_batches)
            found = _texts(name, read(job / "out" / name), exact=same_batches)
        missing += wanted - found
        extra += found - wanted
    lost = doubled = 0
    for account in (accounts(job / "out", step) for step in _WITH_IDS if target is None and step in outputs):
        lost += sum(account[event] < 1 for event in range(events))
        doubled += sum(count - 1 for count in account.values() if count > 1)
        doubled += sum(event >= events for event in account)
    examples = [f"- {row}" for row in missing] + [f"+ {row}" for row in extra]
    return Verdict(
        missing_rows=missing.total(),
        extra_rows=extra.total(),
        lost_events=lost,
        doubled_events=doubled,
        same_batches=same_batches,
        examples=tuple(sorted(examples)[:20]),
    )


def read(folder: Path) -> pl.DataFrame:
    """Return all rows of a files sink."""
    parts = sorted(folder.glob("batch-*/part-*"))
    if left := [path.name for path in folder.iterdir() if path.name.startswith(".")]:
        message = f"{folder} still holds what an interrupted batch left behind: {left}"
        raise AssertionError(message)
    frames = [pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_ndjson(path) for path in parts]
    return pl.concat(frames) if frames else pl.DataFrame()


def accounts(out: Path, step: str) -> Counter[int]:
    """Count, for every event, the places it ended in: the step's results, its late rows, the dead letters."""
    account = Counter(_dead(read(out / "dead_letters")))
    account.update(read(out / f"{step}.late")["id"].to_list())
    results = read(out / step)
    if step == "visits":
        # A visit may change its bounds; what was withdrawn does not count.
        for ids, withdrawn in results.select("ids", "is_retraction").iter_rows():
            for event in ids:
                account[event] += -1 if withdrawn else 1
        return account
    latest = results.sort("pane_index").group_by("user", "window_start").last()
    account.update(latest["ids"].explode().to_list())
    return account


def cuts(checkpoint: Path) -> list[str]:
    """Return where each batch ended in the log, as Spark wrote it down."""
    files = [path for path in (checkpoint / "offsets").iterdir() if path.name.isdigit()]
    # The third line is the first source's; after it comes the heartbeat, which differs with every start.
    return [path.read_text().splitlines()[2] for path in sorted(files, key=lambda path: int(path.name))]


def _texts(name: str, rows: pl.DataFrame, *, exact: bool) -> Counter[str]:
    left_out = [*_OF_THE_MOMENT, *(() if exact else _OF_THE_BATCH)]
    rows = rows.drop(left_out, strict=False)
    if "ids" in rows.columns and not exact:
        rows = rows.with_columns(pl.col("ids").list.sort())
    return Counter(f"{name} {json.dumps(row, default=str, sort_keys=True)}" for row in rows.to_dicts())


def _dead(letters: pl.DataFrame) -> Iterable[int]:
    for payload in letters["payload"]:
        [event] = _ID.findall(payload)
        yield int(event)
