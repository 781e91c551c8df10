"""What a user's function uses, found by reading its bytecode without running it.

1. The instructions of a function are walked. A global, a closed-over variable, a module imported inside, `self`, or an
   argument with a default or from a `partial` begins a chain; attributes extend it: `datetime` `.now` is
   `datetime.datetime.now`. So do calls and subscripts, as long as the arguments have no jumps: `Event().wait`.
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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final, NamedTuple

_MOST_FUNCTIONS: Final = 200
_NOTHING: Final = object()
_NONE: Final[Mapping[str, Any]] = {}
_ATTRIBUTES: Final = ("LOAD_ATTR", "LOAD_METHOD")
_GLOBALS: Final = ("LOAD_GLOBAL", "LOAD_NAME")
_CLOSED: Final = ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")
_LOCALS: Final = ("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW")
"""Loads of local variables. From Python 3.13 on, also suffixes of instructions that store or load another one first."""
_BY_PYTHON: Final = ("__hash__", "__eq__", "__repr__")
"""Methods that classes have but events do not call; a dataclass uses `hash` in the first."""
_BETWEEN: Final = ("PUSH_NULL", "CACHE", "NOP", "COPY_FREE_VARS")
_CALLS: Final = ("PRECALL",) if sys.version_info < (3, 12) else ("CALL", "CALL_KW")
_KEYWORDS: Final = ("KW_NAMES", "CALL_KW")
_ERRORS: Final = ("Error", "Exception", "Warning")


@dataclass(frozen=True, order=True)
class Use:
    """A name that a function uses."""

    name: str
    """The full name, such as "time.sleep", or "threading.Event().wait" for what is done with the result of a call."""
    function: str
    line: int
    is_in_loop: bool = False
    args: int | None = None
    """The number of arguments that it is called with; None if that is not known."""
    keywords: tuple[str, ...] = ()
    first: str = ""
    """The first argument, if it is a string in the code."""


def uses_of(function: object, owner: object = None, *, takes_frame: bool = False) -> list[Use]:
    """Return what a function, and the user's functions that it calls, use.

    `owner` is the `self` of a method. With `takes_frame`, the first argument is a DataFrame.
    """
    walk = _Walk()
    walk.value(function, owner, (_Named("polars.DataFrame"),) if takes_frame else ())
    return sorted(walk.found, key=lambda use: (use.name, use.function, use.line, use.is_in_loop))


@dataclass
class _Walk:
    found: set[Use] = field(default_factory=set)
    seen: set[int] = field(default_factory=set)

    def value(self, value: Any, owner: object = None, args: tuple[Any, ...] = ()) -> None:  # noqa: ANN401  any value
        """Walk anything that may contain the user's code; `args` are the first arguments that it is called with."""
        keywords: dict[str, Any] = {}
        if isinstance(value, partial):
            value, args, keywords = value.func, (*value.args, *args), value.keywords
        if isinstance(value, MethodType):
            value, owner = value.__func__, value.__self__
        if isinstance(value, staticmethod | classmethod):
            value = value.__func__
        if isinstance(value, property):
            value = value.fget
        if isinstance(value, FunctionType):
            self._function(value, owner, args, keywords)
        elif isinstance(value, type):
            self._class(value)
        elif callable(value) and not isinstance(value, BuiltinFunctionType):
            self._object(value, args)

    def _class(self, cls: type) -> None:
        if id(cls) not in self.seen and not _is_installed(getattr(sys.modules.get(cls.__module__), "__file__", None)):
            self.seen.add(id(cls))
            for name, member in list(vars(cls).items()):
                if isinstance(member, FunctionType | staticmethod | classmethod | property) and name not in _BY_PYTHON:
                    self.value(member)

    def _object(self, value: Any, args: tuple[Any, ...] = ()) -> None:  # noqa: ANN401  the user's own
        """Walk a callable object, and the functions inside an object of Polars."""
        if id(value) in self.seen:
            return
        self.seen.add(id(value))
        call = getattr(type(value), "__call__", None)  # noqa: B004  its code, not whether it exists
        if isinstance(call, FunctionType):
            self._function(call, value, args)
        for held in list(getattr(value, "__dict__", {}).values()):
            if isinstance(held, FunctionType):
                self._function(held, None)

    def _function(
        self, function: FunctionType, owner: object, args: tuple[Any, ...] = (), keywords: Mapping[str, Any] = _NONE
    ) -> None:
        if id(function) in self.seen or len(self.seen) > _MOST_FUNCTIONS:
            return
        self.seen.add(id(function))
        closure = dict(zip(function.__code__.co_freevars, _cells(function), strict=True))
        if _is_installed(function.__code__.co_filename):
            for held in closure.values():  # it may be a wrapper with the user's function inside
                if isinstance(held, FunctionType):
                    self._function(held, None)
            return
        scope = {"globals": function.__globals__, **closure}
        self._code(function.__code__, function.__qualname__, scope, owner, _given(function, owner, args, keywords))

    def _code(
        self, code: CodeType, name: str, scope: dict[str, Any], owner: object, given: Mapping[str, Any] = _NONE
    ) -> None:
        loops = _loops(code)
        known = {**given, **_imported(code)}
        if owner is not None and code.co_argcount:
            known.setdefault(code.co_varnames[0], owner)
        for chain in _chains(code):
            value = _begin(chain.start, scope, known)
            is_in_loop = any(first <= chain.start.offset <= last for first, last in loops)
            full, reached = "", None
            for full, reached in _followed(value, chain.names):
                if full:
                    self.found.add(Use(full, name, chain.line, is_in_loop, *chain.call))
                if reached is not owner:
                    self.value(reached)
            for names, call in chain.later if full else ():
                full = ".".join([f"{full}()", *names])
                self.found.add(Use(full, name, chain.line, is_in_loop, *call))
        for const in code.co_consts:
            if isinstance(const, CodeType):
                self._code(const, f"{name}.{const.co_name}" if const.co_name[0] != "<" else name, scope, owner)


