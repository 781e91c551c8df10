"""Keys as users give them, and sizes of state."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import polars as pl
import pytest

import slackwater as sw
from slackwater.base.errors import RunError
from slackwater.observe.state_reading.groups import MemoryGroups, StoredStep
from slackwater.observe.state_reading.keys import key_given, key_text
from slackwater.observe.state_reading.summary import MOST_KEYS, StepSummary, summarise
from slackwater.operators.step import KeyedStep
from tests.cases import cases
from tests.observe.state_reading.held import at, events, harness, row


def step(*types: str) -> KeyedStep:
    columns = ", ".join(f"k{number} {name}" for number, name in enumerate(types))
    stream = sw.stream("events", sw.testing.rows_source(f"{columns}, t timestamp")).event_time("t")
    results = stream.key_by(*(f"k{number}" for number in range(len(types)))).deduplicate(within="1h", name="step")
    ends = (results.to(sw.sinks.memory()), results.late.drop(), results.duplicates.drop(), stream.dead_letters.drop())
    return sw.Pipeline("p", *ends).plan().by_name["step"].spec


@pytest.mark.parametrize(
    "type_, text, value",
    cases(
        {
            "string": [("ada, the first", "ada, the first"), ("null", "null"), ("k0=ada", "ada"), ("a=b", "a=b")],
            "long": [("17", 17), ("null", None)],
            "double": [("1.5", 1.5)],
            "boolean": [("true", True)],
            "date": [("2026-03-01", date(2026, 3, 1))],
            "timestamp": [
                ("2026-03-01T12:00:00", datetime(2026, 3, 1, 12, tzinfo=UTC)),
                ("2026-03-01T13:00:00+01:00", datetime(2026, 3, 1, 12, tzinfo=UTC)),
            ],
            "binary": [("00ff", b"\x00\xff")],
        }
    ),
)
def test_key_of_one_column_is_taken_as_its_type(type_: str, text: str, value: object) -> None:
    assert key_given(text, step(type_)).rows() == [(value,)]


@pytest.mark.parametrize("text", ["ada,3", "k0=ada,k1=3", "k1=3,k0=ada"])
def test_key_of_several_columns_is_given_in_order_or_by_name(text: str) -> None:
    assert key_given(text, step("string", "long")).rows() == [("ada", 3)]


def test_value_with_a_comma_is_quoted() -> None:
    assert key_given('"a,b",3', step("string", "long")).rows() == [("a,b", 3)]


@pytest.mark.parametrize("values", [("ada", 3), ("a,b", 0), ('say "x"', None)])
def test_key_is_shown_as_it_can_be_given(values: tuple[Any, ...]) -> None:
    assert key_given(key_text(values), step("string", "long")).rows() == [values]


@pytest.mark.parametrize(
    "types, text, code, words",
    [
        (("long",), "ada", "STATE_READ_KEY_TYPE", "step `step` has the key column k0 bigint, got `ada`"),
        (("boolean",), "1", "STATE_READ_KEY_TYPE", "k0 boolean, got `1`"),
        (("timestamp",), "noon", "STATE_READ_KEY_TYPE", "times as 2026-03-01T12:00:00"),
        (("string", "long"), "ada", "STATE_READ_KEY_COLUMNS", "has the key columns k0, k1, got `ada`"),
    ],
)
def test_key_that_cannot_be_one_is_refused(types: tuple[str, ...], text: str, code: str, words: str) -> None:
    with pytest.raises(RunError) as refused:
        key_given(text, step(*types))
    assert refused.value.code == code
    assert words in refused.value.message


def sized(work: sw.testing.Harness, most_keys: int = MOST_KEYS) -> StepSummary:
    steps = [StoredStep(name=each.name, stage=each.stage, spec=each.spec) for each in work.plan.steps]
    [summary] = summarise(MemoryGroups(work.engine.state), steps, most_keys=most_keys)
    return summary


def joined() -> sw.testing.Harness:
    stream = events()
    keyed = stream.key_by("user", "shop")
    results = keyed.join(keyed, between=("0s", "1h"), name="step")
    rows = [row("ada", 3), row("bob", 1), row("ada", 2), row("ada", 9, shop=2), row("ada", 4)]
    return harness(stream, results, [rows])


def test_sizes_are_those_of_the_index_and_the_largest_keys_come_first() -> None:
    work = joined()
    summary = sized(work)
    assert (summary.rows, summary.keys, summary.oldest) == (10, 3, at(1))
    assert summary.largest == [
        {"key": "ada,1", "entries": 6},
        {"key": "ada,2", "entries": 2},
        {"key": "bob,1", "entries": 2},
    ]
    assert (summary.pieces, summary.bytes > 0) == (work.pieces, True)


def test_only_so_many_keys_are_named() -> None:
    assert [each["key"] for each in sized(joined(), most_keys=1).largest] == ["ada,1"]


def test_step_that_cannot_be_read_has_its_sizes_without_keys() -> None:
    work = joined()
    [summary] = summarise(MemoryGroups(work.engine.state), [StoredStep(name="step", stage=0, spec=None)])
    assert (summary.rows, summary.keys, summary.largest) == (10, None, [])


def test_hashes_are_counted_but_not_named() -> None:
    stream = events()
    results = stream.key_by("user").deduplicate(within="1h", name="step")
    work = harness(stream, results, [[row("ada", 0), row("bob", 9)]], duplicates=results.duplicates.drop())
    summary = sized(work)
    assert (summary.keys, summary.oldest, summary.largest) == (2, at(0), [])


def test_null_is_a_key_like_others() -> None:
    stream = events()
    results = stream.key_by("shop").window(sw.tumbling("1m"), name="step").aggregate(n=sw.count())
    work = harness(stream, results, [[row("ada", 0) | {"shop": None}, row("bob", 1)]])
    assert work.state("step", key="null").select("shop", "n").rows() == [(None, 1)]
    assert pl.Series([each["key"] for each in sized(work).largest]).sort().to_list() == ["1", "null"]
