"""Assignments to attributes of `self`, found by reading the bytecode of methods without running them."""

from __future__ import annotations

import dis
from collections.abc import Collection, Iterator
from types import CodeType, FunctionType
from typing import Any, Final, NamedTuple

_LOADS: Final = ("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW", "LOAD_DEREF")
"""Loads of a variable; from Python 3.13 on, also suffixes of instructions that load or store another one first."""
_BETWEEN: Final = ("PUSH_NULL", "CACHE", "NOP", "EXTENDED_ARG")
_STORES: Final = {"STORE_ATTR": "assigns", "DELETE_ATTR": "deletes"}
_BY_NAME: Final = {"setattr": "assigns", "delattr": "deletes"}


class Assignment(NamedTuple):
    """An attribute of `self` that a method assigns or deletes."""

    name: str
    function: str
    verb: str
    line: int


def assignments(method: object, names: Collection[str]) -> list[Assignment]:
    """Return where a method assigns, changes in place or deletes one of the attributes `names` of its `self`."""
    if not isinstance(method, FunctionType) or not method.__code__.co_argcount:
        return []
    code = method.__code__
    return sorted(set(_found(code, method.__qualname__, code.co_varnames[0], names)), key=lambda each: each.line)


def _found(code: CodeType, function: str, me: str, names: Collection[str]) -> Iterator[Assignment]:
    every = [each for each in dis.get_instructions(code) if each.opname not in _BETWEEN]
    line = code.co_firstlineno
    for place, each in enumerate(every):
        if each.positions is not None and each.positions.lineno is not None:
            line = each.positions.lineno
        before, after = every[:place], every[place + 1 : place + 3]
        if each.opname in _STORES and each.argval in names and (_loads(before, me) or _changes(before, me, each)):
            yield Assignment(str(each.argval), function, _STORES[each.opname], line)
        is_by_name = each.opname in ("LOAD_GLOBAL", "LOAD_NAME") and each.argval in _BY_NAME and len(after) == 2  # noqa: PLR2004  self and the name
        if is_by_name and _loads(after[:1], me) and after[1].opname == "LOAD_CONST" and after[1].argval in names:
            yield Assignment(str(after[1].argval), function, _BY_NAME[each.argval], line)
    for const in code.co_consts:
        if isinstance(const, CodeType) and me in const.co_freevars:
            yield from _found(const, function, me, names)


def _loads(before: list[dis.Instruction], me: str) -> bool:
    """Return whether the last instruction loads `self`."""
    return bool(before) and before[-1].opname.endswith(_LOADS) and _last(before[-1].argval) == me


def _changes(before: list[dis.Instruction], me: str, store: dis.Instruction) -> bool:
    """Return whether the store ends `self.n += …`, which loads `self`, copies it and takes the attribute first."""
    loads = [at for at, each in enumerate(before) if each.opname == "LOAD_ATTR" and each.argval == store.argval]
    is_swapped = bool(before) and before[-1].opname == "SWAP"
    return is_swapped and any(before[at - 1].opname == "COPY" and _loads(before[: at - 1], me) for at in loads)


def _last(argval: Any) -> Any:  # noqa: ANN401  the argument of any instruction
    return argval[-1] if isinstance(argval, tuple) else argval
