"""`.join_table` in memory, with tables of every kind: rows, refreshes, versions, and tables that are no use."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import slackwater as sw
from slackwater.base.errors import DefinitionError, RunError
from slackwater.connectors.delta.table import delta_schema, read_delta
from slackwater.connectors.postgres.server import LocalServer
from slackwater.connectors.sink import Unavailable
from slackwater.connectors.table import Table
from slackwater.engine.memory import MemoryEngine
from slackwater.plan.streams import Stream
from slackwater.testing import Harness, rows_source
from tests.connectors.table_places import Place, rates, write_delta


def orders(ddl: str = "currency string, cents long, ts long") -> Stream:
    return sw.stream("orders", rows_source(ddl)).event_time("ts")


def joined(table: Table, **options: Any) -> Stream:  # noqa: ANN401  those of `.join_table`
    return orders().join_table(table, **{"on": {"currency": "code"}, **options})


def started(stream: Stream) -> Harness:
    return Harness(sw.Pipeline("p", stream.to(sw.sinks.memory()), stream.dead_letters.to(sw.sinks.memory())))


def send(harness: Harness, *currencies: str | None) -> Harness:
    return harness.send("orders", [{"currency": each, "cents": at, "ts": at} for at, each in enumerate(currencies)])


def test_rows_get_the_columns_of_their_key(place: Place) -> None:
    place.write(rates(("EUR", 1.0, 2), ("USD", 1.1, 2), ("JPY", 160.5, 0)))
    stream = joined(place.table())
    harness = started(stream)
    send(harness, "JPY", "EUR", "XXX", None, "JPY").run_batch()
    got = harness.output(stream)
    assert got.schema == pl.Schema(
        {"currency": pl.String(), "cents": pl.Int64(), "ts": pl.Int64(), "rate": pl.Float64(), "digits": pl.Int32()}
    )
    assert got.select("currency", "cents", "rate", "digits").rows() == [
        ("JPY", 0, 160.5, 0),
        ("EUR", 1, 1.0, 2),
        ("XXX", 2, None, None),
        (None, 3, None, None),
        ("JPY", 4, 160.5, 0),
    ]


def test_an_inner_join_leaves_out_rows_without_a_partner_and_counts_them(place: Place) -> None:
    place.write(rates(("EUR", 1.0, 2)))
    stream = joined(place.table(), how="inner")
    harness = started(stream)
    send(harness, "XXX", "EUR", None).run_batch()
    assert harness.output(stream)["currency"].to_list() == ["EUR"]
    assert harness.last.streams["orders"].filtered == 2


def test_a_table_is_read_again_when_its_time_has_come_and_not_before(place: Place) -> None:
    place.write(rates(("EUR", 1.0, 2)))
    stream = joined(place.table(refresh="1m"))
    harness = started(stream)
    send(harness, "EUR").run_batch()
    place.write(rates(("EUR", 2.0, 2)))
    send(harness, "EUR").advance_processing_time("59s")
    send(harness, "EUR").advance_processing_time("1s")
    assert harness.output(stream)["rate"].to_list() == [1.0, 1.0, 2.0]


def test_without_refresh_a_table_is_read_when_a_job_starts(place: Place) -> None:
    place.write(rates(("EUR", 1.0, 2)))
    stream = joined(place.table())
    harness = started(stream)
    send(harness, "EUR").run_batch()
    place.write(rates(("EUR", 2.0, 2)))
    send(harness, "EUR").advance_processing_time("30d")
    send(harness.restart(), "EUR").run_batch()
    assert harness.output(stream)["rate"].to_list() == [1.0, 1.0, 2.0]


def test_a_batch_run_again_sees_the_version_it_saw(place: Place) -> None:
    place.write(rates(("EUR", 1.0, 2)))
    stream = joined(place.table(refresh="1ms"))
    harness = started(stream)
    send(harness, "EUR")
    chunks = dict(harness._sent)
    harness._read_tables()
    clock = replace(type(harness.clock).from_json(harness.clock.to_json()), now_ms=harness.now_ms)
    first = harness.run_batch()
    place.write(rates(("EUR", 2.0, 2)))
    send(harness, "EUR").advance_processing_time("1s")
    again = MemoryEngine(plan=harness.plan, snapshots=harness.engine.snapshots).run(chunks, clock)
    assert harness.output(stream)["rate"].to_list() == [1.0, 2.0]
    assert again.outputs["orders.rows"].equals(first["orders.rows"])


def test_a_table_that_did_not_change_is_kept_once(place: Place) -> None:
    place.write(rates(("EUR", 1.0, 2), ("USD", 1.1, 2)))
    harness = started(joined(place.table(refresh="1s")))
    send(harness, "EUR").run_batch()
    place.write(rates(("USD", 1.1, 2), ("EUR", 1.0, 2)))  # in another order
    send(harness, "EUR").advance_processing_time("1s")
    assert len(harness.engine.snapshots.frames) == 1
    assert harness.clock.tables["orders.join_table"].read_at_ms == 1_000


def test_a_table_that_cannot_be_read_makes_the_batch_wait_never_see_old_rows(place: Place) -> None:
    place.write(rates(("EUR", 1.0, 2)))
    stream = joined(place.table(refresh="1s"))
    harness = started(stream)
    send(harness, "EUR").run_batch()
    place.hide()
    send(harness, "EUR")
    with pytest.raises(RunError, match=r"TABLE_UNREADABLE.*of `orders.join_table` cannot be read"):
        harness.advance_processing_time("1s")
    place.show()
    place.write(rates(("EUR", 3.0, 2)))
    harness.run_batch()
    assert harness.output(stream)["rate"].to_list() == [1.0, 3.0]


def test_a_table_that_is_not_there_is_refused_when_the_pipeline_is_built(place: Place) -> None:
    with pytest.raises(DefinitionError, match=r"TABLE_MISSING.*cannot be read"):
        place.table()


def test_a_key_that_is_there_twice_is_named(place: Place) -> None:
    place.write(rates(("EUR", 1.0, 2), ("USD", 1.1, 2), ("USD", 1.2, 2)))
    harness = started(joined(place.table()))
    with pytest.raises(RunError, match=r"TABLE_KEY_TWICE.*more than one for code = 'USD', in `orders.join_table`"):
        send(harness, "EUR").run_batch()


def test_rows_of_the_table_without_a_key_join_with_nothing(place: Place) -> None:
    place.write(rates((None, 9.0, 9), (None, 8.0, 8), ("EUR", 1.0, 2)))
    stream = joined(place.table())
    harness = started(stream)
    send(harness, None, "EUR").run_batch()
    assert harness.output(stream)["rate"].to_list() == [None, 1.0]


def test_an_empty_table_joins_with_nothing(place: Place) -> None:
    place.write(rates())
    stream = joined(place.table())
    harness = started(stream)
    send(harness, "EUR").run_batch()
    assert harness.output(stream)["rate"].to_list() == [None]


def test_columns_can_be_chosen_and_renamed(place: Place) -> None:
    place.write(rates(("EUR", 1.0, 2)))
    stream = orders("code string, rate long, ts long").join_table(
        place.table(), on="code", columns=["rate"], suffix="_today"
    )
    harness = started(stream)
    harness.send("orders", [{"code": "EUR", "rate": 5, "ts": 0}]).run_batch()
    assert harness.output(stream).rows() == [("EUR", 5, 0, 1.0)]
    assert harness.output(stream).columns == ["code", "rate", "ts", "rate_today"]


@pytest.mark.parametrize("place", ["parquet", "delta", "postgres"], indirect=True)
def test_a_table_whose_columns_have_changed_ends_the_job(place: Place) -> None:
    place.write(rates(("EUR", 1.0, 2)))
    stream = joined(place.table(refresh="1s"))
    harness = started(stream)
    send(harness, "EUR").run_batch()
    if place.kind == "postgres":
        place._sql("ALTER TABLE rates ALTER rate TYPE text")
    else:
        place.write(rates(("EUR", 1.0, 2)).with_columns(pl.col("rate").cast(pl.String)))
    send(harness, "EUR")
    with pytest.raises(RunError, match=r"TABLE_CHANGED.*column `rate`"):
        harness.advance_processing_time("1s")


def test_several_columns_can_be_the_key(tmp_path: Path) -> None:
    frame = pl.DataFrame({"code": ["EUR", "EUR"], "day": [1, 2], "rate": [1.0, 2.0]})
    frame.write_parquet(tmp_path / "t.parquet")
    stream = orders("code string, day long, ts long").join_table(sw.table(tmp_path / "t.parquet"), on=["code", "day"])
    harness = started(stream)
    harness.send("orders", [{"code": "EUR", "day": day, "ts": 0} for day in (2, 1, 3)]).run_batch()
    assert harness.output(stream)["rate"].to_list() == [2.0, 1.0, None]


def test_results_of_a_window_can_be_joined(place: Place) -> None:
    place.write(rates(("EUR", 2.0, 2)))
    source = orders()
    per_currency = source.key_by("currency").window(sw.tumbling("1s")).aggregate(cents=sw.sum("cents"))
    stream = per_currency.join_table(place.table(), on={"currency": "code"}).with_columns(total="cents * rate")
    ended = [stream.to(sw.sinks.memory()), per_currency.late.drop(), source.dead_letters.drop()]
    harness = Harness(sw.Pipeline("p", *ended, stream.dead_letters.drop()))
    send(harness, "EUR", "EUR", "EUR")
    harness.finish()
    assert harness.output("orders.window.rows")["total"].to_list() == [6.0]


def test_explain_shows_the_table_and_how_often_it_is_read(place: Place) -> None:
    place.write(rates(("EUR", 2.0, 2)))
    stream = joined(place.table(refresh="5m"), how="inner", name="rates")
    shown = sw.Pipeline("p", stream.to(sw.sinks.memory()), stream.dead_letters.drop()).explain()
    assert f"└ rates: currency = code in {place.table()}: rate double, digits int   inner, read every 5m" in shown


def test_the_version_a_batch_saw_is_in_its_clock(place: Place) -> None:
    place.write(rates(("EUR", 2.0, 2)))
    harness = started(joined(place.table(), name="rates"))
    send(harness, "EUR").run_batch()
    clock = harness.clock
    [(step, version)] = harness.engine.snapshots.frames
    assert clock.tables["rates"].version == version
    assert step == "rates"
    handed = type(clock).from_property(replace(clock, now_ms=0).to_property())
    assert handed.tables["rates"].version == version


def test_refresh_does_not_change_what_a_batch_is(place: Place) -> None:
    place.write(rates(("EUR", 2.0, 2)))
    plans = [started(joined(place.table(refresh=refresh))).plan.fingerprint for refresh in (None, "1s")]
    other = started(joined(place.table(), how="inner")).plan.fingerprint
    assert plans[0] == plans[1] != other


@pytest.mark.parametrize(
    "text, got",
    [
        (
            "code,rate\nEUR,1\nUSD,much\n",
            "TABLE_VALUE.*has 'much' in column `rate`, row 2, which is declared as Float64",
        ),
        ("code\nEUR\n", "TABLE_CHANGED.*no column `rate`"),
    ],
)
def test_a_csv_file_with_other_values_than_declared_ends_the_job(tmp_path: Path, text: str, got: str) -> None:
    path = tmp_path / "rates.csv"
    path.write_text("code,rate\nEUR,1\n")
    harness = started(joined(sw.table(path, schema="code string, rate double", refresh="1s")))
    send(harness, "EUR").run_batch()
    path.write_text(text)
    send(harness, "EUR")
    with pytest.raises(RunError, match=got):
        harness.advance_processing_time("1s")


def test_a_csv_value_of_another_type_is_no_table_that_changed(tmp_path: Path) -> None:
    path = tmp_path / "rates.csv"
    path.write_text("code,rate\nEUR,much\n")
    with pytest.raises(RunError, match=r"TABLE_VALUE.*'much' in column `rate`, row 1"):
        send(started(joined(sw.table(path, schema="code string, rate double"))), "EUR").run_batch()


def test_csv_values_are_read_by_their_declared_types(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(
        'id,zip,ok,at,day,price,note\n1,00123,true,2026-03-01T12:00:00Z,2026-03-01,1.50,"a, ""b"""\n2,,,,,,\n'
    )
    schema = "id long, zip string, ok boolean, at timestamp, day date, price decimal(10,2), note string"
    stream = orders("id long, ts long").join_table(sw.table(path, schema=schema), on="id")
    harness = started(stream)
    harness.send("orders", [{"id": 1, "ts": 0}, {"id": 2, "ts": 0}]).run_batch()
    first, second = harness.output(stream).drop("ts").rows()
    assert [str(each) for each in first] == [
        "1",
        "00123",
        "True",
        "2026-03-01 12:00:00+00:00",
        "2026-03-01",
        "1.50",
        'a, "b"',
    ]
    assert second == (2, None, None, None, None, None, None)


