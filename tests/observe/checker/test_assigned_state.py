"""`check` finds code that assigns over declared state, which would turn every event into a dead letter."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

import slackwater as sw
from tests.observe.checker.pipelines import codes, processed, said


class Counts(sw.Process):
    """Has state, and a method that does what it must not."""

    n = sw.value_state("long", ttl="1h")
    seen = sw.list_state("long", ttl="1h")

    def on_event(self, event: dict[str, Any], ctx: sw.Context) -> None:
        self.count(event)

    def count(self, event: dict[str, Any]) -> None:
        raise NotImplementedError


class Assigns(Counts):
    def count(self, event: dict[str, Any]) -> None:
        self.n = event["v"]


class Adds(Counts):
    def count(self, event: dict[str, Any]) -> None:
        self.n += event["v"]


class Unpacks(Counts):
    def count(self, event: dict[str, Any]) -> None:
        self.total, self.seen = 1, [event["v"]]  # type: ignore[assignment]


class Deletes(Counts):
    def count(self, event: dict[str, Any]) -> None:
        if event["v"]:
            del self.seen


class SetsByName(Counts):
    def count(self, event: dict[str, Any]) -> None:
        setattr(self, "n", event["v"])  # noqa: B010  the subject of the test


class DeletesByName(Counts):
    def count(self, event: dict[str, Any]) -> None:
        delattr(self, "n")


class Closes(Counts):
    def count(self, event: dict[str, Any]) -> None:
        def later() -> None:
            self.n = 1  # type: ignore[assignment]

        later()


class OnTimer(sw.Process):
    n = sw.value_state("long", ttl="1h")

    def on_event(self, event: dict[str, Any], ctx: sw.Context) -> None:
        ctx.set_timer(ctx.event_time)

    def on_timer(self, when: datetime, ctx: sw.Context) -> None:
        self.n = None  # type: ignore[assignment]


class Calm(Counts):
    """Changes state by its methods, and assigns only attributes that are no state of its own."""

    total = 0

    def count(self, event: dict[str, Any]) -> None:
        self.total += 1
        other = SetsByName()
        other.n = 7  # type: ignore[assignment]
        setattr(other, "n", 8)  # noqa: B010  the subject of the test
        self.n.set(event["v"])
        self.seen.add(event["v"])


WRONG: list[tuple[sw.Process, str]] = [
    (Assigns(), "Assigns.count assigns self.n (line "),
    (Adds(), "Adds.count assigns self.n (line "),
    (Unpacks(), "Unpacks.count assigns self.seen (line "),
    (Deletes(), "Deletes.count deletes self.seen (line "),
    (SetsByName(), "SetsByName.count assigns self.n (line "),
    (DeletesByName(), "DeletesByName.count deletes self.n (line "),
    (Closes(), "Closes.count assigns self.n (line "),
    (OnTimer(), "OnTimer.on_timer assigns self.n (line "),
]


@pytest.mark.parametrize("process, words", WRONG, ids=[type(each).__name__ for each, _ in WRONG])
def test_assignment_to_declared_state_is_found(process: sw.Process, words: str) -> None:
    [text] = said(processed(process), "SW303")
    assert text.startswith(f"step `own`: {words}")


def test_methods_of_state_and_other_attributes_are_fine() -> None:
    assert "SW303" not in codes(processed(Calm()))
