"""Times, decimals and bytes as Debezium writes them in JSON, with a schema that says how and without one."""

# ruff: noqa: E501  one case a line, with its reason and words

from __future__ import annotations

import base64
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from slackwater.formats import debezium
from tests.formats.debezium.debezium_samples import change, decode, flaw, row, wrapped, written

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NOON = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
MICROS = (NOON - EPOCH) // timedelta(microseconds=1)
MILLIS = MICROS // 1000
CUT = NOON.replace(microsecond=123000)
DAY = date(2026, 3, 1)
DAYS = (DAY - EPOCH.date()).days

DATE = {"type": "int32", "name": "io.debezium.time.Date"}
MICRO = {"type": "int64", "name": "io.debezium.time.MicroTimestamp"}
MILLI = {"type": "int64", "name": "io.debezium.time.Timestamp"}
NANO = {"type": "int64", "name": "io.debezium.time.NanoTimestamp"}
ZONED = {"type": "string", "name": "io.debezium.time.ZonedTimestamp"}
CONNECT_DATE = {"type": "int32", "name": "org.apache.kafka.connect.data.Date"}
CONNECT_TIME = {"type": "int64", "name": "org.apache.kafka.connect.data.Timestamp"}
SCALED = {"type": "struct", "name": "io.debezium.data.VariableScaleDecimal"}
TEXT, DOUBLE, BYTES = {"type": "string"}, {"type": "double"}, {"type": "bytes"}


def exact(scale: Any) -> dict[str, Any]:  # noqa: ANN401
    return {**BYTES, "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": scale}}


def digits(number: int) -> str:
    """Return the bytes of Java's BigInteger in base64."""
    size = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return base64.b64encode(number.to_bytes(size, "big", signed=True)).decode()


def column(value: object) -> dict[str, Any]:
    return change("u", {"id": 1, "a": None}, {"id": 1, "a": value})


def described(value: object, field: dict[str, Any]) -> dict[str, Any]:
    return wrapped(column(value), [{"type": "int32", "field": "id"}, {**field, "field": "a"}])


@pytest.mark.parametrize(
    "field, value, dtype, expected",
    [
        (DATE, DAYS, "date", DAY),
        (CONNECT_DATE, DAYS, "date", DAY),
        ({"type": "int32"}, DAYS, "date", DAY),
        (TEXT, "2026-03-01", "date", DAY),
        (DATE, DAYS, "int", DAYS),
        (MICRO, MICROS, "timestamp", NOON),
        (MILLI, MILLIS, "timestamp", CUT),
        (CONNECT_TIME, MILLIS, "timestamp", CUT),
        (NANO, MICROS * 1000 + 999, "timestamp", NOON),
        (NANO, -1, "timestamp", EPOCH - timedelta(microseconds=1)),
        (ZONED, "2026-03-01T13:00:00.123456+01:00", "timestamp", NOON),
        (MICRO, MICROS, "long", MICROS),
        (MICRO, -62135596800000000, "timestamp", datetime(1, 1, 1, tzinfo=UTC)),
        (exact("2"), digits(123456), "decimal(10,2)", Decimal("1234.56")),
        (exact("2"), digits(-1), "decimal(10,2)", Decimal("-0.01")),
        (exact("0"), digits(7), "decimal(10,2)", Decimal("7.00")),
        (exact("4"), digits(120000), "decimal(10,2)", Decimal("12.00")),
        (exact("-2"), digits(12), "decimal(10,2)", Decimal("1200.00")),
        (exact("none"), digits(123), "decimal(10,2)", Decimal("1.23")),
        (exact(2), digits(123), "decimal(10,2)", Decimal("1.23")),
        (exact("0"), digits(10**38 - 1), "decimal(38,0)", Decimal(10**38 - 1)),
        (exact("0"), digits(1 - 10**38), "decimal(38,0)", Decimal(1 - 10**38)),
        (SCALED, {"scale": 3, "value": digits(1500)}, "decimal(10,2)", Decimal("1.50")),
        (SCALED, {"scale": -1, "value": digits(15)}, "decimal(10,2)", Decimal("150.00")),
        (TEXT, "12.3", "decimal(10,2)", Decimal("12.30")),
        (TEXT, "-12", "decimal(10,2)", Decimal("-12.00")),
        (TEXT, "1E+3", "decimal(10,2)", Decimal("1000.00")),
        (TEXT, "0E-10", "decimal(10,2)", Decimal("0.00")),
        (TEXT, "12.3000", "decimal(10,2)", Decimal("12.30")),
        (TEXT, "0.5", "decimal(2,2)", Decimal("0.50")),
        (DOUBLE, 12.3, "decimal(10,2)", Decimal("12.30")),
        ({"type": "int64"}, 12, "decimal(10,2)", Decimal("12.00")),
        (BYTES, "AQI=", "binary", b"\x01\x02"),
        (BYTES, "", "binary", b""),
    ],
)  # fmt: skip
def test_value_is_read_as_the_schema_of_the_record_says(
    field: dict[str, Any], value: object, dtype: str, expected: object
) -> None:
    found = row(described(value, field), schema=f"id int, a {dtype}")
    assert found["after"] == {"id": 1, "a": expected}
    assert found["before"] == {"id": 1, "a": None}


