"""The steps of a pattern: a condition, and how many rows may meet it.

The number is given with the condition, `sw.step("not ok", at_least=3)`, or with the name of the step, as in SQL and
regular expressions: `{"failed{3,}": "not ok"}`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import polars as pl

from slackwater.base.errors import refuse
from slackwater.base.expressions import Expression, as_expr, as_written

_NAMED: Final = re.compile(r"(?P<name>[^?*+{}\s]*)\s*(?P<how_many>[?*+]|\{[^{}]*\})?")
_BRACES: Final = re.compile(r"\{\s*(?P<least>\d*)\s*(?P<comma>,)?\s*(?P<most>\d*)\s*\}")
_SIGNS: Final[dict[str, tuple[int, int | None]]] = {"?": (0, 1), "*": (0, None), "+": (1, None)}
SIGNS: Final = "?, *, +, {3}, {3,} or {3,5}"
MOST_ROWS: Final = 1_000_000
"""The most rows in one step; more are a mistake, because a match is one result row."""


@dataclass(frozen=True, kw_only=True)
class RowsOfStep:
    """The condition of a step, and how many rows it takes; the pattern gives it its name."""

    condition: pl.Expr
    written: str
    at_least: int | None = None
    at_most: int | None = None
    optional: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether no number of rows is given."""
        return self.at_least is None and self.at_most is None and not self.optional


@dataclass(frozen=True, kw_only=True)
class PatternStep:
    """One step of a pattern: `least` to `most` rows that meet its condition, or, if it is optional, none."""

    name: str
    condition: pl.Expr
    written: str
    least: int = 1
    most: int | None = 1
    """The largest number of rows; None for any number."""
    is_optional: bool = False

    @property
    def is_repeated(self) -> bool:
        """Whether it may take more than one row, in which case results have lists."""
        return self.most != 1

    @property
    def is_fixed(self) -> bool:
        """Whether it takes the same number of rows in every match."""
        return self.most == self.least and not self.is_optional

    def __str__(self) -> str:
        return f"{self.name}{self._how_many()}: {self.written}"

    def _how_many(self) -> str:
        least = 0 if self.is_optional and self.least == 1 else self.least
        if sign := next((sign for sign, known in _SIGNS.items() if known == (least, self.most)), None):
            return sign
        if self.is_fixed:
            return "" if self.most == 1 else f"{{{self.most}}}"
        limits = f"{{{least},{'' if self.most is None else self.most}}}"
        return f"{limits}, optional" if self.is_optional and self.least > 1 else limits


def step(
    condition: Expression, *, at_least: int | None = None, at_most: int | None = None, optional: bool = False
) -> RowsOfStep:
    """Create a step that takes several rows, or none: `sequence(failed=step("not ok", at_least=3), ...)`.

    With neither number it takes one row; with `at_least` alone any number from there; with `at_most` alone at least
    one. An `optional` step may be left out as a whole.
    """
    return RowsOfStep(
        condition=as_expr(condition),
        written=as_written(condition),
        at_least=at_least,
        at_most=at_most,
        optional=optional,
    )


def named_step(written: str, value: Expression | RowsOfStep) -> PatternStep:
    """Return the step of a pattern with the name `written`, which may include how many rows it takes."""
    rows = value if isinstance(value, RowsOfStep) else step(value)
    found = _NAMED.fullmatch(written) if isinstance(written, str) else None
    name = "" if found is None else found["name"]
    if found is None or not name.isidentifier() or name.startswith("__"):
        raise refuse("PATTERN_STEP_NAME", got=repr(written), signs=SIGNS)
    if found["how_many"] is None:
        least, most = _of_options(name, rows)
    elif rows.is_plain:
        least, most = _of_sign(written, found["how_many"])
    else:
        raise refuse("PATTERN_QUANTIFIER_TWICE", got=repr(written))
    return PatternStep(
        name=name,
        condition=rows.condition,
        written=rows.written,
        least=max(least, 1),
        most=most,
        is_optional=rows.optional or least == 0,
    )


def _of_options(name: str, rows: RowsOfStep) -> tuple[int, int | None]:
    if rows.is_plain or (rows.at_least is None and rows.at_most is None):
        return 1, 1
    return _checked(f"step `{name}`", 1 if rows.at_least is None else rows.at_least, rows.at_most)


def _of_sign(written: str, sign: str) -> tuple[int, int | None]:
    if sign in _SIGNS:
        return _SIGNS[sign]
    found = _BRACES.fullmatch(sign)
    if found is None or not (found["least"] or found["most"]):
        raise refuse("PATTERN_QUANTIFIER_UNREADABLE", got=repr(written), signs=SIGNS)
    least = int(found["least"] or 0)
    if not found["comma"]:
        return _checked(repr(written), least, least)
    return _checked(repr(written), least, int(found["most"]) if found["most"] else None)


def _checked(what: str, least: int, most: int | None) -> tuple[int, int | None]:
    """Return the limits, or reject those that no number of rows could satisfy."""
    numbers = [number for number in (least, most) if number is not None]
    is_whole = all(isinstance(number, int) and not isinstance(number, bool) for number in numbers)
    if not is_whole or least < 0 or max(numbers) > MOST_ROWS or (most is not None and (most < 1 or most < least)):
        raise refuse("PATTERN_QUANTIFIER", what=what, least=least, most="any" if most is None else most, top=MOST_ROWS)
    return least, most
