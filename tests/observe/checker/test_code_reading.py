"""What is seen of a user's code, and what is left alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import polars as pl
import pytest

import slackwater as sw
from slackwater.observe.checker.code_reading import uses_of
from tests.observe.checker.code_samples import (
    Fetching,
    RestlessFrames,
    calm_map,
    importing_map,
    nested_map,
    reading_map,
    restless_map,
)
from tests.observe.checker.pipelines import codes, files, kept, mapped, processed, rows, said


def names(function: object) -> set[str]:
    return {use.name for use in uses_of(function)}


def test_module_that_a_function_imports_itself_is_named_in_full() -> None:
    assert {"time.sleep", "requests.get"} <= names(importing_map)


def test_function_inside_a_function_is_read_too() -> None:
    assert "os.environ" in names(nested_map)


def test_partial_and_method_lead_to_the_function() -> None:
    class Holder:
        def held(self) -> float:
            return time.time()

    assert "uuid.uuid4" in names(partial(restless_map))
    assert "time.time" in names(Holder().held)


def test_closed_over_function_is_followed() -> None:
    def made(inner: Callable[[], float]) -> Callable[[], float]:
        return lambda: inner() + 1

    assert "time.time" in names(made(lambda: time.time()))  # noqa: PLW0108  a function of the user's


def test_recursion_ends() -> None:
    def down(number: int) -> int:
        return down(number - 1) if number else hash("a")

    assert "builtins.hash" in names(down)


def test_function_without_python_code_has_no_uses() -> None:
    assert uses_of(len) == []
    assert uses_of(7) == []


def test_use_says_where_it_is_and_whether_it_repeats() -> None:
    [opened] = [use for use in uses_of(reading_map) if use.name.endswith("open")]
    assert opened.function == "reading_map"
    assert opened.is_in_loop
    assert not any(use.is_in_loop for use in uses_of(calm_map) if use.name.endswith("open"))


def test_file_that_is_opened_in_a_loop_blocks_and_one_for_a_frame_does_not() -> None:
    assert codes(mapped(reading_map)) == ["SW302"]
    assert codes(mapped(calm_map)) == []


def test_client_that_a_process_holds_is_followed() -> None:
    [text] = said(processed(Fetching()), "SW302")
    assert text.startswith("step `own`: Store.fetch uses pathlib.Path.read_bytes (line ")


def test_process_of_frames_is_read() -> None:
    [text] = said(processed(RestlessFrames()), "SW301")
    assert text.startswith("step `own`: RestlessFrames.on_rows uses hash (line ")


@pytest.mark.parametrize("way", ["where", "with_columns", "validate", "aggregate"])
def test_function_inside_an_expression_is_read(way: str) -> None:
    # Not a plain product: Polars would warn that it has expressions for that.
    factor = pl.col("v").map_elements(lambda value: float(str(value)) * time.time(), return_dtype=pl.Float64)
    stream = rows()
    match way:
        case "where":
            stream = stream.where(factor > 1)
        case "with_columns":
            stream = stream.with_columns(v=factor)
        case "validate":
            stream = stream.validate(large=factor > 1)
    if way != "aggregate":
        assert codes(sw.Pipeline("p", stream.to(files("rows")), kept(stream))) == ["SW301"]
        return
    results = stream.key_by("k").window(sw.tumbling("1m"), name="w").aggregate(v=sw.sum(factor))
    ends = [results.to(files("results")), results.late.to(files("late")), kept(stream)]
    assert codes(sw.Pipeline("p", *ends)) == ["SW301"]


def test_expression_without_functions_is_fine() -> None:
    stream = rows().with_columns(v=pl.col("v").replace_strict(list(range(100)), list(range(100)), default=0.0))
    assert codes(sw.Pipeline("p", stream.to(files("rows")), kept(stream))) == []


def test_variables_that_one_instruction_loads_are_followed() -> None:
    class Twice:
        def on_event(self, event: str) -> object:
            other = event
            return self.keep(other, self.clock())

        def keep(self, *values: object) -> object:
            return values

        def clock(self) -> float:
            return time.time()

    assert "time.time" in {use.name for use in uses_of(Twice.on_event, Twice())}