@pytest.mark.parametrize("side", [0, 1], ids=["before", "after"])
def test_schema_may_describe_the_row_on_one_side_only(side: int) -> None:
    record = described(MICROS, MICRO)
    record["schema"]["fields"][1 - side].pop("fields")
    assert row(record, schema="id int, a timestamp")["after"]["a"] == NOON


@pytest.mark.parametrize(
    "field, value, dtype, reason, message",
    [
        (DATE, 2932897, "date", "out_of_range", "is declared date; got number 2932897 (days since 1970)"),
        (DATE, "2026-03-01", "date", "wrong_type", 'is declared date and written as a number of days; got string "2026'),
        (MICRO, DAYS, "date", "wrong_type", "is declared date; got number 20513"),
        (DATE, DAYS, "timestamp", "wrong_type", "is declared timestamp; got number 20513"),
        (MICRO, 9223372036825200000, "timestamp", "out_of_range", "(micros since 1970)"),
        (MILLI, MICROS, "timestamp", "out_of_range", "(millis since 1970)"),
        ({"type": "int64"}, MICROS, "timestamp", "unknown_unit", f'timestamp; got number {MICROS} (its unit is unknown; set times="micros" or times="millis")'),
        (exact("4"), digits(123456), "decimal(10,2)", "out_of_range", '"AeJA" (123456 with 4 digits after the point)'),
        (exact("0"), digits(10**9), "decimal(10,2)", "out_of_range", "(1000000000 with 0 digits after the point)"),
        (exact("0"), digits(10**38), "decimal(38,0)", "out_of_range", "is declared decimal(38,0); got string"),
        (exact("0"), digits(2**200), "decimal(38,0)", "out_of_range", "is declared decimal(38,0); got string"),
        (exact("999"), digits(1), "decimal(10,2)", "out_of_range", "is declared decimal(10,2); got string"),
        (exact("2"), "*", "decimal(10,2)", "wrong_type", 'got string "*" (not the base64 of a decimal\'s digits)'),
        (exact("2"), "é", "decimal(10,2)", "wrong_type", "(not the base64 of a decimal's digits)"),
        (exact("2"), "", "decimal(10,2)", "wrong_type", 'got string "" (no digits)'),
        (exact("2"), 1.5, "decimal(10,2)", "wrong_type", "is declared decimal(10,2) and written as base64 of its digits; got number 1.5"),
        (SCALED, {"scale": 2}, "decimal(10,2)", "wrong_type", "(no value)"),
        (SCALED, {"value": "AQ=="}, "decimal(10,2)", "wrong_type", "(no digits)"),
        (TEXT, "much", "decimal(10,2)", "wrong_type", 'got string "much" (not a decimal number)'),
        (TEXT, "NaN", "decimal(10,2)", "wrong_type", "(not a decimal number)"),
        (TEXT, "1.234", "decimal(10,2)", "out_of_range", "(more than 2 digits after the point)"),
        (TEXT, "1e9999", "decimal(10,2)", "out_of_range", 'got string "1e9999"'),
        (DOUBLE, 0.1 + 0.2, "decimal(10,2)", "out_of_range", "(more than 2 digits after the point)"),
        (BYTES, "AQ", "binary", "wrong_type", 'is declared binary; got string "AQ"'),
        (BYTES, 5, "binary", "wrong_type", "is declared binary and written as base64; got number 5"),
    ],
)  # fmt: skip
def test_value_that_is_not_as_the_schema_says_is_a_dead_letter(
    field: dict[str, Any], value: object, dtype: str, reason: str, message: str
) -> None:
    found = flaw(described(value, field), schema=f"id int, a {dtype}")
    assert found[0] == reason
    assert found[1].startswith("field `after.a` is declared")
    assert message in found[1]


