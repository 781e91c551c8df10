"""The stable hash: literal values that are forever, and what must not change a hash."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing.parametric import series

from slackwater.base.stable_hash import hash_columns, hash_expr, hash_wide

# Checkpoints hold state by these values. A failure here means moved keys: change the code, not the number.
FOREVER = [
    (pl.Series([""], dtype=pl.String), 0x8D4482AB6DD6C67E),
    (pl.Series(["a"], dtype=pl.String), 0x53EBD257E7A8B4E3),
    (pl.Series(["user-000001"], dtype=pl.String), 0x9DABCC22793259F6),
    (pl.Series(["twelve bytes"], dtype=pl.String), 0xB4D9EEE39A9A8D32),
    (pl.Series(["thirteen byte"], dtype=pl.String), 0x73F68484F1188325),
    (pl.Series(["3f2504e0-4f89-11d3-9a0c-0305e82c3301"], dtype=pl.String), 0xCF0EB990A57F74D1),
    (pl.Series(["Grüße, 世界"], dtype=pl.String), 0x0E86C969470E1283),
    (pl.Series(["x" * 1000], dtype=pl.String), 0xD525B4A516E1118C),
    (pl.Series([b"\x00"], dtype=pl.Binary), 0x390E8914FF85FEF9),
    (pl.Series([b"\x00\x00"], dtype=pl.Binary), 0x87D3A4AB085E807F),
    (pl.Series([0], dtype=pl.Int64), 0xE220A8397B1DCDAF),
    (pl.Series([1], dtype=pl.Int64), 0x910A2DEC89025CC1),
    (pl.Series([-1], dtype=pl.Int32), 0xE4D971771B652C20),
    (pl.Series([2**63 - 1], dtype=pl.Int64), 0x2A67D7552E039EA7),
    (pl.Series([2**64 - 1], dtype=pl.UInt64), 0xE4D971771B652C20),
    (pl.Series([2**70 + 5], dtype=pl.Int128), 0x63033B0CA389C35A),
    (pl.Series([True], dtype=pl.Boolean), 0x910A2DEC89025CC1),
    (pl.Series([0.0], dtype=pl.Float64), 0xE220A8397B1DCDAF),
    (pl.Series([1.5], dtype=pl.Float32), 0xD6DAB18E1392608A),
    (pl.Series([float("nan")], dtype=pl.Float64), 0xC72971D82E15BB46),
    (pl.Series([float("-inf")], dtype=pl.Float64), 0x8CE2CA027CDA7FFE),
    (pl.Series([date(2024, 2, 29)], dtype=pl.Date), 0xDB8C04CA25F6E90D),
    (
        pl.Series([datetime(2024, 2, 29, 12, 30, 0, 123456, tzinfo=UTC)], dtype=pl.Datetime("us", "UTC")),
        0x422406ECB21F6449,
    ),
    (pl.Series([time(23, 59, 59)], dtype=pl.Time), 0x197D2FEC03BA4A05),
    (pl.Series([timedelta(seconds=90)], dtype=pl.Duration("ms")), 0x88EA4BB34E7D37CE),
    (pl.Series([Decimal("12.50")], dtype=pl.Decimal(10, 2)), 0x12446517CF12C2DB),
    (pl.Series([None], dtype=pl.String), 0x5851F42D4C957F2D),
    (pl.Series([["a", "b"]], dtype=pl.List(pl.String)), 0x94B9EA25FC01ED69),
    (pl.Series([{"a": 1, "b": "x"}], dtype=pl.Struct({"a": pl.Int64, "b": pl.String})), 0x4D1CE99B58FF20C7),
    (pl.Series([["a", "b"]], dtype=pl.Array(pl.String, 2)), 0x94B9EA25FC01ED69),
    (pl.Series(["red"], dtype=pl.Enum(["red"])), 0x7DBBAEED86E9AE5A),
]
PAIRS_FOREVER = [(["a", "b"], 0x905A338FD065B831), (["b", "a"], 0x9040CA820965EF83)]

ALL_TYPES: list[pl.DataType | type[pl.DataType]] = [
    pl.String,
    pl.Binary,
    pl.Boolean,
    pl.Int8,
    pl.Int64,
    pl.UInt64,
    pl.Float32,
    pl.Float64,
    pl.Date,
    pl.Time,
    pl.Datetime("ns"),
    pl.Duration("ms"),
    pl.Decimal(12, 3),
    pl.List(pl.String),
    pl.Struct({"a": pl.Int64, "b": pl.String}),
]


def hashes(values: pl.Series) -> list[int]:
    return [int(value) for value in hash_columns(values.to_frame("c"), ["c"])]


@pytest.mark.parametrize("values, expected", FOREVER, ids=[repr(s.to_list())[:30] for s, _ in FOREVER])
def test_literal_value_has_its_hash_forever(values: pl.Series, expected: int) -> None:
    assert hashes(values) == [expected]


@pytest.mark.parametrize("columns, expected", PAIRS_FOREVER)
def test_literal_pair_has_its_hash_forever_and_order_counts(columns: list[str], expected: int) -> None:
    frame = pl.DataFrame({"a": ["user-000001"], "b": [7]})
    assert hash_columns(frame, columns).tolist() == [expected]


def modelled(data: bytes) -> int:
    """The hash of bytes as the module's docstring defines it, one word after another."""

    def mix(word: int) -> int:
        word &= 2**64 - 1
        word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & 2**64 - 1
        word = (word ^ word >> 27) * 0x94D049BB133111EB & 2**64 - 1
        return word ^ word >> 31

    words = [int.from_bytes(data[start : start + 8], "little") for start in range(0, len(data), 8)]
    total = sum(mix(word + place * 0x9E3779B97F4A7C15) for place, word in enumerate(words, start=1))
    return mix(0x9FB21C651E98DF25 + len(data) * 0xD6E8FEB86659FD93 + total)


