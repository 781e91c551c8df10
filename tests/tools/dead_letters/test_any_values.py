"""A dead letter of a typed row is written whatever its values are, and sent again it never becomes another row."""

from __future__ import annotations

import json
import math
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import slackwater as sw
from slackwater.formats.row_payloads import row_payloads
from slackwater.formats.undecoded import decoder_of
from slackwater.tools.dead_letters.ledger import ledger_path
from slackwater.tools.dead_letters.places import where_of
from slackwater.tools.dead_letters.retry import open_retry
from slackwater.tools.dead_letters.selecting import Filters

NAN, INF = math.nan, math.inf
TIMESTAMP = pl.Datetime("us", "UTC")
FIRST_US, AFTER_LAST_US = -62_135_596_800_000_000, 253_402_300_800_000_000


def buried(schema: Any, rows: Any, **rules: str) -> list[Any]:  # noqa: ANN401
    """Return the payloads of the dead letters that rows of a typed source become."""
    stream = sw.stream("s", sw.testing.rows_source(schema)).validate(**(rules or {"good": "false"}))
    pipeline = sw.Pipeline("p", stream.to(sw.sinks.memory()), stream.dead_letters.to(sw.sinks.memory()))
    letters = sw.testing.run(pipeline, {"s": rows})[stream.dead_letters]
    assert set(letters["reason"]) == {"invalid"}
    return [json.loads(payload) for payload in letters["payload"]]


def test_what_is_not_finite_is_written_as_a_string() -> None:
    rows = [{"v": value, "n": 1} for value in (NAN, INF, -INF, 1.5, None)]
    assert buried("v double, n long", rows) == [
        {"v": "NaN", "n": 1},
        {"v": "Infinity", "n": 1},
        {"v": "-Infinity", "n": 1},
        {"v": 1.5, "n": 1},
        {"v": None, "n": 1},
    ]


def test_so_it_is_inside_of_lists_structs_and_maps() -> None:
    rows = [
        {"l": [1.0, NAN, None], "s": {"f": -INF, "t": "é\n"}, "m": [{"key": "k", "value": INF}]},
        {"l": [], "s": None, "m": []},
        {"l": None, "s": {"f": None, "t": None}, "m": None},
    ]
    assert buried("l array<double>, s struct<f: float, t: string>, m map<string, double>", rows) == [
        {"l": [1.0, "NaN", None], "s": {"f": "-Infinity", "t": "é\n"}, "m": [{"key": "k", "value": "Infinity"}]},
        {"l": [], "s": None, "m": []},
        {"l": None, "s": {"f": None, "t": None}, "m": None},
    ]


def test_bytes_are_base64_and_decimals_keep_their_digits() -> None:
    rows = pl.DataFrame(
        {"b": [b"\xff\x00"], "bs": [[b"\xfe", None]], "d": [Decimal("0.1234567890123456789012345678901234567")]},
        schema={"b": pl.Binary, "bs": pl.List(pl.Binary), "d": pl.Decimal(38, 37)},
    )
    [payload] = row_payloads(rows)
    assert payload == b'{"b":"/wA=","bs":["/g==",null],"d":0.1234567890123456789012345678901234567}'


def test_times_that_no_calendar_has_are_shown_by_their_distance() -> None:
    far = pl.DataFrame({"t": [2**63 - 1, 0, None, FIRST_US, FIRST_US - 1]}).cast(TIMESTAMP)
    far = far.with_columns(d=pl.Series([2**31 - 1, 0, None, -719_162, -719_163], dtype=pl.Int32).cast(pl.Date))
    assert [tuple(row.values()) for row in buried({"t": TIMESTAMP, "d": pl.Date}, far)] == [
        ("9223372036854775807 us since 1970-01-01", "2147483647 days since 1970-01-01"),
        ("1970-01-01T00:00:00+00:00", "1970-01-01"),
        (None, None),
        ("0001-01-01T00:00:00+00:00", "0001-01-01"),
        ("-62135596800000001 us since 1970-01-01", "-719163 days since 1970-01-01"),
    ]


