"""Aggregates that users write in Python: a class with `create`, `add`, `merge` and `result`."""

# ruff: noqa: D102  the contract in base.py says what the methods do

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar, Final

import polars as pl

from slackwater.base.errors import cause_of, fault, refuse
from slackwater.formats.schemas import as_schema
from slackwater.operators.aggregates.base import ORDER, ColumnAggregate, WindowFailedError, part, state

_PROTOCOL: Final = 5
"""The pickle protocol, fixed so that older versions of Python can read what newer ones write."""
_MISTYPED: Final = (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError)


class _FailedError(Exception):
    """Raised when a method of the user's class fails on the values of one window."""

    def __init__(self, method: str, cause: str) -> None:
        super().__init__(cause)
        self.method = method
        self.cause = cause


class Accumulator(ABC):
    """Base class for your own aggregate.

    `add` and `merge` return the new accumulator value; they may modify and return their first argument. The value
    can be anything that pickles; it is the state, so it survives restarts. Values of one piece are added in
    order of event time and position in the log. Nulls are never added.
    """

    output: ClassVar[pl.DataType | type[pl.DataType] | str]
    """The result's type: a Polars type, or a Spark type such as "array<double>"."""

    @abstractmethod
    def create(self) -> Any:  # noqa: ANN401  the user's own type
        """Return the accumulation of no values."""

    @abstractmethod
    def add(self, acc: Any, value: Any) -> Any:  # noqa: ANN401  the user's own values
        """Return `acc` with one more value."""

    @abstractmethod
    def merge(self, a: Any, b: Any) -> Any:  # noqa: ANN401  the user's own values
        """Return the accumulation of the values of both."""

    @abstractmethod
    def result(self, acc: Any) -> Any:  # noqa: ANN401  the user's own values
        """Return the result for `acc`, of the type `output`."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Accumulated(ColumnAggregate):
    """A column aggregated by a user's `Accumulator` class; the only aggregate that iterates over values.

    The state is `acc`, the pickled accumulator. Without values, the result is that of `create()`.
    """

    name: ClassVar[str] = "accumulator"
    is_trusted: ClassVar[bool] = True
    may_stream: ClassVar[bool] = False
    cls: type[Accumulator]

    def __post_init__(self) -> None:
        if not isinstance(self.cls, type) or not issubclass(self.cls, Accumulator):
            raise refuse("ACCUMULATOR_CLASS", got=repr(self.cls))
        missing = sorted(getattr(self.cls, "__abstractmethods__", ()))
        if missing:
            raise refuse("ACCUMULATOR_METHODS", cls=self.cls.__qualname__, missing=", ".join(missing))
        if not hasattr(self.cls, "output"):
            raise refuse("ACCUMULATOR_OUTPUT", cls=self.cls.__qualname__, got="nothing")
        self._output()

    def describe(self) -> str:
        return f"{self.name}({self.cls.__qualname__}, {self.column})"

    def output_type(self, schema: pl.Schema) -> pl.DataType:
        self.input_type(schema)
        return self._output()

    def partial(self, alias: str) -> list[pl.Expr]:
        values = self.values(alias)
        kept = values.sort_by([pl.col(name) for name in ORDER]).drop_nulls()
        return [kept.implode().alias(part(alias, "~values"))]

    def merge(self, alias: str) -> list[pl.Expr]:
        return [state(alias, "acc").drop_nulls().implode().alias(part(alias, "~accs"))]

    def compact(self, frame: pl.DataFrame, alias: str) -> pl.DataFrame:
        user, column = self._user(), part(alias, "acc")
        for name, fold in (("~values", self._added), ("~accs", self._merged)):
            raw = part(alias, name)
            if raw in frame.columns:
                accs = [
                    self._placed(frame, at, fold, user, held) if held else None
                    for at, held in enumerate(frame[raw].to_list())
                ]
                frame = frame.drop(raw).with_columns(pl.Series(column, accs, dtype=pl.Binary))
        return frame

    def finish(self, frame: pl.DataFrame, alias: str) -> pl.DataFrame:
        user, held = self._user(), frame[part(alias, "acc")].to_list()
        results = [self._placed(frame, at, self._result, user, acc) for at, acc in enumerate(held)]
        try:
            return frame.with_columns(self._column(alias, results))
        except _MISTYPED:
            for at, result in enumerate(results):
                self._placed(frame, at, self._checked, result)
            raise

    def _result(self, user: Accumulator, held: bytes | None) -> Any:  # noqa: ANN401  the user's own values
        acc = self._call("create", user.create) if held is None else pickle.loads(held)  # noqa: S301  our own state
        return self._call("result", user.result, acc)

    def _column(self, name: str, results: list[Any]) -> pl.Series:
        return pl.Series(name, results, dtype=self._output(), strict=True)

    def _checked(self, result: object) -> None:
        try:
            self._column("", [result])
        except _MISTYPED as error:
            cause = f"its result does not match the class's `output`, {self._output()}: {result!r:.80}"
            raise _FailedError("result", cause) from error

    def _added(self, user: Accumulator, values: list[Any]) -> bytes:
        acc = self._call("create", user.create)
        for value in values:
            acc = self._call("add", user.add, acc, value)
        return self._pickled(acc)

    def _merged(self, user: Accumulator, accs: list[bytes]) -> bytes:
        if len(accs) == 1:
            return accs[0]
        loaded = (pickle.loads(held) for held in accs)  # noqa: S301  our own state
        return self._pickled(reduce(lambda a, b: self._call("merge", user.merge, a, b), loaded))

    def _pickled(self, acc: object) -> bytes:
        try:
            return pickle.dumps(acc, protocol=_PROTOCOL)
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            raise _FailedError("add", f"the accumulator cannot be pickled: {error}") from error

    def _user(self) -> Accumulator:
        try:
            return self.cls()
        except (Exception, SystemExit) as error:
            raise self._broken("__init__", error) from error

    def _call(self, name: str, method: Callable[..., Any], *args: object) -> Any:  # noqa: ANN401  the user's own values
        try:
            return method(*args)
        except (Exception, SystemExit) as error:
            if name == "create":  # it does not depend on values
                raise self._broken(name, error) from error
            raise _FailedError(name, cause_of(error)) from error

    def _broken(self, method: str, error: BaseException) -> Exception:
        facts = {"cls": self.cls.__qualname__, "method": method, "cause": cause_of(error)}
        return fault("ACCUMULATOR_FAILED", **facts, where="")

    def _placed(self, frame: pl.DataFrame, at: int, function: Callable[..., Any], *args: object) -> Any:  # noqa: ANN401  the user's own values
        """Return `function(*args)`; if it fails, raise an error that names row `at` of `frame`."""
        try:
            return function(*args)
        except _FailedError as failed:
            facts = {"cls": self.cls.__qualname__, "method": failed.method, "cause": failed.cause}
            raise WindowFailedError("ACCUMULATOR_FAILED", frame[at], **facts) from failed.__cause__

    def _output(self) -> pl.DataType:
        output = self.cls.output
        if isinstance(output, str):
            return as_schema(f"result {output}")["result"]
        if isinstance(output, type) and issubclass(output, pl.DataType):
            return output()
        if not isinstance(output, pl.DataType):
            raise refuse("ACCUMULATOR_OUTPUT", cls=self.cls.__qualname__, got=repr(output))
        return output
