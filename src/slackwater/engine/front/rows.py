"""Running a tree of row functions over frames, and turning every row that fails into a dead letter."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import polars as pl

from slackwater.base.durations import render_ms
from slackwater.base.errors import fault
from slackwater.base.times import FIRST_USABLE_MS, LAST_USABLE_MS, render_time
from slackwater.connectors.source import Source
from slackwater.engine.dead_letters import bury, guarded
from slackwater.engine.enrichment.enrichment import dead_reasons
from slackwater.engine.front.decoding import decoded
from slackwater.engine.row_context import RowContext
from slackwater.formats.base import TOO_LONG, Format, too_long
from slackwater.formats.python_range import limited
from slackwater.plan.join_table import JoinTable
from slackwater.plan.lookup import LookUp
from slackwater.plan.plan import RowNode
from slackwater.plan.row_functions import (
    Decode,
    Map,
    RowCondition,
    RowOp,
    Select,
    TakeTime,
    Validate,
    Where,
    WithColumns,
)

Arrive = Callable[[RowNode, pl.DataFrame, "RowContext"], None]


class RowFunctions:
    """Runs the tree of row functions of one stream; created once per task."""

    def __init__(self, root: RowNode, source: Source | None = None) -> None:
        self.root = root
        self.metadata = {} if source is None else source.metadata

    def run(self, frame: pl.DataFrame, context: RowContext, arrive: Arrive) -> None:
        """Send `frame` through the tree, and call `arrive` wherever rows leave it."""
        self._visit(self.root, frame, context, arrive)

    def _visit(self, node: RowNode, frame: pl.DataFrame, context: RowContext, arrive: Arrive) -> None:
        if node.op is not None:
            frame = self._apply(node, node.op, frame, context)
        if node.outputs or node.feeds:
            arrive(node, frame, context)
        for child in node.children:
            self._visit(child, frame, context, arrive)

    def _apply(  # noqa: C901, PLR0911  one case per kind of row function
        self, node: RowNode, op: RowOp, frame: pl.DataFrame, context: RowContext
    ) -> pl.DataFrame:
        match op:
            case Decode(format=form):
                return guarded(frame, lambda rows: self._decode(node, form, rows, context), node.step, context)
            case TakeTime():
                return self._take_time(node, op, frame, context)
            case Where(predicate=predicate):
                dead_before = sum(rows.height for rows in context.dead)
                kept = guarded(frame, lambda rows: rows.filter(predicate), node.step, context)
                buried = sum(rows.height for rows in context.dead) - dead_before
                context.filtered += frame.height - kept.height - buried
                return kept
            case WithColumns(expressions=expressions):
                return guarded(frame, lambda rows: rows.with_columns(expressions), node.step, context)
            case Select(expressions=expressions):
                hidden = [name for name in frame.columns if name.startswith("__")]
                return guarded(frame, lambda rows: rows.select(*expressions, *hidden), node.step, context)
            case Map():
                return guarded(frame, lambda rows: _mapped(op, node, rows, context), node.step, context)
            case Validate(rules=rules):
                return self._validate(node, rules, frame, context)
            case LookUp():
                return _looked_up(node, op, frame, context)
            case JoinTable():
                if context.enrichment is None:
                    raise fault("ENRICHED_BEFORE_TIME", step=node.step)
                joined = context.enrichment.joined(frame, op, node.step)
                context.filtered += frame.height - joined.height
                return joined

    def _decode(self, node: RowNode, form: Format, frame: pl.DataFrame, context: RowContext) -> pl.DataFrame:
        sizes, frame = frame.get_column("__size", default=None), frame.drop("__size", strict=False)
        made = decoded(node, form, frame["__payload"])
        added = [value.alias(name) for name, (_, value) in self.metadata.items()]
        columns = made.frame.hstack(frame.get_columns()).with_columns(added)
        if made.bad.is_empty():
            return columns
        index = made.bad["index"]
        bury(frame[index], node.step, made.bad["reason"], _with_sizes(made.bad, sizes, form), context)
        good = pl.repeat(value=True, n=frame.height, eager=True).scatter(index, values=False)
        return columns.filter(good)

    def _take_time(self, node: RowNode, op: TakeTime, frame: pl.DataFrame, context: RowContext) -> pl.DataFrame:
        if op.clock != "event" or op.expression is None:
            moment = pl.col("__ingested") if op.clock == "ingestion" else pl.lit(context.now_ms, dtype=pl.Int64)
            frame = frame.with_columns(moment.alias("__ts"))
            _note_times(frame, context)
            return frame
        expression = _epoch_ms(op.expression, frame.lazy().select(op.expression.alias("t")).collect_schema()["t"])
        frame = guarded(frame, lambda rows: rows.with_columns(expression.alias("__ts")), node.step, context)
        times = frame["__ts"]
        unusable = times.is_null() | (times < FIRST_USABLE_MS) | (times > LAST_USABLE_MS)
        if unusable.any():
            reason = pl.Series(["no_event_time"])
            words = "the event time is missing or outside the years 1 to 9999"
            bury(frame.filter(unusable), node.step, reason, pl.Series([words]), context)
            frame = frame.filter(~unusable)
        if op.max_ahead_ms is not None:
            ahead = frame["__ts"] > context.now_ms + op.max_ahead_ms
            if ahead.any():
                lost = frame.filter(ahead)
                at = lost["__ts"].cast(pl.Datetime("ms")).dt.strftime("%Y-%m-%d %H:%M:%S%.3f")
                most, now = render_ms(op.max_ahead_ms), render_time(context.now_ms)
                message = "event time " + at + f" is more than max_ahead ({most}) ahead of processing time {now}"
                bury(lost, node.step, pl.Series(["ahead_of_clock"]), message, context)
                frame = frame.filter(~ahead)
        _note_times(frame, context)
        return frame

    def _validate(
        self, node: RowNode, rules: tuple[RowCondition, ...], frame: pl.DataFrame, context: RowContext
    ) -> pl.DataFrame:
        for rule in rules:
            checked = guarded(frame, partial(_judged, rule=rule.predicate), node.step, context)
            broken = ~checked["__ok"].fill_null(value=False)
            frame = checked.drop("__ok")
            if broken.any():
                words = pl.Series([f"rule `{rule.name}` does not hold: {rule.written}"])
                bury(frame.filter(broken), node.step, pl.Series(["invalid"]), words, context)
                frame = frame.filter(~broken)
        return frame


def _looked_up(node: RowNode, op: LookUp, frame: pl.DataFrame, context: RowContext) -> pl.DataFrame:
    if context.enrichment is None or context.span is None:
        raise fault("ENRICHED_BEFORE_TIME", step=node.step)
    frame = _askable(node, op, frame, context)
    answers = context.enrichment.answered(frame, op, node.step, context.span)
    reason, message = dead_reasons(answers, op)
    dead = reason.is_not_null()
    if dead.any():
        bury(frame.filter(dead), node.step, reason.filter(dead), message.filter(dead), context)
        frame, answers = frame.filter(~dead), answers.filter(~dead)
    return frame.hstack(answers.select(op.output.names()).get_columns())


def _askable(node: RowNode, op: LookUp, frame: pl.DataFrame, context: RowContext) -> pl.DataFrame:
    """Return the rows with keys that a store can be asked for; the others become dead letters."""
    check = limited({op.key: frame.schema[op.key]}).get(op.key)
    if check is None or not (cannot := frame.select(check).to_series()).any():
        return frame
    words = f"`{op.key}` is a date outside the years 1 to 9999, which no store can be asked for"
    bury(frame.filter(cannot), node.step, pl.Series(["lookup_key"]), pl.Series([words]), context)
    return frame.filter(~cannot)


def _with_sizes(bad: pl.DataFrame, sizes: pl.Series | None, form: Format) -> pl.Series:
    """Return a decoder's error messages, with the true sizes of lines that were truncated when they were read."""
    if sizes is None or (most := form.max_bytes) is None:
        return bad["message"]
    cut = zip(bad["message"], bad["reason"] == TOO_LONG, sizes[bad["index"]], strict=True)
    messages = [too_long(size, most=most).message if long and size else text for text, long, size in cut]
    return pl.Series("message", messages, dtype=pl.String())