def test_a_row_that_fails_after_strange_columns_were_made_is_a_dead_letter_too() -> None:
    stream = (
        sw.stream("s", sw.testing.rows_source("v double"))
        .with_columns(took=pl.lit(timedelta(seconds=1.5)), at=pl.lit(5).cast(pl.Time), pair=pl.concat_arr("v", "v"))
        .where(pl.col("v").cast(pl.String).cast(pl.Int64) > 0)
        .select("v")
    )
    pipeline = sw.Pipeline("p", stream.to(sw.sinks.memory()), stream.dead_letters.to(sw.sinks.memory()))
    [letter] = sw.testing.run(pipeline, {"s": [{"v": NAN}]})[stream.dead_letters].to_dicts()
    assert letter["reason"] == "failed"
    assert json.loads(letter["payload"]) == {
        "v": "NaN",
        "took": "1500000 us",
        "at": "00:00:00.000000005",
        "pair": ["NaN", "NaN"],
    }


@pytest.mark.parametrize(
    "dtype, value, text",
    [
        (pl.Object(), 1 + 2j, '"(1+2j)"'),
        (pl.Enum(["a"]), "a", '"a"'),
        (pl.Int128(), 2**127 - 1, str(2**127 - 1)),
        (pl.Null(), None, "null"),
        (pl.Array(pl.Binary(), 1), [b"\xff"], '["/w=="]'),
        (pl.Struct([]), {}, "{}"),
    ],
)
def test_types_that_cannot_be_declared_have_a_text(dtype: pl.DataType, value: object, text: str) -> None:
    rows = pl.DataFrame([pl.Series("a", [value, None], dtype=dtype), pl.Series("x", [NAN, NAN])])
    first, second = row_payloads(rows)
    assert first == f'{{"a":{text},"x":"NaN"}}'.encode()
    assert json.loads(second) == {"a": None, "x": "NaN"}


def _values(dtype: pl.DataType) -> st.SearchStrategy[Any]:
    """Return values of a declared type, times as whole numbers of any size."""
    by_type: dict[type, st.SearchStrategy[Any]] = {
        pl.Boolean: st.booleans(),
        pl.Int8: st.integers(-128, 127),
        pl.Int64: st.integers(-(2**63), 2**63 - 1),
        pl.UInt64: st.integers(0, 2**64 - 1),
        pl.Float32: st.floats(width=32),
        pl.Float64: st.floats(),
        pl.String: st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
        pl.Binary: st.binary(max_size=5),
        pl.Decimal: st.integers(-(10**38) + 1, 10**38 - 1).map(lambda digits: Decimal(digits).scaleb(-9)),
        pl.Date: st.integers(-(2**31), 2**31 - 1) | st.integers(-800_000, 3_000_000),
        pl.Datetime: st.integers(-(2**63), 2**63 - 1) | st.integers(FIRST_US - 5, AFTER_LAST_US + 5),
    }
    if isinstance(dtype, pl.List):
        return st.none() | st.lists(_values(dtype.inner), max_size=3)  # type: ignore[arg-type]
    if isinstance(dtype, pl.Struct):
        return st.none() | st.fixed_dictionaries({field.name: _values(field.dtype) for field in dtype.fields})  # type: ignore[arg-type]
    return st.none() | by_type[type(dtype)]


def _whole(dtype: Any) -> Any:  # noqa: ANN401  a type inside another one
    """Return `dtype` with whole numbers for times: Python has no form for some of them."""
    if isinstance(dtype, pl.List):
        return pl.List(_whole(dtype.inner))
    if isinstance(dtype, pl.Struct):
        return pl.Struct({field.name: _whole(field.dtype) for field in dtype.fields})
    return pl.Int32() if isinstance(dtype, pl.Date) else pl.Int64() if isinstance(dtype, pl.Datetime) else dtype


