"""Traces: the rows that threads have taken; threads with a common beginning share it."""

from __future__ import annotations

import numpy as np

from slackwater.operators.patterns.timeline import Ints, Timeline


class Traces:
    """Entries of rows that a step took, each with the number of the previous entry, or -1.

    An entry is a range of the rows that meet the step's own condition, in the order of the timeline.
    """

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self._blocks: list[tuple[Ints, Ints, Ints, Ints]] = []
        self._size = 0

    def add(self, before: Ints, step: Ints, first: Ints, last: Ints) -> Ints:
        """Add an entry after each of `before`; return their numbers."""
        self._blocks.append((before, step, first, last))
        numbers = np.arange(self._size, self._size + len(before))
        self._size += len(before)
        return numbers

    def rows(self, traces: Ints) -> tuple[Ints, Ints, Ints]:
        """Return all rows of `traces` as the number of the trace, the step and the row, in order."""
        before, step, first, last = (np.concatenate(column) for column in zip(*self._blocks, strict=True))
        numbers, entries = [np.arange(0)], [np.arange(0)]
        number, entry = np.arange(len(traces)), traces
        while entry.size:
            numbers.append(number)
            entries.append(entry)
            entry = before[entry]
            number, entry = number[entry >= 0], entry[entry >= 0]
        number, entry = np.concatenate(numbers), np.concatenate(entries)
        sizes = last[entry] - first[entry] + 1
        number, entry = np.repeat(number, sizes), np.repeat(entry, sizes)
        place = first[entry] + np.arange(len(entry)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        row = np.zeros(len(entry), np.int64)
        for each in np.flatnonzero(np.bincount(step[entry])):
            mine = step[entry] == each
            row[mine] = self.timeline.chain(1 << int(each))[place[mine]]
        order = np.lexsort((row, number))
        return number[order], step[entry][order], row[order]
