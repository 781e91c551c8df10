"""How a store is asked: side by side, with timeouts, retries and a circuit breaker."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
import pytest

import slackwater as sw
from slackwater.base.errors import RunError, fault
from slackwater.connectors.lookup import Answer, LookupClient, Question, Refused, RefusedKeysError
from slackwater.engine.enrichment.asking import Asker
from slackwater.engine.enrichment.breaker import FAILURES, OPEN, Breaker
from slackwater.engine.enrichment.cached_lookups import AnswerCache
from slackwater.engine.enrichment.fitting import KEY, fitted
from slackwater.engine.enrichment.stats import LookupStats
from tests.connectors.lookup_stores import ask, at_work
from tests.engine.enrichment.scripted import Script, ScriptedLookup

OUTPUT = pl.Schema({"name": pl.String()})


class Time:
    """A clock that is set by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def asker(lookup: Any, **options: Any) -> Asker:  # noqa: ANN401  a lookup, and parts of a question
    given = {"timeout_ms": 1_000, "concurrency": 100, **options}
    retries, breaker = given.pop("retries", 0), given.pop("breaker", None)
    question = Question(step="orders.lookup", key="user", output=OUTPUT, **given)
    return Asker(lookup, question, retries=retries, breaker=breaker)


@pytest.mark.parametrize("error, got", [(None, "`NoneType`"), (OSError("no licence"), "OSError: no licence")])
def test_a_lookup_that_opens_no_client_is_an_error_in_one_sentence(error: Exception | None, got: str) -> None:
    class Shut(ScriptedLookup):
        def open(self, question: Question) -> LookupClient:
            if error is not None:
                raise error
            return None  # type: ignore[return-value]

    with pytest.raises(RunError, match=rf"LOOKUP_CLIENT.*; got {got} from scripted in `orders.lookup`"):
        asker(Shut(script=Script())).ask(["ada"])


def test_a_breaker_opens_after_failures_in_a_row_and_closes_after_a_probe() -> None:
    clock = Time()
    breaker = Breaker(clock=clock)
    for _ in range(FAILURES):
        assert breaker.allows()
        breaker.failed("down")
    assert breaker.is_open
    assert not breaker.allows()
    clock.now = OPEN.first_s
    assert breaker.allows()
    assert not breaker.allows(), "one probe at a time"
    breaker.succeeded()
    assert not breaker.is_open
    assert breaker.allows()


def test_a_breaker_stays_open_twice_as_long_after_each_probe_that_fails_up_to_a_limit() -> None:
    clock = Time()
    breaker = Breaker(clock=clock)
    for _ in range(FAILURES):
        breaker.failed("down")
    waits = []
    for _ in range(8):
        waits.append(breaker.wait_s)
        clock.now += breaker.wait_s
        assert breaker.allows()
        breaker.failed("still down")
    assert waits == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]
    assert waits[-1] == OPEN.longest_s


def test_an_answer_between_failures_keeps_a_breaker_closed() -> None:
    breaker = Breaker()
    for _ in range(10):
        for _ in range(FAILURES - 1):
            breaker.failed("down")
        breaker.succeeded()
    assert not breaker.is_open


def test_failures_of_requests_that_were_under_way_do_not_keep_a_breaker_open_longer() -> None:
    clock = Time()
    breaker = Breaker(clock=clock)
    for _ in range(100):
        breaker.failed("down")
    assert breaker.wait_s == OPEN.first_s


def test_a_probe_that_was_ended_before_its_answer_lets_another_one_through() -> None:
    clock = Time()
    breaker = Breaker(clock=clock)
    for _ in range(FAILURES):
        breaker.failed("down")
    clock.now = OPEN.first_s
    assert breaker.allows()
    breaker.gave_up()
    assert breaker.is_open
    assert breaker.allows()


def test_a_store_that_is_down_is_asked_a_few_times_and_not_for_every_key() -> None:
    script = Script(is_down=True)
    clock = Time()
    store = asker(ScriptedLookup(script=script), concurrency=1, retries=2, breaker=Breaker(clock=clock))
    asked = store.ask([f"u{at}" for at in range(1_000)])
    assert len(asked.failed) == 1_000
    assert len(script.requests) == FAILURES
    assert asked.failed["u999"] == "not asked, because requests before it failed: the store is down"
    script.is_down, clock.now = False, OPEN.first_s
    assert store.ask(["a"]).failed == {}
    assert store.ask(["b", "c"]).failed == {}


