"""As-of joins against all versions of a key, looked through one by one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.operators.late_rows import Late
from slackwater.plan.streams import Results
from tests.property.join_streams import Arrival, Batch, Row, batches, pipeline, run, source

Pair = tuple[int, int | None]
DELETED_X = 3
"""Versions with a smaller x end the one before."""


@dataclass(frozen=True)
class Setup:
    """One as-of join."""

    how: str = "inner"
    ttl_ms: int | None = None
    deletes: bool = False
    late: Late = "output"
    key_groups: int = 4

    def pipeline(self) -> tuple[sw.Pipeline, Results]:
        results = (
            source("left")
            .key_by("key")
            .join_as_of(
                source("right").key_by("key"),
                how=self.how,  # type: ignore[arg-type]  # one of two
                versions_ttl=sw.FOREVER if self.ttl_ms is None else f"{self.ttl_ms}ms",
                deleted=f"x < {DELETED_X}" if self.deletes else None,
                late=self.late,
                name="joined",
            )
        )
        return pipeline(results, has_late=self.late == "output", key_groups=self.key_groups), results

    def version(self, row: Row, versions: list[Row], since_ms: int) -> Row | None:
        """Return the version that is valid for `row`; those of a partition are in order. Ties are broken by place."""
        ttl_ms = 10**15 if self.ttl_ms is None else self.ttl_ms
        known = [
            (each.ts_ms, each.partition, number, each)
            for number, each in enumerate(versions)
            if each.key == row.key is not None
            if each.ts_ms <= row.ts_ms <= each.ts_ms + ttl_ms and each.ts_ms + ttl_ms >= since_ms
        ]
        newest = max(known, key=lambda found: found[:3])[3] if known else None
        return None if newest is None or (self.deletes and newest.x < DELETED_X) else newest


setups = st.builds(
    Setup,
    how=st.sampled_from(["inner", "left"]),
    ttl_ms=st.sampled_from([None, 1, 30]),
    deletes=st.booleans(),
    key_groups=st.sampled_from([1, 4]),
)


class Model:
    """Rows that wait, and all versions so far in the order they came."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.found: list[Pair] = []
        self.waiting: list[Row] = []
        self.versions: list[Row] = []
        self.watermark_ms = -(10**15)

    def decide(self, row: Row) -> None:
        version = self.setup.version(row, self.versions, self.watermark_ms)
        if version is not None or self.setup.how == "left":
            self.found.append((row.id, None if version is None else version.id))

    def advance(self, watermark_ms: int) -> None:
        for row in self.waiting:
            if row.ts_ms < watermark_ms:
                self.decide(row)
        self.waiting = [row for row in self.waiting if row.ts_ms >= watermark_ms]
        self.watermark_ms = watermark_ms

    def batch(self, rows: list[Row]) -> None:
        self.versions += [row for row in rows if row.side == "right"]
        left = [row for row in rows if row.side == "left"]
        self.waiting += [row for row in left if row.ts_ms >= self.watermark_ms]
        for row in left:
            if row.ts_ms < self.watermark_ms and self.setup.late == "process":
                self.decide(row)


def modelled(setup: Setup, arrivals: list[Arrival]) -> Counter[Pair]:
    """Return what rows must meet: decided in the first batch whose watermark has passed them."""
    model = Model(setup)
    for batch, watermark_ms in sorted({(each.batch, each.watermark_ms) for each in arrivals}):
        model.advance(watermark_ms)
        new = [each.row for each in arrivals if each.batch == batch]
        model.batch(sorted(new, key=lambda row: (row.partition, row.id)))
    model.advance(10**15)
    return Counter(model.found)


@given(setups, st.sampled_from(["output", "process"]), batches())
def test_each_row_meets_the_version_that_is_valid_at_its_time(setup: Setup, late: Late, stream: list[Batch]) -> None:
    setup = replace(setup, late=late)
    # Batches without rows move no watermark, and say nothing about it.
    stream = [batch for batch in stream if batch.rows]
    done = run(setup, stream)
    assert Counter(done.results.select("id", "id_right").rows()) == modelled(setup, done.arrivals)


@given(setups, batches())
def test_every_row_is_in_exactly_one_account(setup: Setup, stream: list[Batch]) -> None:
    done = run(setup, stream)
    probes = [each for each in done.arrivals if each.row.side == "left"]
    late = [each.row.id for each in probes if each.row.ts_ms < each.watermark_ms]
    assert sorted(done.harness.output("joined.late")["id"].to_list()) == sorted(late)
    accounts = ("on_time", "late", "unmatched", "superseded", "expired")
    assert sum(done.counts[account] for account in accounts) == len(done.arrivals)
    shown = done.counts["without_version"] + done.results.height
    nulls = sum(each.row.key is None and each.row.ts_ms >= each.watermark_ms for each in probes)
    assert shown == len(probes) - len(late) - (nulls if setup.how == "inner" else 0)
