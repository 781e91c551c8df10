"""What stands in a Delta table: rows, types, partitions, files; and tables that do not fit."""

from __future__ import annotations

import shutil
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from slackwater.base.errors import RunError
from slackwater.connectors.delivery import SinkWarning
from slackwater.connectors.delta.sink.rows import batch_frame
from slackwater.connectors.delta.sink.table import DeltaPlace
from slackwater.connectors.sink import SinkBatch, Unavailable
from tests.connectors.delta.tables import CHANGES, TOTALS, Lake, changes, totals

pytestmark = pytest.mark.spark


@pytest.mark.long
def test_last_row_of_a_key_counts_and_a_retraction_deletes(lake: Lake) -> None:
    job = lake.job(schema=CHANGES, merge_on="user")
    job.deliver(changes(("ann", 1, False), ("bob", 2, False)), changes(("ann", 3, False)))
    job.deliver(changes(("ann", 3, True), ("ann", 4, False), ("bob", 2, False), ("bob", 2, True), ("cid", 5, True)))
    assert lake.rows() == [("ann", 4)]
    assert lake.read().columns == ["user", "total"], "a retraction is carried out, not stored"


@pytest.mark.long
@pytest.mark.parametrize("keys", [["user"], ["user", "day"]])
def test_null_is_a_key_like_any_other_in_a_batch_and_across_batches(lake: Lake, keys: list[str]) -> None:
    schema = pl.Schema({"user": pl.String(), "day": pl.Int64(), "total": pl.Int64(), "is_retraction": pl.Boolean()})

    def of(*rows: tuple[str | None, int, bool]) -> pl.DataFrame:
        whole = [(user, None, total, is_retraction) for user, total, is_retraction in rows]
        return pl.DataFrame(whole, schema=schema, orient="row")

    job = lake.job(schema=schema, merge_on=keys)
    job.deliver(of((None, 1, False), ("ann", 2, False), (None, 3, False)))
    assert lake.rows("total") == [(2,), (3,)]
    job.deliver(of((None, 4, False)))
    assert lake.rows("total") == [(2,), (4,)]
    job.deliver(of((None, 4, True)))
    assert lake.rows("total") == [(2,)]


@pytest.mark.long
def test_changelog_keeps_retractions_as_rows(lake: Lake) -> None:
    lake.job(schema=CHANGES, changelog=True).deliver(changes(("ann", 1, False), ("ann", 1, True)))
    assert lake.rows(*CHANGES) == [("ann", 1, False), ("ann", 1, True)]


@pytest.mark.long
def test_table_can_be_read_as_of_every_batch(lake: Lake) -> None:
    job = lake.job(merge_on="user")
    seen = []
    for batch in range(3):
        job.deliver(totals(("ann", batch)))
        seen.append(lake.versions() - 1)
    for batch, version in enumerate(seen):
        assert lake.rows(versionAsOf=version) == [("ann", batch)]


def test_every_type_comes_back_as_it_was(lake: Lake) -> None:
    at = datetime(2026, 3, 1, 12, 30, 1, 234_000, tzinfo=UTC)
    values: dict[str, tuple[Any, pl.DataType]] = {
        "flag": (True, pl.Boolean()),
        "tiny": (-7, pl.Int8()),
        "wide": (200, pl.UInt8()),
        "big": (2**64 - 1, pl.UInt64()),
        "real": (0.5, pl.Float32()),
        "price": (Decimal("12.34"), pl.Decimal(10, 2)),
        "text": ("naïve 漢字 'quoted'", pl.String()),
        "blob": (b"\x00\xff", pl.Binary()),
        "day": (date(2026, 3, 1), pl.Date()),
        "ms": (at, pl.Datetime("ms", "UTC")),
        "us": (at, pl.Datetime("us", "UTC")),
        "tags": (["a", None], pl.List(pl.String())),
        "parts": ([{"n": 1, "at": at}], pl.List(pl.Struct({"n": pl.Int64(), "at": pl.Datetime("us", "UTC")}))),
    }
    schema = pl.Schema({name: dtype for name, (_, dtype) in values.items()})
    frame = pl.DataFrame({name: [value, None] for name, (value, _) in values.items()}, schema=schema)
    lake.job(schema=schema).deliver(frame)
    found = pl.DataFrame(lake.read().orderBy("tiny", ascending=False).toArrow())
    # Spark has no unsigned types: the next wider one holds every value.
    assert found.cast(schema).to_dicts() == frame.to_dicts()


