"""What a dead letter says when the user's code on single events yields, emits or does what it must not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

import slackwater as sw
from slackwater.plan.streams import Results
from slackwater.testing import Harness

Call = Callable[["Does", dict[str, Any], sw.Context], Any]


class Does(sw.Process):
    """Calls a function for each event with `x` of zero, and counts."""

    n = sw.value_state("long", ttl="1h")
    alerts = sw.side_output("key string, why string, x long")

    def __init__(self, call: Call | None = None) -> None:
        self.call = call

    def on_event(self, event: dict[str, Any], ctx: sw.Context) -> Any:  # noqa: ANN401  as the function has it
        self.n.set((self.n.get() or 0) + 1)
        if self.call is None or event["x"]:
            return [{"key": event["key"], "n": self.n.get(), "why": None}]
        return self.call(self, event, ctx)

    def on_timer(self, when: datetime, ctx: sw.Context) -> None:
        """Do nothing."""


def done(process: sw.Process) -> tuple[Harness, Results]:
    """Return what becomes of three events, of which the second is special."""
    events = sw.stream("events", sw.testing.rows_source("key string, ts long, x long")).event_time("ts")
    results = events.key_by("key").process(process, output="key string, n long, why string")
    ends = [results, results.output("alerts"), events.dead_letters]
    test = Harness(sw.Pipeline("p", *(end.to(sw.sinks.memory()) for end in ends), key_groups=1))  # type: ignore[attr-defined]  # streams and outputs
    test.send("events", [{"key": "a", "ts": ts, "x": ts - 1} for ts in (0, 1, 2)]).run_batch()
    return test, results


def letter(call: Call) -> str:
    """Return the message of the only dead letter; the other events of the key are as if there was no such event."""
    test, results = done(Does(call))
    assert test.output(results)["n"].to_list() == [1, 2]
    (message,) = test.output("events.dead_letters")["message"]
    assert isinstance(message, str)
    return message


MISFITS: list[tuple[str, Call]] = [
    ("`output` needs every column; got a row without `why`; write None for null", lambda *_: [{"key": "a", "n": 1}]),
    ("`output` needs every column; got a row without `n`, `why`; write None for null", lambda *_: [{}]),
    ("`output` has no column `m`; it has key, n, why", lambda *_: [{"m": 1}]),
    ("`output` takes dictionaries; got 5", lambda *_: [5]),
    ("column `n` of `output` takes bigint; got 'one'", lambda *_: [{"n": "one", "why": None}]),
    ("results are yielded, one dictionary each; got {'n': 1}", lambda *_: {"n": 1}),
]


@pytest.mark.parametrize("words, call", MISFITS)
def test_a_result_that_does_not_fit_is_reported_without_a_traceback(words: str, call: Call) -> None:
    assert letter(call) == words


class Nested(sw.Process):
    """Does something with structs for the second of three events."""

    hist = sw.list_state("cents long, shop string", ttl="1h")
    last = sw.value_state("cents long, at struct<shop:string>", ttl="1h")
    seen = sw.map_state("long", "cents long, shop string", ttl="1h")

    def __init__(self, call: Callable[[Nested], Any]) -> None:
        self.call = call

    def on_event(self, event: dict[str, Any], ctx: sw.Context) -> Any:  # noqa: ANN401  as the function has it
        if event["x"] == 0:
            return self.call(self)
        return [{"x": {"cents": event["x"]}, "xs": [None, {"cents": None}]}]


@dataclass(frozen=True)
class Misspelt:
    """A user's own class with a field that is not declared."""

    cents: int
    shpo: str


UNKNOWN_FIELDS: list[tuple[str, Callable[[Nested], Any]]] = [
    ("state `hist` has no field `shpo` (did you mean `shop`?)", lambda p: p.hist.add({"cents": 1, "shpo": "a"})),
    ("state `hist` has no field `shpo` (did you mean `shop`?)", lambda p: p.hist.set([Misspelt(1, "a")])),
    ("state `last` has no field `at.shpo` (did you mean `shop`?)", lambda p: p.last.set({"at": {"shpo": "a"}})),
    ("state `seen` has no field `cnets` (did you mean `cents`?)", lambda p: p.seen.set(1, {"cnets": 1})),
    ("column `x` of `output` has no field `cnets` (did you mean `cents`?)", lambda _: [{"x": {"cnets": 5}, "xs": []}]),
    ("column `xs` of `output` has no field `y`; it has cents", lambda _: [{"x": None, "xs": [{"y": 5}]}]),
]


@pytest.mark.parametrize("words, call", UNKNOWN_FIELDS)
def test_a_field_that_a_struct_does_not_have_is_reported(words: str, call: Callable[[Nested], Any]) -> None:
    events = sw.stream("events", sw.testing.rows_source("key string, ts long, x long")).event_time("ts")
    results = events.key_by("key").process(Nested(call), output="x struct<cents:long>, xs array<struct<cents:long>>")
    ends = [results.to(sw.sinks.memory()), events.dead_letters.to(sw.sinks.memory())]
    test = Harness(sw.Pipeline("p", *ends, key_groups=1))
    test.send("events", [{"key": "a", "ts": ts, "x": ts - 1} for ts in (0, 1, 2)]).run_batch()
    assert test.output(results)["x"].to_list() == [{"cents": -1}, {"cents": 1}]
    (message,) = test.output("events.dead_letters")["message"]
    assert message.startswith(words)


