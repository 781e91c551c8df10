"""Tables of every kind for the tests: written, changed and made unreadable in the same way."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import polars as pl

import slackwater as sw
from slackwater.connectors.postgres.server import LocalServer
from slackwater.connectors.table import Table

RATES: Final = pl.Schema({"code": pl.String(), "rate": pl.Float64(), "digits": pl.Int32()})


def rates(*rows: tuple[Any, ...]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=RATES, orient="row")


@dataclass(kw_only=True)
class Place:
    """Where a table of one kind is."""

    kind: str
    folder: Path
    server: LocalServer | None = None

    @property
    def path(self) -> Path:
        return self.folder / {"parquet": "rates.parquet", "csv": "rates.csv", "delta": "rates"}[self.kind]

    def table(self, **options: Any) -> Table:  # noqa: ANN401  those of `sw.table`
        if self.kind == "postgres":
            assert self.server is not None
            return sw.table(self.server.url(), query="SELECT code, rate, digits FROM rates;", **options)
        if self.kind == "csv":
            options = {"schema": "code string, rate double, digits int", **options}
        return sw.table(self.path, **options)

    def write(self, frame: pl.DataFrame) -> None:
        match self.kind:
            case "parquet":
                frame.write_parquet(self.path)
            case "csv":
                frame.write_csv(self.path)
            case "delta":
                write_delta(self.path, frame)
            case "postgres":
                self._insert(frame)

    def hide(self) -> None:
        """Make the table unreadable."""
        self._rename("rates", "hidden")

    def show(self) -> None:
        self._rename("hidden", "rates")

    def _rename(self, before: str, after: str) -> None:
        if self.kind == "postgres":
            self._sql(f"ALTER TABLE {before} RENAME TO {after}")
            return
        for path in self.folder.glob(f"{before}*"):
            path.rename(path.with_name(path.name.replace(before, after, 1)))

    def _insert(self, frame: pl.DataFrame) -> None:
        self._sql("CREATE TABLE IF NOT EXISTS rates (code text, rate double precision, digits int)")
        self._sql("TRUNCATE rates")
        assert self.server is not None
        with self.server.connect() as connection, connection.cursor() as cursor:
            cursor.executemany(b"INSERT INTO rates VALUES (%s, %s, %s)", frame.rows())

    def _sql(self, statement: str) -> None:
        assert self.server is not None
        with self.server.connect() as connection:
            connection.execute(statement.encode())


def write_delta(path: Path, frame: pl.DataFrame, *, partition: str | None = None) -> None:
    """Write the next version of a Delta table, which replaces all of its rows, as a writer without Spark would."""
    log = path / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    version = len(list(log.glob("*.json")))
    actions: list[dict[str, Any]] = []
    if version == 0:
        fields = [
            {"name": name, "type": _delta_type(dtype), "nullable": True, "metadata": {}}
            for name, dtype in frame.schema.items()
        ]
        schema = json.dumps({"type": "struct", "fields": fields})
        actions.append({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}})
        columns = [] if partition is None else [partition]
        actions.append(
            {
                "metaData": {
                    "id": "x",
                    "format": {"provider": "parquet"},
                    "schemaString": schema,
                    "partitionColumns": columns,
                    "configuration": {},
                }
            }
        )
    actions += [{"remove": {"path": old, "dataChange": True}} for old in _live(log)]
    groups = (
        [(None, frame)]
        if partition is None
        else [(key[0], part) for key, part in frame.group_by(partition, maintain_order=True)]
    )
    for number, (value, part) in enumerate(groups):
        name = f"part {version}-{number}.parquet"
        kept = part if partition is None else part.drop(partition)
        kept.write_parquet(path / name)
        values = {} if partition is None else {partition: None if value is None else str(value)}
        actions.append(
            {"add": {"path": name.replace(" ", "%20"), "partitionValues": values, "size": 1, "dataChange": True}}
        )
    (log / f"{version:020d}.json").write_text("".join(json.dumps(action) + "\n" for action in actions))


def _live(log: Path) -> list[str]:
    files: dict[str, None] = {}
    for commit in sorted(log.glob("*.json")):
        for line in commit.read_text().splitlines():
            action = json.loads(line)
            if "add" in action:
                files[action["add"]["path"]] = None
            if "remove" in action:
                files.pop(action["remove"]["path"], None)
    return list(files)


def _delta_type(dtype: pl.DataType) -> str:
    return {pl.String: "string", pl.Float64: "double", pl.Int32: "integer", pl.Int64: "long", pl.Date: "date"}[
        type(dtype)
    ]