@given(st.lists(st.one_of(st.binary(max_size=40), st.binary(min_size=250, max_size=600)), min_size=1))
def test_bytes_of_all_lengths_hash_as_defined(values: list[bytes]) -> None:
    assert hashes(pl.Series(values, dtype=pl.Binary)) == [modelled(value) for value in values]


@given(st.lists(st.text(max_size=40), min_size=1))
def test_text_hashes_as_its_bytes(values: list[str]) -> None:
    assert hashes(pl.Series(values, dtype=pl.String)) == [modelled(value.encode()) for value in values]


def test_many_long_strings_hash_as_a_few_do() -> None:
    values = [f"a-long-key-that-is-not-inline-{number:06d}" * (1 + number % 12) for number in range(70_000)]
    found = hashes(pl.Series(values))
    picked = range(0, 70_000, 997)
    assert [found[n] for n in picked] == [modelled(values[n].encode()) for n in picked]


@given(st.data())
def test_equal_values_hash_equally_in_any_chunking_slice_and_order(data: st.DataObject) -> None:
    values = data.draw(series(allowed_dtypes=ALL_TYPES, min_size=1, max_size=30))
    whole = hashes(values)
    cut = data.draw(st.integers(0, len(values)))
    chunked = pl.concat([values[:cut], values[cut:]], rechunk=False)
    assert hashes(chunked) == whole
    assert hashes(values[cut:]) == whole[cut:]
    assert hashes(values.reverse()) == whole[::-1]


@given(st.lists(st.integers(-(2**31), 2**31 - 1) | st.none(), min_size=1))
def test_integers_of_all_widths_hash_alike(values: list[int | None]) -> None:
    expected = hashes(pl.Series(values, dtype=pl.Int32))
    for wider in (pl.Int64, pl.Int128):
        assert hashes(pl.Series(values, dtype=wider)) == expected


def test_large_unsigned_integer_wraps_as_the_signed_one_of_its_bits() -> None:
    assert hashes(pl.Series([2**64 - 1, 2**63], dtype=pl.UInt64)) == hashes(pl.Series([-1, -(2**63)]))


def test_instant_hashes_alike_in_all_units() -> None:
    instant = pl.Series([datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)])
    units = [hashes(instant.cast(pl.Datetime(unit, "UTC"))) for unit in ("ms", "us", "ns")]
    assert units[0] == units[1] == units[2]