def test_no_more_requests_are_under_way_than_was_chosen() -> None:
    running, most = 0, 0

    async def fetch(key: str) -> dict[str, str]:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= 1
        return {"name": key}

    asked = asker(sw.lookups.function(fetch), concurrency=7).ask([str(at) for at in range(100)])
    assert len(asked.answers) == 100
    assert most == 7


def test_requests_wait_side_by_side() -> None:
    async def fetch(key: str) -> dict[str, str]:
        await asyncio.sleep(0.2)
        return {"name": key}

    began = time.monotonic()
    asker(sw.lookups.function(fetch), concurrency=200).ask([str(at) for at in range(200)])
    assert time.monotonic() - began < 200 * 0.2 / 4


def test_a_function_of_many_keys_is_given_lists() -> None:
    sizes = []

    async def fetch(keys: list[str]) -> dict[str, dict[str, str] | None]:
        sizes.append(len(keys))
        return {key: {"name": key} for key in keys if key != "7"}

    asked = asker(sw.lookups.function(fetch, batch=40), concurrency=1).ask([str(at) for at in range(100)])
    assert sizes == [40, 40, 20]
    assert asked.answers["7"] is None
    assert asked.answers["8"] == {"name": "8"}


@pytest.mark.parametrize(
    "raised, said",
    [
        (ValueError("no such user"), "ValueError: no such user"),
        (SystemExit(3), "RuntimeError: the function called exit()"),
        (asyncio.CancelledError(), "RuntimeError: the function was cancelled from within"),
        (RuntimeError(), "RuntimeError"),
        (TimeoutError(), "no answer within 1s"),
    ],
)
def test_what_a_function_raises_is_a_failed_request(raised: BaseException, said: str) -> None:
    async def fetch(key: str) -> None:
        raise raised

    store = asker(sw.lookups.function(fetch), retries=1)
    asked = store.ask(["ada"])
    assert asked.failed == {"ada": said}
    assert (asked.stats.requests, asked.stats.errors) == (2, 2)


def test_a_function_that_takes_too_long_is_cancelled() -> None:
    ended = threading.Event()

    async def fetch(key: str) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    asked = asker(sw.lookups.function(fetch), timeout_ms=20).ask(["ada"])
    assert asked.failed == {"ada": "no answer within 20ms"}
    assert ended.wait(10)