def _judged(rows: pl.DataFrame, rule: pl.Expr) -> pl.DataFrame:
    return rows.with_columns(rule.alias("__ok"))


def _mapped(op: Map, node: RowNode, rows: pl.DataFrame, context: RowContext) -> pl.DataFrame:
    carried = [name for name in rows.columns if name.startswith("__")]
    if rows.is_empty():  # the function need not support empty input
        return pl.DataFrame(schema={**node.schema, **rows.select(carried).schema})
    made = op.apply(rows, node.schema)
    kept = [name for name in carried if name in made.columns]
    if len(kept) < len(carried):
        if made.height != rows.height:
            lost = sorted(set(carried) - set(kept))
            raise fault("MAP_LOST_ROWS", step=node.step, before=rows.height, after=made.height, lost=lost)
        made = made.drop(kept).hstack(rows.select(carried).get_columns())
    made = made.select(*node.schema.names(), *carried)
    if not made["__off"].equals(rows["__off"]):
        distinct = made["__off"].n_unique()
        context.filtered += rows.height - distinct
        context.added += made.height - distinct
    return made


def _epoch_ms(expression: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    if dtype.is_integer():
        return expression.cast(pl.Int64)
    if dtype == pl.Date:
        return expression.cast(pl.Datetime("ms")).dt.epoch("ms")
    return expression.dt.epoch("ms")


def _note_times(frame: pl.DataFrame, context: RowContext) -> None:
    if frame.height:
        times = frame["__ts"]
        largest_ms = int(times.max())  # type: ignore[arg-type]  # an Int64 column; the stubs say Any
        context.max_ts_ms = max(context.max_ts_ms, largest_ms)
        if context.ages is not None:
            context.ages.observe(times, context.now_ms)
            context.ahead += int((times > context.now_ms).sum()) if largest_ms > context.now_ms else 0
        if context.lateness is not None:
            context.newest_ms = context.lateness.observe(times.to_numpy(), context.newest_ms)