def test_times_beyond_microseconds_have_their_own_hashes() -> None:
    far = [number + part * 2**61 for number in (5, -5) for part in range(-4, 4) if abs(number + part * 2**61) < 2**63]
    assert len({*hashes(pl.Series(far, dtype=pl.Datetime("ms")))}) == len(far)


def test_zeros_are_one_and_nans_are_one() -> None:
    nans = np.array([0x7FF8000000000000, 0xFFF8000000000001], dtype=np.uint64).view(np.float64)
    assert len(set(hashes(pl.Series([0.0, -0.0])))) == 1
    assert len(set(hashes(pl.Series(nans)))) == 1


def test_null_differs_from_the_empty_string_and_zero() -> None:
    assert len({*hashes(pl.Series([None, ""])), *hashes(pl.Series([None, 0]))}) == 3


def test_no_rows_have_no_hashes() -> None:
    assert hashes(pl.Series([], dtype=pl.String)) == []
    assert hash_columns(pl.DataFrame({"a": [], "b": []}), ["a", "b"]).tolist() == []


@pytest.mark.parametrize("pattern", ["user-{:06d}", "{:d}", "a-key-longer-than-one-view-{:09d}"])
def test_keys_spread_evenly_over_key_groups(pattern: str) -> None:
    keys = pl.Series([pattern.format(number) for number in range(64_000)])
    groups = np.bincount(hash_columns(keys.to_frame("k"), ["k"]) % np.uint64(64), minlength=64)
    # 1000 expected with a standard deviation of 31: five of those either way.
    assert groups.min() > 845
    assert groups.max() < 1155


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_expression_gives_the_same_hashes_in_both_engines(engine: str) -> None:
    frame = pl.DataFrame({"a": [f"user-{number}" for number in range(10_000)], "b": range(10_000)})
    found = frame.lazy().select(hash_expr("a", pl.col("b"))).collect(engine=engine)  # type: ignore[call-overload]
    assert found.to_series().to_numpy().tolist() == hash_columns(frame, ["a", "b"]).tolist()


WIDE_FOREVER = [
    (pl.Series(["user-000001"], dtype=pl.String), 0xCB5CD051805BCEA3),
    (pl.Series(["3f2504e0-4f89-11d3-9a0c-0305e82c3301"], dtype=pl.String), 0x3882F0F44791E46B),
    (pl.Series([b"\x00"], dtype=pl.Binary), 0x1E18A8E97CC4DB77),
    (pl.Series([1], dtype=pl.Int64), 0x0EB83189979A83E4),
    (pl.Series([1.5], dtype=pl.Float64), 0x4968ADEB0D0ABFAF),
    (pl.Series([Decimal("12.50")], dtype=pl.Decimal(10, 2)), 0x519DE0B5B2D35DE6),
    (pl.Series([None], dtype=pl.String), 0xC7E3E848520DA008),
]


@pytest.mark.parametrize("values, expected", WIDE_FOREVER, ids=[repr(s.to_list())[:30] for s, _ in WIDE_FOREVER])
def test_the_second_hash_of_a_value_is_its_own_forever(values: pl.Series, expected: int) -> None:
    first, second = hash_wide(values.to_frame("c"), ["c"])
    assert first.tolist() == hashes(values)
    assert second.tolist() == [expected]


def test_what_collides_in_the_first_hash_does_not_in_the_second() -> None:
    """Int128 values that differ by 2**64 are one word to the first."""
    frame = pl.DataFrame({"c": [5, 2**64 + 5], "d": ["x", "x"]}, schema={"c": pl.Int128, "d": pl.String})
    for columns in (["c"], ["c", "d"]):
        first, second = hash_wide(frame, columns)
        assert first[0] == first[1]
        assert second[0] != second[1]


def test_both_hashes_tell_the_order_of_columns() -> None:
    frame = pl.DataFrame({"a": ["x", "y"], "b": ["y", "x"]})
    for part in hash_wide(frame, ["a", "b"]):
        assert part[0] != part[1]