def _given(function: FunctionType, owner: object, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of arguments that are known without a call: defaults, and those of a `partial`."""
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    defaults = function.__defaults__ or ()
    by_place = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
    by_place |= zip(names[owner is not None :], args, strict=False)
    return {**by_place, **(function.__kwdefaults__ or {}), **keywords}


class _Call(NamedTuple):
    """How a chain is called: the arguments of a `Use`."""

    args: int | None = None
    keywords: tuple[str, ...] = ()
    first: str = ""


@dataclass(frozen=True)
class _Chain:
    """A name, its attributes, and the attributes of what its calls return."""

    start: dis.Instruction
    line: int
    names: list[str]
    call: _Call
    later: list[tuple[list[str], _Call]]
    """The attributes after each call or subscript, with how these are called."""


def _chains(code: CodeType) -> Iterator[_Chain]:
    every = list(dis.get_instructions(code))
    line = code.co_firstlineno
    for place, each in enumerate(every):
        if each.opname in (*_GLOBALS, *_CLOSED) or each.opname.endswith(_LOCALS):
            line = _line(each, line)
            parts: list[tuple[list[str], _Call]] = []
            at = place + 1
            while at:
                names, after = _attributes(every, at)
                call, at = _called(every, after, code.co_consts)
                if not parts or names:
                    parts.append((names, call))
            (names, call), *later = parts
            yield _Chain(each, line, names, call, later)


def _attributes(every: list[dis.Instruction], at: int) -> tuple[list[str], int]:
    """Return the attributes that are taken from here on, and the place after them."""
    names = []
    while at < len(every) and every[at].opname in (*_ATTRIBUTES, *_BETWEEN):
        if every[at].opname in _ATTRIBUTES:
            names.append(str(every[at].argval))
        at += 1
    return names, at


def _called(every: list[dis.Instruction], at: int, consts: tuple[Any, ...]) -> tuple[_Call, int]:
    """Return how the value on top of the stack is called, and the place after that; 0 for one that is not.

    The instructions in between compute the arguments: the call is where they and the value are taken off the stack.
    """
    depth, keywords, first = 0, (), str(every[at].argval) if at < len(every) and _is_text(every[at]) else ""
    for place in range(at, len(every)):
        each = every[place]
        count = int(each.arg or 0)
        if each.opname in _KEYWORDS:
            found = consts[count] if each.opname == "KW_NAMES" else every[place - 1].argval
            keywords = tuple(found) if isinstance(found, tuple) else ()
        if each.opname in _CALLS and depth == count + (each.opname == "CALL_KW"):
            return _Call(count, keywords, first), place + 1 + (each.opname == "PRECALL")
        if each.opname == "BINARY_SUBSCR" and depth == 1:
            return _Call(), place + 1
        depth += dis.stack_effect(each.opcode, each.arg, jump=False)
        if depth < 0 or "JUMP" in each.opname or each.opname == "FOR_ITER":
            break
    return _Call(), 0


def _is_text(each: dis.Instruction) -> bool:
    return each.opname == "LOAD_CONST" and isinstance(each.argval, str)


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
        full = ".".join([value.name, *names])
        yield "" if full.endswith(_ERRORS) else full, None
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
    if value is _NOTHING or (isinstance(value, type) and issubclass(value, BaseException)):
        return ""  # to name an error is not to use what raises it
    if value is os.environ:
        return "os.environ"
    if isinstance(value, ModuleType):
        return value.__name__
    if isinstance(value, BuiltinFunctionType | MethodType) and not isinstance(value.__self__, ModuleType | None):
        bound = value.__self__  # `datetime.now`; and `random.random`, which is a method of an object
        return f"{_name(bound) if isinstance(bound, type) else type(bound).__module__}.{value.__name__}"
    if not isinstance(getattr(value, "__qualname__", None), str):  # packages may have their own type of function
        value = type(value)
    module = getattr(getattr(value, "__objclass__", value), "__module__", "") or "builtins"
    # Names that users import from `pathlib` or `sqlite3` may be defined in a private module of it.
    first, *inner = module.split(".")
    public = [first.removeprefix("_"), *(part for part in inner if not part.startswith("_"))]
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
    own = str(Path(__file__).resolve().parents[2])
    places = [paths["stdlib"], paths["platstdlib"], paths["purelib"], paths["platlib"], *site.getsitepackages(), own]
    return tuple({os.path.realpath(place) + os.sep for place in places})


@lru_cache(maxsize=1024)
def _is_installed(file: str | None) -> bool:
    return file is not None and (os.path.realpath(file).startswith(_installed()) or file.startswith("<frozen"))