@pytest.mark.parametrize(
    "value, dtype, options, expected",
    [
        (DAYS, "date", {}, DAY),
        ("2026-03-01", "date", {}, DAY),
        ("2026-03-01T12:00:00.123456Z", "timestamp", {}, NOON),
        (MICROS, "timestamp", {"times": "micros"}, NOON),
        (MILLIS, "timestamp", {"times": "millis"}, CUT),
        (MICROS * 1000, "timestamp", {"times": "nanos"}, NOON),
        (MICROS, "timestamp", {"times": "auto"}, NOON),
        (MILLIS, "timestamp", {"times": "auto"}, CUT),
        (MICROS * 1000, "timestamp", {"times": "auto"}, NOON),
        (2**63 - 1, "timestamp", {"times": "auto"}, EPOCH + timedelta(microseconds=(2**63 - 1) // 1000)),
        (-(2**63), "timestamp", {"times": "auto"}, EPOCH + timedelta(microseconds=-(2**63) // 1000)),
        (10**14 - 1, "timestamp", {"times": "auto"}, EPOCH + timedelta(milliseconds=10**14 - 1)),
        (10**14, "timestamp", {"times": "auto"}, EPOCH + timedelta(microseconds=10**14)),
        (-MILLIS, "timestamp", {"times": "auto"}, EPOCH - (CUT - EPOCH)),
        ("2026-03-01T12:00:00.123456Z", "timestamp", {"times": "micros"}, NOON),
        (digits(123), "decimal(10,2)", {}, Decimal("1.23")),
        ("1234", "decimal(10,2)", {"decimals": "string"}, Decimal("1234.00")),
        (1.25, "decimal(10,2)", {"decimals": "double"}, Decimal("1.25")),
        ("AQI=", "binary", {}, b"\x01\x02"),
    ],
)
def test_value_without_a_schema_is_read_by_what_it_is_and_the_options(
    value: object, dtype: str, options: dict[str, Any], expected: object
) -> None:
    assert row(column(value), schema=f"id int, a {dtype}", **options)["after"]["a"] == expected


@pytest.mark.parametrize(
    "value, dtype, options, reason",
    [
        (MICROS, "timestamp", {}, "unknown_unit"),
        (True, "timestamp", {"times": "micros"}, "wrong_type"),
        (-(2**63), "timestamp", {"times": "millis"}, "out_of_range"),
        (-(2**63), "date", {}, "out_of_range"),
        ("noon", "timestamp", {}, "wrong_type"),
        (1.25, "decimal(10,2)", {}, "wrong_type"),
        ("1.25", "decimal(10,2)", {"decimals": "double"}, "wrong_type"),
    ],
)
def test_value_without_a_schema_that_cannot_be_read_is_a_dead_letter(
    value: object, dtype: str, options: dict[str, Any], reason: str
) -> None:
    assert flaw(column(value), schema=f"id int, a {dtype}", **options)[0] == reason


def test_times_of_one_table_may_be_written_in_two_ways() -> None:
    form = debezium("id int, a timestamp, b timestamp", key="id", times="micros")
    both = [{"id": 1, "a": MICROS, "b": "2026-03-01T12:00:00.123456Z"}, {"id": 1, "a": "2026-03-01T12:00:00.123456Z"}]
    records = [written(change("u", None, both[number % 3 == 0])) for number in range(300)]
    decoder = form.decoder()
    for _ in range(2):
        decoded = decoder.decode(pl.Series(records, dtype=pl.Binary))
        assert decoded.bad.is_empty()
        assert decoded.frame["after"].struct.field("a").unique().to_list() == [NOON]
    mixed = written(change("u", {"id": 1, "a": MICROS}, {"id": 1, "a": "2026-03-01T12:00:00Z"}))
    assert decode(form, mixed).bad["reason"].to_list() == ["wrong_type"]


DECIMALS = st.integers(-(10**38) + 1, 10**38 - 1) | st.integers(-(2**127), 2**127 - 1) | st.integers(-1000, 1000)


@settings(max_examples=40)
@given(st.lists(st.none() | st.tuples(DECIMALS, st.integers(-3, 40)), min_size=1, max_size=20))
@example([(-(2**119), 5), (2**119 - 1, 5), (2**127 - 1, 2), (127, 0), (128, 0), (-128, 0), (-129, 0), (255, 1)])
def test_decimals_of_any_size_and_scale_are_read_exactly(numbers: list[tuple[int, int] | None]) -> None:
    form = debezium("id int, a decimal(30,5)", key="id")
    expected: list[Decimal | None] = []
    records = []
    for each in numbers:
        value = None
        if each is not None:
            shifted = Fraction(each[0]) * Fraction(10) ** (5 - each[1])
            fits = shifted.denominator == 1 and abs(shifted) < 10**30
            expected.append(Decimal(f"{shifted}e-5") if fits else None)
            value = {"scale": each[1], "value": digits(each[0])}
        else:
            expected.append(None)
        records.append(written(described(value, SCALED)))
    decoded = decode(form, *records)
    found = [None if after is None else after["a"] for after in decoded.frame["after"].to_list()]
    assert found == expected
    wrong = [at for at, each in enumerate(numbers) if each is not None and expected[at] is None]
    assert decoded.bad["index"].to_list() == wrong
    assert set(decoded.bad["reason"]) <= {"out_of_range"}
