"""Checks that a plan, with the user's objects and functions in it, can be sent to Spark's workers.

1. A plain pickle of the plan is enough if it contains no code of `__main__` or the pipeline's file; it costs little.
2. Otherwise the plan is pickled as for the workers: such code travels by value, with the globals it uses.
3. If that fails, the plan is taken apart to find the part that cannot be pickled.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import pickle
from collections.abc import Iterator, Mapping
from types import FunctionType
from typing import Final

from slackwater.base.call_sites import blamed
from slackwater.base.errors import cause_of, refuse
from slackwater.plan.plan import OutputPlan, Plan, RowNode, SourcePlan, StepPlan

_Part = tuple[str, object]
_DEEPEST: Final = 50


def check_portable(plan: Plan) -> None:
    """Reject a plan that Spark's workers could not load, and name the step and the part that cannot be pickled."""
    if _is_plain(plan) or _trouble(plan) is None:
        return
    chain = [("", plan), *_blocking(plan)]
    values = [value for _, value in chain]
    places = [at for at, value in enumerate(values) if isinstance(value, RowNode | SourcePlan | StepPlan | OutputPlan)]
    own = next((at for at, value in enumerate(values) if _is_users(value)), len(chain) - 1)
    path = ".".join(name for name, _ in chain[own + 1 :] if name)
    got = _called(values[own]) + (f" with `{path}`" if path else "")
    cause = cause_of(_trouble(values[-1]) or TypeError())
    where = _where(values[places[-1]]) if places else f"pipeline `{plan.name}`"
    error = blamed(refuse("CODE_NOT_PORTABLE", got=got, where=where, cause=cause), *values)
    if error.where is None and (line := _written(values[own], path.split("."))) is not None:
        error.where = line
        error.add_note(f"defined at {line}")
    raise error


def _is_plain(plan: Plan) -> bool:
    """Return whether a plan is certain to load in the workers; a plain pickle needs no PySpark."""
    try:
        return b"__main__" not in pickle.dumps(plan)
    except Exception:  # noqa: BLE001  a user's object may raise anything; `_trouble` finds out what
        return False


def _trouble(value: object) -> Exception | None:
    """Return the error that keeps a value from being pickled, or None."""
    from pyspark import cloudpickle  # noqa: PLC0415  slow to import, and few plans need it before Spark starts

    try:
        cloudpickle.dumps(value)  # type: ignore[no-untyped-call]  # has no types
    except Exception as error:  # noqa: BLE001  a user's object may raise anything
        return error
    return None


def _blocking(value: object) -> Iterator[_Part]:
    """Yield the part of `value` that cannot be pickled, then the part of that part, down to the smallest."""
    seen = {id(value)}
    while len(seen) < _DEEPEST:
        found = next((part for part in _parts(value) if id(part[1]) not in seen and _trouble(part[1])), None)
        if found is None:
            return
        yield found
        value = found[1]
        seen.add(id(value))


def _parts(value: object) -> list[_Part]:
    """Return the parts of a value, by name."""
    if isinstance(value, FunctionType):
        used = inspect.getclosurevars(value)
        return [*used.nonlocals.items(), *used.globals.items()]
    if isinstance(value, Mapping):
        return [(str(name), part) for name, part in value.items()]
    if isinstance(value, tuple | list):
        return [("", part) for part in value]
    if isinstance(value, type):
        return [(name, part) for name, part in vars(value).items() if not name.startswith("__") or callable(part)]
    return [*getattr(value, "__dict__", {}).items(), *([("", type(value))] if _is_users(value) else [])]


def _written(value: object, path: list[str]) -> str | None:
    """Return the line that assigns a name of `path`, best in the user's function or class, else in its file.

    Without one, it is the line of the definition. The class of an object is meant.
    """
    own = value if isinstance(value, type | FunctionType) else type(value)
    functions = [own, *vars(own).values()] if isinstance(own, type) else [own]
    code = next((each.__code__ for each in functions if isinstance(each, FunctionType)), None)
    if code is None:
        return None
    try:
        tree = ast.parse("".join(linecache.getlines(code.co_filename)))
    except SyntaxError:  # the file has changed since
        return None
    kinds = ast.ClassDef if isinstance(own, type) else ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    around = [each for each in ast.walk(tree) if isinstance(each, kinds) and _holds(each, code.co_firstlineno)]
    lines = [line for place in (*around[-1:], tree) for name in path for line in _assigned(place, name)]
    lines += [each.lineno for each in around[-1:]]  # the innermost
    return f"{code.co_filename}, line {lines[0]}" if lines else None


def _holds(node: ast.stmt | ast.expr, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or 0)


def _assigned(tree: ast.AST, name: str) -> Iterator[int]:
    """Yield the lines of assignments to a variable or an attribute `name`."""
    for each in ast.walk(tree):
        if isinstance(each, ast.Assign | ast.AnnAssign):
            targets = each.targets if isinstance(each, ast.Assign) else [each.target]
            if any(name in (getattr(target, "id", None), getattr(target, "attr", None)) for target in targets):
                yield each.lineno


def _is_users(value: object) -> bool:
    cls = value if isinstance(value, type | FunctionType) else type(value)
    return cls.__module__.partition(".")[0] not in ("slackwater", "builtins", "polars", "pyarrow")


def _called(value: object) -> str:
    if isinstance(value, FunctionType):
        return f"function {value.__qualname__}"
    return f"class {(value if isinstance(value, type) else type(value)).__qualname__}"


def _where(value: object) -> str:
    if isinstance(value, RowNode):
        return f"step `{value.step}`"
    kind = "step" if isinstance(value, StepPlan) else "stream" if isinstance(value, SourcePlan) else "output"
    return f"{kind} `{getattr(value, 'name', '')}`"
