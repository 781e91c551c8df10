"""Names: whatever users call their keys, aggregates and columns works, or is refused when the pipeline is built."""

from __future__ import annotations

from itertools import product
from typing import Any

import polars as pl
import pytest

import slackwater as sw
from slackwater.operators.spec import Accumulation
from slackwater.streams import Results
from slackwater.testing import Harness, rows_source
from slackwater.windows import Window

AWKWARD = [
    "a",
    "start",
    "end",
    "was",
    "place",
    "row",
    "by",
    "a.b",
    "a.b.int",
    "a(",
    "a\\",
    "^a",
    "$",
    "select",
    "two words",
    "line\nbreak",
    "tab\t",
    'quo"te',
    "apos'trophe",
    "back`tick",
    "{brace}",
    "%s",
    "größe",
    "数量",
    "🌊",
    "_x",
    "0",
    "x" * 300,
]
PLAIN = [f"c{at}" for at in range(len(AWKWARD))]
KINDS = [sw.sum, sw.first, sw.collect_list, lambda column: sw.top(1, by=column), sw.mean]
WINDOWS: list[Window] = [
    sw.tumbling("1s"),
    sw.hopping("2s", every="1s"),
    sw.cumulative("2s", every="1s"),
    sw.sliding("1s"),
    sw.session("1s"),
    sw.session(pl.lit(1000), max_length="5s"),
    sw.global_window(),
]


def shown(names: list[str], window: Window, accumulation: Accumulation) -> list[list[Any]]:
    """Return results and late rows of a step whose keys have these `names`, and of one whose aggregates have them.

    Three rows: on time, a correction within the allowed lateness, and one that is late for good.
    """
    texts = sw.stream("texts", rows_source(dict.fromkeys(names, pl.String()) | {"ts": pl.Int64()})).event_time("ts")
    numbers = sw.stream("numbers", rows_source(dict.fromkeys(names, pl.Int64()) | {"ts": pl.Int64()})).event_time("ts")
    is_global = window == sw.global_window()
    options: dict[str, Any] = {"accumulation": accumulation, "allowed_lateness": "0s" if is_global else "3s"}
    options["trigger"] = sw.after_count(1) if is_global else None
    steps: list[Results] = [texts.key_by(*names).window(window, name="keys", **options).aggregate(n=sw.count())]
    aggregates = {name: KINDS[at % len(KINDS)](pl.col(name)) for at, name in enumerate(names)}
    steps.append(numbers.key_by("ts").window(window, name="aggregates", **options).aggregate(**aggregates))
    outputs = [out for step in steps for out in (step, step.late)]
    ends = [out.to(sw.sinks.memory()) for out in (*outputs, texts.dead_letters, numbers.dead_letters)]
    harness = Harness(sw.Pipeline("p", *ends, key_groups=1))
    for ts, watermark in ((100, 1500), (100, 90_000), (300, 90_001)):
        harness.send("texts", [dict.fromkeys(names, "x") | {"ts": ts}])
        harness.send("numbers", [{name: at for at, name in enumerate(names)} | {"ts": ts}])
        harness.run_batch()
        harness.advance_watermark(watermark)
    harness.finish()
    assert all(harness.output(step).height for step in steps)
    assert all(harness.output(step.late).height == (0 if is_global else 1) for step in steps)
    return [_values(harness.output(out).to_dicts()) for out in outputs]


def _values(value: Any) -> Any:  # noqa: ANN401  whatever a row holds
    """Return `value` without the names in it."""
    if isinstance(value, dict):
        return [_values(item) for item in value.values()]
    return [_values(item) for item in value] if isinstance(value, list) else value


ACCUMULATIONS: list[Accumulation] = ["discarding", "accumulating", "retracting"]
CASES = [
    (window, accumulation)
    for window, accumulation in product(WINDOWS, ACCUMULATIONS)
    if not (accumulation == "discarding" and str(window).startswith("sliding"))
]


@pytest.mark.parametrize("window, accumulation", CASES, ids=lambda value: str(value)[:30])
def test_name_of_a_key_an_aggregate_or_a_column_makes_no_difference(window: Window, accumulation: Accumulation) -> None:
    assert shown(AWKWARD, window, accumulation) == shown(PLAIN, window, accumulation)
