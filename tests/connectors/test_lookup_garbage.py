"""Servers that answer with anything but their protocol: no answer is made up, and no Python error is shown."""

from __future__ import annotations

import gzip
import itertools
import re
import time
from collections.abc import Callable, Iterable
from typing import Any

import pytest

import slackwater as sw
from slackwater.connectors.lookup import Lookup
from slackwater.engine.enrichment.fitting import FOUND, STATUS, UNFIT
from tests.connectors.imposter import Imposter
from tests.connectors.lookup_stores import ask, at_work

PYTHON = re.compile(r"object has no|not iterable|zip\(\)|<class|Traceback|argument")


def http(body: bytes, headers: bytes = b"") -> bytes:
    return b"HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\n%s" % (headers, len(body), body)


LOOKUPS: dict[str, Callable[[int], Lookup]] = {
    "http by key": lambda port: sw.lookups.http(f"http://127.0.0.1:{port}/users/{{key}}"),
    "http": lambda port: sw.lookups.http(f"http://127.0.0.1:{port}/users"),
    "redis hash": lambda port: sw.lookups.redis(f"redis://127.0.0.1:{port}/0"),
    "redis json": lambda port: sw.lookups.redis(f"redis://127.0.0.1:{port}/0", values="json"),
    "redis text": lambda port: sw.lookups.redis(f"redis://127.0.0.1:{port}/0", values="text"),
    "postgres": lambda port: sw.lookups.postgres(f"postgresql://p@127.0.0.1:{port}/p", "users"),
}
ANY = {
    "hangs up": ([], ""),
    "HTTP": ([b"HTTP/1.1 400 Bad Request\r\n\r\n"], ""),
    "Redis": ([b"-ERR unknown command\r\n"], ""),
    "noise": ([bytes(range(256)) * 4], ""),
}
HTTP = {
    "no HTTP": ([b"-ERR unknown command\r\n"], "the response is not HTTP"),
    "long header": ([b"HTTP/1.1 200 OK\r\nX: ", b"a" * 200_000], "the response is not HTTP"),
    "many headers": ([b"HTTP/1.1 200 OK\r\n", b"X: a\r\n" * 1_000], "the response is not HTTP"),
    "two lengths": ([b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 5\r\n\r\n{}"], "not HTTP"),
    "cut off": ([b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"name"'], "the connection was closed"),
    "bad gzip": ([http(b"plain", b"Content-Encoding: gzip\r\n")], "cannot be decompressed"),
}
REDIS = {
    "number": ([b":5\r\n"], "expected a list"),
    "no list": ([b"*-1\r\n"], "expected a list"),
    "empty list": ([b"*0\r\n"], "expected a list of 1, got a list of 0"),
    "long list": ([b"*2\r\n$1\r\na\r\n$1\r\nb\r\n"], "expected a list of 1, got a list of 2"),
    "lists": ([b"*1\r\n*1\r\n$1\r\na\r\n"], "expected a text, got a list"),
    "numbers": ([b"*1\r\n:5\r\n"], "expected a text, got a int"),
    "no length": ([b"*1\r\n$x\r\n"], "does not answer as Redis does"),
    "deep": ([b"*1\r\n" * 10_000], "does not answer as Redis does"),
    "HTTP": ([b"HTTP/1.1 400 Bad Request\r\n\r\n"], "does not answer as Redis does"),
}


def cases() -> Iterable[Any]:
    for kind in LOOKUPS:
        own = HTTP if kind.startswith("http") else REDIS if kind.startswith("redis") else {}
        for name, (parts, words) in {**ANY, **own}.items():
            if not (name == "Redis" and "redis" in kind) and not (name == "HTTP" and "http" in kind):
                yield pytest.param(kind, parts, words, id=f"{kind}: {name}")


@pytest.mark.parametrize("kind, parts, words", [*cases()])
def test_garbage_is_a_failed_request_in_plain_english(kind: str, parts: list[bytes], words: str) -> None:
    with Imposter(parts=parts, hangs_up=True) as server:
        got = ask(at_work(LOOKUPS[kind](server.port), "name string", timeout="500ms"), "ada")
    assert got.answers.is_empty(), "nothing is known about the key"
    assert words in got.failed["ada"]
    assert not PYTHON.search(got.failed["ada"]), got.failed


@pytest.mark.parametrize("body", [b"<html>please log in</html>", b"[]", b"5", b"null", b"", b'{"name": ', b"\xff\xfe"])
@pytest.mark.parametrize("kind", ["http by key", "http"])
def test_a_sound_response_that_is_no_answer_is_the_error_of_its_key(kind: str, body: bytes) -> None:
    with Imposter(parts=[http(body)]) as server:
        got = ask(at_work(LOOKUPS[kind](server.port), "name string"), "ada")
    assert got.failed == {}
    assert got.answers[STATUS].to_list() == [UNFIT]


@pytest.mark.parametrize(
    "parts",
    [
        [http(gzip.compress(b" " * (300 << 20), 1), b"Content-Encoding: gzip\r\n")],
        itertools.chain([b"HTTP/1.1 200 OK\r\n\r\n"], itertools.repeat(b" " * (1 << 20))),
    ],
    ids=["gzip", "endless"],
)
def test_a_huge_answer_is_the_error_of_its_key_and_is_not_held(parts: Iterable[bytes]) -> None:
    with Imposter(parts=parts) as server:
        got = ask(at_work(LOOKUPS["http by key"](server.port), "name string", timeout="10s"), "ada")
    assert got.answers["__message"].to_list() == ["an answer has at most 4 MB; got more"]


@pytest.mark.parametrize(
    "kind, parts",
    [
        ("http by key", [http(b'{"name": "a"}') + http(b'{"name": "b"}')]),
        ("redis text", [b"*1\r\n$1\r\na\r\n*1\r\n$1\r\nb\r\n"]),
    ],
)
def test_an_answer_that_nobody_asked_for_is_not_taken_for_the_next_keys(kind: str, parts: list[bytes]) -> None:
    with Imposter(parts=parts) as server:
        step = at_work(LOOKUPS[kind](server.port), "name string")
        for key in ("ada", "bob", "eve"):
            got = ask(step, key).answers
            assert (got[STATUS].to_list(), got["name"].to_list()) == ([FOUND], ["a"])


def test_a_body_that_trickles_in_ends_with_the_timeout() -> None:
    parts = [b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", *itertools.repeat(b" ", 100)]
    with Imposter(parts=parts, pause_s=0.05) as server:
        client = LOOKUPS["http by key"](server.port).open(_question(timeout_ms=200))
        began = time.monotonic()
        with pytest.raises(sw.lookups.Unavailable, match="takes too long"):
            client.ask(["ada"])  # type: ignore[attr-defined]  # in this thread, where nothing else ends it
        assert time.monotonic() - began < 2


def _question(*, timeout_ms: int) -> Any:  # noqa: ANN401  of a private class
    from slackwater.connectors.lookup import Question

    return Question(step="s", key="k", output=at_work(LOOKUPS["http"](1))._output, timeout_ms=timeout_ms, concurrency=1)
