"""Applying lookups and table joins to the rows of one chunk."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from slackwater.base.errors import counted, fault
from slackwater.engine.enrichment.answers import ROWS, AnswerFiles, Answers, Span
from slackwater.engine.enrichment.cached_lookups import CachedLookups
from slackwater.engine.enrichment.fitting import FAILED, KEY, MESSAGE, MISSING, STATUS, UNFIT, answers_schema
from slackwater.engine.enrichment.snapshots import Snapshots
from slackwater.engine.enrichment.stats import LookupStats
from slackwater.eventtime.clock import Clock
from slackwater.plan.join_table import JoinTable
from slackwater.plan.lookup import LookUp

_ROW = "__row"


@dataclass(kw_only=True)
class Enrichment:
    """The stores and tables that row functions use in one task of one batch."""

    clock: Clock
    answers: Answers
    """Persists answers before they are used."""
    snapshots: Snapshots
    """The table versions that the clock names."""
    lookups: CachedLookups
    patience_s: float = 0.0
    """How long a task itself waits for an unavailable store before it fails and the batch has to wait."""
    sleep: Callable[[float], None] = time.sleep
    stats: dict[str, LookupStats] = field(default_factory=dict)
    _listings: dict[str, AnswerFiles] = field(default_factory=dict)

    def facts(self) -> dict[str, Any]:
        """Return the statistics of the lookups for a packet."""
        return {step: stats.to_facts() for step, stats in self.stats.items()}

    def joined(self, rows: pl.DataFrame, op: JoinTable, step: str) -> pl.DataFrame:
        """Return rows with the columns of a table; with `how="inner"`, only rows with a match."""
        known = self.snapshots.load(step, self.clock.tables[step].version)
        keys = [f"__key{number}" for number in range(len(op.right))]
        added = [pl.col(name).alias(new) for name, new in op.names.items()]
        table = known.select(*(pl.col(name).alias(key) for name, key in zip(op.right, keys, strict=True)), *added)
        return rows.join(table, left_on=list(op.left), right_on=keys, how=op.how, coalesce=True, maintain_order="left")

    def answered(self, rows: pl.DataFrame, op: LookUp, step: str, span: Span) -> pl.DataFrame:
        """Return the answer for each row, in the order of the rows; for a null key it is all null.

        The numbered comments refer to the steps in `engine/enrichment/answers.py`.
        """
        keys = rows.select(pl.int_range(pl.len(), dtype=pl.UInt32()).alias(_ROW), pl.col(op.key).alias(KEY), "__off")
        schema = answers_schema(rows.schema[op.key], op.output)
        todo = keys.filter(pl.col(KEY).is_not_null())  # 1
        got, is_first = [], True
        for covered in self._written(step).covering(span) if todo.height else ():  # 2
            if covered.schema != schema:
                continue  # written by an earlier definition, which the user has agreed to replace
            is_first = False
            got.append(covered.answered(todo))
            todo = todo.join(got[-1], on=_ROW, how="anti", maintain_order="left")
        if todo.height:
            rows_of = None if is_first else todo.group_by(KEY).agg(pl.col("__off").unique().sort().alias(ROWS))
            fresh = self._asked(todo[KEY].unique().sort(), op, step, span, rows_of)
            got.append(todo.join(fresh, on=KEY, how="inner"))  # 4
        nothing = pl.DataFrame(schema={_ROW: pl.UInt32(), "__off": pl.Int64(), **schema})
        every = pl.concat([nothing, *(part.select(nothing.columns) for part in got)]).drop(KEY, "__off")
        return keys.select(_ROW).join(every, on=_ROW, how="left", maintain_order="left").drop(_ROW)

    def _written(self, step: str) -> AnswerFiles:
        if step not in self._listings:
            self._listings[step] = AnswerFiles(self.answers, step, self.clock.batch)
        return self._listings[step]

    def _asked(self, keys: pl.Series, op: LookUp, step: str, span: Span, rows_of: pl.DataFrame | None) -> pl.DataFrame:
        """Query the store for `keys`, persist and return the answers; raise if the batch has to wait for the store.

        `rows_of` has the rows that each answer is for; None if it is for all rows of the span that have the key.
        """
        stats = self.stats.setdefault(step, LookupStats())
        at_work = self.lookups.step(op, step, keys.dtype)
        patience_s = self.patience_s if op.on_error == "wait" else 0.0
        got = at_work.answers(keys, self.clock.now, stats, patience_s=patience_s, sleep=self.sleep)
        answers = got.answers
        if op.on_error != "wait":
            answers = pl.concat([answers, at_work.failed(got.failed)])
        if rows_of is not None:
            answers = answers.join(rows_of, on=KEY, how="inner")
        if answers.height:
            answers = self.answers.write(step, self.clock.batch, span, answers.sort(KEY))  # 3
        if op.on_error == "wait" and got.failed:
            count = counted(len(got.failed), "key")
            why = next(iter(got.failed.values()))
            raise fault("LOOKUP_UNAVAILABLE", lookup=op.lookup, step=step, count=count, why=why)
        return answers


def dead_reasons(answers: pl.DataFrame, op: LookUp) -> tuple[pl.Series, pl.Series]:
    """Return for each row the reason why it is a dead letter (null if it is not), and the message."""
    status, message = pl.col(STATUS), pl.col(MESSAGE)
    reasons = {UNFIT: "lookup_answer"}
    if op.on_error == "dead_letter":
        reasons[FAILED] = "lookup_failed"
    if op.missing == "dead_letter":
        reasons[MISSING] = "lookup_missing"
    reason = status.replace_strict(reasons, default=None, return_dtype=pl.String)
    words = pl.when(status == MISSING).then(pl.lit(f"{op.lookup} has nothing for this `{op.key}`")).otherwise(message)
    found = answers.select(reason=reason, message=words)
    return found["reason"], found["message"]
