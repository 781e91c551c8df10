"""Casts in SQL take the names of types that schemas have, and `user` is a column."""

from __future__ import annotations

import polars as pl
import pytest

from slackwater.base.expressions import as_expr
from slackwater.base.sql_names import with_known_names


@pytest.mark.parametrize(
    "name, dtype",
    [
        ("long", pl.Int64()),
        ("LONG", pl.Int64()),
        ("bigint", pl.Int64()),
        ("int", pl.Int32()),
        ("short", pl.Int16()),
        ("byte", pl.Int8()),
        ("string", pl.String()),
        ("double", pl.Float64()),
        ("boolean", pl.Boolean()),
        ("date", pl.Date()),
    ],
)
@pytest.mark.parametrize("text", ["cast(x as {})", "CAST( x AS  {} )", "x::{}", "try_cast(x as {})"])
def test_casts_take_the_names_of_types_in_schemas(text: str, name: str, dtype: pl.DataType) -> None:
    rows = pl.DataFrame({"x": pl.Series([1], dtype=pl.Int32)})
    assert rows.select(as_expr(text.format(name)).alias("x")).schema["x"] == dtype


@pytest.mark.parametrize(
    "text",
    [
        "x = 'cast(y as long)'",
        "x = 'it''s as long)'",
        '"cast(y as long)" + 1',
        "price as long",
        "x -- ::long\n + 1",
        "x::longs",
        "long + short",
        "x = 'user'",
        '"user" = 1',
        "users = user_id",
    ],
)
def test_what_is_no_type_stays_as_it_is(text: str) -> None:
    assert with_known_names(text) == text


@pytest.mark.parametrize("text", ["user = 'ada'", "USER = 'ada'", "lower(user) = 'ada'", "user IN ('ada', 'user')"])
def test_user_is_a_column_like_any_other(text: str) -> None:
    column = "USER" if "USER" in text else "user"
    assert pl.DataFrame({column: ["ada", "bob"]}).filter(as_expr(text)).height == 1
