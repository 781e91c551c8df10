"""Whatever the bytes: read as Python's own `csv` reads them, or reported; neighbours unharmed."""

from __future__ import annotations

import csv as stdlib_csv
import io
import random
from typing import Any

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from slackwater.formats.csv import CsvDecoder, csv
from slackwater.formats.csv.records import LineReader
from tests.formats.csv.csv_model import expected
from tests.formats.json.json_model import BadError

SCHEMAS = [
    "a bigint, b string, c double",
    "t timestamp, d date, ok boolean, b binary, p decimal(10,2), small tinyint, f float",
    "only string",
]
DIALECTS: list[dict[str, Any]] = [
    {},
    {"delimiter": ";", "quote": "'", "null": "NULL"},
    {"delimiter": "\t", "quote": None, "null": r"\N"},
    {"delimiter": "|", "quote": '"', "null": "-"},
]
VALUES = [
    "", "12", "-1", "1.5", "1e5", "007", " 1", "+1", "9223372036854775808", "128", "NaN", "true", "false", "TRUE",
    "2024-02-29", "2024-02-30", "2024-01-31T12:00:00Z", "2024-01-31 12:00:00.123456789+02:00", "1e400", "0.1e-500",
    "AQI=", "AQI", "NULL", "-", r"\N", "x", "a,b", "a;b", 'say "hi"', "it's", "two\nlines", "two\r\nlines", "é😀",
    "99999999.99", "1.555", "-0", "0", "3.4e38", "1" * 30, "infinity", "|", "\t", "\x00",
]  # fmt: skip
SEEDS = st.integers(0, 2**32).map(random.Random)


def good(dice: random.Random, kind: str) -> str:
    """Return a value of a type as text, or nothing."""
    if not dice.randrange(8):
        return ""
    return {
        "bigint": lambda: str(dice.randrange(-(2**63), 2**63) >> dice.randrange(64)),
        "tinyint": lambda: str(dice.randrange(-128, 128)),
        "string": lambda: dice.choice(VALUES),
        "double": lambda: repr(dice.uniform(-1e6, 1e6)),
        "float": lambda: repr(dice.uniform(-1e6, 1e6)),
        "timestamp": lambda: (
            f"20{dice.randrange(10, 99)}-0{dice.randrange(1, 10)}-1{dice.randrange(10)}T10:00:00"
            + dice.choice(["", "Z", ".5Z", "+02:00", ".123456-0530"])
        ),
        "date": lambda: f"{dice.randrange(1000, 9999)}-1{dice.randrange(3)}-2{dice.randrange(10)}",
        "boolean": lambda: dice.choice(["true", "false"]),
        "binary": lambda: dice.choice(["", "AQI=", "AQ==", "AQID", "////"]),
        "decimal(10,2)": lambda: f"{dice.randrange(-(10**8), 10**8)}.{dice.randrange(100):02d}",
    }[kind]()


def record_of(dice: random.Random, ddl: str, dialect: dict[str, Any]) -> bytes:
    """Return a record as Python's own `csv` writes it, sometimes with values of other types."""
    delimiter: str = dialect.get("delimiter", ",")
    quote: str | None = dialect.get("quote", '"')
    kinds = [column.rsplit(" ", 1)[1] for column in ddl.split(", ")]
    values = [good(dice, kind) if dice.randrange(12) else dice.choice(VALUES) for kind in kinds]
    if quote is None:
        values = [value.translate(dict.fromkeys(map(ord, f"{delimiter}\r\n"), "_")) for value in values]
        return (delimiter.join(values) + dice.choice(["", "\n"])).encode()
    text = io.StringIO()
    quoting: Any = dice.choice([stdlib_csv.QUOTE_MINIMAL, stdlib_csv.QUOTE_ALL, stdlib_csv.QUOTE_NONNUMERIC])
    end = dice.choice(["", "\n", "\r\n"])
    stdlib_csv.writer(text, delimiter=delimiter, quotechar=quote, quoting=quoting, lineterminator=end).writerow(values)
    return text.getvalue().encode()


def spoil(dice: random.Random, record: bytes) -> bytes:
    at = dice.randrange(len(record) + 1)
    evil = [
        b'"',
        b"'",
        b",",
        b";",
        b"\t",
        b"|",
        b"\n",
        b"\r",
        b"\r\n",
        b"\x00",
        b"\xff",
        b"\xc3",
        b"1",
        b" ",
        b'""',
        b"-",
    ]
    return dice.choice(
        [
            record[:at],
            record[:at] + dice.choice(evil) + record[at:],
            record[:at] + record[at + dice.randrange(1, 4) :],
            record[:at] + dice.choice(evil) + record[at + 1 :],
            dice.choice([b"", b"\n", b'"', b'""', b",", b",,", b",,,,,,,", b"\xff" * 3, b"\r\r"]),
        ]
    )


def check(ddl: str, records: list[bytes], dialect: dict[str, Any]) -> None:
    form = csv(ddl, **dialect)
    decoded = CsvDecoder(form).decode(pl.Series(records, dtype=pl.Binary))
    bad = set(decoded.bad["index"])
    assert decoded.frame.schema == form.schema
    assert decoded.bad["index"].is_sorted()
    assert len(bad) == decoded.bad.height
    alone = LineReader(form.schema, form.dialect)
    for at, (record, row) in enumerate(zip(records, decoded.frame.iter_rows(named=True), strict=True)):
        try:
            wanted = expected(form.schema, record, **dialect)
        except BadError:
            assert at in bad, record
            assert set(row.values()) == {None}
        else:
            assert at not in bad, (record, decoded.bad.filter(pl.col("index") == at).to_dicts())
            assert row == wanted, record
            one = pl.DataFrame([alone.read(record.decode())], schema=form.schema, orient="row")
            assert one.row(0, named=True) == row


@pytest.mark.parametrize("dialect", DIALECTS, ids=["plain", "semicolons", "tabs", "bars"])
@pytest.mark.parametrize("ddl", SCHEMAS)
@given(dice=SEEDS)
def test_any_record_is_read_as_the_model_reads_it_or_reported(
    ddl: str, dialect: dict[str, Any], dice: random.Random
) -> None:
    records = [record_of(dice, ddl, dialect) for _ in range(6)]
    records += [spoil(dice, dice.choice(records)) for _ in range(dice.randrange(10))]
    dice.shuffle(records)
    check(ddl, records, dialect)


@given(records=st.lists(st.text(alphabet='a1,"\n\r', max_size=8).map(str.encode), max_size=30))
@example(records=[b'"a""', b'b"', b",", b'"\n","'])
@example(records=[b"", b'"', b'"'])
def test_any_mix_of_quotes_delimiters_and_line_breaks_is_read_as_the_model_reads_it(records: list[bytes]) -> None:
    check("a string, b string", records, {})


@pytest.mark.parametrize("ddl", SCHEMAS)
def test_every_value_in_every_column_is_read_as_the_model_reads_it(ddl: str) -> None:
    count = len(ddl.split(", "))
    for column in range(count):
        rows = [["1"] * column + [value] + [""] * (count - column - 1) for value in VALUES]
        text = [f"{'|'.join(row)}".encode() for row in rows]
        check(ddl, text, {"delimiter": "|", "null": ""})
