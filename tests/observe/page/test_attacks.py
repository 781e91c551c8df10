"""A page and its metrics under attack: the job does not notice, and others are still served."""

from __future__ import annotations

import json
import logging
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from slackwater.observe.metrics import http_connections
from slackwater.observe.metrics.http_connections import MOST_CONNECTIONS, ScarceErrors, most_connections
from slackwater.observe.page.job_feed import JobFeed
from slackwater.observe.page.server import PageServer
from tests.observe.page.attacks import (
    NORMAL,
    SLOW,
    fuzzed,
    many_sockets,
    normal_clients,
    slow_clients,
    status_of,
    stuck_listeners,
)
from tests.observe.page.made_up import job

MOST_LOG_BYTES = 10_000


class Attacked:
    """The process with the job."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self._process, self.log = process, log
        self.page, self.metrics = self._line()

    def figures(self) -> dict[str, Any]:
        """Return how the job is doing."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        found: dict[str, Any] = self._line()
        assert found["failure"] == ""
        return found

    def continues(self) -> dict[str, Any]:
        """Return the job's figures, after it has done more batches."""
        before = self.figures()["batches"]
        while (found := self.figures())["batches"] < before + 3:
            pass
        return found

    def _line(self) -> Any:  # noqa: ANN401  JSON
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())


@pytest.fixture
def attacked(tmp_path: Path) -> Iterator[Attacked]:
    command = [sys.executable, "-m", "tests.observe.page.attacked"]
    log = tmp_path / "log"
    with (
        log.open("w") as errors,
        many_sockets(),
        subprocess.Popen(command, stdin=-1, stdout=-1, stderr=errors, text=True) as process,
    ):
        yield Attacked(process, log)


@pytest.mark.parametrize("kind", ["page", "metrics"])
def test_slow_clients_take_neither_the_descriptors_of_a_job_nor_the_places_of_others(
    attacked: Attacked, kind: str
) -> None:
    port = getattr(attacked, kind)
    before = attacked.figures()
    with slow_clients(port, SLOW // 2), slow_clients(port, SLOW // 2):
        during = attacked.continues()
        assert during["descriptors"] < before["descriptors"] + 3 * MOST_CONNECTIONS
        assert during["threads"] <= before["threads"] + 1
        paths = (
            ("/metrics",) if kind == "metrics" else ("/", "/static/main.js", "/api/history", "/api/status", "/metrics")
        )
        assert normal_clients(port, NORMAL, paths) == [200] * NORMAL
    after = attacked.continues()
    assert after["megabytes"] < before["megabytes"] + 200
    assert len(attacked.log.read_bytes()) < MOST_LOG_BYTES


def test_listeners_that_do_not_read_take_a_bounded_part_of_the_memory(attacked: Attacked) -> None:
    before = attacked.figures()
    with stuck_listeners(attacked.page, MOST_CONNECTIONS):
        while attacked.continues()["batches"] < before["batches"] + 300:
            pass
        assert status_of(attacked.page, "/api/jobs") == 200
        assert attacked.figures()["megabytes"] < before["megabytes"] + 200


@pytest.mark.parametrize("count", [250, pytest.param(5_000, marks=pytest.mark.long)])
def test_any_requests_get_an_answer_or_a_closed_connection(attacked: Attacked, count: int) -> None:
    before = attacked.figures()
    for port in (attacked.page, attacked.metrics):
        assert fuzzed(port, count, seed=count) <= {b"", b"100", b"200", b"307", b"400", b"404", b"405", b"503"}
    after = attacked.continues()
    assert after["descriptors"] <= before["descriptors"] + MOST_CONNECTIONS
    assert after["megabytes"] < before["megabytes"] + 200
    assert len(attacked.log.read_bytes()) < MOST_LOG_BYTES


def test_static_file_of_any_name_is_not_found(attacked: Attacked) -> None:
    for name in ("x" * 300, "x" * 5_000, "%2e%2e", "a" * 300 + ".js", "%00", "..%5c"):
        assert status_of(attacked.page, f"/static/{name}") == 404


@pytest.mark.parametrize(
    "sent", [b"", b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"]
)
def test_connection_without_a_whole_request_is_closed_in_time(monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    monkeypatch.setattr(http_connections, "REQUEST_S", 0.1)
    with PageServer([JobFeed(job())]) as server, socket.create_connection(place_of(server), timeout=20) as client:
        client.sendall(sent)
        with suppress(ConnectionResetError):
            while client.recv(1 << 16):
                pass


def test_connection_that_does_not_read_is_closed_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connections, "RESPONSE_S", 0.1)
    long = job(svg="x" * 20_000_000)
    with PageServer([JobFeed(long)]) as server, socket.create_connection(place_of(server), timeout=20) as client:
        client.sendall(b"GET /api/job HTTP/1.1\r\nHost: localhost\r\n\r\n")
        # Its connection is reset: what it sends cannot arrive, sooner or later.
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            send_for_ever(client)


def send_for_ever(client: socket.socket) -> None:
    while True:
        client.sendall(b"x")


def place_of(server: PageServer) -> tuple[str, int]:
    return "127.0.0.1", urlsplit(server.address).port or 0


def test_server_takes_a_small_part_of_the_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (256, 4_096))
    assert most_connections() == 32
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (1_000_000, 1_000_000))
    assert most_connections() == MOST_CONNECTIONS


def test_errors_are_logged_once_a_minute_with_their_number() -> None:
    now = 0.0
    scarce = ScarceErrors(lambda: now)
    error = logging.LogRecord("slackwater.http", logging.ERROR, "", 0, "broken %s", ("pipe",), None)
    passed = []
    for second in range(130):
        now = float(second)
        passed.append(scarce.filter(error))
    assert [second for second, is_logged in enumerate(passed) if is_logged] == [0, 60, 120]
    assert error.getMessage().startswith("broken pipe (59 more since the last one)")
