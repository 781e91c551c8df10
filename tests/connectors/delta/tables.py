"""Tables that the tests write to and look into, and what can happen to them."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import polars as pl
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession

from slackwater.connectors.delta.sink import delta
from slackwater.testing import SinkHarness

TOTALS: Final = pl.Schema({"user": pl.String(), "total": pl.Int64()})
CHANGES: Final = pl.Schema({**TOTALS, "is_retraction": pl.Boolean()})


def totals(*rows: tuple[str, int]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=TOTALS, orient="row")


def changes(*rows: tuple[str, int, bool]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=CHANGES, orient="row")


@dataclass(frozen=True, kw_only=True)
class Lake:
    """Tables below one folder."""

    spark: SparkSession
    folder: Path

    def path(self, name: str = "totals") -> Path:
        return self.folder / name

    def job(self, *, schema: pl.Schema = TOTALS, run: dict[str, Any] | None = None, **options: Any) -> SinkHarness:  # noqa: ANN401
        return SinkHarness(sink=delta(self.path(), **options), schema=schema, **(run or {}))

    def read(self, **options: Any) -> DataFrame:  # noqa: ANN401  Delta's own
        return self.spark.read.format("delta").options(**options).load(str(self.path()))

    def rows(self, *columns: str, **options: Any) -> list[tuple[Any, ...]]:  # noqa: ANN401
        return sorted(map(tuple, self.read(**options).select(*(columns or TOTALS)).collect()))

    def write(self, rows: Sequence[tuple[Any, ...]], ddl: str, *, partition_by: Sequence[str] = ()) -> None:
        """Write to the table as somebody else does."""
        frame = self.spark.createDataFrame(list(rows), ddl).coalesce(1)
        frame.write.format("delta").mode("append").partitionBy(*partition_by).save(str(self.path()))

    def sql(self, statement: str) -> None:
        self.spark.sql(statement.format(table=f"delta.`{self.path()}`"))

    def files(self) -> list[str]:
        """Return the files that the table is made of now."""
        return self.read().inputFiles()

    def stored(self) -> int:
        """Return how many files are in the folder, of the table or not."""
        return len(list(self.path().rglob("part-*.parquet")))

    def versions(self) -> int:
        return len(list((self.path() / "_delta_log").glob("*.json")))

    def forget_marks(self) -> None:
        """Make the table anew, with the same rows and nothing else."""
        frame = self.read()
        schema, rows = frame.schema, frame.collect()
        shutil.rmtree(self.path())
        self.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]
        self.spark.createDataFrame(rows, schema).write.format("delta").save(str(self.path()))

    def lose(self) -> None:
        """Let the log be out of reach, as that of a store which is gone."""
        log = self.path() / "_delta_log"
        log.rename(self.path() / "_elsewhere")
        log.touch()

    def find(self) -> None:
        """Let it be there again."""
        log = self.path() / "_delta_log"
        if log.is_file():
            log.unlink()
            (self.path() / "_elsewhere").rename(log)

    @contextmanager
    def at_commit(self, happens: Callable[[], None]) -> Iterator[None]:
        """Let something happen, once, when the rows are in files and nothing is committed."""
        gateway: Any = self.spark.sparkContext._gateway
        ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]  # has no types
        observers = _module(gateway, _OBSERVER)
        observer = _Observer(happens)
        observers.setObserver(observer)
        try:
            yield
        finally:
            none = _module(gateway, _NOTHING)
            observers.setObserver(none)
        assert not observer.left, "no commit was reached"


def _module(gateway: Any, name: str) -> Any:  # noqa: ANN401  Scala's own
    """Return a Scala object, wherever its jar was loaded from."""
    found = gateway.jvm.org.apache.spark.util.Utils.classForName(f"{name}$", True, False)  # noqa: FBT003  Java's
    return found.getField("MODULE$").get(None)


_OBSERVER: Final = "org.apache.spark.sql.delta.TransactionExecutionObserver"
_NOTHING: Final = "org.apache.spark.sql.delta.NoOpTransactionExecutionObserver"


class _Observer:
    """What Delta calls on the way to a commit."""

    def __init__(self, happens: Callable[[], None]) -> None:
        self.left = [happens]

    def createChild(self) -> _Observer:  # noqa: N802  all names are Delta's
        return self

    def startingTransaction(self, f: Any) -> Any:  # noqa: ANN401, N802
        return f.apply()

    def preparingCommit(self, f: Any) -> Any:  # noqa: ANN401, N802
        return f.apply()

    def beginDoCommit(self) -> None:  # noqa: N802
        if self.left:
            self.left.pop()()

    def beginBackfill(self) -> None:  # noqa: N802
        pass

    def beginPostCommit(self) -> None:  # noqa: N802
        pass

    def transactionCommitted(self) -> None:  # noqa: N802
        pass

    def transactionAborted(self) -> None:  # noqa: N802
        pass

    def advanceToNextThreadObserver(self) -> None:  # noqa: N802
        pass

    class Java:
        implements = (_OBSERVER,)


def in_a_thread(does: Callable[[], object]) -> Callable[[], None]:
    """Return `does` as another process would do it: Delta has one transaction a thread."""

    def run() -> None:
        failed: list[BaseException] = []

        def work() -> None:
            try:
                does()
            except BaseException as error:  # noqa: BLE001  told to the one who waits
                failed.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        if failed:
            raise failed[0]

    return run
