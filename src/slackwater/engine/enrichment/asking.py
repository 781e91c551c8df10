"""Requests to a store: concurrent, with timeouts, retries and a circuit breaker, the same for every store."""

from __future__ import annotations

import asyncio
import atexit
import os
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import wait
from dataclasses import dataclass, field
from typing import Any, Final

from slackwater.base.backoff import Backoff
from slackwater.base.durations import render_ms
from slackwater.base.errors import SlackwaterError, cause_of, fault
from slackwater.connectors.lookup import Answer, Lookup, LookupClient, Question, Refused, RefusedKeysError, excerpt
from slackwater.connectors.sink import Unavailable
from slackwater.engine.enrichment.breaker import Breaker
from slackwater.engine.enrichment.loop import completed, submitted
from slackwater.engine.enrichment.stats import LookupStats

_BACKOFF: Final = Backoff(first_s=0.05, longest_s=2.0)
_END_S: Final = 1.0
_OPEN: Final[dict[LookupClient, int]] = {}
"""Clients with open connections, and the process that opened each: after a fork they are the parent's."""


@dataclass(kw_only=True)
class Asked:
    """The result of asking for some keys."""

    answers: dict[Any, Answer] = field(default_factory=dict)
    failed: dict[Any, str] = field(default_factory=dict)
    """Keys whose requests failed, with the reason."""
    stats: LookupStats = field(default_factory=LookupStats)


class Asker:
    """Asks one store on behalf of one step, in one process."""

    def __init__(self, lookup: Lookup, question: Question, *, retries: int, breaker: Breaker | None = None) -> None:
        self.question = question
        self.retries = retries
        self.breaker = breaker or Breaker()
        self._lookup = lookup
        self._client: LookupClient | None = None

    def ask(self, keys: Sequence[Any]) -> Asked:
        """Ask for distinct keys, and return when each has an answer or has failed."""
        return completed(self._ask(keys))

    async def _ask(self, keys: Sequence[Any]) -> Asked:
        if self._client is None:
            self._client = self._opened()
            _note_open(self, self._client)
        size = self._client.keys_per_request
        groups = iter([keys[start : start + size] for start in range(0, len(keys), size)])
        at_once = min(self.question.concurrency, self._lookup.most_at_once, -(-len(keys) // size))
        asked = Asked()
        workers = [asyncio.create_task(self._work(groups, self._client, asked)) for _ in range(at_once)]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
        return asked

    def _opened(self) -> LookupClient:
        facts = {"lookup": self._lookup, "step": self.question.step}
        try:
            client = self._lookup.open(self.question)
        except SlackwaterError:
            raise
        except (Exception, SystemExit) as error:
            raise fault("LOOKUP_CLIENT", got=cause_of(error), **facts) from error
        if not hasattr(client, "fetch"):
            raise fault("LOOKUP_CLIENT", got=f"`{type(client).__name__}`", **facts)
        return client

    async def _work(self, groups: Iterator[Sequence[Any]], client: LookupClient, asked: Asked) -> None:
        for keys in groups:
            await self._request(keys, client, asked)

    async def _request(self, keys: Sequence[Any], client: LookupClient, asked: Asked) -> None:
        """Ask for some keys in one request, with retries; if the store refuses the keys, ask for each half alone."""
        why = ""
        for attempt in range(self.retries + 1):
            if attempt:
                await asyncio.sleep(_BACKOFF.pause_s(attempt))
            if not self.breaker.allows():
                why = f"not asked, because requests before it failed: {self.breaker.why}"
                break
            asked.stats.requests += 1
            began = time.monotonic()
            try:
                async with asyncio.timeout(self.question.timeout_ms / 1_000):
                    answers = await client.fetch(keys)
            except RefusedKeysError as refusal:
                self.breaker.succeeded()
                if len(keys) == 1:
                    asked.answers[keys[0]] = Refused(str(refusal))
                    return
                half = len(keys) // 2
                await self._request(keys[:half], client, asked)
                await self._request(keys[half:], client, asked)
                return
            except (SlackwaterError, asyncio.CancelledError):
                self.breaker.gave_up()
                raise
            except (Exception, SystemExit) as error:  # noqa: BLE001  a user's function may raise anything
                why = self._words(error)
                asked.stats.errors += 1
                self.breaker.failed(why)
            else:
                self.breaker.succeeded()
                asked.stats.note_ms((time.monotonic() - began) * 1_000)
                _take(keys, answers, asked)
                return
        asked.failed.update(dict.fromkeys(keys, why))

    def _words(self, error: BaseException) -> str:
        if isinstance(error, TimeoutError) and not str(error):
            return f"no answer within {render_ms(self.question.timeout_ms)}"
        return str(error) if isinstance(error, Unavailable) else cause_of(error)


def _take(keys: Sequence[Any], answers: object, asked: Asked) -> None:
    if not isinstance(answers, Mapping):
        why = f"a store answers with a mapping of keys to answers; got a {type(answers).__name__}"
        asked.answers.update(dict.fromkeys(keys, Refused(why)))
        return
    asked.answers.update((key, answers.get(key)) for key in keys)
    missing = [key for key in keys if key not in answers]
    if missing and len(answers) > len(keys) - len(missing):
        # It does not mean that the store has nothing: it answered for other keys.
        known = set(keys)
        strange = next(key for key in answers if key not in known)
        for key in missing:
            got = f"got one for {_typed(strange)}, and none for {_typed(key)}"
            asked.answers[key] = Refused(f"answers are by the keys that were asked for; {got}")


def _typed(key: object) -> str:
    return f"{excerpt(key)} ({type(key).__name__})"


def _note_open(asker: Asker, client: LookupClient) -> None:
    """Close the client when its asker is garbage-collected, or when the process ends."""
    if not _OPEN:
        atexit.register(_close_all)
    _OPEN[client] = os.getpid()
    weakref.finalize(asker, _close, client).atexit = False


def _close(client: LookupClient) -> None:
    if _OPEN.pop(client, None) == os.getpid():
        submitted(client.close())


def _close_all() -> None:
    ending = [submitted(client.close()) for client, pid in _OPEN.items() if pid == os.getpid()]
    _OPEN.clear()
    wait(ending, _END_S)