def _has_no_json(value: Any, dtype: Any) -> bool:  # noqa: ANN401
    """Return whether there is something in `value` that JSON cannot hold: the slow and obvious way."""
    if value is None:
        return False
    if isinstance(dtype, pl.List):
        return any(_has_no_json(item, dtype.inner) for item in value)
    if isinstance(dtype, pl.Struct):
        return any(_has_no_json(value[field.name], field.dtype) for field in dtype.fields)
    if isinstance(dtype, pl.Datetime):
        return not FIRST_US <= value < AFTER_LAST_US
    if isinstance(dtype, pl.Date):
        return not -719_162 <= value <= 2_932_896
    return isinstance(value, float) and not math.isfinite(value)


_SCALARS = st.sampled_from(
    [
        *(pl.Boolean(), pl.Int8(), pl.Int64(), pl.UInt64(), pl.Float32(), pl.Float64(), pl.String(), pl.Binary()),
        *(pl.Decimal(38, 9), pl.Date(), TIMESTAMP),
    ]
)
_TYPES = st.recursive(
    _SCALARS,
    lambda inner: (
        inner.map(pl.List)
        | st.lists(inner, min_size=1, max_size=3).map(
            lambda types: pl.Struct({f"f{n}": t for n, t in enumerate(types)})
        )
        | inner.map(lambda value: pl.List(pl.Struct({"key": pl.String(), "value": value})))
    ),
    max_leaves=4,
)


@given(data=st.data(), types=st.lists(_TYPES, min_size=1, max_size=4))
def test_a_row_of_any_values_becomes_a_letter_that_is_read_as_the_same_row_or_not_at_all(
    data: st.DataObject, types: list[pl.DataType]
) -> None:
    schema = pl.Schema({f"c{number}": dtype for number, dtype in enumerate(types)})
    rows = data.draw(st.lists(st.tuples(*map(_values, types)), min_size=1, max_size=4))
    whole = pl.DataFrame(rows, schema={name: _whole(dtype) for name, dtype in schema.items()}, orient="row")
    frame = whole.cast(schema)
    payloads = row_payloads(frame)
    for payload in payloads:
        json.loads(payload, parse_constant=pytest.fail)
    decoded = decoder_of(sw.formats.json(schema)).decode(payloads)
    lost = {n for n, row in enumerate(rows) if any(map(_has_no_json, row, types))}
    assert set(decoded.bad["index"]) == lost
    assert set(decoded.bad["reason"]) <= {"wrong_type"}
    kept = [number for number in range(len(rows)) if number not in lost]
    assert_frame_equal(decoded.frame[kept], frame[kept], check_exact=True)


def test_a_letter_that_is_sent_again_comes_back_by_name_and_not_as_another_value(tmp_path: Path) -> None:
    stream = sw.stream("s", sw.testing.rows_source("id long, v double")).validate(finite="v < 100")
    letters_to = sw.sinks.files(tmp_path / "dead")
    pipeline = sw.Pipeline("p", stream.to(sw.sinks.memory()), stream.dead_letters.to(letters_to))
    rows = [{"id": 1, "v": NAN}, {"id": 2, "v": 200.0}]
    letters = sw.testing.run(pipeline, {"s": rows})[stream.dead_letters]
    with sw.testing.SinkHarness(sink=letters_to, schema=letters.schema, output="s.dead_letters") as job:
        job.deliver(letters)
    (tmp_path / "log").mkdir()
    where, to = (where_of(str(tmp_path / name), what="WHERE") for name in ("dead", "log"))
    with open_retry(where, to, ledger_path(where)) as retry:
        assert retry.send(retry.plan(Filters())) == len(rows)
    [file] = (tmp_path / "log" / "0").glob("*.jsonl")
    for form in (sw.formats.json("id long, v double"), sw.formats.json("id long, v double", numbers_as_strings=True)):
        decoded = decoder_of(form).decode(pl.Series(file.read_bytes().splitlines(), dtype=pl.Binary))
        assert decoded.bad["reason"].to_list() == ["wrong_type"]
        assert 'field `v` is declared double; got string "NaN"' in decoded.bad["message"][0]
        assert decoded.frame.row(1) == (2, 200.0)
