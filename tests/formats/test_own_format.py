"""A format of one's own: a record its decoder fails on is a dead letter; a result of another shape is an error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import polars as pl
import pytest

import slackwater as sw
from slackwater.base.errors import RunError
from slackwater.formats import Decoded, Decoder, Format

SCHEMA = pl.Schema({"k": pl.String(), "v": pl.Int64()})
Decode = Callable[[pl.Series], Any]


@dataclass(frozen=True, eq=False)
class Own(Format):
    """A format whose decoder is one function."""

    function: Decode
    schema: pl.Schema = field(default_factory=lambda: SCHEMA)

    def decoder(self) -> Decoder:
        return OwnDecoder(self.function)

    def __str__(self) -> str:
        return "key,value"


class OwnDecoder(Decoder):
    def __init__(self, function: Decode) -> None:
        self.function = function

    def decode(self, payload: pl.Series) -> Decoded:
        decoded: Decoded = self.function(payload)
        return decoded


class Unmade(Own):
    def decoder(self) -> Decoder:
        raise OSError("no model file")


def ran(form: Format, *records: str) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """Send records through `form`; return the rows, and the place, step, reason and message of the dead letters."""
    stream = sw.stream("pairs", sw.sources.log("unread")).decode(form)
    pipeline = sw.Pipeline("p", stream.to(sw.sinks.memory()), stream.dead_letters.to(sw.sinks.memory()))
    results = sw.testing.run(pipeline, {"pairs": list(records)})
    letters = results[stream.dead_letters].sort("offset")
    return results[stream].rows(), letters.select("offset", "step", "reason", "message").rows()


def careless(payload: pl.Series) -> Decoded:
    """Decode `key,value`; raise on anything else."""
    rows = [(key, int(value)) for key, value in (record.decode().split(",") for record in payload)]
    return Decoded.of(pl.DataFrame(rows, schema=SCHEMA, orient="row"), {})


def test_record_on_which_a_decoder_fails_is_a_dead_letter_and_its_neighbours_are_rows() -> None:
    rows, letters = ran(Own(careless), "a,1", "junk", "b,2", "c,three", "d,4")
    assert rows == [("a", 1), ("b", 2), ("d", 4)]
    (first, second) = letters
    assert first[:3] == (1, "pairs.decode", "failed")
    assert first[3].startswith("ValueError: not enough values to unpack")
    assert second == (3, "pairs.decode", "failed", "ValueError: invalid literal for int() with base 10: 'three'")


def test_decoder_that_always_fails_makes_dead_letters_of_all_records() -> None:
    def failing(_: pl.Series) -> Decoded:
        raise pl.exceptions.PanicException("index out of bounds\nbacktrace")

    rows, letters = ran(Own(failing), "a", "b", "c")
    assert rows == []
    assert [letter[3] for letter in letters] == ["PanicException: index out of bounds"] * 3


def test_flaws_that_a_decoder_finds_are_kept_beside_those_on_which_it_fails() -> None:
    def half_careful(payload: pl.Series) -> Decoded:
        if payload.to_list()[-1] == b"boom":
            raise ValueError("boom")
        flaws = {at: sw.formats.Flaw(reason="empty", message="nothing") for at, text in enumerate(payload) if not text}
        rows = [("x", 1) if text else (None, None) for text in payload]
        return Decoded.of(pl.DataFrame(rows, schema=SCHEMA, orient="row"), flaws)

    rows, letters = ran(Own(half_careful), "a", "", "b", "", "boom")
    assert len(rows) == 2
    assert [(letter[0], letter[2]) for letter in letters] == [(1, "empty"), (3, "empty"), (4, "failed")]


def test_columns_in_another_order_or_without_a_value_fit() -> None:
    rows, letters = ran(Own(lambda payload: decoded(v=[None] * len(payload), k=["a"] * len(payload))), "x", "y")
    assert (rows, letters) == ([("a", None), ("a", None)], [])


def decoded(bad: pl.DataFrame | None = None, **columns: list[Any]) -> Decoded:
    none = Decoded.of(pl.DataFrame(), {}).bad
    return Decoded(frame=pl.DataFrame(columns), bad=none if bad is None else bad)


def flawed(**columns: list[Any] | pl.Series) -> Decode:
    return lambda payload: decoded(pl.DataFrame(columns), k=["a"] * len(payload), v=[1] * len(payload))


@pytest.mark.parametrize(
    "function, got",
    [
        (lambda _: None, "`NoneType`"),
        (lambda _: Decoded(frame=pl.LazyFrame(), bad=pl.DataFrame()), "`frame` of type `LazyFrame`"),  # type: ignore[arg-type]
        (lambda _: decoded(k=["a"], v=[1]), "1 row for 3 records"),
        (lambda _: decoded(k=["a"] * 3), "a frame without `v`"),
        (lambda _: decoded(k=["a"] * 3, v=[1] * 3, w=[1] * 3), "a frame with `w`, which the format does not declare"),
        (lambda _: decoded(k=[1, 2, 3], v=[1] * 3), "`k` of type Int64 where String is declared"),
        (flawed(index=[0]), "`bad` without `reason`, `message`"),
        (flawed(index=["0"], reason=["r"], message=["m"]), "`index` of type String in `bad`"),
        (flawed(index=[0], reason=[1], message=["m"]), "`reason` of type Int64 in `bad`"),
        (flawed(index=[0], reason=pl.Series([None], dtype=pl.String), message=["m"]), "`reason` None in `bad`"),
        (flawed(index=[7], reason=["r"], message=["m"]), "`index` [7] in `bad` for 3 records"),
        (flawed(index=[0, 0], reason=["r"] * 2, message=["m"] * 2), "`index` [0, 0] in `bad` for 3 records"),
    ],
)
def test_result_of_another_shape_is_one_sentence_with_stream_and_format(function: Decode, got: str) -> None:
    with pytest.raises(RunError) as caught:
        ran(Own(function), "x", "y", "z")
    assert caught.value.code == "DECODER_RESULT"
    assert f"; step `pairs.decode` got {got} from format key,value; " in str(caught.value)


def test_format_that_cannot_make_its_decoder_is_one_sentence() -> None:
    with pytest.raises(RunError, match=r"`decoder\(\)` of format key,value raised OSError: no model file") as caught:
        ran(Unmade(careless), "x")
    assert caught.value.code == "DECODER_FAILED"
