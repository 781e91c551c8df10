"""The matches of a pattern in the rows of many keys: which are certain, and which rows are still needed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from slackwater.base.times import MAX_MS, MIN_MS
from slackwater.operators.patterns.course import BEFORE, Course, mask_of
from slackwater.operators.patterns.search import FoundMatches, Search
from slackwater.operators.patterns.ties import Ties
from slackwater.operators.patterns.timeline import Bools, Ints, Timeline


@dataclass(frozen=True, kw_only=True)
class Matches:
    """Matches as columns: the first and last row of each, and the rows of all matches by step."""

    first: Ints
    last: Ints
    number: Ints
    """The number of the match that each of the rows belongs to; the rows of a match are in order."""
    step: Ints
    row: Ints


@dataclass(frozen=True, kw_only=True)
class Decided:
    """The matches that are certain at some time, and which rows are still needed."""

    matches: Matches
    is_kept: Bools
    """For each row, whether a match may still need it."""
    due_ms: Ints
    """For each row, the watermark by which the match from it is decided; `MAX_MS` if it is already decided."""
    seen_ms: Ints
    """For each row, the time from which rows may follow it in its match; earlier ones have been tried."""
    unmatchable: int
    """The number of pairs of rows on which a condition failed, which do not match."""


def decide(rows: pl.DataFrame, course: Course, known_ms: int) -> Decided:
    """Return the matches in `rows` that no row at or after `known_ms` can change.

    `rows` are sorted by key and time. A row with `__due` at the end of time begins no match.
    """
    pattern = course.pattern
    line = Timeline(rows, course.keys, pattern.within_ms)
    may_begin = ((line.fits & mask_of(course.next[BEFORE])) != 0) & (rows["__due"].to_numpy() < MAX_MS)
    starts = np.flatnonzero(may_begin)
    ties = Ties(course, rows)
    search = Search(course, line, ties, known_ms)
    seen_ms = rows["__seen"].to_numpy()[starts]
    found = search.run(starts, line.first_from(starts, seen_ms))
    if pattern.is_absence:
        shown, holders, is_left = found.is_begun & ~found.is_open & (found.trace < 0), found.is_open, found.is_open
        matches = _alone(starts[shown])
    else:
        shown, holders = _chosen(found, line, starts, is_past_last=pattern.skip == "past_last")
        is_left = found.is_open | ((found.trace >= 0) & ~shown)
        number, step, row = search.traces.rows(found.trace[shown])
        matches = Matches(first=starts[shown], last=found.last[shown], number=number, step=step, row=row)
    due = np.where(is_left, line.times[starts] + pattern.within_ms + 1, MAX_MS)
    seen = np.where(found.is_open & found.is_idle, known_ms, seen_ms)
    return Decided(
        matches=matches,
        is_kept=_is_from(line, starts[holders]),
        due_ms=_spread(due, starts, rows.height, MAX_MS),
        seen_ms=_spread(seen, starts, rows.height, MIN_MS),
        unmatchable=ties.failed,
    )


def _alone(rows: Ints) -> Matches:
    """Return matches that consist of a single row each."""
    number = np.arange(len(rows))
    return Matches(first=rows, last=rows, number=number, step=np.zeros_like(number), row=rows)


def _spread(values: Ints, rows: Ints, size: int, usual: int) -> Ints:
    found = np.full(size, usual)
    found[rows] = values
    return found


def _chosen(found: FoundMatches, line: Timeline, starts: Ints, *, is_past_last: bool) -> tuple[Bools, Bools]:
    """Return which first rows have a match to emit, and which open ones hold back the matches after them."""
    has_match = ~found.is_open & (found.trace >= 0)
    if not is_past_last:
        return has_match, found.is_open
    # Each match points to the first that begins after it; nothing can follow an open one.
    among = np.flatnonzero(has_match | found.is_open)
    at = np.arange(len(among))
    after = np.searchsorted(starts[among], found.last[among], side="right")
    follows = np.where(found.is_open[among] | (after == len(among)), at, after)
    keys = line.key_numbers[starts[among]]
    is_reached = np.zeros(len(starts), bool)
    is_reached[among] = _reached(follows, np.append(True, keys[1:] != keys[:-1])[: len(among)])
    return has_match & is_reached, found.is_open & is_reached


def _reached(follows: Ints, is_first: Bools) -> Bools:
    """Return what can be reached from `is_first` by following `follows` any number of times."""
    jumps = [follows]
    while len(follows) >> len(jumps):
        jumps.append(jumps[-1][jumps[-1]])
    reached = is_first.copy()
    for jump in reversed(jumps):
        reached[jump[reached]] = True
    return reached


def _is_from(line: Timeline, holders: Ints) -> Bools:
    """Return for each row whether one of `holders` is at or before it among the rows of its key."""
    rows = np.arange(len(line.times))
    before = np.searchsorted(holders, rows, side="right") - 1
    if not holders.size:
        return np.zeros(len(rows), bool)
    is_of_key: Bools = line.key_numbers[holders[before]] == line.key_numbers
    return is_of_key & (before >= 0)
