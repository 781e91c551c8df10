"""A call that fails leaves nothing: not by a generator that ends after it, and not by a context that was kept."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, ClassVar

import pytest

import slackwater as sw
from slackwater.base.errors import DefinitionError
from slackwater.plan.streams import Results
from slackwater.testing import Harness
from tests.operators.process.test_time_of_state import MS

OUTPUTS = "o string"


class Held(sw.Process):
    """Does what an event says; whatever it writes while it ends is `-1`."""

    n = sw.value_state("long", ttl="1h")
    items = sw.list_state("long", ttl="1h")
    side = sw.side_output("x long")
    kept: ClassVar[list[Any]] = []

    def on_event(self, event: dict[str, Any], ctx: sw.Context) -> Any:  # noqa: ANN401  as the method has it
        return getattr(self, event["does"])(ctx)

    def on_timer(self, when: datetime, ctx: sw.Context) -> Any:  # noqa: ANN401  as above
        return getattr(self, ctx.timer)(ctx)

    def set(self, ctx: sw.Context) -> None:
        self.n.set(ctx.key * 1000)

    def get(self, ctx: sw.Context) -> Iterator[dict[str, Any]]:
        yield {"o": f"{self.n.get()} {self.items.get()}"}

    def raises(self, ctx: sw.Context) -> None:
        raise ValueError("on purpose")

    def write(self, ctx: sw.Context) -> None:
        self.n.set(-1)
        self.items.add(-1)
        ctx.emit("side", {"x": -1})
        ctx.set_timer(ctx.event_time + MS, name="set")

    def misfit(self, ctx: sw.Context) -> Iterator[dict[str, Any]]:
        try:
            yield {"o": 5}
        finally:
            self.write(ctx)

    def fails_to_end(self, ctx: sw.Context) -> Iterator[dict[str, Any]]:
        try:
            yield {"o": 5}
        finally:
            self.write(ctx)
            raise KeyError("while it ends")

    def refuses_to_end(self, ctx: sw.Context) -> Iterator[dict[str, Any]]:
        while True:
            try:
                yield {"o": 5}
            except GeneratorExit:
                self.write(ctx)

    def wrapped(self, ctx: sw.Context) -> Any:  # noqa: ANN401  an iterator without `close`
        return map(dict, self.misfit(ctx))

    def inner(self, ctx: sw.Context) -> Iterator[dict[str, Any]]:
        for row in self.misfit(ctx):
            raise ValueError(row)
        yield {}

    def cycle(self, ctx: sw.Context) -> Iterator[dict[str, Any]]:
        within = self.misfit(ctx)
        try:
            int(next(within)["o"] * "x")
        except ValueError as error:
            kept = error  # the frame and the error hold each other
            raise KeyError(str(kept)) from None
        yield {}

    def midway(self, ctx: sw.Context) -> Iterator[dict[str, Any]]:
        try:
            yield {"o": "never"}
            raise ValueError("on purpose")
        finally:
            self.write(ctx)

    def keep(self, ctx: sw.Context) -> None:
        Held.kept += [ctx, self.n, self.items]

    def use_kept(self, ctx: sw.Context) -> None:
        self.write(Held.kept[0])


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    Held.kept.clear()
    yield
    Held.kept.clear()


def started(does: str = "", timer: str = "") -> tuple[Harness, Results]:
    events = sw.stream("events", sw.testing.rows_source("k long, does string, ts long")).event_time("ts")
    results = events.key_by("k").process(Held(), output=OUTPUTS)
    ends = [results, results.output("side"), events.dead_letters]
    return Harness(sw.Pipeline("p", *(end.to(sw.sinks.memory()) for end in ends), key_groups=1)), results  # type: ignore[attr-defined]  # streams and outputs


def done(test: Harness, *does: tuple[int, str], ts: int = 0) -> None:
    test.send("events", [{"k": k, "does": each, "ts": ts} for k, each in does]).run_batch()
    gc.collect()


FAILS = ["misfit", "fails_to_end", "refuses_to_end", "wrapped", "inner", "cycle", "midway"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("does", FAILS)
def test_what_a_failed_event_writes_while_it_ends_is_undone_and_reaches_no_other_key(does: str) -> None:
    test, results = started()
    done(test, (1, "set"), (2, "set"))
    done(test, (1, does), (2, "raises"), (1, "get"))
    done(test, (1, "get"), (2, "get"))
    assert test.output(results).sort("k", maintain_order=True)["o"].to_list() == ["1000 []", "1000 []", "2000 []"]
    assert test.output(results.output("side")).height == 0
    assert test.output("events.dead_letters").height == 2
    assert test.state(results)["timers"].to_list() == [None, None]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("does", FAILS)
def test_what_a_failed_timer_writes_while_it_ends_is_undone(does: str) -> None:
    class Later(Held):
        """Does it in a timer."""

        def on_event(self, event: dict[str, Any], ctx: sw.Context) -> Any:  # noqa: ANN401  as above
            if event["does"] not in FAILS:
                return super().on_event(event, ctx)
            return ctx.set_timer(ctx.event_time + MS, name=event["does"])

    events = sw.stream("events", sw.testing.rows_source("k long, does string, ts long")).event_time("ts")
    results = events.key_by("k").process(Later(), output=OUTPUTS)
    ends = [results, results.output("side"), events.dead_letters]
    test = Harness(sw.Pipeline("p", *(end.to(sw.sinks.memory()) for end in ends), key_groups=1))  # type: ignore[attr-defined]  # streams and outputs
    done(test, (1, "set"), (2, "set"), (1, does), (2, does))
    test.advance_watermark(2)
    done(test, (1, "get"), (2, "get"), ts=5)
    assert sorted(test.output(results)["o"]) == ["1000 []", "2000 []"]
    assert test.output("events.dead_letters")["reason"].to_list() == ["timer_failed"] * 2
    assert test.output(results.output("side")).height == 0


def test_a_failure_while_a_generator_ends_is_part_of_the_same_dead_letter() -> None:
    test, _ = started()
    done(test, (1, "fails_to_end"))
    (message,) = test.output("events.dead_letters")["message"]
    assert message.startswith("column `o` of `output` takes string; got 5")
    assert "and when it was closed: KeyError: 'while it ends'" in message


@pytest.mark.parametrize("method", ["set_timer", "delete_timer", "emit"])
def test_the_context_of_an_earlier_call_is_rejected_with_the_name_of_the_method(method: str) -> None:
    calls: dict[str, Callable[[Any], None]] = {
        "set_timer": lambda ctx: ctx.set_timer(ctx.event_time),
        "delete_timer": lambda ctx: ctx.delete_timer(name="set"),
        "emit": lambda ctx: ctx.emit("side", {"x": 1}),
    }
    Held.kept.clear()
    test, results = started()
    done(test, (1, "keep"), (2, "set"), (2, "get"))
    with pytest.raises(TypeError, match=rf"ctx\.{method} is for the call that got the context; got .* for key 1; use"):
        calls[method](Held.kept[0])
    assert Held.kept[0].key == 1
    assert test.output(results)["o"].to_list() == ["2000 []"]


def test_an_event_that_uses_an_earlier_context_is_a_dead_letter_and_writes_nothing() -> None:
    test, results = started()
    done(test, (1, "keep"), (2, "set"), (2, "use_kept"), (2, "get"), (1, "get"))
    assert sorted(test.output(results)["o"]) == ["2000 []", "None []"]
    (message,) = test.output("events.dead_letters")["message"]
    assert message.startswith("ctx.emit is for the call that got the context; got ")
    assert test.output(results.output("side")).height == 0


def test_state_that_is_used_after_its_batch_is_rejected_by_name() -> None:
    test, _ = started()
    done(test, (1, "keep"))
    _, value, items = Held.kept
    for use in (value.get, lambda: value.set(1), value.clear, items.get, lambda: items.add(1), lambda: len(items)):
        with pytest.raises(DefinitionError, match=r"STATE_UNBOUND.*Held\.(n|items)"):
            use()
