"""What a user's function uses, found by reading its bytecode without running it.

1. The instructions of a function are walked. A global, a closed-over variable, a module imported inside, or `self`
   begins a chain; attributes extend it: `datetime` `.now` is `datetime.datetime.now`.
2. The user's functions and classes that a chain leads to are walked in turn. Code of the standard library and of
   installed packages is not: the rules know its names.
3. Whether an instruction is inside a loop follows from the jumps around it.

The values of variables at run time are not known: `requests.get` is always found, `clients[0].get` is not.
"""

from __future__ import annotations

import builtins
import dis
import os
import site
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final

_MOST_FUNCTIONS: Final = 200
_NOTHING: Final = object()
_ATTRIBUTES: Final = ("LOAD_ATTR", "LOAD_METHOD")
_GLOBALS: Final = ("LOAD_GLOBAL", "LOAD_NAME")
_CLOSED: Final = ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")
_LOCALS: Final = ("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW")
"""Loads of local variables. From Python 3.13 on, also suffixes of instructions that store or load another one first."""
_BY_PYTHON: Final = ("__hash__", "__eq__", "__repr__")
"""Methods that classes have but events do not call; a dataclass uses `hash` in the first."""
_BETWEEN: Final = ("PUSH_NULL", "CACHE", "NOP", "PRECALL", "COPY_FREE_VARS")


@dataclass(frozen=True, order=True)
class Use:
    """A name that a function uses."""

    name: str
    """The full name, such as "time.sleep"."""
    function: str
    line: int
    is_in_loop: bool = False


def uses_of(function: object, owner: object = None) -> list[Use]:
    """Return what a function, and the user's functions that it calls, use; `owner` is the `self` of a method."""
    walk = _Walk()
    walk.value(function, owner)
    return sorted(walk.found)


@dataclass
class _Walk:
    found: set[Use] = field(default_factory=set)
    seen: set[int] = field(default_factory=set)

    def value(self, value: Any, owner: object = None) -> None:  # noqa: ANN401  any value
        """Walk anything that may contain the user's code."""
        if isinstance(value, MethodType):
            value, owner = value.__func__, value.__self__
        if isinstance(value, partial):
            value = value.func
        if isinstance(value, staticmethod | classmethod):
            value = value.__func__
        if isinstance(value, property):
            value = value.fget
        if isinstance(value, FunctionType):
            self._function(value, owner)
        elif isinstance(value, type):
            self._class(value)
        elif callable(value) and not isinstance(value, BuiltinFunctionType):
            self._object(value)

    def _class(self, cls: type) -> None:
        if id(cls) not in self.seen and not _is_installed(getattr(sys.modules.get(cls.__module__), "__file__", None)):
            self.seen.add(id(cls))
            for name, member in list(vars(cls).items()):
                if isinstance(member, FunctionType | staticmethod | classmethod | property) and name not in _BY_PYTHON:
                    self.value(member)

    def _object(self, value: Any) -> None:  # noqa: ANN401  the user's own
        """Walk a callable object, and the functions inside an object of Polars."""
        if id(value) in self.seen:
            return
        self.seen.add(id(value))
        call = getattr(type(value), "__call__", None)  # noqa: B004  its code, not whether it exists
        if isinstance(call, FunctionType):
            self._function(call, value)
        for held in list(getattr(value, "__dict__", {}).values()):
            if isinstance(held, FunctionType):
                self._function(held, None)

    def _function(self, function: FunctionType, owner: object) -> None:
        if id(function) in self.seen or len(self.seen) > _MOST_FUNCTIONS:
            return
        self.seen.add(id(function))
        closure = dict(zip(function.__code__.co_freevars, _cells(function), strict=True))
        if _is_installed(function.__code__.co_filename):
            for held in closure.values():  # it may be a wrapper with the user's function inside
                if isinstance(held, FunctionType):
                    self._function(held, None)
            return
        self._code(function.__code__, function.__qualname__, {"globals": function.__globals__, **closure}, owner)

    def _code(self, code: CodeType, name: str, scope: dict[str, Any], owner: object) -> None:
        loops = _loops(code)
        known = _imported(code)
        if owner is not None and code.co_argcount:
            known.setdefault(code.co_varnames[0], owner)
        for start, names, line in _chains(code):
            value = _begin(start, scope, known)
            for use, reached in _followed(value, names):
                is_in_loop = any(first <= start.offset <= last for first, last in loops)
                if use:
                    self.found.add(Use(use, name, line, is_in_loop))
                if reached is not owner:
                    self.value(reached)
        for const in code.co_consts:
            if isinstance(const, CodeType):
                self._code(const, f"{name}.{const.co_name}" if const.co_name[0] != "<" else name, scope, owner)


def _chains(code: CodeType) -> Iterator[tuple[dis.Instruction, list[str], int]]:
    """Yield the first instruction of each chain, the attributes that follow, and its line."""
    line = code.co_firstlineno
    start: dis.Instruction | None = None
    names: list[str] = []
    for each in dis.get_instructions(code):
        if start is not None and each.opname in _ATTRIBUTES:
            names.append(str(each.argval))
            continue
        if start is not None and each.opname not in _BETWEEN:
            yield start, names, line
            start = None
        if each.opname in (*_GLOBALS, *_CLOSED) or each.opname.endswith(_LOCALS):
            start, names, line = each, [], _line(each, line)
    if start is not None:
        yield start, names, line


