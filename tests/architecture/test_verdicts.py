"""The verdicts on rows and state are made in one place each; every other comparison with a watermark has its reason.

`is_late` says which rows are late, `is_forgotten` which state may go. Operators and the engine also compare with
watermarks to fire, to wake, and to count. Those comparisons are listed here as they are written, so a new one fails
until it calls one of the two, or until its reason is added.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "slackwater"
WATERMARK = re.compile(r"watermark|judge_ms|forgotten_ms|gone_ms|late_until")
COMPARING = {"is_between", "lt", "le", "gt", "ge", "less", "less_equal", "greater", "greater_equal"}
PURE = {"max", "min", "maximum", "minimum", "max_horizontal", "min_horizontal", "lit", "int", "late_until_ms"}
"""What is called with a watermark and returns one."""
ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
NOT_A_VERDICT = re.compile(r"\b(MIN_MS|MAX_MS|previous_ms)\b")
"""Whether there is a watermark, whether it is the last one, and whether it has moved."""

REASONS = {
    "engine/alignment.py": {
        "ahead: by_ms > drift_ms": "how far a stream is ahead of another, to hold it back",
    },
    "engine/step_times.py": {
        "step_time: reached.forgotten_ms < before - lateness": "a setting has changed since the last batch",
    },
    "operators/deduplication/by_time.py": {
        "_due: pl.col('__ts') < watermark_ms": "a first row is emitted",
    },
    "operators/joins/as_of_operator.py": {
        "add: packet.min_end_ms >= time.judge_ms": "rows that all wait are stored unread",
        "_add_versions: packet.min_end_ms >= time.judge_ms": "versions that are all ahead are stored unread",
        "_superseded: pl.col('__end') < watermark_ms": "versions that may be older than the valid one",
    },
    "operators/joins/front.py": {
        "take: rows['__ts'] < time.judge_ms": "counts the rows that are behind and not late",
    },
    "operators/joins/kept_rows.py": {
        "over: piece.wake_ms <= time.watermark_ms": "pieces that are read; their rows are judged",
    },
    "operators/joins/versions.py": {
        "superseded: time <= watermark_ms": "the version that is valid at the watermark",
    },
    "operators/joins/windowed_front.py": {
        "take: kept['next'] <= watermark_ms": "counts the rows that correct a window",
    },
    "operators/joins/windowed_operator.py": {
        "add: packet.min_end_ms > time.judge_ms": "rows whose windows are all open are stored unread",
        "_correct: _END.is_between(late_until_ms(time, self.step.lateness_ms), time.judge_ms, closed='right')": (
            "windows that are complete and not forgotten"
        ),
        "_waiting: watermark_ms < _END": "the next window to fire",
    },
    "operators/patterns/operator.py": {
        "_undecided: pl.col('__end') <= time.watermark_ms": "rows before which nothing can come any more",
    },
    "operators/process/operator.py": {
        "_wake: pl.col('__end') <= time.watermark_ms": "keys that are woken",
        "_wake: pl.col('__ts') < time.watermark_ms": "events that are processed in order",
    },
    "operators/state/buckets.py": {
        "woken: pl.col('__end') <= time.watermark_ms": "buckets that are woken",
    },
    "operators/state/pieces.py": {
        "wakes: self.wake_ms <= time.watermark_ms": "pieces that are woken",
    },
    "operators/windows/aligned.py": {
        "advance: p.min_end_ms <= watermark": "pieces with a window that fires",
        "advance: p.max_end_ms > watermark": "whether such a piece has open windows too",
        "advance: pl.col('__end') > watermark": "open windows are put back",
        "advance: pl.col('__end') <= watermark": "complete windows fire",
        "_accounts: pl.col('__end') <= watermark_ms": "counts the rows that correct a window",
    },
    "operators/windows/front.py": {
        "merge: rows['__end'] <= time.judge_ms": "complete windows fire again, open ones wait",
    },
    "operators/windows/operator.py": {
        "wake_of: end > watermark_ms": "an open window wakes to fire, a complete one to be forgotten",
        "describe: pl.col('__end') > watermark_ms": "whether a piece still has something to show",
    },
    "operators/windows/panes.py": {
        "after_rows: pl.col('__end') <= watermark_ms": "late panes instead of early ones",
        "advance: pl.col('__end') <= time.watermark_ms": "windows become complete",
        "_may_show_early: pl.col('__end') > watermark_ms": "early panes fire before the end",
    },
    "operators/windows/session.py": {
        "take: pl.col('__end') > watermark_ms": "counts the rows that are on time",
    },
    "operators/windows/session_operator.py": {
        "_account: self._until <= time.judge_ms": "counts the rows that correct a session",
    },
    "operators/windows/sliding.py": {
        "take: pl.col('__end') <= watermark_ms": "counts the rows that correct a window",
        "_fire: p.min_end_ms <= watermark": "pieces with an instant that fires",
        "_fire: pl.col('__end') <= watermark": "instants fire",
        "add: pl.col('__end') <= watermark": "instants fire again",
        "_describe: pl.col('__end') > watermark_ms": "the next instant to fire",
    },
}
"""The comparisons of each module, by function, with what each is for."""


def is_watermark(node: ast.expr, aliases: set[str]) -> bool:
    """Return whether the value of `node` is a watermark, or a time computed from one."""
    match node:
        case ast.Name(id=name):
            return name in aliases or WATERMARK.search(name) is not None
        case ast.Attribute(attr=name):
            return WATERMARK.search(name) is not None
        case ast.BinOp(left=left, right=right) | ast.IfExp(body=left, orelse=right):
            return is_watermark(left, aliases) or is_watermark(right, aliases)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=args):
            of = [node.func.value] if isinstance(node.func, ast.Attribute) else []
            return name in PURE and any(is_watermark(each, aliases) for each in [*args, *of])
    return False


def assigned(function: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                yield from zip(names, values, strict=False)
            case ast.Assign(targets=[name], value=value) | ast.NamedExpr(target=name, value=value):
                yield name, value
            case ast.AnnAssign(target=name, value=ast.expr() as value):
                yield name, value


def compared(source: str) -> list[str]:
    """Return the comparisons with a watermark, under its own name or another, each after the name of its function."""
    found = {}
    tree = ast.parse(source)
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        aliases: set[str] = set()
        for _ in range(2):  # an alias may have an alias
            for name, value in assigned(function):
                if isinstance(name, ast.Name) and is_watermark(value, aliases):
                    aliases.add(name.id)
        for node in ast.walk(function):
            match node:
                case ast.Compare(left=left, ops=ops, comparators=others) if any(isinstance(op, ORDER) for op in ops):
                    operands = [left, *others]
                case ast.Call(func=ast.Attribute(attr=called), args=arguments) if called in COMPARING:
                    operands = arguments
                case _:
                    continue
            inner = [each for operand in operands for each in ast.walk(operand) if isinstance(each, ast.expr)]
            if any(is_watermark(each, aliases) for each in inner):
                found[node.lineno, node.col_offset] = f"{function.name}: {ast.unparse(node)}"
    return sorted({text for text in found.values() if not NOT_A_VERDICT.search(text)})


def test_every_comparison_with_a_watermark_is_a_verdict_or_has_its_reason() -> None:
    found = {
        path.relative_to(PACKAGE).as_posix(): texts
        for room in ("operators", "engine")
        for path in sorted((PACKAGE / room).rglob("*.py"))
        if (texts := compared(path.read_text(encoding="utf-8")))
    }
    assert found == {name: sorted(reasons) for name, reasons in REASONS.items()}


@pytest.mark.parametrize(
    "line",
    [
        "rows.filter(end + ttl_ms < time.judge_ms)",
        "rows.filter(pl.col('__end') + reach >= watermark_ms)",
        "[piece for piece in pieces if piece.max_end_ms < watermark_ms]",
        "now = time.judge_ms; rows.filter(end <= now)",
        "first, limit = rows.min(), time.judge_ms - kept_ms; limit > first",
        "until = time.watermark_ms; until = max(until, 0); end < until - kept_ms",
        "first = np.maximum(times, watermark_ms) - ttl_ms; known.filter(pl.col('__end') >= first.min())",
        "end.le(time.judge_ms)",
        "np.less(end, watermark_ms)",
        "end.is_between(0, late_until_ms(time))",
        "after >= watermark_ms - piece.min_end_ms",
    ],
)
def test_a_comparison_is_found_however_it_is_written(line: str) -> None:
    assert len(compared(f"def decide(rows, time, watermark_ms):\n    {line}")) == 1


@pytest.mark.parametrize(
    "line",
    [
        "is_forgotten(end, time.judge_ms)",
        "is_late(end, time, lateness_ms)",
        "late_rows(rows, types, name, time.judge_ms)",
        "watermark_ms >= MAX_MS",
        "time.watermark_ms > time.previous_ms",
    ],
)
def test_a_verdict_and_the_state_of_the_clock_are_no_such_comparison(line: str) -> None:
    assert not compared(f"def decide(rows, time, watermark_ms):\n    {line}")
