"""A test's own database: looked into with SQL, and written to by jobs that may be killed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import polars as pl

from slackwater.connectors.postgres.server import LocalServer
from slackwater.connectors.postgres.sink import PostgresSink, postgres
from slackwater.connectors.sink import SinkWriter
from slackwater.testing import SinkHarness

TOTALS = pl.Schema({"user": pl.String(), "total": pl.Int64()})


def totals(*rows: tuple[str | None, int | None]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=TOTALS, orient="row")


CHANGES = pl.Schema({**TOTALS, "is_retraction": pl.Boolean()})


def changes(*rows: tuple[str, int, bool]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=CHANGES, orient="row")


@dataclass(kw_only=True)
class Database:
    server: LocalServer
    name: str
    opened: list[SinkWriter] = field(default_factory=list)
    """Every writer of the test, those of jobs that are as good as dead included."""

    @property
    def url(self) -> str:
        return self.server.url(database=self.name)

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        with self.server.connect(database=self.name) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def sink(self, table: str = "totals", **options: Any) -> PostgresSink:  # noqa: ANN401  those of `postgres`
        return postgres(self.url, table, **{"create": True, "retry_for": "30s", **options})

    def job(self, schema: pl.Schema = TOTALS, *, run: dict[str, Any] | None = None, **options: Any) -> SinkHarness:  # noqa: ANN401
        return SinkHarness(sink=self.sink(**options), schema=schema, **(run or {}))

    def close(self) -> None:
        for writer in self.opened:
            writer.close()


def writer(job: SinkHarness) -> Any:  # noqa: ANN401  a PostgresWriter, and its insides
    """Return the writer that a job has open."""
    writer = job.start()._writer
    assert writer is not None
    return writer
