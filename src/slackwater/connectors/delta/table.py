"""Delta tables, read without Spark: the driver reads small tables with or without a session.

A table consists of the files that its log has added and not removed. The newest checkpoint of the log lists them up to
its version; the commits after it, one JSON file each, add and remove files. A table that asks
more of its readers (column mapping, deletion vectors, newer protocols) is refused.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import polars as pl

from slackwater.base.errors import fault
from slackwater.connectors.delta.log_schema import logged_schema
from slackwater.connectors.files.table import conformed
from slackwater.connectors.sink import Unavailable
from slackwater.formats.schemas import as_schema

_BROKEN: Final = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError)
_MODE: Final = "delta.columnMapping.mode"
_FEATURES_FROM: Final = 3
"""The reader version from which a protocol lists what a reader must support."""
_READABLE: Final = frozenset({"columnMapping", "deletionVectors", "timestampNtz", "vacuumProtocolCheck"})
"""Reader features that change nothing here, or whose use in the table's metadata or files is refused."""


def delta_schema(path: str) -> pl.Schema:
    """Return the columns of a Delta table."""
    found = logged_schema(path)
    if found is None:
        raise Unavailable("there is no Delta table")
    return as_schema(found)


def read_delta(path: str, schema: pl.Schema) -> pl.DataFrame:
    """Return the rows of the newest version of a Delta table."""
    log = Path(path) / "_delta_log"
    try:
        state = _State(place=path)
        version = state.start_from_checkpoint(log)
        commits = sorted(int(file.stem) for file in log.glob("[0-9]*.json") if file.stem.isdigit())
        newer = [commit for commit in commits if commit > version]
        if not commits and version < 0:
            raise Unavailable("there is no Delta table")
        if newer != list(range(version + 1, version + 1 + len(newer))):
            raise Unavailable(f"its log has no commit {min(set(range(version + 1, newer[-1])) - set(newer))}")
        for number in newer:
            for line in (log / f"{number:020d}.json").read_text(encoding="utf-8").splitlines():
                state.take(json.loads(line))
        return state.rows(Path(path), schema)
    except _BROKEN as error:
        # A commit or a cleanup may be in progress; the next attempt lists the log again.
        raise Unavailable(str(error).strip().partition("\n")[0][:200]) from error


@dataclass(kw_only=True)
class _State:
    """The state of the table, as far as its log has been read."""

    place: str
    files: dict[str, dict[str, str | None]] = field(default_factory=dict)
    """The partition values of each file of the table."""

    def start_from_checkpoint(self, log: Path) -> int:
        """Load the newest complete checkpoint, and return its version; -1 if there is none."""
        parts: dict[int, list[Path]] = {}
        for file in log.glob("[0-9]*.checkpoint*.parquet"):
            parts.setdefault(int(file.name.partition(".")[0]), []).append(file)
        for version in sorted(parts, reverse=True):
            files = sorted(parts[version])
            pieces = files[0].name.split(".")
            expected = int(pieces[3]) if len(pieces) == 5 and pieces[3].isdigit() else 1  # noqa: PLR2004  n of m
            if len(files) < expected:
                continue
            for file in files:
                frame = pl.read_parquet(file)
                wanted = [name for name in ("add", "metaData", "protocol") if name in frame.columns]
                for row in frame.select(wanted).iter_rows(named=True):
                    self.take({kind: _plain(fact) for kind, fact in row.items() if fact is not None})
            return version
        return -1

    def take(self, action: dict[str, Any]) -> None:
        """Apply one action of the log."""
        if (meta := action.get("metaData")) is not None and _named(meta) not in (None, "none"):
            raise fault("TABLE_DELTA_FEATURE", place=self.place, feature="column mapping")
        if (protocol := action.get("protocol")) is not None:
            self._check(protocol)
        if (added := action.get("add")) is not None and added.get("path") is not None:
            if added.get("deletionVector"):
                raise fault("TABLE_DELTA_FEATURE", place=self.place, feature="deletion vectors")
            self.files[added["path"]] = dict(added.get("partitionValues") or {})
        if (removed := action.get("remove")) is not None:
            self.files.pop(removed["path"], None)

    def _check(self, protocol: dict[str, Any]) -> None:
        """Refuse a table whose protocol asks more of its readers, such as checkpoints that list files elsewhere."""
        version, unknown = protocol.get("minReaderVersion") or 1, set(protocol.get("readerFeatures") or ()) - _READABLE
        if version > _FEATURES_FROM or unknown:
            feature = f"the feature {min(unknown)}" if unknown else f"reader version {version}"
            raise fault("TABLE_DELTA_FEATURE", place=self.place, feature=feature)

    def rows(self, folder: Path, schema: pl.Schema) -> pl.DataFrame:
        """Return the rows of the files, including the partition columns."""
        frames = [pl.DataFrame(schema=schema)]
        for name, values in sorted(self.files.items()):
            frame = pl.read_parquet(folder / unquote(name))
            partitions = [_partition(value, schema[key]).alias(key) for key, value in values.items() if key in schema]
            added = [pl.lit(None, dtype=dtype).alias(key) for key, dtype in schema.items() if key not in frame.columns]
            frames.append(conformed(frame.with_columns(added).with_columns(partitions), schema, self.place))
        return pl.concat(frames)


def _named(meta: dict[str, Any]) -> str | None:
    mode: str | None = (meta.get("configuration") or {}).get(_MODE)
    return mode


def _plain(fact: dict[str, Any]) -> dict[str, Any]:
    """Return an action of a checkpoint in the form it has in a commit: a checkpoint stores maps as lists of pairs."""
    plain = dict(fact)
    for name in ("partitionValues", "configuration"):
        if isinstance(pairs := plain.get(name), list):
            plain[name] = {pair["key"]: pair["value"] for pair in pairs}
    return plain


def _partition(value: str | None, dtype: pl.DataType) -> pl.Expr:
    if value in (None, ""):
        return pl.lit(None, dtype=dtype)
    if isinstance(dtype, pl.Boolean):
        return pl.lit(value == "true")
    text = pl.lit(value)
    if isinstance(dtype, pl.Datetime):
        return text.str.to_datetime(time_unit="us", time_zone="UTC")
    return text.str.to_date() if isinstance(dtype, pl.Date) else text.cast(dtype)