class Rude:
    """A value that cannot even be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize("answer", [5, "text", ["a"], b"{}", Rude()], ids=lambda answer: type(answer).__name__)
def test_what_a_function_returns_and_is_no_dictionary_is_an_answer_that_does_not_fit(answer: object) -> None:
    async def one(key: str) -> object:
        return answer

    async def many(keys: list[str]) -> object:
        return answer

    assert isinstance(asker(sw.lookups.function(one)).ask(["ada"]).answers["ada"], Refused)
    assert isinstance(asker(sw.lookups.function(many, batch=5)).ask(["ada"]).answers["ada"], Refused)


def test_answers_for_keys_that_nobody_asked_for_are_refused_not_missing() -> None:
    async def fetch(keys: list[int]) -> dict[Any, Any]:
        return {key if key < 2 else str(key): {"name": "x"} for key in keys if key != 9}

    answers = asker(sw.lookups.function(fetch, batch=5)).ask([1, 7]).answers
    assert answers[1] == {"name": "x"}
    words = "answers are by the keys that were asked for; got one for '7' (str), and none for 7 (int)"
    assert answers[7] == Refused(words)
    assert asker(sw.lookups.function(fetch, batch=5)).ask([1, 9]).answers == {1: {"name": "x"}, 9: None}


def test_a_lookup_works_inside_a_running_event_loop() -> None:
    async def fetch(key: str) -> dict[str, str]:
        return {"name": key}

    async def notebook() -> Any:  # noqa: ANN401  an answer
        return asker(sw.lookups.function(fetch)).ask(["ada"]).answers["ada"]

    assert asyncio.run(notebook()) == {"name": "ada"}


class Refusing(LookupClient):
    """Refuses every request with a key that is bad."""

    keys_per_request = 64

    def __init__(self) -> None:
        self.requests = 0

    async def fetch(self, keys: Sequence[Any]) -> Mapping[Any, Answer]:
        self.requests += 1
        if any(key.startswith("bad") for key in keys):
            raise RefusedKeysError("not a user")
        return {key: {"name": key} for key in keys}


def test_keys_that_a_store_refuses_are_found_by_halving_and_the_others_answered() -> None:
    client = Refusing()
    store = asker(ScriptedLookup(script=Script()))
    store._client = client
    keys = [*(f"u{at}" for at in range(62)), "bad1", "bad2"]
    asked = store.ask(keys)
    assert {key for key, answer in asked.answers.items() if isinstance(answer, Refused)} == {"bad1", "bad2"}
    assert asked.answers["u5"] == {"name": "u5"}
    assert client.requests < 2 * 2 * 7 + 1
    assert not store.breaker.is_open


def test_an_error_that_ends_the_job_is_raised_as_it_is() -> None:
    async def fetch(key: str) -> None:
        raise fault("LOOKUP_REFUSED", lookup="it", step="s", why="no", remedy="fix it")

    with pytest.raises(RunError, match="LOOKUP_REFUSED"):
        asker(sw.lookups.function(fetch), retries=5).ask(["a", "b"])


def test_a_step_with_patience_asks_again_until_the_store_is_back() -> None:
    script = Script(is_down=True)
    step = at_work(ScriptedLookup(script=script), "name string, seen long")
    slept = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        script.is_down = len(slept) < 3

    got = step.answers(pl.Series(["ada"]), 0, LookupStats(), patience_s=60.0, sleep=sleep)
    assert got.failed == {}
    assert len(slept) == 3


def test_the_cache_keeps_the_newest_of_too_many_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    from slackwater.engine.enrichment import cached_lookups as module

    monkeypatch.setattr(module, "MOST_KEYS", 100)
    cache = AnswerCache(ttl_ms=1_000)
    for at in range(30):
        keys = [f"{at}-{number}" for number in range(10)]
        form = sw.formats.json("name string")
        answers = fitted(keys, {key: {"name": key} for key in keys}, form, key_type=pl.String(), output=OUTPUT)
        cache.keep(answers, now_ms=at)
    assert len(cache) <= 100
    newest = cache.known(pl.Series(["29-0", "0-0"]), now_ms=29)
    assert newest is not None
    assert newest[KEY].to_list() == ["29-0"]


def test_a_cached_key_is_there_once_though_processing_time_went_back() -> None:
    script = Script()
    step = at_work(ScriptedLookup(script=script), "name string, seen long", cache="1s")
    ask(step, "ada", now_ms=0)
    ask(step, "ada", now_ms=5_000)
    got = ask(step, "ada", now_ms=500)
    assert got.answers.height == 1
    assert len(script.requests) == 2


def test_latencies_are_known_within_a_tenth() -> None:
    stats = LookupStats()
    for milliseconds in range(1, 1_001):
        stats.note_ms(milliseconds)
    again = LookupStats.from_facts(stats.to_facts())
    again.add(LookupStats())
    assert stats == again
    assert stats.p50_ms == pytest.approx(500, rel=0.1)
    assert stats.p99_ms == pytest.approx(990, rel=0.1)
    assert LookupStats().p99_ms == 0


FAILING = """
import slackwater as sw

async def ask(key):
    raise RuntimeError("down")

orders = sw.stream("orders", sw.testing.rows_source("k string, ts long")).event_time("ts")
named = orders.lookup(sw.lookups.function(ask), key="k", output="name string", retries=0)
pipeline = sw.Pipeline("p", named.to(sw.sinks.memory()), orders.dead_letters.drop())

def run():
    try:
        sw.testing.run(pipeline, {"orders": [{"k": "x", "ts": 1}]})
    except sw.RunError as error:
        print(error.code)

run()
"""


def test_a_process_that_ends_after_a_failed_lookup_says_nothing_of_its_loop() -> None:
    done = subprocess.run([sys.executable, "-c", FAILING], capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("LOOKUP_UNAVAILABLE\n", "")