def test_a_delta_table_with_partitions_is_read_without_spark(tmp_path: Path) -> None:
    write_delta(tmp_path / "t", rates(("EUR", 1.0, 2), ("JPY", 2.0, 0), ("XXX", 3.0, None)), partition="digits")
    stream = joined(sw.table(tmp_path / "t"))
    harness = started(stream)
    send(harness, "JPY", "EUR", "XXX").run_batch()
    assert harness.output(stream)["digits"].to_list() == [0, 2, None]


def test_a_delta_table_is_read_from_its_checkpoint_on(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    for number in range(3):
        write_delta(folder, rates(("EUR", float(number), 2)))
    log = folder / "_delta_log"
    pairs = pl.List(pl.Struct({"key": pl.String(), "value": pl.String()}))
    added = pl.Struct(
        {"path": pl.String(), "partitionValues": pairs, "deletionVector": pl.Struct({"size": pl.Int32()})}
    )
    state = pl.DataFrame(
        {"add": [None, {"path": "part%201-0.parquet", "partitionValues": [], "deletionVector": None}]},
        schema={"add": added},
    )
    schema = log / f"{0:020d}.json"
    meta = next(line for line in schema.read_text().splitlines() if "metaData" in line)
    state.write_parquet(log / f"{1:020d}.checkpoint.parquet")
    schema.unlink()
    (log / f"{1:020d}.json").unlink()
    last = log / f"{2:020d}.json"
    last.write_text(meta + "\n" + last.read_text())
    stream = joined(sw.table(folder))
    harness = started(stream)
    send(harness, "EUR").run_batch()
    assert harness.output(stream)["rate"].to_list() == [2.0]


@pytest.mark.parametrize(
    "action, feature",
    [
        ('{"add": {"path": "x", "partitionValues": {}, "deletionVector": {"storageType": "u"}}}', "deletion vectors"),
        ('{"metaData": {"configuration": {"delta.columnMapping.mode": "name"}}}', "column mapping"),
        ('{"protocol": {"minReaderVersion": 3, "readerFeatures": ["timestampNtz", "v2Checkpoint"]}}', "v2Checkpoint"),
        ('{"protocol": {"minReaderVersion": 4}}', "reader version 4"),
    ],
)
def test_a_delta_table_that_needs_more_than_its_files_is_refused(tmp_path: Path, action: str, feature: str) -> None:
    write_delta(tmp_path / "t", rates(("EUR", 1.0, 2)))
    harness = started(joined(sw.table(tmp_path / "t")))
    (tmp_path / "t" / "_delta_log" / f"{1:020d}.json").write_text(action)
    with pytest.raises(RunError, match=f"TABLE_DELTA_FEATURE.*{feature}"):
        send(harness, "EUR").run_batch()


def test_a_delta_table_whose_log_has_a_gap_makes_the_batch_wait(tmp_path: Path) -> None:
    for number in range(3):
        write_delta(tmp_path / "t", rates(("EUR", float(number), 2)))
    schema = delta_schema(str(tmp_path / "t"))
    (tmp_path / "t" / "_delta_log" / f"{1:020d}.json").unlink()
    with pytest.raises(Unavailable, match="its log has no commit 1"):
        read_delta(str(tmp_path / "t"), schema)


def test_a_table_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from slackwater.engine.enrichment import table_versions as reading

    monkeypatch.setattr(reading, "MOST_BYTES", 10)
    rates(("EUR", 1.0, 2)).write_parquet(tmp_path / "t.parquet")
    harness = started(joined(sw.table(tmp_path / "t.parquet")))
    with pytest.raises(RunError, match=r"TABLE_TOO_LARGE.*1 rows.*use .lookup"):
        send(harness, "EUR").run_batch()


def test_a_damaged_parquet_file_makes_the_batch_wait(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    rates(("EUR", 1.0, 2)).write_parquet(path)
    harness = started(joined(sw.table(path)))
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(RunError, match=r"TABLE_UNREADABLE.* of `[^`]+` cannot be read: parquet: "):
        send(harness, "EUR").run_batch()


def test_two_joins_each_have_their_own_table(tmp_path: Path) -> None:
    rates(("EUR", 1.0, 2)).write_parquet(tmp_path / "a.parquet")
    pl.DataFrame({"digits": pl.Series([2], dtype=pl.Int32()), "word": ["two"]}).write_parquet(tmp_path / "b.parquet")
    stream = joined(sw.table(tmp_path / "a.parquet"), name="a").join_table(
        sw.table(tmp_path / "b.parquet"), on="digits", name="b"
    )
    harness = started(stream)
    send(harness, "EUR").run_batch()
    assert harness.output(stream)["word"].to_list() == ["two"]
    assert set(harness.clock.tables) == {"a", "b"}


@pytest.mark.parametrize(
    "query, said",
    [
        ("SELECT 1 AS a, 1 AS a", "`a` twice"),
        ("SELECT now() - now() AS age", "`age` of type interval"),
        ("SELECT 1.5 AS rate", "`rate` of type numeric"),
    ],
)
def test_a_query_with_columns_that_rows_cannot_have_is_refused(
    postgres_server: LocalServer, query: str, said: str
) -> None:
    with pytest.raises(DefinitionError, match=rf"TABLE_POSTGRES_TYPE.*{said}"):
        sw.table(postgres_server.url(), query=query)


def test_a_query_that_the_server_refuses_is_refused(postgres_server: LocalServer) -> None:
    with pytest.raises(DefinitionError, match=r'TABLE_MISSING.*relation "nowhere" does not exist'):
        sw.table(postgres_server.url(), query="SELECT * FROM nowhere")


def test_a_table_cannot_write_to_postgres(postgres_server: LocalServer) -> None:
    with pytest.raises(DefinitionError, match="TABLE_MISSING"):
        sw.table(postgres_server.url(), query="DELETE FROM pg_class RETURNING relname")
