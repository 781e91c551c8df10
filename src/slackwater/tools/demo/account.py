"""The account: where every record of the log ended up, and a recomputation of every window from the log.

It trusts nothing that it can count itself: records are counted in the log's files, late rows and dead letters in the
output files, and all windows are recomputed from the raw bytes. Only the split between on time and late comes from the
job's own counts, and is checked against the panes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import polars as pl

from slackwater.base.errors import counted
from slackwater.tools.demo.comparison import PlaceAccount, ReadBack, compare_place, count_differences, last_panes
from slackwater.tools.demo.definition import ACTIVE, ACTIVE_WINDOWS, PURCHASES

_RECORD: Final = pl.Struct(
    {
        "event_id": pl.String(),
        "user_id": pl.String(),
        "country": pl.String(),
        "cents": pl.Int64(),
        "placed_at": pl.String(),
    }
)
_MINUTE: Final = pl.duration(minutes=1)


@dataclass(frozen=True, kw_only=True)
class StepAccount:
    """Where the log's records ended up, according to one step of the pipeline."""

    step: str
    on_time: int
    refired: int
    late: int
    dead: int
    windows: int
    """The number of windows that were compared with the recomputation."""
    differences: int

    @property
    def total(self) -> int:
        """The number of records that are accounted for."""
        return self.on_time + self.refired + self.late + self.dead


@dataclass(frozen=True, kw_only=True)
class DemoAccount:
    """The whole account; `complaints` are sentences about what does not add up."""

    records: int
    steps: tuple[StepAccount, ...]
    complaints: tuple[str, ...]
    place: PlaceAccount | None = None
    """The account of the other place that the results went to, if there was one."""

    @property
    def is_balanced(self) -> bool:
        """Whether every record is accounted for exactly once, and every window is right."""
        return not self.complaints


@dataclass(kw_only=True)
class DemoOutcome:
    """The outcome of the demo, read from its files alone."""

    folder: Path
    log: pl.DataFrame = field(init=False)
    dead: pl.DataFrame = field(init=False)
    good: pl.DataFrame = field(init=False)
    """The decoded records that are not dead letters."""
    unreadable: int = field(init=False)
    """The number of records that are not dead letters although they cannot be decoded."""

    def __post_init__(self) -> None:
        self.log = read_log(self.folder / "log")
        self.dead = self.output("dead_letters")
        at = ["partition", "offset"]
        kept = self.log.join(self.dead.select(at), on=at, how="anti")
        self.good = _decoded(kept)
        self.unreadable = kept.height - self.good.height

    def output(self, name: str) -> pl.DataFrame:
        """Return all rows of one output; a frame without columns if nothing was written."""
        parts = sorted((self.folder / "out" / name).glob("batch-*/part-*.parquet"))
        return pl.concat([pl.read_parquet(part) for part in parts]) if parts else pl.DataFrame(_NOTHING)

    def counted(self, step: str) -> pl.DataFrame:
        """Return the records that must be in the windows of `step`."""
        return self.good.join(self.output(f"{step}.late").select("event_id"), on="event_id", how="anti")


def _decoded(records: pl.DataFrame) -> pl.DataFrame:
    """Return the records that can be decoded; those that cannot are found by bisection."""
    decoded = pl.col("payload").cast(pl.String).str.json_decode(_RECORD)
    time = pl.col("placed_at").str.to_datetime("%Y-%m-%dT%H:%M:%S%.fZ", time_unit="us", time_zone="UTC")
    try:
        return records.select(decoded.struct.unnest()).with_columns(time)
    except pl.exceptions.PolarsError:
        if records.height == 1:
            return _decoded(records.clear())
    half = records.height // 2
    return pl.concat([_decoded(records[:half]), _decoded(records[half:])])


_NOTHING: Final = {
    "event_id": pl.Series([], dtype=pl.String),
    "partition": pl.Series([], dtype=pl.String),
    "offset": pl.Series([], dtype=pl.Int64),
    "payload": pl.Series([], dtype=pl.Binary),
    "pane_index": pl.Series([], dtype=pl.Int32),
}


def read_log(folder: Path) -> pl.DataFrame:
    """Return all lines of all files of the log, with their partitions and offsets."""
    partitions: list[str] = []
    offsets: list[int] = []
    lines: list[bytes] = []
    for path in sorted(folder.glob("*/*.jsonl")):
        found = path.read_bytes().removesuffix(b"\n").split(b"\n")
        first = int(path.name.partition(".")[0])
        partitions += [path.parent.name] * len(found)
        offsets += range(first, first + len(found))
        lines += found
    return pl.DataFrame(
        {"partition": partitions, "offset": offsets, "payload": lines},
        schema={"partition": pl.String, "offset": pl.Int64, "payload": pl.Binary},
    )


