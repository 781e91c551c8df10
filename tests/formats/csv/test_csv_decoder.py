"""What becomes of CSV records: values of every plain type, and what is wrong with the others."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import polars as pl
import pytest

from slackwater.base.errors import DefinitionError
from slackwater.formats.base import Decoded
from slackwater.formats.csv import CsvDecoder, csv
from tests.cases import cases

COMPANY = 60


def decode(ddl: Any, records: list[bytes | None], **options: Any) -> Decoded:  # noqa: ANN401
    return CsvDecoder(csv(ddl, **options)).decode(pl.Series(records, dtype=pl.Binary))


def outcome(ddl: Any, record: bytes | str, **options: Any) -> tuple[Any, ...] | str:  # noqa: ANN401
    """Return a record's row or its reason, after checking that company makes no difference."""
    payload = record.encode() if isinstance(record, str) else record
    alone = single(decode(ddl, [payload], **options), 0)
    assert single(decode(ddl, [payload] * COMPANY, **options), COMPANY - 1) == alone
    neighbours: list[bytes | None] = [b'"', b"1,2,3,4,5,6,7", b"x\ny", b""] * COMPANY
    among = decode(ddl, [*neighbours, payload, *neighbours], **options)
    assert single(among, len(neighbours)) == alone
    return alone


def single(decoded: Decoded, at: int) -> tuple[Any, ...] | str:
    found = decoded.bad.filter(pl.col("index") == at)
    row = decoded.frame.row(at)
    if found.height:
        assert set(row) == {None}
        return str(found["reason"][0])
    return row


def value(dtype: Any, text: str) -> Any:  # noqa: ANN401
    """Return what the second of three columns becomes, or the reason why not."""
    found = outcome({"x": pl.String, "a": dtype, "y": pl.String}, f"x,{text},y")
    return found if isinstance(found, str) else found[1]


@pytest.mark.parametrize(
    "dtype, text, expected",
    cases(
        {
            pl.Int64: [("12", 12), ('"12"', 12), ("-9223372036854775808", -(2**63)), ("-0", 0), ("", None)],
            pl.Int8: [("-128", -128)],
            pl.UInt64: [("18446744073709551615", 2**64 - 1)],
            pl.Float64: [
                ("1", 1.0),
                ("-1.5e-3", -0.0015),
                ("1E5", 100000.0),
                ("1.7976931348623157e308", 1.7976931348623157e308),
                ("0." + "3" * 60, 1 / 3),
            ],
            pl.Float32: [("1.5", 1.5)],
            pl.String: [
                ("word", "word"),
                (" blanks stay ", " blanks stay "),
                ("", None),
                ('""', ""),
                ('"a,b"', "a,b"),
                ('"say ""hi"""', 'say "hi"'),
                ('""""', '"'),
                ('"two\r\nlines"', "two\r\nlines"),
                ('"\n"', "\n"),
                ("é😀\x00", "é😀\x00"),
                ("'single'", "'single'"),
            ],
            pl.Boolean: [("true", True), ("false", False), ('"true"', True)],
            pl.Date: [("2024-02-29", date(2024, 2, 29)), ("0001-01-01", date(1, 1, 1))],
            pl.Datetime: [
                ("2024-01-31T12:00:00Z", datetime(2024, 1, 31, 12, tzinfo=UTC)),
                ("2024-01-31 12:00", datetime(2024, 1, 31, 12, tzinfo=UTC)),
                ('"2024-01-31T12:00:00.5+02:00"', datetime(2024, 1, 31, 10, 0, 0, 500_000, tzinfo=UTC)),
                ("2024-01-31T12:00:00-0530", datetime(2024, 1, 31, 17, 30, tzinfo=UTC)),
                ("2024-01-31T12:00:00+14", datetime(2024, 1, 30, 22, tzinfo=UTC)),
                ("2024-01-31T12:00:00.123456789Z", datetime(2024, 1, 31, 12, 0, 0, 123_456, tzinfo=UTC)),
                ("1969-12-31T23:59:59.999Z", datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)),
                ("9999-12-31T23:59:59.999999Z", datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)),
            ],
            pl.Binary: [("AQI=", b"\x01\x02"), ('""', b"")],
            pl.Decimal(10, 2): [
                ("12.34", Decimal("12.34")),
                ("12.340", Decimal("12.34")),
                ("-1e3", Decimal("-1000.00")),
            ],
            pl.Decimal(38, 18): [("12345678901234567890.1234567890123", Decimal("12345678901234567890.1234567890123"))],
            pl.Decimal(38, 0): [("9" * 38, Decimal("9" * 38))],
            pl.Decimal(3, 3): [("-0.125", Decimal("-0.125"))],
        }
    ),
)
def test_a_value_of_the_declared_type_is_read_exactly(dtype: Any, text: str, expected: object) -> None:  # noqa: ANN401
    assert value(dtype, text) == expected


