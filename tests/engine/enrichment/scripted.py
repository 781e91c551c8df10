"""A store in memory whose answers change with every request, and which fails as told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import slackwater as sw
from slackwater.connectors.lookup import Answer, Lookup, LookupClient, Question, Unavailable
from slackwater.plan.streams import Stream
from slackwater.testing import rows_source


@dataclass(kw_only=True)
class Script:
    """What a store answers, and what it was asked."""

    keys: int = 1
    requests: list[list[Any]] = field(default_factory=list)
    lacks: set[Any] = field(default_factory=set)
    is_down: bool = False
    fails: set[Any] = field(default_factory=set)
    """Keys whose requests fail."""
    judge: Callable[[Sequence[Any]], Mapping[Any, Answer] | None] = lambda _: None
    opened: int = 0

    def answer(self, keys: Sequence[Any]) -> Mapping[Any, Answer]:
        self.requests.append(list(keys))
        if self.is_down or self.fails & {*keys}:
            raise Unavailable("the store is down")
        if (told := self.judge(keys)) is not None:
            return told
        number = len(self.requests)
        return {key: None if key in self.lacks else {"name": f"{key} at {number}", "seen": number} for key in keys}

    @property
    def asked(self) -> list[Any]:
        """All keys, in the order they were asked for."""
        return [key for keys in self.requests for key in keys]


@dataclass(frozen=True, kw_only=True, eq=False)
class ScriptedLookup(Lookup):
    script: Script

    def open(self, question: Question) -> LookupClient:
        self.script.opened += 1
        return _Client(self.script)

    def __str__(self) -> str:
        return "scripted"


class _Client(LookupClient):
    def __init__(self, script: Script) -> None:
        self.script = script
        self.keys_per_request = script.keys

    async def fetch(self, keys: Sequence[Any]) -> Mapping[Any, Answer]:
        return self.script.answer(keys)


def orders() -> Stream:
    return sw.stream("orders", rows_source("user string, ts long, x long")).event_time("ts")


def looked_up(stream: Stream, script: Script, **options: Any) -> Stream:  # noqa: ANN401  those of `.lookup`
    given = {"key": "user", "output": "name string, seen long", "retries": 0, **options}
    return stream.lookup(ScriptedLookup(script=script), **given)


def rows(*users: str | None, first: int = 0) -> list[dict[str, Any]]:
    return [{"user": user, "ts": first + at, "x": at} for at, user in enumerate(users)]
