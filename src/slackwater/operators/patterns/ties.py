"""Conditions that refer to rows of the match, evaluated for many pairs of a partial match and a row at once."""

from __future__ import annotations

import numpy as np
import polars as pl

from slackwater.base.truths import truths
from slackwater.operators.patterns.course import Course
from slackwater.operators.patterns.timeline import Bools, Ints


class Ties:
    """The tied parts of a pattern's conditions over the rows of one timeline."""

    def __init__(self, course: Course, rows: pl.DataFrame) -> None:
        fields = course.fields
        self.course = course
        self.rows = rows
        self.failed = 0
        """The number of pairs on which a condition failed: no single row is to blame, and each may match others."""
        nothing = pl.DataFrame({name: [None] for name in fields}, schema={name: rows.schema[name] for name in fields})
        # The last row represents a step that has taken none: all its columns are null.
        self.referred = pl.concat([rows.select(fields), nothing])

    def hold(self, step: int, row: Ints, bound: Ints) -> Bools:
        """Return for each of `row` whether it meets the tied part of a step's condition.

        For each of them, `bound` has the rows that the referenced steps have taken last, or -1.
        """
        condition = self.course.conditions[step]
        assert condition.tied is not None
        columns = self.rows.select(condition.reads)[row].get_columns() if condition.reads else []
        for at in condition.refers:
            last = bound[:, self.course.slots[at]]
            taken = self.referred[np.where(last < 0, self.rows.height, last)]
            columns.append(taken.to_struct(self.course.pattern.steps[at].name))
        holds, failed = truths(pl.DataFrame(columns), condition.tied)
        self.failed += failed
        return holds.to_numpy()