def settle(
    outcome: DemoOutcome,
    counts: Mapping[str, Mapping[str, int]],
    *,
    written: int,
    damaged: Counter[str],
    read: ReadBack | None = None,
) -> DemoAccount:
    """Return the account; `counts` are the job's, `written` and `damaged` the producer's.

    `read` has the rows of the other place that the purchases went to.
    """
    complaints = _check_records(outcome, written, damaged)
    steps = []
    purchases = _per_minute(outcome)
    for step, recomputed in ((PURCHASES, purchases), (ACTIVE, _active(outcome))):
        late = outcome.output(f"{step}.late").height
        shown = last_panes(outcome.output(step), keys=list(recomputed.columns[:3]))
        account = StepAccount(
            step=step,
            on_time=counts.get(step, {}).get("on_time", 0),
            refired=counts.get(step, {}).get("refired", 0),
            late=late,
            dead=outcome.dead.height,
            windows=recomputed.height,
            differences=count_differences(recomputed, shown),
        )
        steps.append(account)
        complaints += _check_step(outcome, account, shown, records=outcome.log.height)
    place = None if read is None else compare_place(purchases, read)
    if place is not None and not place.is_right:
        complaints.append(str(place))
    return DemoAccount(records=outcome.log.height, steps=tuple(steps), complaints=tuple(complaints), place=place)


def _per_minute(outcome: DemoOutcome) -> pl.DataFrame:
    start = pl.col("placed_at").dt.truncate("1m")
    rows = outcome.counted(PURCHASES).with_columns(start.alias("window_start"), (start + _MINUTE).alias("window_end"))
    return rows.group_by("user_id", "window_start", "window_end").agg(
        pl.len().cast(pl.Int64).alias("purchases"), pl.col("cents").sum()
    )


def _active(outcome: DemoOutcome) -> pl.DataFrame:
    newest = pl.col("placed_at").dt.truncate("1m")
    copies = [
        outcome.counted(ACTIVE).with_columns((newest - number * _MINUTE).alias("window_start"))
        for number in range(ACTIVE_WINDOWS)
    ]
    rows = pl.concat(copies).with_columns((pl.col("window_start") + ACTIVE_WINDOWS * _MINUTE).alias("window_end"))
    return rows.group_by("country", "window_start", "window_end").agg(
        pl.col("user_id").n_unique().cast(pl.Int64).alias("users"), pl.len().cast(pl.Int64).alias("purchases")
    )


def _check_records(outcome: DemoOutcome, written: int, damaged: Counter[str]) -> list[str]:
    complaints = []
    if outcome.log.height != written:
        complaints.append(f"the producer wrote {counted(written, 'record')}, the log holds {outcome.log.height:,}")
    if outcome.dead.height != damaged.total():
        complaints.append(f"damaged: {counted(damaged.total(), 'record')}, dead letters: {outcome.dead.height:,}")
    if outcome.unreadable:
        complaints.append(f"unreadable but not a dead letter: {counted(outcome.unreadable, 'record')}")
    same_bytes = outcome.dead.join(outcome.log, on=["partition", "offset", "payload"], how="semi", nulls_equal=True)
    if same_bytes.height != outcome.dead.height or same_bytes.select("partition", "offset").is_duplicated().any():
        complaints.append("a dead letter does not match the record at its position, or is duplicated")
    return complaints


def _check_step(outcome: DemoOutcome, account: StepAccount, shown: pl.DataFrame, *, records: int) -> list[str]:
    complaints = []
    step = account.step
    if account.total != records:
        complaints.append(f"{step}: {counted(records, 'record')} read, {account.total:,} accounted for")
    if account.differences:
        differ = f"{account.differences:,} of {account.windows:,} windows differ"
        complaints.append(f"{step}: {differ} from the recomputation")
    late = outcome.output(f"{step}.late")["event_id"]
    if late.is_duplicated().any() or not late.is_in(outcome.good["event_id"].implode()).all():
        complaints.append(f"{step}: a late row is duplicated, or is not in the log")
    copies = ACTIVE_WINDOWS if step == ACTIVE else 1
    in_windows = int(shown["purchases"].sum()) if not shown.is_empty() else 0
    if in_windows != copies * (account.on_time + account.refired):
        complaints.append(f"{step}: the windows hold {in_windows:,} purchases, the job counted a different number")
    if step == PURCHASES and not shown.is_empty():
        results = outcome.output(step)
        on_time = int(results.filter(pl.col("pane") == "on_time")["purchases"].sum())
        if on_time != account.on_time:
            complaints.append(f"{step}: on-time panes hold {on_time:,} purchases, the job counted {account.on_time:,}")
    return complaints
