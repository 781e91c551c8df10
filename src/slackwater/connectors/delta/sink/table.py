"""A Delta table as the sink sees it: its content, and who wrote to it last.

The current writer of an output to a table has the *lease*. A lease is a Delta transaction number (`txnAppId` and
`txnVersion`), incremented with every commit and every opening, and Delta commits each number only once: of two writers
that try the same one, the second does nothing or fails. So the last to open the table fences all earlier ones. The
commit's `userMetadata` holds the lease's owner and the mark of the last batch.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from slackwater.connectors.delta.jars import jvm
from slackwater.connectors.sink import Mark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_OURS: Final = "slackwater"
_INFO: Final = '{"commitInfo"'


@dataclass(frozen=True, kw_only=True)
class LastCommit:
    """The last commit for an output: its number, writer and mark."""

    number: int
    writer: str | None = None
    """None if its commit is no longer in the log."""
    mark: Mark | None = None

    def to_note(self, app: str) -> str:
        """Return this as `userMetadata` for the commit."""
        mark = None if self.mark is None else self.mark.as_dict()
        return json.dumps({_OURS: {"app": app, "number": self.number, "writer": self.writer, "mark": mark}})

    @classmethod
    def from_note(cls, note: str | None, app: str) -> LastCommit | None:
        """Return what a commit's metadata says of it, if it is one of ours."""
        if note is None or f'"{_OURS}"' not in note:
            return None
        try:
            shown = json.loads(note)[_OURS]
        except (ValueError, KeyError, TypeError):
            # Anyone may write anything into a commit's metadata.
            return None
        if not isinstance(shown, dict) or shown.get("app") != app:
            return None
        mark = None if shown["mark"] is None else Mark.from_dict(shown["mark"])
        return cls(number=shown["number"], writer=shown["writer"], mark=mark)


@dataclass(frozen=True, kw_only=True)
class DeltaPlace:
    """A path where a table exists or may exist."""

    spark: SparkSession
    path: str

    @property
    def is_table(self) -> bool:
        """Whether the path is a Delta table."""
        found: bool = self._tables.isDeltaTable(self._session, self.path)
        return found

    @property
    def holds_something(self) -> bool:
        """Whether the path is a file or a folder that is not empty."""
        path, files = self._hadoop(self.path)
        return bool(files.exists(path)) and len(files.listStatus(path)) > 0

    def make_folder(self) -> bool:
        """Create the table's folder if it does not exist; return whether it exists now."""
        path, files = self._hadoop(self.path)
        return bool(files.mkdirs(path))

    @property
    def schema(self) -> StructType:
        """The table's columns."""
        return self.frame.schema

    @property
    def frame(self) -> DataFrame:
        """The table's rows."""
        return self.spark.read.format("delta").load(self.path)

    def detail(self) -> dict[str, Any]:
        """Return Delta's details of the table: `partitionColumns`, `properties` and more."""
        from pyspark.sql import DataFrame  # noqa: PLC0415  needs Spark, which definitions do not

        [row] = DataFrame(self.java_table.detail(), self.spark).collect()
        return row.asDict()

    @property
    def java_table(self) -> Any:  # noqa: ANN401  Java has no types here
        """Delta's own object for the table."""
        return self._tables.forPath(self._session, self.path)

    def last_commit(self, app: str) -> LastCommit | None:
        """Return the last commit for `app`; None if there is none."""
        snapshot = self._snapshot()
        number = snapshot.transactions().get(app)
        if number.isEmpty():
            return None
        return self._newest(app, snapshot.version()) or LastCommit(number=number.get())

    def newest_commit(self, app: str) -> LastCommit | None:
        """Return the same right after a commit for `app`, without making Delta replay the table's state."""
        return self._newest(app, self._snapshot().version())

    def _newest(self, app: str, version: int) -> LastCommit | None:
        # Usually the newest commit; others may have written to the table, or compacted it, since.
        for number in range(version, -1, -1):
            note = self._note(number)
            if note is None:
                return None
            if (found := LastCommit.from_note(note, app)) is not None:
                return found
        return None

    def _snapshot(self) -> Any:  # noqa: ANN401  Java has no types here
        log = jvm(self.spark).org.apache.spark.sql.delta.DeltaLog
        return log.forTableWithSnapshot(self._session, self.path)._2()  # noqa: SLF001  Scala's name

    def _note(self, version: int) -> str | None:
        """Return a commit's `userMetadata`, empty if it has none; None if the commit is no longer in the log."""
        path, files = self._hadoop(f"{self.path}/_delta_log/{version:020d}.json")
        if not files.exists(path):
            return None
        content = files.open(path)
        try:
            text: str = jvm(self.spark).org.apache.commons.io.IOUtils.toString(content, "UTF-8")
        finally:
            content.close()
        for line in text.splitlines():
            if line.startswith(_INFO):
                return json.loads(line)["commitInfo"].get("userMetadata") or ""
        return ""

    @property
    def _session(self) -> Any:  # noqa: ANN401  Java has no types here
        return self.spark._jsparkSession  # noqa: SLF001  no public way

    @property
    def _tables(self) -> Any:  # noqa: ANN401  Java has no types here
        return jvm(self.spark).io.delta.tables.DeltaTable

    def _hadoop(self, path: str) -> tuple[Any, Any]:
        place = jvm(self.spark).org.apache.hadoop.fs.Path(path)
        return place, place.getFileSystem(self._session.sessionState().newHadoopConf())
