"""Where rows become dead letters: those that a part of the engine rejects, and those that a function fails on."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from slackwater.base.errors import RowError, SlackwaterError, UnplacedError, cause_of
from slackwater.base.expressions import FAILURES
from slackwater.engine.row_context import RowContext
from slackwater.formats.dead_letter_columns import dead_letters
from slackwater.formats.row_payloads import row_payloads
from slackwater.plan.row_functions import FrameFunction


def bury(rows: pl.DataFrame, step: str, reason: pl.Series, message: pl.Series, context: RowContext) -> None:
    """Turn `rows` into dead letters, with their original bytes or, for typed sources, their columns as JSON."""
    if rows.is_empty():
        return
    if "__payload" in rows.columns:
        payload = rows["__payload"]
    else:
        shown = [name for name in rows.columns if not name.startswith("__")]
        payload = row_payloads(rows.select(shown))
    place = context.shown_place(rows)
    context.dead.append(
        dead_letters(
            payload=payload,
            partition=place["partition"],
            offset=place["offset"],
            reason=reason,
            message=message,
            source=place["source"],
            step=step,
            ingestion_time_ms=rows["__ingested"],
            key=rows.get_column("__key", default=None),
            headers=rows.get_column("__headers", default=None),
            processed_at_ms=context.now_ms,
        )
    )


def guarded(
    frame: pl.DataFrame, function: FrameFunction, step: str, context: RowContext, *, reason: str = "failed"
) -> pl.DataFrame:
    """Return `function(frame)`; find the rows it fails on by bisection, and turn them into dead letters of `step`."""
    bad: dict[int, str] = {}
    try:
        return function(frame)
    except FAILURES as error:  # a user's function may raise anything
        sound = list(_sound(frame, 0, function, error, bad))
    lost, messages = frame[list(bad)], pl.Series(list(bad.values()), dtype=pl.String)
    bury(lost, step, pl.Series([reason]), messages, context)
    return pl.concat(sound) if sound else function(frame.clear())


def _sound(
    frame: pl.DataFrame, first: int, function: FrameFunction, error: BaseException, bad: dict[int, str]
) -> Iterator[pl.DataFrame]:
    """Yield the results of `function`, which failed on `frame` with `error`, for the parts on which it succeeds.

    The rows it fails on are added to `bad`, numbered from `first`, each with the error's text.
    """
    if frame.is_empty() or (
        isinstance(error, MemoryError | SlackwaterError) and not isinstance(error, UnplacedError | RowError)
    ):
        raise error
    if frame.height <= 1:
        cause = error.__cause__ if isinstance(error, UnplacedError) and error.__cause__ else error
        words = str(cause) if isinstance(cause, RowError) else cause_of(cause)
        bad[first] = words[:1000]
        return
    half = frame.height // 2
    for start, part in ((first, frame[:half]), (first + half, frame[half:])):
        try:
            yield function(part)
        except FAILURES as failed:
            yield from _sound(part, start, function, failed, bad)
