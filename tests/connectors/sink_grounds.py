"""Every sink that promises exactly once, on its real server, as the contract and the zombies use it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl
import pytest

import slackwater as sw
from slackwater.connectors.sink import Sink
from tests.connectors.kafka.sinks import records
from tests.connectors.zombies import rows
from tests.matrix.targets import Kafka, Target

SINKS: Final[dict[str, Callable[[Target, str], Sink]]] = {
    "files": lambda target, place: sw.sinks.files(Path(target.address) / place),
    "files, merged": lambda target, place: sw.sinks.files(Path(target.address) / place, merge_after=2),
    "postgres": lambda target, place: sw.sinks.postgres(target.address, place, create=True),
    "postgres, upserted": lambda target, place: sw.sinks.postgres(target.address, place, upsert_on=["k"], create=True),
    "redis": lambda target, place: sw.sinks.redis(target.address, key="k", prefix=place),
    "http": lambda target, place: target.sink(place),
    "kafka": lambda target, place: sw.sinks.kafka(target.address, place, key="k", create=2),
    "delta": lambda target, place: sw.sinks.delta(Path(target.address) / place),
    "delta, merged": lambda target, place: sw.sinks.delta(Path(target.address) / place, merge_on="k"),
}
KEEPS_NEWEST: Final = ("postgres, upserted", "redis", "delta, merged")
"""The kinds with one row for each key, the newest; the others append."""


@dataclass(frozen=True, kw_only=True)
class Ground:
    """A kind of sink, and its server."""

    kind: str
    target: Target

    def sink(self, place: str) -> Sink:
        """Return a sink that writes to `place`."""
        return SINKS[self.kind](self.target, place)

    def content(self, place: str, *, is_open: bool = False) -> Counter[tuple[str, int]]:
        """Return the rows that a reader sees; with `is_open` a writer died amid a transaction that nobody has ended."""
        if is_open and isinstance(self.target, Kafka):
            found = [json.loads(record.value()) for record in records(self.target.topics, place)]
        else:
            found = self.target.rows(place)
        if self.kind == "redis":
            return Counter((row["key"].removeprefix(":"), int(row["batch"])) for row in found if "batch" in row)
        return Counter((row["k"], int(row["batch"])) for row in found)

    def expected(self, last: int) -> Counter[tuple[str, int]]:
        """Return what batches 0 to `last` leave, each delivered once."""
        all_rows = pl.concat([rows(batch) for batch in range(last + 1)])
        kept = all_rows.unique("k", keep="last") if self.kind in KEEPS_NEWEST else all_rows
        return Counter(kept.rows())


def each(*kinds: str, long: tuple[str, ...] = ()) -> pytest.MarkDecorator:
    """Run a test for sinks of these kinds, and for some only when there is time."""

    def marks(kind: str) -> list[pytest.MarkDecorator]:
        needs = {"kafka": [pytest.mark.kafka], "delta": [pytest.mark.spark]}.get(kind.partition(",")[0], [])
        return [*needs, pytest.mark.long] if kind in long else needs

    chosen = [pytest.param(kind, marks=marks(kind)) for kind in kinds]
    return pytest.mark.parametrize("ground", chosen, indirect=True, scope="module")