@pytest.mark.long
def test_rows_are_partitioned(lake: Lake) -> None:
    lake.job(partition_by="user").deliver(totals(("ann", 1), ("bob", 2)))
    assert {path.name for path in lake.path().glob("user=*")} == {"user=ann", "user=bob"}
    lake.job(partition_by=["user"], run={"marked": [0]}).deliver(totals(("ann", 3)))
    assert lake.rows() == [("ann", 1), ("ann", 3), ("bob", 2)]


@pytest.mark.long
def test_small_batch_is_one_file_and_every_so_often_files_are_put_together(lake: Lake) -> None:
    job = lake.job(optimize_every=3)
    job.deliver(totals(("ann", 1)), totals(("bob", 2)))
    job.deliver(totals(("ann", 2)))
    assert len(lake.files()) == 2
    job.deliver(totals(("ann", 3)))
    assert len(lake.files()) == 1
    job.deliver(totals(("ann", 4)))
    job.restart().deliver(totals(("ann", 4)), batch=3)
    assert lake.rows() == [("ann", 1), ("ann", 2), ("ann", 3), ("ann", 4), ("bob", 2)]


@pytest.mark.long
def test_files_that_cannot_be_put_together_are_a_warning_and_the_batch_is_written(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(_place: DeltaPlace) -> None:
        raise Unavailable("gone")

    job = lake.job(optimize_every=1)
    job.start()
    monkeypatch.setattr(DeltaPlace, "java_table", property(gone))
    with pytest.warns(SinkWarning, match=r"DELTA_NOT_COMPACTED.*after batch 0: gone; the rows are written") as said:
        job.deliver(totals(("ann", 1)))
    assert len(said) == 1
    assert lake.rows() == [("ann", 1)]


@pytest.mark.long
@pytest.mark.parametrize("keys", [[], ["user"]])
def test_large_batch_is_taken_from_spark_and_keeps_its_order(lake: Lake, keys: list[str]) -> None:
    rows = [(f"u{number % 7}" if number % 7 else None, number) for number in range(200)]

    def not_asked_for(*_: object) -> Any:  # noqa: ANN401
        raise AssertionError

    batch = SinkBatch(
        batch=0,
        schema=TOTALS,
        rows=len(rows),
        frames=not_asked_for,
        in_parallel=not_asked_for,
        # Of two partitions, and a user's rows in one of them, in order: as a batch's rows come by key group.
        spark_frame=lambda: lake.spark.createDataFrame(rows, "user string, total long").repartition(2, "user"),
    )
    found = sorted(map(tuple, batch_frame(lake.spark, batch, keys).collect()), key=str)
    assert found == sorted(dict(rows).items() if keys else rows, key=str)


@pytest.mark.long
def test_table_gets_columns_that_it_lacks_if_asked_to(lake: Lake) -> None:
    lake.write([("ann", 1)], "user string, total long")
    wider = pl.Schema({**TOTALS, "more": pl.List(pl.Int64())})
    with pytest.raises(RunError, match=r"DELTA_TABLE_UNFIT.*it lacks `more` \(schema_evolution=True adds them\)"):
        lake.job(schema=wider).start()
    rows = pl.DataFrame({"user": ["bob"], "total": [2], "more": [[3]]}, schema=wider)
    lake.job(schema=wider, schema_evolution=True).deliver(rows)
    assert lake.rows("user", "total", "more") == [("ann", 1, None), ("bob", 2, [3])]


@pytest.mark.long
@pytest.mark.parametrize("options", [{}, {"merge_on": "user"}])
def test_table_may_have_columns_that_the_rows_lack(lake: Lake, options: dict[str, Any]) -> None:
    lake.write([("ann", 1, "x")], "USER string, total long, note string")
    lake.job(**options).deliver(totals(("bob", 2)))
    assert lake.rows("user", "total", "note") == [("ann", 1, "x"), ("bob", 2, None)]


@pytest.mark.long
def test_table_whose_types_differ_is_refused(lake: Lake) -> None:
    lake.write([("ann", "1")], "user string, total string")
    with pytest.raises(RunError, match=r"DELTA_TABLE_UNFIT.*`total` is string and must be bigint"):
        lake.job().start()


@pytest.mark.long
def test_table_with_other_partitions_is_refused(lake: Lake) -> None:
    lake.write([("ann", 1)], "user string, total long", partition_by=["user"])
    with pytest.raises(RunError, match=r"DELTA_PARTITIONS.*is partitioned by \['user'\], .* is \['total'\]"):
        lake.job(partition_by="total").start()


@pytest.mark.long
def test_folder_of_something_else_is_refused(lake: Lake) -> None:
    lake.path().mkdir()
    (lake.path() / "notes.txt").write_text("mine")
    with pytest.raises(RunError, match=r"DELTA_NOT_A_TABLE.*contains something else"):
        lake.job().start()
    assert [path.name for path in lake.path().iterdir()] == ["notes.txt"]


@pytest.mark.long
def test_table_that_has_a_key_twice_is_refused(lake: Lake) -> None:
    lake.write([("ann", 1), ("ann", 2), ("bob", 3)], "user string, total long")
    with pytest.raises(RunError, match=r"DELTA_KEYS_TWICE.*has \{'user': 'ann'\} 2 times"):
        lake.job(merge_on="user").start()


@pytest.mark.long
def test_table_that_is_only_appended_to_cannot_be_merged_into(lake: Lake) -> None:
    lake.write([("ann", 1)], "user string, total long")
    lake.sql("ALTER TABLE {table} SET TBLPROPERTIES ('delta.appendOnly' = 'true')")
    with pytest.raises(RunError, match=r"DELTA_APPEND_ONLY.*omit `merge_on`"):
        lake.job(merge_on="user").start()


@pytest.mark.long
def test_row_that_breaks_a_rule_of_the_table_is_reported_and_nothing_is_written(lake: Lake) -> None:
    job = lake.job()
    job.deliver(totals(("ann", 1)))
    lake.sql("ALTER TABLE {table} ADD CONSTRAINT positive CHECK (total > 0)")
    with pytest.raises(RunError, match=r"DELTA_REFUSED.*batch 1: .*positive"):
        job.deliver(totals(("bob", 2), ("cid", -1)))
    assert lake.rows() == [("ann", 1)]


@pytest.mark.long
@pytest.mark.parametrize("is_restarted", [False, True])
def test_table_that_is_gone_is_not_made_anew(lake: Lake, *, is_restarted: bool) -> None:
    job = lake.job()
    job.deliver(totals(("ann", 1)))
    shutil.rmtree(lake.path())
    if is_restarted:
        job.restart()
    with pytest.raises(RunError, match=r"DELTA_TABLE_GONE.*the Delta table at"):
        job.deliver(totals(("bob", 2)))
    assert not lake.path().exists()


@pytest.mark.long
def test_paths_with_odd_letters_work(lake: Lake) -> None:
    odd = Lake(spark=lake.spark, folder=lake.folder / "it's 100% `odd`")
    Path(odd.folder).mkdir()
    odd.job(merge_on="user").deliver(totals(("ann", 1)))
    assert odd.rows() == [("ann", 1)]
