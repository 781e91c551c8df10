"""The cases: what both sides compute, on which events, and how much faster Slackwater must at least be."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, Literal

from pyspark.sql import functions as F  # noqa: N812  PySpark's own convention

import slackwater as sw
from benchmarks.data import Events
from benchmarks.workloads import AsOf, Counts, Dedup, Join, Pattern, ValueState, Workload


@dataclass(frozen=True, kw_only=True)
class Case:
    """One row of the table: a workload, by Slackwater and by Spark's own operators."""

    name: str
    least_ratio: float
    events: Events
    source: Literal["log", "dataframe", "kafka"] = "log"
    """How Slackwater reads: its own log, a DataFrame that Spark's file source gives, or a topic of a real broker."""
    rival: Literal["spark", "ours-json", "ours-window"] = "spark"
    """What it is compared with: Spark's own operators, or Slackwater on the same events in JSON, or Slackwater's
    counts per minute of the same events."""
    workload: Workload = field(default_factory=Counts)
    warm_up: int = 3
    """First batches that do not count, after the small ones."""
    small_batches: int = 40
    """How many small batches come first: a JVM needs dozens of batches to be warm, of any size."""
    batches_factor: int = 1
    """How many batches are measured for each one that the user asks for."""


_FIRST: Final = 10_000_000


def small(events: Events) -> Events:
    """Return the events of the small batches that come first."""
    return replace(events, rows_per_batch=4_000, rows_per_s=100, first=0)


_JSON_1K: Final = Events(first=_FIRST, keys=1_000, format="json")
_JSON_100K: Final = Events(first=_FIRST, keys=100_000, format="json")
_PARQUET_1K: Final = Events(first=_FIRST, keys=1_000, format="parquet")
_PARQUET_100K: Final = Events(first=_FIRST, keys=100_000, format="parquet")
_PAIRS: Final = Events(first=_FIRST, keys=100_000, format="json", rows_per_batch=4_000_000)
"""Two million rows a side and batch."""
_TOUCHES: Final = Events(first=_FIRST, keys=100_000, format="json", rows_per_batch=20_000, files_per_batch=1)
"""Few rows: Spark takes several calls into its state for every key of a batch, 140 s for 200,000 rows. In one file, of
which both sides see the rows of a key in one order."""
_VISITS: Final = Events(first=_FIRST, keys=100_000, format="json", visitors=2_000)
_AVRO_1K: Final = Events(first=_FIRST, keys=1_000, format="avro")
_TINY: Final = Events(first=_FIRST, keys=1_000, format="json", rows_per_batch=1_000, files_per_batch=1, rows_per_s=100)

CASES: Final = {
    case.name: case
    for case in (
        Case(name="json-1k", least_ratio=2.5, events=_JSON_1K),
        Case(name="json-100k", least_ratio=3.5, events=_JSON_100K),
        Case(name="parquet-1k", least_ratio=1.0, events=_PARQUET_1K),
        Case(name="parquet-100k", least_ratio=3.0, events=_PARQUET_100K),
        Case(name="dataframe-1k", least_ratio=0.5, events=_PARQUET_1K, source="dataframe"),
        Case(name="dataframe-100k", least_ratio=2.0, events=_PARQUET_100K, source="dataframe"),
        Case(
            name="hopping",
            least_ratio=2.0,
            events=_JSON_1K,
            workload=Counts(
                window=sw.hopping("10m", every="1m"),
                spark_window=lambda time: F.window(time, "10 minutes", "1 minute"),
            ),
        ),
        Case(
            name="session",
            least_ratio=1.5,
            events=_VISITS,
            workload=Counts(window=sw.session("10s"), spark_window=lambda time: F.session_window(time, "10 seconds")),
        ),
        Case(name="kafka-json-1k", least_ratio=1.4, events=_JSON_1K, source="kafka"),
        Case(name="kafka-json-100k", least_ratio=2.0, events=_JSON_100K, source="kafka"),
        Case(name="kafka-avro-1k", least_ratio=0.8, events=_AVRO_1K, source="kafka", rival="ours-json"),
        Case(name="tiny-batch", least_ratio=0.5, events=_TINY, batches_factor=6),
        Case(name="join", least_ratio=2.0, events=_PAIRS, workload=Join(), warm_up=1),
        Case(name="join-left", least_ratio=2.0, events=_PAIRS, workload=Join(how="left"), warm_up=1),
        Case(name="dedup", least_ratio=2.0, events=_JSON_100K, workload=Dedup()),
        Case(name="process", least_ratio=5.0, events=_TOUCHES, workload=ValueState(), small_batches=10),
        Case(name="as-of", least_ratio=0.3, events=_JSON_100K, workload=AsOf(), rival="ours-window"),
        Case(name="pattern", least_ratio=0.3, events=_JSON_100K, workload=Pattern(), rival="ours-window"),
    )
}
