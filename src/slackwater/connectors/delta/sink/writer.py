"""Writing to a Delta table: rows and mark in one commit, by the writer that opened the table last.

1. Open: take the lease by a commit without rows under the next number. The previous writer finds it used, and stops.
2. The mark is that of the previous commit.
3. Write: Spark writes the rows into files that nobody sees yet.
4. Delta commits the files, the mark and the next number; or nothing, if the number was used.
5. Check who holds the lease: Delta silently skips a number that it already has.
"""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from slackwater.base.crash_points import crash_point
from slackwater.base.errors import RunError, fault, notice
from slackwater.base.spark_settings import settings
from slackwater.connectors.delivery import SinkWarning
from slackwater.connectors.delta.sink.errors import ConflictError, explained
from slackwater.connectors.delta.sink.rows import batch_frame, local_frame
from slackwater.connectors.delta.sink.table import DeltaPlace, LastCommit
from slackwater.connectors.sink import Mark, Sink, SinkBatch, SinkWriter, Slot, Unavailable
from slackwater.formats.schemas import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RETRACTION: Final = "is_retraction"
_APP: Final = "spark.databricks.delta.write.txnAppId"
_NUMBER: Final = "spark.databricks.delta.write.txnVersion"
_NOTE: Final = "spark.databricks.delta.commitInfo.userMetadata"

Save = Callable[[dict[str, str]], None]
"""Commits something with the options of a lease, which are empty without one."""


@dataclass(kw_only=True)
class DeltaWriter(SinkWriter):
    """A table opened for one output."""

    sink: Sink
    slot: Slot
    place: DeltaPlace
    keys: tuple[str, ...]
    optimize_every: int | None
    writer: str = field(default_factory=lambda: uuid.uuid4().hex)
    _last: LastCommit = field(default_factory=lambda: LastCommit(number=0))
    _written: int = 0

    @property
    def app(self) -> str:
        """The application id of the lease in Delta: the same in every run, so that the runs fence each other."""
        return app_of(self.slot)

    def take_lease(self) -> None:
        """Fence any other writer of this output."""
        self._check_there()
        with explained(self.sink, doing="the opening"):
            before = self.place.last_commit(self.app) or self._last
            self._last = LastCommit(number=before.number, writer=self.writer, mark=before.mark)  # 2
            nothing = local_frame(self.place.spark, self.slot.schema.to_frame().drop(self._left_out))
        try:
            self._commit(
                lambda options: _append(nothing, self.place.path, options), before.mark, doing="the opening"
            )  # 1
        except ConflictError as other:
            raise Unavailable(str(other)) from other

    def mark(self) -> Mark | None:
        """Return the mark of the last batch."""
        return self._last.mark

    def write(self, batch: SinkBatch, mark: Mark | None) -> None:
        """Append the rows, or merge the last one of each key."""
        self._check_there()
        with explained(self.sink, doing=f"batch {batch.batch}"):
            rows = batch_frame(self.place.spark, batch, self.keys)
        # Delta writes the files and commits them in one call. Nothing is visible until it ends.
        crash_point("written", batch.batch)

        def save(options: dict[str, str]) -> None:
            if self.keys:
                self._merge(rows, options)
            else:
                _append(rows, self.place.path, options)

        if mark is None:
            with explained(self.sink, doing=f"batch {batch.batch}"):
                save({})
        else:
            try:
                self._commit(save, mark, doing=f"batch {batch.batch}")  # 3, 4
            except ConflictError as other:
                if self._found().writer != self.writer:
                    raise self._shut_out() from other
                raise Unavailable(str(other)) from other
        self._optimize(batch.batch)

    def _check_there(self) -> None:
        """Refuse to recreate a table that existed: the loss of its rows would go unnoticed."""
        with explained(self.sink, doing="a read of the table"):
            if not self.place.is_table:
                raise fault("DELTA_TABLE_GONE", path=self.place.path)

    def _commit(self, save: Save, mark: Mark | None, *, doing: str) -> None:
        following = LastCommit(number=self._last.number + 1, writer=self.writer, mark=mark)
        with explained(self.sink, doing=doing):
            save({_APP: self.app, _NUMBER: str(following.number), _NOTE: following.to_note(self.app)})
        if self._found() != following:  # 5
            raise self._shut_out()
        self._last = following

    def _found(self) -> LastCommit:
        with explained(self.sink, doing="reading the log"):
            return self.place.newest_commit(self.app) or LastCommit(number=0)

    def _shut_out(self) -> RunError:
        return fault("SINK_FENCED", sink=self.sink, slot=self.slot.number, output=self.slot.output)

    def _merge(self, rows: DataFrame, options: Mapping[str, str]) -> None:
        columns = {quoted(name): f"new.{quoted(name)}" for name in rows.columns if name not in self._left_out}
        same = " AND ".join(f"old.{quoted(key)} <=> new.{quoted(key)}" for key in self.keys)
        table = DeltaPlace(spark=rows.sparkSession, path=self.place.path).java_table
        merge = table.alias("old").merge(rows.alias("new")._jdf, same)  # noqa: SLF001  Delta's builder is a Java object
        stays = f"NOT coalesce(new.{RETRACTION}, false)" if RETRACTION in rows.columns else "true"
        if RETRACTION in rows.columns:
            merge = merge.whenMatched(f"new.{RETRACTION}").delete()
        merge = merge.whenMatched().updateExpr(columns).whenNotMatched(stays).insertExpr(columns)
        with settings(rows.sparkSession, options):
            merge.execute()

    @property
    def _left_out(self) -> list[str]:
        # In a table with one row per key, a retraction is applied, not stored.
        return [RETRACTION] if self.keys and RETRACTION in self.slot.schema else []

    def _optimize(self, batch: int) -> None:
        """Compact small files every `optimize_every` batches. The batch is already written, so a failure only warns."""
        self._written += 1
        if self.optimize_every is None or self._written % self.optimize_every:
            return
        try:
            with explained(self.sink, doing="the compaction"):
                self.place.java_table.optimize().executeCompaction()
        except (Unavailable, RunError) as failure:
            warnings.warn(
                notice("DELTA_NOT_COMPACTED", sink=self.sink, batch=batch, why=failure), SinkWarning, stacklevel=2
            )


def app_of(slot: Slot) -> str:
    """Return the application id under which Delta counts the commits of an output."""
    return f"slackwater:{slot.pipeline}:{slot.output}"


def _append(rows: DataFrame, path: str, options: Mapping[str, str]) -> None:
    names = {_APP: "txnAppId", _NUMBER: "txnVersion", _NOTE: "userMetadata"}
    given = {names[name]: value for name, value in options.items()}
    rows.write.format("delta").mode("append").options(**given).save(path)
