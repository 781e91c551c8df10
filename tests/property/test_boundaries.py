"""A row exactly at a boundary, on time: whatever the batches, the results are the same and nothing is late.

Times are multiples of 10 ms, as are gaps, bounds and windows, so nearly every row is exactly at some boundary. No row
is behind the largest time before it by more than the out-of-orderness, so none is behind the watermark in any batches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, combinations, pairwise
from typing import Any, Final, Literal

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.plan.streams import Deduplicated, KeyedStream, Results
from slackwater.testing import Harness, rows_source

Row = tuple[str, str, int]
"""The stream, the key and the event time in milliseconds; a row's number is its place in the list."""
Make = Callable[[KeyedStream, KeyedStream], Results]
TICK: Final = 10
SESSION: Final = sw.session("10ms")


def windowed(window: sw.windows.Window = SESSION, **options: Any) -> Make:  # noqa: ANN401  as `window` takes them
    return lambda a, _: a.window(window, name="step", **options).aggregate(ids=sw.collect_list("id"))


def joined(**options: Any) -> Make:  # noqa: ANN401  as `join` takes them
    return lambda a, b: a.join(b, name="step", suffixes=("", "_b"), **options)


def window_join(a: KeyedStream, b: KeyedStream) -> Results:
    window = sw.tumbling("20ms")
    return a.window(window).join(b.window(window), how="full", suffixes=("", "_b"), name="step")


def as_of(a: KeyedStream, b: KeyedStream) -> Results:
    return a.join_as_of(b, versions_ttl="20ms", how="left", suffixes=("", "_b"), name="step")


def pattern(found: Any) -> Make:  # noqa: ANN401  any kind of pattern
    return lambda a, _: a.match(found, name="step")


EARLY: Final = sw.after_watermark(early=sw.after_count(1), repeat_unchanged=True)
STEPS: Final[dict[str, Make]] = {
    "sessions": windowed(),
    "sessions with lateness": windowed(allowed_lateness="10ms"),
    "sessions of a maximum length": windowed(sw.session("10ms", max_length="30ms")),
    "sessions of a maximum length with lateness": windowed(
        sw.session("10ms", max_length="30ms"), allowed_lateness="20ms"
    ),
    "sessions with a gap per row": windowed(sw.session(pl.col("gap"))),
    "sessions with early panes": windowed(trigger=EARLY),
    "sessions that retract": windowed(trigger=EARLY, accumulation="retracting", allowed_lateness="10ms"),
    "sessions that finish": windowed(trigger=sw.after_watermark(late=None), allowed_lateness="10ms"),
    "sessions that do not merge": windowed(sw.session("10ms", touching="separate")),
    "tumbling": windowed(sw.tumbling("20ms")),
    "hopping": windowed(sw.hopping("20ms", every="10ms"), allowed_lateness="10ms"),
    "cumulative": windowed(sw.cumulative("20ms", every="10ms")),
    "sliding": windowed(sw.sliding("20ms")),
    "interval join": joined(between=("-10ms", "20ms"), how="full"),
    "interval join of one side": joined(between=("10ms", "20ms"), how="left"),
    "window join": window_join,
    "as-of join": as_of,
    "first by time": lambda a, _: a.deduplicate(keep="first_by_time", within="1h", name="step"),
    "pattern": pattern(sw.sequence(one="x = 0", two="x = 1", within="20ms")),
    "absence": pattern(sw.absent(after="x = 0", expect="x = 1", within="20ms")),
}


def outcome(make: Make, rows: Sequence[Row], edges: Iterable[int], *, slack_ms: int) -> tuple[Counter[str], int]:
    """Return the results of rows cut at `edges`, without what may depend on batches, and the number of late rows."""
    a, b = (
        sw.stream(name, rows_source("id long, key string, ts long, x long, gap long"))
        .event_time("ts", out_of_orderness=f"{slack_ms}ms")
        .key_by("key")
        for name in ("a", "b")
    )
    results = make(a, b)
    used = [each.stream for each in results.origin.inputs.values()]  # type: ignore[union-attr]  # results come from a step
    ends = [results, results.late, *(stream.dead_letters for stream in used)]
    if hasattr(results, "duplicates") and isinstance(results, Deduplicated):
        ends.append(results.duplicates)
    pipeline = sw.Pipeline("boundaries", *(end.to(sw.sinks.memory()) for end in ends), key_groups=1)
    harness = Harness(pipeline)
    for start, end in pairwise(edges):
        for stream in used:
            mine = [(number, row) for number, row in enumerate(rows[start:end], start) if row[0] == stream.name]
            harness.send(
                stream.name,
                [
                    {"id": number, "key": key, "ts": ts, "x": number % 2, "gap": TICK * (1 + number % 2)}
                    for number, (_, key, ts) in mine
                ],
            )
        harness.run_batch()
    harness.finish()
    return settled(harness.output(results)), harness.output(results.late).height


