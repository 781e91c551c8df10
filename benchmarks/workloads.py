"""What both sides compute of the same events: Slackwater, and Spark's own operators as its documentation has them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

import pandas as pd
import polars as pl
from pyspark.sql import functions as F  # noqa: N812  PySpark's own convention
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

import slackwater as sw
from slackwater.windows import Window

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column, DataFrame

    from slackwater.plan.streams import Ended, Results, Stream

ROCKSDB: Final = "Spark's, RocksDB"
DEFAULT_STORE: Final = "Spark's, default store"
_BETWEEN_S = 30
_WITHIN_S = 600
"""How long a key of `dedup` is remembered."""


@dataclass(frozen=True, kw_only=True)
class Workload(ABC):
    """One computation over events with `event_id`, `key`, `ts` and `value`; for some of them Spark has no operator."""

    @abstractmethod
    def ours(self, events: Stream) -> tuple[Results, list[Ended]]:
        """Return the results, and the ends of all other outputs of the steps, of a stream with its event time."""


class Rivalled(Workload):
    """One that Spark has an operator for."""

    columns: ClassVar[tuple[str, ...]]
    """The columns of a result that both sides must agree on; `total` nearly."""
    reads: ClassVar[int] = 1
    """How often Spark's own plan reads the events."""
    stores: ClassVar[tuple[str, ...]] = (ROCKSDB, DEFAULT_STORE)
    """The state stores that Spark's operator is tried with; the first is the one with a floor."""

    @abstractmethod
    def sparks(self, events: DataFrame) -> DataFrame:
        """Return the results of events that have `time`, under a watermark."""


@dataclass(frozen=True, kw_only=True)
class Counts(Rivalled):
    """Counts and sums per key and window."""

    window: Window = field(default_factory=lambda: sw.tumbling("1m"))
    spark_window: Callable[[Column], Column] = lambda time: F.window(time, "1 minute")

    columns = ("key", "window_start", "n", "total")

    def ours(self, events: Stream) -> tuple[Results, list[Ended]]:
        """Return counts and sums."""
        counted = events.key_by("key").window(self.window).aggregate(n=sw.count(), total=sw.sum("value"))
        return counted, [counted.late.drop()]

    def sparks(self, events: DataFrame) -> DataFrame:
        """Return the same by `groupBy(window)`."""
        counted = events.groupBy(self.spark_window(F.col("time")).alias("window"), "key")
        summed = counted.agg(F.count("*").alias("n"), F.sum("value").alias("total"))
        return summed.select("key", F.col("window.start").alias("window_start"), "n", "total")


@dataclass(frozen=True, kw_only=True)
class Join(Rivalled):
    """Events with even numbers, each with the odd ones of its key in the 30 seconds after it."""

    how: Literal["inner", "left"] = "inner"

    columns = ("event_id", "other_id")
    reads = 2
    stores = (DEFAULT_STORE,)  # on RocksDB a batch of two million rows a side takes Spark more than five minutes

    def ours(self, events: Stream) -> tuple[Results, list[Ended]]:
        """Return the pairs."""
        left = events.where("event_id % 2 = 0").select("event_id", "key")
        right = events.where("event_id % 2 = 1").select("key", other_id="event_id")
        pairs = left.key_by("key").join(right.key_by("key"), between=("0s", f"{_BETWEEN_S}s"), how=self.how)
        return pairs, [pairs.late.drop()]

    def sparks(self, events: DataFrame) -> DataFrame:
        """Return the same by Spark's join of two streams."""
        left = events.where("event_id % 2 = 0").select("event_id", "key", "time")
        right = events.where("event_id % 2 = 1").select(
            F.col("event_id").alias("other_id"), F.col("key").alias("other_key"), F.col("time").alias("other_time")
        )
        between = F.expr(
            f"key = other_key AND other_time >= time AND other_time <= time + interval {_BETWEEN_S} seconds"
        )
        joined = left.join(right, between, "inner" if self.how == "inner" else "left_outer")
        return joined.select("event_id", "other_id")


@dataclass(frozen=True, kw_only=True)
class Dedup(Rivalled):
    """The first of each two events that share an id, within ten minutes."""

    columns = ("id",)

    def ours(self, events: Stream) -> tuple[Results, list[Ended]]:
        """Return the first ones."""
        ids = events.select(id=pl.col("event_id") // 2)
        first = ids.key_by("id").deduplicate(within=f"{_WITHIN_S}s")
        return first, [first.duplicates.drop(), first.late.drop()]

    def sparks(self, events: DataFrame) -> DataFrame:
        """Return the same by `dropDuplicatesWithinWatermark`."""
        ids = events.select(F.expr("event_id div 2").alias("id"), "time")
        return ids.dropDuplicatesWithinWatermark(["id"]).select("id")


class Doubled(sw.Process):
    """Shows an event whose value is at least twice that of the one before it."""

    last = sw.value_state(pl.Float64, ttl="1h")

    def on_event(self, event: dict[str, Any], ctx: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401, ARG002  as users write it
        """Compare with the value before."""
        before = self.last.get()
        if before is not None and event["value"] >= 2 * before:
            yield {"event_id": event["event_id"]}
        self.last.set(event["value"])


class DoubledInSpark(StatefulProcessor):
    """The same as a stateful processor of Spark's, as its guide writes them."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self._last = handle.getValueState("last", "value double")

    def handleInputRows(  # type: ignore[override]  # noqa: N802  Spark's name; of its two kinds of rows, pandas
        self,
        key: Any,  # noqa: ANN401, ARG002  as Spark hands it over
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: ANN401, ARG002, N803  Spark's names
    ) -> Iterator[pd.DataFrame]:
        """Compare each event with the one before."""
        before, *_ = self._last.get() or (None,)
        found = []
        for frame in rows:
            for event_id, value in zip(frame["event_id"], frame["value"], strict=True):
                if before is not None and value >= 2 * before:
                    found.append(event_id)
                before = value
        self._last.update((before,))
        yield pd.DataFrame({"event_id": found}, dtype="int64")

    def close(self) -> None:
        """Nothing is held open."""


@dataclass(frozen=True, kw_only=True)
class ValueState(Rivalled):
    """A value per key, compared with and replaced by every event."""

    columns = ("event_id",)
    stores = (ROCKSDB,)  # Spark's stateful processors run on no other

    def ours(self, events: Stream) -> tuple[Results, list[Ended]]:
        """Return the events that doubled."""
        found = events.key_by("key").process(Doubled(), output="event_id long")
        return found, []

    def sparks(self, events: DataFrame) -> DataFrame:
        """Return the same by `transformWithStateInPandas`."""
        return events.groupBy("key").transformWithStateInPandas(DoubledInSpark(), "event_id long", "append", "None")


@dataclass(frozen=True, kw_only=True)
class AsOf(Workload):
    """Every event with the version of its key that was valid then: one event in twenty is a version."""

    def ours(self, events: Stream) -> tuple[Results, list[Ended]]:
        """Return the events with their versions."""
        versions = events.where("event_id % 20 = 0").select("key", version="value")
        probes = events.where("event_id % 20 <> 0").select("event_id", "key", "value")
        joined = probes.key_by("key").join_as_of(versions.key_by("key"), how="left", versions_ttl="1d")
        return joined, [joined.late.drop()]


@dataclass(frozen=True, kw_only=True)
class Pattern(Workload):
    """A small value, then a large one, within a minute."""

    def ours(self, events: Stream) -> tuple[Results, list[Ended]]:
        """Return the matches."""
        found = events.key_by("key").match(sw.sequence(small="value < 5", large="value > 95", within="1m"))
        return found, [found.late.drop()]
