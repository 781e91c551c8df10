"""Made-up patterns and rows: few values and times close together, so that conditions overlap and matches compete."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.property.pattern_model import Holds, Row, Sought, Step

_OWN: dict[str, Holds] = {
    "v = 0": lambda row, _: row.v == 0,
    "v < 2": lambda row, _: row.v is not None and row.v < 2,
    "v >= 1": lambda row, _: row.v is not None and row.v >= 1,
    "v is null": lambda row, _: row.v is None,
    "w = 1": lambda row, _: row.w == 1,
    "true": lambda _, __: True,
}


def _value(taken: dict[str, Row], name: str) -> int | None:
    return taken[name].v if name in taken else None


def _tied(name: str, other: str) -> dict[str, Holds]:
    """Return conditions of the step `name` that refer to the step `other`, or to itself."""

    def more(row: Row, taken: dict[str, Row]) -> bool:
        before = _value(taken, other)
        return row.v is not None and before is not None and row.v > before

    def same(row: Row, taken: dict[str, Row]) -> bool:
        before = _value(taken, other)
        return row.w == 1 and row.v is not None and row.v == before

    def rising(row: Row, taken: dict[str, Row]) -> bool:
        before = _value(taken, name)
        return before is None or (row.v is not None and row.v > before)

    def above(row: Row, taken: dict[str, Row]) -> bool:
        before = _value(taken, name)
        before = _value(taken, other) if before is None else before
        return row.v is not None and before is not None and row.v >= before

    return {
        f"v > {other}.v": more,
        f"w = 1 and v = {other}.v": same,
        f"{name}.v is null or v > {name}.v": rising,
        f"v >= coalesce({name}.v, {other}.v)": above,
    }


_LIMITS: list[tuple[int, int | None, bool]] = [
    (1, 1, False),
    (1, 1, False),
    (1, 1, True),
    (1, None, False),
    (1, None, True),
    (2, 2, False),
    (1, 3, False),
    (2, 3, True),
    (2, None, False),
]


@st.composite
def sought(draw: st.DrawFn, *, has_ties: bool = False) -> Sought:
    """Draw a pattern that is not refused; `has_ties` makes every step but the first refer to another."""
    steps: list[Step] = []
    for number in range(draw(st.integers(1 + has_ties, 4 - has_ties))):
        name = f"s{number}"
        known = dict(_OWN)
        if steps:
            tied = _tied(name, draw(st.sampled_from(steps)).name)
            known = tied if has_ties else known | tied
        sql = draw(st.sampled_from(sorted(known)))
        least, most, is_optional = draw(st.sampled_from(_LIMITS))
        steps.append(Step(name, sql, known[sql], least, most, is_optional))
    if all(step.is_optional for step in steps):
        steps.append(Step("end", "w = 1", _OWN["w = 1"]))
    return Sought(
        tuple(steps),
        within_ms=draw(st.sampled_from([1, 4, 10, 1000])),
        is_strict=draw(st.booleans()),
        is_past_last=draw(st.booleans()),
    )


@st.composite
def optional_starts(draw: st.DrawFn) -> Sought:
    """Draw a pattern of a step that may be left out, one that few rows meet, and one that refers to either.

    The first row often goes to the first step in one way and to the second in another, and these ways move on in
    different batches.
    """
    first, second = draw(st.sampled_from(["true", "v < 2"])), draw(st.sampled_from(["v = 0", "v < 2"]))
    steps = [
        Step("s0", first, _OWN[first], 1, draw(st.sampled_from([1, 1, None])), is_optional=True),
        Step("s1", second, _OWN[second]),
    ]
    tied = _tied("last", draw(st.sampled_from(["s1", "s1", "s0"])))
    sql = draw(st.sampled_from(sorted(sql for sql in tied if sql.startswith("v >"))))
    steps.append(Step("last", sql, tied[sql], *draw(st.sampled_from([(1, 1), (1, 1), (1, 2), (2, None)]))))
    within_ms = draw(st.sampled_from([3, 5, 8, 100]))
    return Sought(tuple(steps), within_ms=within_ms, is_past_last=draw(st.booleans()))


@st.composite
def absences(draw: st.DrawFn) -> Sought:
    """Draw an absence."""
    after = draw(st.sampled_from(sorted(_OWN)))
    known = _OWN | {sql: holds for sql, holds in _tied("expect", "after").items() if "expect" not in sql}
    expect = draw(st.sampled_from(sorted(known)))
    steps = (Step("after", after, known[after]), Step("expect", expect, known[expect]))
    return Sought(steps, within_ms=draw(st.sampled_from([1, 4, 10])), is_past_last=False, is_absence=True)


def rows() -> st.SearchStrategy[list[Row]]:
    """Draw rows of a few keys; their numbers are their places in the log."""
    one = st.tuples(
        st.sampled_from(["a", "a", "b", None]),
        st.integers(0, 12),
        st.sampled_from([0, 1, 2, 3, None]),
        st.integers(0, 1),
    )
    return st.lists(one, max_size=14).map(lambda drawn: [Row(*each, number) for number, each in enumerate(drawn)])
