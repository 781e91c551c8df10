"""The user's own accumulator class: what it is given, and how its mistakes are named."""

from __future__ import annotations

import threading
from typing import Any, ClassVar

import polars as pl
import pytest

import slackwater.operators.aggregates as agg
from slackwater.base.errors import DefinitionError, RunError
from slackwater.operators.aggregates.combine import combine_rows, empty_state, finish, merge_states


class Joined(agg.Accumulator):
    """The values in the order in which they were added, in one text."""

    output: ClassVar[Any] = "string"

    def create(self) -> list[str]:
        return []

    def add(self, acc: list[str], value: str) -> list[str]:
        acc.append(value)
        return acc

    def merge(self, a: list[str], b: list[str]) -> list[str]:
        a.extend(b)
        return a

    def result(self, acc: list[str]) -> object:
        return "".join(acc)


ROWS = pl.DataFrame(
    {"k": [1, 1, 1, 2], "x": ["b", "a", None, None], "__ts": [2, 1, 0, 0], "__part": ["p"] * 4, "__off": range(4)}
)


def run(cls: type[agg.Accumulator]) -> list[Any]:
    many = {"out": agg.accumulator(cls, "x")}
    first, second = combine_rows(ROWS, ["k"], many), combine_rows(ROWS, ["k"], many)
    return finish(merge_states(pl.concat([first, second]), ["k"], many), many).sort("k")["out"].to_list()


def test_values_are_added_in_time_order_without_nulls_and_pieces_merged_in_order() -> None:
    assert run(Joined) == ["abab", ""]


def test_no_rows_give_the_result_of_create() -> None:
    many = {"out": agg.accumulator(Joined, "x")}
    assert finish(empty_state(ROWS.schema, many, 1), many)["out"].item() == ""


@pytest.mark.parametrize(
    "output, expected",
    [
        (pl.String, pl.String),
        (pl.List(pl.Int64), pl.List(pl.Int64)),
        ("array<double>", pl.List(pl.Float64)),
        ("bigint", pl.Int64),
    ],
)
def test_output_is_a_polars_type_or_spark_words(output: object, expected: object) -> None:
    cls = type("Mine", (Joined,), {"output": output})
    assert agg.accumulator(cls, "x").output_type(ROWS.schema) == expected


def failing(*args: object) -> object:
    raise KeyError("no such tide")


@pytest.mark.parametrize("method", ["create", "add", "merge", "result", "__init__"])
def test_error_of_a_method_names_class_and_method(method: str) -> None:
    cls = type("Broken", (Joined,), {method: failing})
    with pytest.raises(RunError, match=rf"method `{method}` of accumulator class Broken.*no such tide") as caught:
        run(cls)
    assert caught.value.code == "ACCUMULATOR_FAILED"
    assert isinstance(caught.value.__cause__, KeyError) or method == "__init__"


def test_result_of_another_type_than_declared_is_named() -> None:
    cls = type("Mistyped", (Joined,), {"output": pl.Int64})
    with pytest.raises(RunError, match=r"method `result` of .* class Mistyped.*does not match the class's `output`"):
        run(cls)


def test_accumulation_that_cannot_be_pickled_is_named() -> None:
    cls = type("Locked", (Joined,), {"add": lambda self, acc, value: threading.Lock()})
    with pytest.raises(RunError, match=r"accumulator class Locked.*cannot be pickled"):
        run(cls)


class Unfinished(agg.Accumulator):
    """A class that lacks most methods."""

    output = pl.Int64

    def create(self) -> int:
        return 0


@pytest.mark.parametrize(
    "cls, code",
    [
        (Unfinished, "ACCUMULATOR_METHODS"),
        (dict, "ACCUMULATOR_CLASS"),
        (Joined(), "ACCUMULATOR_CLASS"),
        (type("Mine", (Joined,), {"output": 7}), "ACCUMULATOR_OUTPUT"),
    ],
)
def test_class_that_is_no_accumulator_is_refused(cls: type[agg.Accumulator], code: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        agg.accumulator(cls, "x")
    assert caught.value.code == code


def test_class_without_output_is_refused() -> None:
    cls = type("Mute", (agg.Accumulator,), dict.fromkeys(("create", "add", "merge", "result"), failing))
    with pytest.raises(DefinitionError, match="Mute has `output` = nothing"):
        agg.accumulator(cls, "x")
