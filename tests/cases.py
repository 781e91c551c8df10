"""Tables of cases for `pytest.mark.parametrize`, grouped by what the cases of a group share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def cases(table: Mapping[Any, Iterable[Any] | Mapping[Any, Any]]) -> list[tuple[Any, ...]]:
    """Return the cases of a table.

    `{a: [b, c]}` has the cases (a, b) and (a, c); `{a: [(b, x)]}`, or `{a: {b: x}}`, has the case (a, b, x).
    """
    flat: list[tuple[Any, ...]] = []
    for shared, group in table.items():
        members = group.items() if isinstance(group, Mapping) else group
        flat += [(shared, *(each if isinstance(each, tuple) else (each,))) for each in members]
    return flat
