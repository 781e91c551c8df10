"""A typed source's columns become the declared types, or the job stops: no value is changed on the way."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import polars as pl
import pytest

from slackwater.base.errors import RunError
from slackwater.connectors.chunk import conform

Type = type[pl.DataType] | pl.DataType
FIVE = datetime(2026, 1, 1, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    "values, found, declared, taken",
    [
        pytest.param([1, None], pl.Int32, pl.Int64, [1, None], id="wider"),
        pytest.param([1, 2], pl.Int64, pl.Int8, [1, 2], id="narrower, and it fits"),
        pytest.param([1, 2], pl.Int64, pl.Float64, [1.0, 2.0], id="whole numbers as doubles"),
        pytest.param([1.0, 2.0], pl.Float64, pl.Int64, [1, 2], id="doubles that are whole"),
        pytest.param([0.5, float("nan")], pl.Float32, pl.Float64, [0.5, float("nan")], id="NaN"),
        pytest.param(["-3", None], pl.String, pl.Int64, [-3, None], id="digits"),
        pytest.param([None, None], pl.Null, pl.String, [None, None], id="nothing at all"),
        pytest.param([[1], None], pl.List(pl.Int32), pl.List(pl.Int64), [[1], None], id="lists"),
    ],
)
def test_column_whose_values_stay_what_they_are(
    values: list[Any], found: Type, declared: Type, taken: list[Any]
) -> None:
    frame = conform(
        pl.DataFrame({"v": pl.Series(values, dtype=found)}), pl.Schema({"v": declared, "w": pl.String}), "f"
    )
    assert frame["v"].equals(pl.Series("v", taken, dtype=declared))
    assert frame["w"].null_count() == len(values)


@pytest.mark.parametrize(
    "values, found, declared, at_fault",
    [
        pytest.param([1.0, 1.5], pl.Float64, pl.Int64, "1.5 is not a valid Int64", id="a fraction"),
        pytest.param([1, 300], pl.Int64, pl.Int8, "300 is not a valid Int8", id="too large"),
        pytest.param([2**53 + 1], pl.Int64, pl.Float64, "9007199254740993 is not a valid Float64", id="for a double"),
        pytest.param([0.1], pl.Float64, pl.Float32, "0.1 is not a valid Float32", id="for a float"),
        pytest.param(
            [Decimal("1.25")], pl.Decimal(10, 2), pl.Decimal(10, 1), "not a valid Decimal", id="a decimal place"
        ),
        pytest.param(["1", "one"], pl.String, pl.Int64, "'one' is not a valid Int64", id="no number"),
        pytest.param(["007"], pl.String, pl.Int64, "'007' is not a valid Int64", id="a name of digits"),
        pytest.param([FIVE], pl.Datetime("us", "UTC"), pl.Date, "is not a valid Date", id="a time"),
        pytest.param([[1]], pl.List(pl.Int64), pl.Int64, "is not a valid Int64", id="a list"),
    ],
)
def test_value_that_would_be_changed_stops_the_job_in_plain_words(
    values: list[Any], found: Type, declared: Type, at_fault: str
) -> None:
    frame = pl.DataFrame({"v": pl.Series(values, dtype=found)})
    with pytest.raises(RunError, match=rf"SOURCE_COLUMN_TYPE.*`v` of some/file is .*{at_fault}.*; declare the column"):
        conform(frame, pl.Schema({"v": declared}), "some/file")