def _line(each: dis.Instruction, line: int) -> int:
    return line if each.positions is None or each.positions.lineno is None else each.positions.lineno


def _begin(start: dis.Instruction, scope: dict[str, Any], known: dict[str, Any]) -> Any:  # noqa: ANN401  any value
    """Return the value of the first name of a chain; for imports inside the function, only the name is known."""
    name = str(start.argval[-1] if isinstance(start.argval, tuple) else start.argval)
    if start.opname.endswith(_LOCALS):
        return known.get(name, _NOTHING)
    if start.opname in _CLOSED:
        return scope.get(name, known.get(name, _NOTHING))
    return scope["globals"].get(name, getattr(builtins, name, _NOTHING))


@dataclass(frozen=True)
class _Named:
    """A module, or a name in one, that the function imports when it runs."""

    name: str


def _imported(code: CodeType) -> dict[str, Any]:
    """Return the variables that a function's imports bind: `import time`, `from time import sleep`."""
    found: dict[str, Any] = {}
    module, taken = "", ""
    for each in dis.get_instructions(code):
        if each.opname == "IMPORT_NAME":
            module = taken = str(each.argval)
        elif each.opname == "IMPORT_FROM":
            taken = f"{module}.{each.argval}"
        elif each.opname.startswith(("STORE_FAST", "STORE_DEREF")) and taken:
            name = str(each.argval[0] if isinstance(each.argval, tuple) else each.argval)
            # `import urllib.request` binds `urllib`.
            found[name] = _Named(
                taken.partition(".")[0] if taken == module and name == taken.partition(".")[0] else taken
            )
            taken = ""
    return found


def _followed(value: Any, names: list[str]) -> Iterator[tuple[str, object]]:  # noqa: ANN401  any value
    """Yield the full name of a chain, with the value it leads to."""
    if isinstance(value, _Named):
        yield ".".join([value.name, *names]), None
        return
    for place, name in enumerate(names):
        if isinstance(value, ModuleType):
            inner = vars(value).get(name, _NOTHING)
        elif isinstance(value, type):
            inner = next((vars(parent)[name] for parent in value.__mro__ if name in vars(parent)), _NOTHING)
        else:
            inner = getattr(value, "__dict__", {}).get(name, _NOTHING) if value is not _NOTHING else _NOTHING
            if inner is _NOTHING and value is not _NOTHING:
                inner = next((vars(parent)[name] for parent in type(value).__mro__ if name in vars(parent)), _NOTHING)
        if inner is _NOTHING or not isinstance(value, ModuleType):
            yield ".".join(filter(None, [_name(value), *names[place:]])) if _name(value) else "", inner
        if inner is _NOTHING:
            return
        value = inner
    if value is not _NOTHING:
        yield _name(value), value


def _name(value: Any) -> str:  # noqa: ANN401  any value
    """Return the full name of a module, class or function; for any other object, that of its class."""
    if value is _NOTHING:
        return ""
    if value is os.environ:
        return "os.environ"
    if isinstance(value, ModuleType):
        return value.__name__
    if isinstance(value, BuiltinFunctionType) and not isinstance(value.__self__, ModuleType | None):
        return f"{type(value.__self__).__module__}.{value.__name__}"  # `random.random` is a method
    if isinstance(value, MethodType):
        return f"{type(value.__self__).__module__}.{value.__name__}"
    if not isinstance(value, type | FunctionType | BuiltinFunctionType):
        value = type(value)
    first, *inner = (getattr(value, "__module__", "") or "builtins").split(".")
    # Names that users import from `pathlib` may be defined in a private module of it.
    public = [first, *(part for part in inner if not part.startswith("_"))]
    return ".".join([*public, value.__qualname__.replace("PathBase.", "Path.")])


def _loops(code: CodeType) -> list[tuple[int, int]]:
    """Return the offsets of each loop: a `for` up to its end, a `while` up to its jump back.

    After the first exception handler, a jump back is more often the exit of a `with` than a loop.
    """
    found, is_handling = [], False
    for each in dis.get_instructions(code):
        is_handling |= each.opname == "PUSH_EXC_INFO"
        if each.opname == "FOR_ITER":
            found.append((each.offset, int(each.argval)))
        elif "JUMP" in each.opname and not is_handling and int(each.argval) < each.offset:
            found.append((int(each.argval), each.offset))
    return found


def _cells(function: FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not assigned yet
            yield _NOTHING


@lru_cache(maxsize=1)
def _installed() -> tuple[str, ...]:
    """Return the folders of code that is not the user's, including this package."""
    paths = sysconfig.get_paths()
    own = str(Path(__file__).resolve().parents[1])
    places = [paths["stdlib"], paths["platstdlib"], paths["purelib"], paths["platlib"], *site.getsitepackages(), own]
    return tuple({os.path.realpath(place) + os.sep for place in places})


@lru_cache(maxsize=1024)
def _is_installed(file: str | None) -> bool:
    return file is not None and (os.path.realpath(file).startswith(_installed()) or file.startswith("<frozen"))