def settled(results: pl.DataFrame) -> Counter[str]:
    """Return the rows that remain in the end: panes that were corrected or were only a preview are left out."""
    net = Counter[str]()
    for row in results.to_dicts():
        is_retraction = row.pop("is_retraction", False)
        pane = row.pop("pane", "on_time")
        if "ids" in row:
            row["ids"] = sorted(row["ids"])
        for name in ("watermark", "pane_index"):
            row.pop(name, None)
        if pane == "on_time" or is_retraction:
            net[repr(row)] += -1 if is_retraction else 1
    return +net


@st.composite
def on_time_rows(draw: st.DrawFn, *, slack_ms: int) -> list[Row]:
    """Draw rows of two streams; each stream's times never fall back by more than `slack_ms`."""
    steps = draw(st.lists(st.sampled_from([0, 0, TICK, TICK, 2 * TICK, 3 * TICK]), min_size=2, max_size=6))
    behind = draw(st.lists(st.sampled_from([0, slack_ms]), min_size=len(steps), max_size=len(steps)))
    names = st.sampled_from(["a", "a", "b"])
    # Both streams move together, or the slower one decides everything.
    return [
        (draw(names), draw(st.sampled_from(["k", "l"])), top - back)
        for top, back in zip(accumulate(steps), behind, strict=True)
    ]


@pytest.mark.parametrize("name", STEPS)
@given(data=st.data())
def test_rows_at_a_boundary_do_not_depend_on_the_batches(name: str, data: st.DataObject) -> None:
    slack_ms = data.draw(st.sampled_from([0, TICK]))
    rows = data.draw(on_time_rows(slack_ms=slack_ms))
    cuts = data.draw(st.sets(st.integers(1, len(rows) - 1)))
    at_once, late = outcome(STEPS[name], rows, [0, len(rows)], slack_ms=slack_ms)
    assert late == 0
    for edges in ([*range(len(rows) + 1)], sorted({0, *cuts, len(rows)})):
        assert outcome(STEPS[name], rows, edges, slack_ms=slack_ms) == (at_once, 0), edges


def test_a_row_at_the_end_of_a_session_joins_it_in_any_batches() -> None:
    rows = [("a", "k", 0), ("a", "l", 10), ("a", "k", 10), ("a", "l", 20), ("a", "k", 30)]
    for edges in every_cut(len(rows)):
        found, late = outcome(windowed(), rows, edges, slack_ms=0)
        assert late == 0
        assert sorted(found) == sorted(settled_rows(("k", 0, 20, [0, 2]), ("k", 30, 40, [4]), ("l", 10, 30, [1, 3])))


@pytest.mark.parametrize("keep", ["first", "first_by_time"])
def test_a_duplicate_exactly_within_is_recognised_in_any_batches(keep: Literal["first", "first_by_time"]) -> None:
    """The watermark, pushed by another key, is then exactly at the end of the time for which the key is remembered."""

    def deduplicated(a: KeyedStream, _: KeyedStream) -> Results:
        return a.deduplicate(keep=keep, within="20ms", name="step")

    rows = [("a", "k", 0), ("a", "l", 20), ("a", "k", 20), ("a", "l", 20)]
    for edges in every_cut(len(rows)):
        found, late = outcome(deduplicated, rows, edges, slack_ms=0)
        assert (late, len(found)) == (0, 2), edges


def settled_rows(*windows: tuple[str, int, int, list[int]]) -> Counter[str]:
    """Return windows in the form of `settled`."""
    frame = pl.DataFrame(windows, schema=["key", "window_start", "window_end", "ids"], orient="row")
    times = pl.col("window_start", "window_end").cast(pl.Datetime("ms")).dt.replace_time_zone("UTC")
    return settled(frame.with_columns(times.cast(pl.Datetime("us", "UTC"))))


def every_cut(rows: int) -> list[list[int]]:
    """Return all ways to cut a number of rows into batches."""
    return [[0, *inner, rows] for count in range(rows) for inner in combinations(range(1, rows), count)]
