"""The search for matches: from many first rows at once, a step or a run of rows at a time.

A thread is one way in which a match may continue. It takes the next row that one of its options can take; if several
can, it branches into several threads, preferred first. All threads advance in rounds, so that a round is a few array
operations however many threads there are; any number of rows that leave no choice are taken in one round.

Among the threads from one first row, the most preferred one that can end is the match. So when a thread may end, the
less preferred ones are dropped; more preferred ones may still find a better end. A thread that needs rows which the
watermark has not passed waits: the match from its first row is then open.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from slackwater.operators.patterns.course import ANY_NUMBER, BEFORE, Course, mask_of
from slackwater.operators.patterns.ties import Ties
from slackwater.operators.patterns.timeline import Bools, Ints, Timeline
from slackwater.operators.patterns.traces import Traces

_NONE: Final = -1
MOST_PAIRS: Final = 1 << 17
"""The most pairs of a thread and a row that are evaluated at a time."""
_FIRST_LOOK: Final = 4
"""The number of rows first examined for a thread whose condition refers to other rows; it doubles each time."""


@dataclass(kw_only=True)
class Threads:
    """Threads as columns: those of one first row are adjacent, preferred first."""

    start: Ints
    """The number of the first row among all first rows."""
    step: Ints
    count: Ints
    """The number of rows that the step has taken."""
    row: Ints
    """The row that was taken last."""
    trace: Ints
    """The rows taken so far, see `Traces`."""
    bound: Ints
    """The rows that steps have taken last, indexed by `Course.slots`."""
    waits: Bools

    def __len__(self) -> int:
        return len(self.start)

    def pick(self, which: Ints | Bools) -> Threads:
        """Return the selected threads."""
        return Threads(**{name: column[which] for name, column in vars(self).items()})


@dataclass(frozen=True, kw_only=True)
class FoundMatches:
    """The result of the search, for each first row."""

    is_begun: Bools
    """Whether a step can take the row at all."""
    is_open: Bools
    """Whether the match depends on rows that may still arrive."""
    trace: Ints
    """The trace of the match, or -1."""
    last: Ints
    """The last row of the match, or -1."""
    is_idle: Bools
    """Whether no thread from it has taken a second row, not even a less preferred one or one that has ended."""


class Search:
    """Finds the matches of a pattern in one timeline, in which all rows before `known_ms` are known."""

    def __init__(self, course: Course, timeline: Timeline, ties: Ties, known_ms: int) -> None:
        self.course = course
        self.timeline = timeline
        self.ties = ties
        self.known_ms = known_ms
        self.traces = Traces(timeline)

    def run(self, starts: Ints, seen: Ints) -> FoundMatches:
        """Return the match that begins at each of these rows; none takes a row before `seen` as its second."""
        size = len(starts)
        self._starts, self._seen = starts, seen
        self._reach = self.timeline.reach[starts]
        self._may_grow = self.timeline.times[starts] + self.course.pattern.within_ms >= self.known_ms
        found = FoundMatches(
            is_begun=np.zeros(size, bool),
            is_open=np.zeros(size, bool),
            trace=np.full(size, _NONE),
            last=np.full(size, _NONE),
            is_idle=np.ones(size, bool),
        )
        threads = self._begun(starts)
        found.is_begun[threads.start] = True
        while len(threads):
            threads = self._after_a_round(threads, found)
        return found

    def _begun(self, starts: Ints) -> Threads:
        size, nothing = len(starts), np.full(len(starts), _NONE)
        before = Threads(
            start=np.arange(size),
            step=np.full(size, BEFORE),
            count=np.zeros(size, np.int64),
            row=nothing,
            trace=nothing,
            bound=np.full((size, len(self.course.slots)), _NONE),
            waits=np.zeros(size, bool),
        )
        options = self.course.next[BEFORE]
        return self._branches(before, starts, options, self._holds(before, starts, options))[1]

    def _after_a_round(self, threads: Threads, found: FoundMatches) -> Threads:
        course = self.course
        ends_well = course.may_end[threads.step] & (threads.count >= course.least[threads.step])
        behind = _is_behind(threads.start, ends_well)
        best = ends_well & ~behind
        found.trace[threads.start[best]] = threads.trace[best]
        found.last[threads.start[best]] = threads.row[best]
        threads = threads.pick(~behind)

        # Threads at one step with the same choices advance together.
        choice = (threads.count < course.most[threads.step]) + 2 * (threads.count >= course.least[threads.step])
        kind = np.where(threads.waits, _NONE, 4 * threads.step + choice)
        origins, moved = [], []
        for number in np.flatnonzero(np.bincount(kind + 1)) - 1:
            which = np.flatnonzero(kind == number)
            if number == _NONE:
                origin, part = np.arange(len(which)), threads.pick(which)
            else:
                step, how = divmod(int(number), 4)
                origin, part = self._moved(threads.pick(which), step, stays=bool(how & 1), leaves=bool(how & 2))
            origins.append(which[origin])
            moved.append(part)
        return self._settled(_in_order(origins, moved), found)

    def _settled(self, threads: Threads, found: FoundMatches) -> Threads:
        """Return the threads that still matter: no duplicates, and none from first rows whose threads all wait."""
        # A thread that has advanced counts even if it ends here: a search that resumes from the traces would miss it.
        found.is_idle[threads.start[threads.row != self._starts[threads.start]]] = False
        if np.any(threads.start[1:] == threads.start[:-1]):
            threads = threads.pick(self._first_of_equals(threads))
        is_active = np.zeros(len(found.trace), bool)
        is_active[threads.start[~threads.waits]] = True
        rests = ~is_active[threads.start]
        found.is_open[threads.start[rests]] = True
        return threads.pick(~rests)

    def _first_of_equals(self, threads: Threads) -> Ints:
        """Return the threads that no earlier thread with the same continuations duplicates."""
        most, least = self.course.most[threads.step], self.course.least[threads.step]
        count = np.where(most == ANY_NUMBER, np.minimum(threads.count, least), threads.count)
        columns = [threads.start, threads.step, count, threads.row, *threads.bound.T]
        _, first = np.unique(np.stack(columns), axis=1, return_index=True)
        return np.sort(first)

    def _moved(self, threads: Threads, step: int, *, stays: bool, leaves: bool) -> tuple[Ints, Threads]:
        """Return the successors of threads at one step, each with the number of the thread it comes from."""
        options = self.course.options(step, stays=stays, leaves=leaves)
        if not options:
            return np.arange(0), threads.pick(np.arange(0))
        if not stays or self.course.is_tied(options):
            return self._stepped(threads, options)
        ahead = self._ahead(threads, step, leaves=leaves)
        runs, walks = np.flatnonzero(ahead > 0), np.flatnonzero(ahead == 0)
        origin, stepped = self._stepped(threads.pick(walks), options)
        run = self._run(threads.pick(runs), step, ahead[runs])
        origins = [runs, walks[origin]]
        return np.sort(np.concatenate(origins), kind="stable"), _in_order(origins, [run, stepped])

    def _ahead(self, threads: Threads, step: int, *, leaves: bool) -> Ints:
        """Return the number of rows that each thread takes before it has a choice."""
        line, course = self.timeline, self.course
        own, others = 1 << step, mask_of(course.next[step]) if leaves else 0
        end = self._reach[threads.start]
        if course.is_strict:
            end = np.minimum(end, line.break_after(threads.row, own, others) - 1)
        elif others:
            end = np.minimum(end, line.after(threads.row, others) - 1)
        chain = line.chain(own)
        available = np.searchsorted(chain, end, side="right") - np.searchsorted(chain, threads.row, side="right")
        wanted = (course.most if leaves else course.least)[step] - threads.count
        ahead: Ints = np.minimum(np.maximum(available, 0), wanted)
        return ahead

    def _run(self, threads: Threads, step: int, ahead: Ints) -> Threads:
        """Return threads that have taken the next `ahead` rows that meet the condition of their step."""
        chain = self.timeline.chain(1 << step)
        first = np.searchsorted(chain, threads.row, side="right")
        row = chain[first + ahead - 1]
        trace = self.traces.add(threads.trace, np.full(len(threads), step), first, first + ahead - 1)
        bound = self._bound(threads.bound, threads.step, row)
        return replace(threads, count=threads.count + ahead, row=row, trace=trace, bound=bound)

    def _stepped(self, threads: Threads, options: tuple[int, ...]) -> tuple[Ints, Threads]:
        """Return threads after the next row that one of `options` can take; those without one end or wait."""
        if self.course.is_strict:
            row = threads.row + 1
            is_known = row <= self._reach[threads.start]
            holds = np.zeros((len(threads), len(options)), bool)
            holds[is_known] = self._holds(threads.pick(is_known), row[is_known], options)
        elif self.course.is_tied(options):
            row, holds = self._looked_for(threads, options)
            is_known = row != _NONE
        else:
            row = self.timeline.after(threads.row, mask_of(options))
            is_known = row <= self._reach[threads.start]
            holds = np.zeros((len(threads), len(options)), bool)
            holds[is_known] = self._holds(threads.pick(is_known), row[is_known], options)
        origin, moved = self._branches(threads, row, options, holds)
        waiting = np.flatnonzero(~is_known & self._may_grow[threads.start])
        waits = replace(threads.pick(waiting), waits=np.ones(len(waiting), bool))
        origins = [origin, waiting]
        return np.sort(np.concatenate(origins), kind="stable"), _in_order(origins, [moved, waits])

    def _branches(self, threads: Threads, row: Ints, options: tuple[int, ...], holds: Bools) -> tuple[Ints, Threads]:
        """Return a thread for each option that holds, with the number of the thread it comes from."""
        origin, choice = np.nonzero(holds)
        before, step, row = threads.pick(origin), np.array(options)[choice], row[origin]
        place = np.zeros(len(origin), np.int64)
        for option in options:
            mine = step == option
            place[mine] = np.searchsorted(self.timeline.chain(1 << option), row[mine])
        return origin, replace(
            before,
            step=step,
            count=np.where(step == before.step, before.count + 1, 1),
            row=row,
            trace=self.traces.add(before.trace, step, place, place),
            bound=self._bound(before.bound, step, row),
        )

    def _bound(self, bound: Ints, step: Ints, row: Ints) -> Ints:
        if not self.course.slots:
            return bound
        bound = bound.copy()
        for at, slot in self.course.slots.items():
            bound[:, slot] = np.where(step == at, row, bound[:, slot])
        return bound

    def _holds(self, threads: Threads, row: Ints, options: tuple[int, ...]) -> Bools:
        """Return for each thread which of `options` can take its row in `row`."""
        holds = np.empty((len(row), len(options)), bool)
        for number, option in enumerate(options):
            holds[:, number] = (self.timeline.fits[row] >> option) & 1
            if self.course.is_tied([option]) and (asked := np.flatnonzero(holds[:, number])).size:
                holds[asked, number] = self.ties.hold(option, row[asked], threads.bound[asked])
        return holds

    def _looked_for(self, threads: Threads, options: tuple[int, ...]) -> tuple[Ints, Bools]:
        """Return for each thread the next row that one of `options` can take, and which of them can."""
        chain = self.timeline.chain(mask_of(options))
        is_first = threads.row == self._starts[threads.start]
        after = np.where(is_first, np.maximum(threads.row, self._seen[threads.start] - 1), threads.row)
        at = np.searchsorted(chain, after, side="right")
        end = np.searchsorted(chain, self._reach[threads.start], side="right")
        row, holds = np.full(len(threads), _NONE), np.zeros((len(threads), len(options)), bool)
        left, width = np.flatnonzero(at < end), _FIRST_LOOK
        while left.size:
            for block in np.array_split(left, -(-left.size * width // MOST_PAIRS)):
                sizes = np.minimum(end[block] - at[block], width)
                thread = np.repeat(block, sizes)
                looked = chain[np.repeat(at[block] - np.cumsum(sizes) + sizes, sizes) + np.arange(len(thread))]
                meets = self._holds(threads.pick(thread), looked, options)
                hits = np.flatnonzero(meets.any(axis=1))
                hit, first = np.unique(thread[hits], return_index=True)
                row[hit], holds[hit] = looked[hits[first]], meets[hits[first]]
            at[left] += width
            left = left[(row[left] == _NONE) & (at[left] < end[left])]
            width = min(2 * width, MOST_PAIRS)
        return row, holds


def _is_behind(start: Ints, ends_well: Bools) -> Bools:
    """Return for each thread whether a preferred one from the same first row may end."""
    before: Ints = np.cumsum(ends_well) - ends_well
    is_first = np.append(True, start[1:] != start[:-1])
    return before > np.repeat(before[is_first], np.diff(np.append(np.flatnonzero(is_first), len(start))))


def _in_order(origins: list[Ints], parts: list[Threads]) -> Threads:
    """Return threads in the order of those they come from."""
    order = np.argsort(np.concatenate(origins), kind="stable")
    return Threads(**{name: np.concatenate([vars(part)[name] for part in parts])[order] for name in vars(parts[0])})
