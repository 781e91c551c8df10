"""One contract for all stores: each is asked the same, on its real server."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime

import polars as pl
import pytest

from slackwater.engine.enrichment.fitting import FOUND, KEY, MISSING, STATUS, UNFIT
from slackwater.engine.enrichment.stats import LookupStats
from tests.connectors.lookup_stores import OUTPUT, HttpStore, PostgresStore, Store, ask, at_work, row

HOSTILE = [
    "",
    " ",
    "a b",
    "ü“",
    "a/b",
    "a%2Fb",
    "?x=1&y",
    "#",
    ".",
    "..",
    "...",
    "a/../b",
    "\x00",
    "\x7f",
    "{key}",
    "'; --",
    '"',
    "\\",
    "\\'",
    "%s",
    "%",
    "{a,b}",
    "NULL",
    "null",
    "a\nb",
    ":",
    "😀",
    "ﬀ",
    "a,b",
    "__proto__",
    "x" * 3_000,
]


@pytest.fixture
def gate(store: Store) -> Iterator[Store]:
    """Let the store come back after the test."""
    yield store
    store.gate.frozen.clear()
    store.gate.shut()
    store.gate.start()


def by_key(frame: pl.DataFrame) -> dict[object, dict[str, object]]:
    return {found[KEY]: found for found in frame.rows(named=True)}


def test_values_come_back_in_their_types(store: Store) -> None:
    store.put({"ada": row(1), "bob": row(2)})
    got = by_key(ask(at_work(store.lookup()), "ada", "bob").answers)
    assert [got[key][STATUS] for key in ("ada", "bob")] == [FOUND, FOUND]
    assert got["ada"] == {
        KEY: "ada",
        STATUS: FOUND,
        "__message": None,
        "name": row(1)["name"],
        "visits": (1 << 53) + 1,
        "score": 1 / 3,
        "member": False,
        "since": datetime(2026, 3, 1, 12, 0, 1, 123456, tzinfo=UTC),
        "born": date(1815, 12, 10),
        "code": b"\x00\x01\x02\xff",
    }
    assert got["bob"]["member"] is True


def test_a_key_that_the_store_does_not_have_is_missing(store: Store) -> None:
    store.put({"ada": row(1)})
    got = by_key(ask(at_work(store.lookup()), "ada", "nobody").answers)
    assert (got["ada"][STATUS], got["nobody"][STATUS]) == (FOUND, MISSING)
    assert got["nobody"]["name"] is None


def test_a_field_that_the_store_does_not_have_is_null(store: Store) -> None:
    if isinstance(store, PostgresStore):
        store.sql("INSERT INTO users (key, name) VALUES ('part', 'some')")
    else:
        store.put({"part": {"name": "some"}})
    found = by_key(ask(at_work(store.lookup()), "part").answers)["part"]
    assert (found[STATUS], found["name"], found["visits"], found["since"]) == (FOUND, "some", None, None)


def test_thousands_of_keys_are_asked_for_together_where_the_store_can(store: Store) -> None:
    many = {f"many-{number}": row(number) for number in range(5_000 if store.batches else 300)}
    store.put(many)
    stats = LookupStats()
    got = ask(at_work(store.lookup()), *many, stats=stats)
    assert got.failed == {}
    assert dict(got.answers.select(KEY, "visits").iter_rows()) == {key: each["visits"] for key, each in many.items()}
    assert stats.requests <= (10 if store.batches else 300)


def test_a_key_of_any_text_finds_its_own_row(store: Store) -> None:
    refused = {"http, by key": ("", ".", ".."), "postgres": ("\x00",)}.get(store.kind, ())
    keys = [key for key in HOSTILE if key not in refused]
    store.put({key: row(number) for number, key in enumerate(keys)})
    got = by_key(ask(at_work(store.lookup()), *keys).answers)
    assert {key: got[key]["visits"] for key in keys} == {key: (1 << 53) + at for at, key in enumerate(keys)}


def test_numbers_and_dates_are_keys(store: Store) -> None:
    if isinstance(store, PostgresStore):
        store.sql("CREATE TABLE IF NOT EXISTS numbered (key bigint PRIMARY KEY, name text)")
        store.sql("INSERT INTO numbered VALUES (-7, 'seven') ON CONFLICT DO NOTHING")
        store.sql("CREATE TABLE IF NOT EXISTS dated (key date PRIMARY KEY, name text)")
        store.sql("INSERT INTO dated VALUES ('2026-03-01', 'first') ON CONFLICT DO NOTHING")
    else:
        store.put({"-7": {"name": "seven"}, "2026-03-01": {"name": "first"}})
    for table, key, dtype, name in (
        ("numbered", -7, pl.Int64(), "seven"),
        ("dated", date(2026, 3, 1), pl.Date(), "first"),
    ):
        lookup = store.lookup()
        if isinstance(store, PostgresStore):
            import slackwater as sw

            lookup = sw.lookups.postgres(
                f"postgresql://postgres@127.0.0.1:{store.gate.port}/postgres", table, key="key"
            )
        got = by_key(ask(at_work(lookup, "name string", dtype), key).answers)
        assert got[key]["name"] == name


def test_an_answer_of_the_wrong_type_is_the_error_of_its_key_alone(store: Store) -> None:
    store.put({"good": row(1), "spoilt": row(2)})
    store.spoil("spoilt")
    output = OUTPUT.replace("visits long", "visits string") if isinstance(store, PostgresStore) else OUTPUT
    try:
        got = by_key(ask(at_work(store.lookup(), OUTPUT), "good", "spoilt").answers)
        good = by_key(ask(at_work(store.lookup(), output), "good").answers)["good"]
    finally:
        if isinstance(store, PostgresStore):
            store.sql("UPDATE users SET visits = 1 WHERE key = 'spoilt'")
            store.sql("ALTER TABLE users ALTER visits TYPE bigint USING visits::bigint")
    assert got["spoilt"][STATUS] == UNFIT
    assert "visits" in str(got["spoilt"]["__message"])
    assert good[STATUS] == FOUND


def test_a_store_that_is_down_fails_every_key_and_answers_when_it_is_back(gate: Store) -> None:
    gate.put({"ada": row(1)})
    step = at_work(gate.lookup())
    assert by_key(ask(step, "ada").answers)["ada"][STATUS] == FOUND
    gate.gate.shut()
    down = ask(step, "ada", "bob")
    assert down.answers.is_empty()
    assert sorted(down.failed) == ["ada", "bob"]
    assert all("onnect" in why or "closed" in why for why in down.failed.values()), down.failed
    gate.gate.start()
    assert by_key(ask(step, "ada").answers)["ada"][STATUS] == FOUND


def test_a_store_that_does_not_answer_fails_after_the_timeout_and_answers_later(gate: Store) -> None:
    gate.put({"ada": row(1)})
    step = at_work(gate.lookup(), timeout="1s")
    assert by_key(ask(step, "ada").answers)["ada"][STATUS] == FOUND
    gate.gate.frozen.set()
    assert "no answer within 1s" in ask(step, "ada").failed["ada"]
    gate.gate.frozen.clear()
    assert by_key(ask(step, "ada").answers)["ada"][STATUS] == FOUND


def test_a_request_is_tried_again(gate: Store) -> None:
    gate.put({"ada": row(1)})
    step = at_work(gate.lookup(), retries=2)
    ask(step, "ada")
    gate.gate.shut()  # cuts the connection that the client holds
    gate.gate.start()
    stats = LookupStats()
    assert by_key(ask(step, "ada", stats=stats).answers)["ada"][STATUS] == FOUND
    assert (stats.requests, stats.errors) in {(2, 1), (1, 0)}  # some clients see for themselves that it was cut


def test_definitions_travel_and_show_no_more_than_where_they_lead(store: Store) -> None:
    from pyspark import cloudpickle

    lookup = store.lookup()
    again = cloudpickle.loads(cloudpickle.dumps(lookup))  # type: ignore[no-untyped-call]  # has no types
    assert str(again) == str(lookup)
    if isinstance(store, HttpStore):
        assert str(lookup).startswith("http ")
