"""Definitions as text that is the same in every process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from types import CodeType


def stable_text(value: object) -> str:
    """Return `value` as text that is the same in every process; a plain repr may contain a memory address."""
    code = value if isinstance(value, CodeType) else getattr(value, "__code__", None)
    if isinstance(code, CodeType):
        return f"{code.co_code.hex()}{code.co_names}{stable_text(code.co_consts)}"
    if isinstance(value, Mapping):
        return f"({', '.join(f'{name}={stable_text(item)}' for name, item in value.items())})"
    if isinstance(value, tuple | list | frozenset):
        texts = map(stable_text, value)
        return f"({', '.join(sorted(texts) if isinstance(value, frozenset) else texts)})"
    if is_dataclass(value) and not isinstance(value, type):
        return f"{type(value).__name__}{stable_text(vars(value))}"
    return str(value)