@pytest.mark.parametrize(
    "dtype, text",
    cases(
        {
            pl.Int64: ["12.5", "12.0", "1e2", " 12", "12 ", "+12", "007", "0x10", "1_000", "١٢", "-", '""', "true"],
            pl.Float64: ["NaN", "inf", "1.", ".5", "1;5"],
            pl.Boolean: ["TRUE", "1", "yes"],
            pl.Date: ["2024-02-30", "2024-01-31T00:00:00Z", "31.01.2024"],
            pl.Datetime: [
                "2024-01-31",
                "1700000000",
                "2024-01-31T24:00:00Z",
                "2024-02-30T00:00:00Z",
                "infinity",
                "epoch",
            ],
            pl.Binary: ["AQI", "not base64!"],
            pl.Decimal(10, 2): ["12.34.5", "twelve"],
        }
    ),
)
def test_a_value_of_another_type_is_never_coerced(dtype: Any, text: str) -> None:  # noqa: ANN401
    assert value(dtype, text) == "wrong_type"


@pytest.mark.parametrize(
    "dtype, text",
    cases(
        {
            pl.Int64: ["9223372036854775808", "1" * 5000, "1e400"],
            pl.Int8: ["128"],
            pl.UInt8: ["-1"],
            pl.Float64: ["1e400"],
            pl.Float32: ["1e39"],
            pl.Decimal(10, 2): ["123456789", "1.555", "1e99999999999999999999"],
            pl.Datetime: ["0001-01-01T00:00:00+02:00"],
        }
    ),
)
def test_a_number_beyond_its_type_is_out_of_range(dtype: Any, text: str) -> None:  # noqa: ANN401
    assert value(dtype, text) == "out_of_range"


@pytest.mark.parametrize(
    "record, reason, words",
    [
        (b"", "empty_record", "the record is empty"),
        (b"\r\n", "empty_record", "the record is empty"),
        (b"1,x", "wrong_columns", "a record has 3 columns; got 2, nothing for `c`"),
        (b"1", "wrong_columns", "a record has 3 columns; got 1, nothing for `b`"),
        (b"1,x,true,more", "wrong_columns", 'a record has 3 columns; got 4, "more" after `c`'),
        (b"1,x,true,", "wrong_columns", 'a record has 3 columns; got 4, "" after `c`'),
        (b"1.5,x,true", "wrong_type", 'column `a` is declared bigint; got "1.5"'),
        (b"9223372036854775808,x,true", "out_of_range", 'column `a` is declared bigint; got "9223372036854775808"'),
        (b"1,x,yes", "wrong_type", 'column `c` is declared boolean; got "yes"'),
        (b"a,b,c", "wrong_type", 'column `a` is declared bigint; got "a"'),
        (b'1,"x,true', "malformed", 'column `b`: a quote is opened and not closed; begins "\\"x,true"'),
        (b'1,"x"y,true', "malformed", "column `b`: a value after a closing quote at character 5"),
        (b'1,x"y",true', "malformed", "column `b`: a quote inside a value at character 3"),
        (b'1,x,true,more"', "malformed", "after column `c`: a quote inside a value at character 13"),
        (b"1,x\ny,true", "malformed", "column `b`: a line break outside quotes at character 3"),
        (b"1,x,true\n\n", "malformed", "column `c`: a line break outside quotes at character 8"),
        (b"1,x,true\n2,y,false", "malformed", "column `c`: a line break outside quotes at character 8"),
        (b"1,\xff,true", "invalid_utf8", "byte 0xff at position 2"),
        (None, "empty_record", "the record has no payload"),
        (b"1," + b"x" * (1 << 20) + b",true", "too_long", "a record may have at most 1048576 bytes"),
    ],
)
def test_a_bad_record_has_its_reason_its_column_and_what_it_held(record: bytes | None, reason: str, words: str) -> None:
    ddl = "a bigint, b string, c boolean"
    good: list[bytes | None] = [b"1,x,true"] * COMPANY
    decoded = decode(ddl, [*good, record, *good])
    assert decoded.bad["index"].to_list() == [COMPANY]
    assert decoded.bad["reason"][0] == reason
    assert words in decoded.bad["message"][0]
    assert decoded.frame.row(COMPANY) == (None, None, None)
    assert decoded.frame.rows()[:COMPANY] == [(1, "x", True)] * COMPANY == decoded.frame.rows()[COMPANY + 1 :]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", ""])
