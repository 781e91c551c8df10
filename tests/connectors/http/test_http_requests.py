"""What the HTTP sink sends: bodies, keys that a repeat makes again, and lanes that keep the order."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.connectors.http.sink.requests import Request, Requests
from slackwater.connectors.sink import SinkBatch, Slot
from slackwater.operators.identity import Identity

ROWS = pl.Schema({"user": pl.String(), "n": pl.Int64()})
AT = datetime(2026, 1, 1, tzinfo=UTC)
WINDOW = Identity(
    keys=("user",), bounds=("window_start", "window_end"), version="pane_index", incidental=("watermark",)
)
PANE = {"user": "ann", "window_start": AT, "window_end": AT, "sum": 5, "pane_index": 0, "is_retraction": False}


def requests(
    *frames: pl.DataFrame,
    key: Sequence[str] = ("user",),
    batch_rows: int = 1,
    batch: int = 0,
    run: str = "run",
    pipeline: str = "test",
    output: str = "results",
    identity: Identity | None = WINDOW,
) -> list[Request]:
    """Return the requests of a batch, lane by lane."""
    slot = Slot(pipeline=pipeline, output=output, schema=frames[0].schema, identity=identity)
    made = Requests(slot=slot, run=run, batch=batch, key=tuple(key), batch_rows=batch_rows)
    rows = SinkBatch(batch=batch, schema=slot.schema, rows=0, frames=lambda: iter(frames))
    return [request for lanes in made.lanes(rows) for lane in lanes for request in lane]


def keys(*frames: pl.DataFrame, **told: object) -> dict[int, str]:
    """Return the keys of requests of one row, by the row's number."""
    return {request.numbers[0]: request.key for request in requests(*frames, **told)}  # type: ignore[arg-type]


def panes(*changes: Mapping[str, object]) -> pl.DataFrame:
    return pl.DataFrame([{**PANE, "watermark": AT, **change} for change in changes])


def plain(*users: str) -> pl.DataFrame:
    return pl.DataFrame({"user": users, "n": range(len(users))}, schema=ROWS)


def test_row_becomes_a_json_object() -> None:
    frame = pl.DataFrame(
        {"user": ["ann"], "at": [AT], "raw": [b"\xff"], "list": [[1, None]], "none": [None], "ratio": [float("nan")]}
    )
    [request] = requests(frame)
    assert json.loads(request.body) == {
        "user": "ann",
        "at": "2026-01-01T00:00:00+00:00",
        "raw": "/w==",
        "list": [1, None],
        "none": None,
        "ratio": None,
    }


def test_pane_has_the_same_key_in_any_batch_and_any_run() -> None:
    once = keys(panes({}))
    assert keys(panes({}), batch=7, run="other") == once
    assert keys(panes({"watermark": datetime(2026, 2, 1, tzinfo=UTC)})) == once


@pytest.mark.parametrize(
    "change",
    [
        {"user": "bob"},
        {"window_start": datetime(2025, 1, 1, tzinfo=UTC)},
        {"window_end": datetime(2027, 1, 1, tzinfo=UTC)},
        {"pane_index": 1},
        {"is_retraction": True},
        {"sum": 6},
    ],
)
def test_pane_that_differs_in_anything_has_another_key(change: dict[str, object]) -> None:
    assert keys(panes({})) != keys(panes(change))


def test_pipelines_and_outputs_do_not_share_keys() -> None:
    named = [("a", "b"), ("a", "c"), ("b", "b")]
    made = [keys(panes({}), pipeline=pipeline, output=output)[0] for pipeline, output in named]
    assert len(set(made)) == 3


def test_row_without_a_window_has_a_key_of_its_place() -> None:
    once = keys(plain("ann"))
    assert keys(plain("ann")) == once
    assert keys(plain("ann"), batch=1) != once
    assert keys(plain("ann"), run="other") != once
    assert keys(panes({}), key=()) != keys(panes({}), key=(), batch=1)


def test_row_that_only_looks_like_a_pane_has_a_key_of_its_place() -> None:
    assert keys(panes({}), identity=None) != keys(panes({}), identity=None, batch=1)


@pytest.mark.parametrize("key", [("user",), ()])
def test_rows_that_are_equal_have_keys_that_differ(key: tuple[str, ...]) -> None:
    same = panes({}, {})
    assert len(set(keys(same, same, panes({"sum": 1}), key=key).values())) == 5


@given(
    users=st.lists(st.sampled_from("abc"), min_size=1, max_size=40),
    cut=st.integers(0, 40),
    key=st.sampled_from([("user",), ()]),
    kind=st.sampled_from(["panes", "rows"]),
)
def test_keys_do_not_depend_on_how_rows_come_in_frames(
    users: list[str], cut: int, key: tuple[str, ...], kind: str
) -> None:
    frame = panes(*({"user": user} for user in users)) if kind == "panes" else plain(*users)
    whole = keys(frame, key=key)
    assert keys(frame[:cut], frame[cut:], key=key) == whole
    assert len(set(whole.values())) == len(users)


@given(
    users=st.lists(st.text(max_size=2), min_size=1, max_size=60),
    batch_rows=st.integers(1, 7),
    key=st.sampled_from([("user",), ()]),
)
def test_every_row_is_sent_once_and_those_of_a_key_in_order(
    users: list[str], batch_rows: int, key: tuple[str, ...]
) -> None:
    made = requests(plain(*users), key=key, batch_rows=batch_rows)
    sent = [row for request in made for row in json.loads(f"[{','.join(request.bodies)}]")]
    assert Counter(row["n"] for row in sent) == Counter(range(len(users)))
    assert all(len(request.bodies) <= batch_rows for request in made)
    assert len({request.key for request in made}) == len(made)
    if key:
        for user in set(users):
            numbers = [row["n"] for row in sent if row["user"] == user]
            assert numbers == sorted(numbers)


def test_arrays_are_full_where_no_key_asks_for_an_order() -> None:
    made = requests(plain(*"abcdefg"), key=(), batch_rows=3)
    assert sorted(len(request.bodies) for request in made) == [1, 3, 3]
    assert all(isinstance(json.loads(request.body), list) for request in made)


def test_array_of_one_row_is_still_an_array() -> None:
    [request] = requests(plain("ann"), batch_rows=5)
    assert json.loads(request.body) == [{"user": "ann", "n": 0}]