class Exact(sw.Process):
    """Yields one value, and does not declare its key."""

    kept = sw.value_state("decimal(5,2)", ttl="1h")

    def __init__(self, name: str, value: object, *, state: bool = False, key: str = "a") -> None:
        self.name, self.value, self.state, self.key = name, value, state, key

    def on_event(self, event: dict[str, Any], ctx: sw.Context) -> Any:  # noqa: ANN401  as the test has it
        if self.state:
            self.kept.set(self.value)
        row = {"d": None, "f": None, "ts": None, "ds": None, "key": self.key}
        return [row if self.state else {**row, self.name: self.value}]


ROUNDED = Decimal("1.239")


@pytest.mark.parametrize(
    "process, message",
    [
        (Exact("d", ROUNDED), "column `d` of `output` takes decimal(5,2); got Decimal('1.239')"),
        (Exact("d", 1.005), "column `d` of `output` takes decimal(5,2); got 1.005"),
        (Exact("ds", [ROUNDED]), "column `ds` of `output` takes array<decimal(5,2)>; got [Decimal('1.239')]"),
        (Exact("d", ROUNDED, state=True), "state `kept` takes decimal(5,2); got Decimal('1.239')"),
        (Exact("f", 1e300), "column `f` of `output` takes float; got 1e+300"),
        (Exact("ts", datetime(2026, 1, 1)), "column `ts` of `output` takes timestamp; got datetime.datetime(2026, 1"),  # noqa: DTZ001  on purpose
        (Exact("d", None, key="b"), "`output` has no column `key`; it has d, f, ts, ds"),
        (Exact("d", Decimal("1.20")), None),
        (Exact("d", 1.5), None),
        (Exact("f", float("inf")), None),
    ],
)
def test_a_value_is_stored_as_it_is_or_its_event_is_a_dead_letter(process: Exact, message: str | None) -> None:
    events = sw.stream("events", sw.testing.rows_source("key string, ts long")).event_time("ts")
    output = "d decimal(5,2), f float, ts timestamp, ds array<decimal(5,2)>"
    results = events.key_by("key").process(process, output=output)
    ends = [results.to(sw.sinks.memory()), events.dead_letters.to(sw.sinks.memory())]
    test = Harness(sw.Pipeline("p", *ends, key_groups=1))
    test.send("events", [{"key": "a", "ts": 1}]).run_batch()
    letters = test.output("events.dead_letters")["message"].to_list()
    assert [letter.startswith(message) for letter in letters] == ([] if message is None else [True])
    assert test.output(results).height == 1 - len(letters)


def test_a_row_that_is_emitted_has_every_column_and_the_line_is_shown() -> None:
    message = letter(lambda _, event, ctx: ctx.emit("alerts", {"x": event["x"]}))
    words, *lines = message.split(" | ")
    assert words == "output `alerts` needs every column; got a row without `why`; write None for null"
    assert [line.partition(":")[0] for line in lines] == ["test_event_failures.py"] * 2
    assert "ctx.emit(" in lines[-1]


def test_columns_of_the_key_may_be_left_out_and_null_is_written() -> None:
    def both(_: Does, __: dict[str, Any], ctx: sw.Context) -> list[dict[str, Any]]:
        ctx.emit("alerts", {"why": None, "x": 1})
        return [{"why": "so", "n": None}]

    test, results = done(Does(both))
    assert test.output("events.dead_letters").is_empty()
    assert ("a", None, "so") in test.output(results).select("key", "n", "why").rows()
    assert test.output(results.output("alerts")).select("key", "why", "x").rows() == [("a", None, 1)]


def test_what_the_users_code_raises_is_reported_with_its_type_and_lines() -> None:
    message = letter(lambda _, event, __: 1 // event["x"])
    assert message.startswith("ZeroDivisionError: integer division or modulo by zero | test_event_failures.py:")
    assert "events_and_timers.py" not in message


def assign(process: Does, event: dict[str, Any], _: sw.Context) -> None:
    process.n = event["ts"]


def assign_and_read(process: Does, event: dict[str, Any], ctx: sw.Context) -> Any:  # noqa: ANN401  nothing
    assign(process, event, ctx)
    return process.n.get()


def remove(process: Does, *_: object) -> None:
    del process.n


@pytest.mark.parametrize("got, call", [("1", assign), ("1", assign_and_read), ("None", remove)])
def test_state_that_is_assigned_is_put_back_and_reported(got: str, call: Call) -> None:
    assert (
        letter(call) == f"state is changed by its methods; got self.n = {got}; use self.n.set(...) or another of them"
    )


def test_a_timer_that_assigns_state_is_reported_too() -> None:
    class Late(Does):
        """Assigns in its timer."""

        def on_timer(self, when: datetime, ctx: sw.Context) -> None:
            assign(self, {"ts": 5}, ctx)

    test, results = done(Late(lambda _, __, ctx: ctx.set_timer(ctx.event_time)))
    test.finish()
    assert test.output(results)["n"].to_list() == [1, 3]
    (message,) = test.output("events.dead_letters")["message"]
    assert "got self.n = 5" in message