def test_a_line_break_after_the_last_value_is_passed_over(end: str) -> None:
    assert outcome("a bigint, b string", f"1,x{end}") == (1, "x")
    assert outcome("a bigint, b string", f'1,"x"{end}') == (1, "x")
    assert outcome("a bigint, b string", f"1,{end}") == (1, None)
    assert outcome("a string", f"x{end}") == ("x",)


def test_a_header_line_is_a_dead_letter_like_any_record_that_does_not_fit() -> None:
    assert outcome("event_id bigint, key string", "event_id,key") == "wrong_type"
    assert outcome("name string, key string", "name,key") == ("name", "key")


def test_what_stands_for_null_can_be_chosen_and_in_quotes_it_is_a_text() -> None:
    ddl = "a string, b bigint, c string"
    assert outcome(ddl, r"\N,\N,", null=r"\N") == (None, None, "")
    assert outcome(ddl, r'"\N",1,x', null=r"\N") == (r"\N", 1, "x")
    assert outcome(ddl, r"x,,x", null=r"\N") == "wrong_type"
    assert outcome(ddl, 'NULL,"1",null', null="NULL") == (None, 1, "null")


def test_delimiter_and_quote_can_be_chosen() -> None:
    assert outcome("a string, b bigint", "'it''s;';1", delimiter=";", quote="'") == ("it's;", 1)
    assert outcome("a string, b bigint", 'say "hi"\t1', delimiter="\t", quote=None) == ('say "hi"', 1)
    assert outcome("a string, b bigint", '"a\t"\t1', delimiter="\t", quote=None) == "wrong_columns"
    assert outcome("a string, b string", "x|^y|z", delimiter="|", quote="^") == "malformed"
    assert outcome("a string, b string", "]]-^", delimiter="-", quote="^") == "malformed"
    assert outcome("a string, b string", "]]-^-^", delimiter="-", quote="^") == ("]]", "-")


def test_a_schema_of_one_column_and_one_of_many() -> None:
    assert outcome("a string", "x") == ("x",)
    assert outcome("a bigint", '"5"') == (5,)
    names = [f"c{number}" for number in range(300)]
    assert outcome(", ".join(f"{name} int" for name in names), ",".join(map(str, range(300)))) == tuple(range(300))


@pytest.mark.parametrize(
    "options, words",
    [
        ({"delimiter": ""}, "CSV option `delimiter` must be one ASCII character other than a line break; got ''"),
        ({"delimiter": ";;"}, "got ';;'"),
        ({"delimiter": "\n"}, r"got '\n'"),
        ({"delimiter": "é"}, "got 'é'"),
        ({"delimiter": None}, "got None"),
        ({"quote": ""}, "CSV option `quote` must be one ASCII character"),
        ({"quote": ","}, "CSV option `quote` must be a character other than `delimiter`; got ','"),
        ({"null": "a,b"}, "CSV option `null` must be a string without delimiter, quote or line break; got 'a,b'"),
        ({"null": None}, "got None"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        csv("a int", **options)
    assert caught.value.code == "CSV_OPTION"
    assert words in caught.value.message


def test_nested_columns_are_refused() -> None:
    with pytest.raises(DefinitionError, match=r"nested columns; got `tags` of type array<string>; declare") as caught:
        csv("id int, tags array<string>")
    assert caught.value.code == "CSV_NESTED"
