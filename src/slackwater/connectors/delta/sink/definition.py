"""`sw.sinks.delta(...)`: the sink as users define it, checked before Spark is used."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import polars as pl

from slackwater.base.durations import Duration, duration_ms
from slackwater.base.errors import listed, near_miss, refuse
from slackwater.connectors.delta.jars import delta_path, delta_session, delta_session_conf, own_session
from slackwater.connectors.sink import EVERYTHING, Change, Delivery, Sink, SinkWriter, Slot, Trial
from slackwater.connectors.sink_options import bad_option, check_delivery, check_flags, check_result_keys, column_names
from slackwater.formats.schemas import check_arrow, spark_type

_RETRACTION: Final = "is_retraction"
_UNFIT: Final = re.compile(r"[ ,;{}()\n\t=]")


@dataclass(frozen=True, kw_only=True, eq=False)
class DeltaSink(Sink):
    """A sink that writes to a Delta table, given by its path."""

    for_retractions: ClassVar[str] = "merge_on=[…] applies them, changelog=True keeps them as rows"
    shown_options: ClassVar[tuple[str, ...]] = ("partition_by", "optimize_every", "schema_evolution", "changelog")
    path: str
    merge_on: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    optimize_every: int | None = None
    schema_evolution: bool = False
    changelog: bool = False
    delivery: Delivery = "exactly_once"

    @property
    def place(self) -> str:
        """The path of the table."""
        return self.path

    @property
    def needs_spark(self) -> bool:
        """True: Spark creates and reads the tables."""
        return True

    def session_conf(self) -> dict[str, str]:
        """Return the settings that a session needs for Delta."""
        return delta_session_conf()

    def replaced_by(self, slot: Slot) -> tuple[str, ...]:  # noqa: ARG002  the same for any rows
        """Return the key of the table's rows."""
        return self.merge_on

    def check(self, slot: Slot) -> None:
        """Reject rows that the sink cannot write, and a key by which results would overwrite each other."""
        stored = self.stored(slot.schema)
        for what, names in (("merge_on", self.merge_on), ("partition_by", self.partition_by)):
            for name in names:
                if name not in stored:
                    facts = {
                        "what": what,
                        "column": name,
                        "hint": near_miss(name, stored),
                        "known": listed(stored, near=name),
                    }
                    raise refuse("DELTA_COLUMN_UNKNOWN", **facts)
        for name, dtype in stored.items():
            # Parquet, in which Delta stores them, does not allow such names; and Spark ignores case.
            twins = [other for other in stored if other.lower() == name.lower() and other != name]
            if _UNFIT.search(name) or twins:
                raise refuse(
                    "DELTA_COLUMN_NAME", column=name, why=f"equals `{twins[0]}`" if twins else "contains one of them"
                )
            spark_type(dtype, name)
        check_result_keys("merge_on", self.merge_on, slot)

    def stored(self, schema: pl.Schema) -> pl.Schema:
        """Return the columns of the table: where retractions are applied, their flag is not stored."""
        return pl.Schema({k: v for k, v in schema.items() if not (self.merge_on and k == _RETRACTION)})

    def trial(self, slot: Slot) -> Trial:  # noqa: ARG002  the rows carry their types
        """Return the check for rows that Spark cannot represent."""
        return Trial(rule="arrow", check=check_arrow)

    def prepare(self, slot: Slot) -> None:
        """Check the session, the table, its columns and partitions; create the table if it does not exist."""
        from slackwater.connectors.delta.sink.preparing import DeltaPreparation  # noqa: PLC0415  needs Spark, which definitions do not

        DeltaPreparation(spark=delta_session(), sink=self, slot=slot).run()

    def open(self, slot: Slot) -> SinkWriter:
        """Open the table, and take the lease from its current writer."""
        from slackwater.connectors.delta.sink.table import DeltaPlace  # noqa: PLC0415  as above
        from slackwater.connectors.delta.sink.writer import DeltaWriter  # noqa: PLC0415  needs Spark, which definitions do not

        writer = DeltaWriter(
            sink=self,
            slot=slot,
            place=DeltaPlace(spark=own_session(delta_session()), path=self.path),
            keys=self.merge_on,
            optimize_every=self.optimize_every,
        )
        if self.delivery == "exactly_once":
            writer.take_lease()
        return writer

    def __str__(self) -> str:
        how = f"one row for each {', '.join(self.merge_on)}" if self.merge_on else "appended"
        return f"delta {self.path} ({how})"


def delta(
    path: str | os.PathLike[str],
    *,
    merge_on: str | Sequence[str] | None = None,
    partition_by: str | Sequence[str] | None = None,
    optimize_every: int | None = None,
    schema_evolution: bool = False,
    changelog: bool = False,
    delivery: Delivery = "exactly_once",
    retry_for: Duration = "5m",
) -> DeltaSink:
    """Write to a Delta table: `delta("lake/totals", merge_on=["user", "window_start"])`.

    With `merge_on` the table has one row per key: a later row replaces it and a retraction deletes it. Without it,
    rows are appended, and retractions are rejected unless `changelog=True` (readers then check `is_retraction`).
    """
    check_delivery("delta", delivery)
    check_flags("delta", schema_evolution=schema_evolution, changelog=changelog)
    keys = column_names("delta", "merge_on", merge_on)
    is_number = isinstance(optimize_every, int) and not isinstance(optimize_every, bool) and optimize_every > 0
    if optimize_every is not None and not is_number:
        rule, remedy = "a number of batches", "write optimize_every=100, or omit it"
        raise bad_option("delta", "optimize_every", rule=rule, got=repr(optimize_every), remedy=remedy)
    if keys and changelog:
        rule, remedy = "for tables that are appended to", "leave out one of changelog and merge_on"
        raise bad_option("delta", "changelog", rule=rule, got="merge_on as well", remedy=remedy)
    takes: frozenset[Change] = EVERYTHING if keys or changelog else frozenset({"append", "update"})
    return DeltaSink(
        path=delta_path(path, what="the Delta sink"),
        merge_on=keys,
        partition_by=column_names("delta", "partition_by", partition_by),
        optimize_every=optimize_every,
        schema_evolution=schema_evolution,
        changelog=changelog,
        takes=takes,
        delivery=delivery,
        retry_for_ms=duration_ms(retry_for, what="retry_for", least_ms=0),
    )
