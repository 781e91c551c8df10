"""The page's server: what it serves, whom it refuses, and that nobody who listens can slow a job down."""

from __future__ import annotations

import http.client
import json
import random
import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest

import slackwater as sw
from slackwater.base.errors import RunError
from slackwater.engine.checkpoint.checkpoint import open_checkpoint
from slackwater.eventtime.measured_lateness import LatenessSketch
from slackwater.observe.metrics.monitor import Monitor
from slackwater.observe.page import event_streams
from slackwater.observe.page.export import MODULES, one_file
from slackwater.observe.page.job_feed import MOST_RECORDS, JobFeed
from slackwater.observe.page.server import PageServer
from slackwater.observe.page.stored import stored_feed
from tests.observe.metrics.made_records import record as made_record
from tests.observe.page.made_up import MadeUp, job, made_up_feed

HOSTILE = '</script><script>hacked = 1</script><img src=x onerror="hacked = 1">'


@pytest.fixture
def served() -> Iterator[tuple[PageServer, JobFeed, MadeUp]]:
    """Give a page with twenty batches."""
    feed, made = made_up_feed(0, 20)
    with PageServer([feed], metrics=lambda: b"slackwater_batches_total 20\n") as server:
        yield server, feed, made


def asked(server: PageServer, path: str, **headers: str) -> tuple[int, dict[str, str], str]:
    place = urlsplit(server.address)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=10)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, {name.lower(): text for name, text in answer.getheaders()}, answer.read().decode()
    finally:
        connection.close()


Served = tuple[PageServer, JobFeed, MadeUp]


def test_page_loads_nothing_from_elsewhere_and_has_no_code_inside(served: Served) -> None:
    status, headers, page = asked(served[0], "/")
    assert status == 200
    assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self';")
    assert headers["x-content-type-options"] == "nosniff"
    assert "<style" not in page
    assert re.findall(r"<script[^>]*>[^<]", page) == []
    assert re.findall(r"(?:src|href)=\"(?!static/|data:,)[^\"]*\"", page) == []
    for module in MODULES:
        status, headers, _ = asked(served[0], f"/static/{module}")
        assert (status, headers["content-type"].split(";")[0]) == (200, "text/javascript")


def test_json_is_what_the_feed_has(served: Served) -> None:
    server, feed, made = served
    assert json.loads(asked(server, "/api/jobs")[2]) == [{"name": "purchases", "state": "running"}]
    assert json.loads(asked(server, "/api/samples")[2]) == feed.samples
    assert json.loads(asked(server, "/api/job")[2]) == feed.job
    assert json.loads(asked(server, "/api/history")[2]) == feed.records
    assert json.loads(asked(server, "/api/lateness")[2]) == made.lateness()
    [status] = json.loads(asked(server, "/api/status")[2])
    assert status["latest"]["batch"] == 19
    assert asked(server, "/metrics")[2] == "slackwater_batches_total 20\n"


@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/static/none.js",
        "/static/..%2fapp.py",
        "/static/%2e%2e/app.py",
        "/static/style.css/x",
        "/api/job?job=x",
    ],
)
def test_what_is_not_there_is_not_found(served: Served, path: str) -> None:
    assert asked(served[0], path)[0] == 404


def test_requests_for_another_host_are_refused(served: Served) -> None:
    assert asked(served[0], "/api/job", Host="evil.example")[0] == 400


def test_only_reading_is_possible(served: Served) -> None:
    place = urlsplit(served[0].address)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=10)
    connection.request("POST", "/api/job", body=b"{}")
    assert connection.getresponse().status == 405
    connection.close()


def test_page_beyond_the_loopback_needs_its_token() -> None:
    with PageServer([JobFeed(job())], host="0.0.0.0") as server:  # noqa: S104  what is tried
        token = urlsplit(server.address).query
        assert re.fullmatch(r"token=\S{20,}", token)
        for path in (
            "/",
            "/api/job",
            "/api/samples",
            "/api/history",
            "/api/status",
            "/metrics",
            "/export",
            "/api/events",
        ):
            assert asked(server, path)[0] == 403
            assert asked(server, f"{path}?token=x")[0] == 403
        assert asked(server, f"/api/job?{token}")[0] == 200
        assert asked(server, "/api/job", Authorization=f"Bearer {token.removeprefix('token=')}")[0] == 200


def test_port_that_is_taken_is_an_error_that_says_so(served: Served) -> None:
    port = urlsplit(served[0].address).port or 0
    with pytest.raises(RunError, match=rf"^\[PAGE_PORT\].*127\.0\.0\.1:{port}"):
        PageServer([served[1]], port=port)


def test_events_are_sent_as_they_come(served: Served) -> None:
    server, feed, made = served
    place = urlsplit(server.address)
    with socket.create_connection((place.hostname, place.port or 0), timeout=10) as listener:
        listener.sendall(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        got = b""
        while b'"state": "running"' not in got:
            got += listener.recv(1 << 16)
        feed.publish(made.record(), made.lateness(), made.samples())
        feed.change("finished")
        while b'"state": "finished"' not in got:
            got += listener.recv(1 << 16)
    assert b'"batch": 20' in got
    assert b'"reason": "malformed"' in got
    assert feed.job["state"] == "finished"


def test_a_page_that_is_stuck_does_not_slow_the_job_down(served: Served) -> None:
    server, feed, made = served
    place = urlsplit(server.address)
    stuck = [socket.create_connection((place.hostname, place.port or 0), timeout=10) for _ in range(10)]
    for listener in stuck:
        listener.sendall(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    record = made.record()
    began = time.monotonic()
    for _ in range(2 * MOST_RECORDS):
        feed.publish(record)
    assert (time.monotonic() - began) / (2 * MOST_RECORDS) < 0.005, "seconds a batch"
    assert len(feed.records) == MOST_RECORDS
    for listener in stuck:
        listener.close()


def test_one_listener_too_many_is_refused_until_another_leaves(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_streams, "MOST_STREAMS", 2)
    server, feed, made = served
    with listening(server), listening(server) as leaving:
        status, headers, said = asked(server, "/api/events")
        assert (status, said) == (503, "this page has 2 listeners, the most it takes; close one, or reload later")
        assert headers["retry-after"] == "15"
        assert asked(server, "/api/history")[0] == 200, "what is no stream is answered"
        leaving.close()
        patience = time.monotonic() + 20
        while asked_to_listen(server) != 200:
            feed.publish(made.record())  # a connection that is gone is noticed when something is sent
            assert time.monotonic() < patience


@contextmanager
def listening(server: PageServer) -> Iterator[socket.socket]:
    """Have an open event stream inside."""
    place = urlsplit(server.address)
    with socket.create_connection((place.hostname, place.port or 0), timeout=10) as listener:
        listener.sendall(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        got = b""
        while b'"state"' not in got:
            got += listener.recv(1 << 16)
        yield listener


def asked_to_listen(server: PageServer) -> int:
    place = urlsplit(server.address)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=10)
    try:
        connection.request("GET", "/api/events")
        return connection.getresponse().status
    finally:
        connection.close()


def test_server_outlives_any_bytes(served: Served) -> None:
    server, dice = served[0], random.Random(3)
    place = urlsplit(server.address)
    for _ in range(60):
        with socket.create_connection((place.hostname, place.port or 0), timeout=10) as connection:
            start = dice.choice(
                [b"", b"GET ", b"GET /api/job?job=%ff%00 HTTP/1.1\r\nHost: localhost\r\n", b"\x16\x03\x01"]
            )
            connection.sendall(start + dice.randbytes(dice.randrange(1, 400)) + b"\r\n\r\n")
    assert asked(server, "/api/jobs")[0] == 200


def test_exported_page_is_one_file_and_takes_any_name() -> None:
    feed = JobFeed(job(pipeline=HOSTILE), [MadeUp(0).record()])
    page = one_file(feed)
    assert page.count("<script") == 2
    assert HOSTILE not in page
    assert re.findall(r"<(?:script|link)[^>]*(?:src|href)=\"(?!data:,)", page) == []
    assert not re.search(r"^(?:import|export) ", page, flags=re.MULTILINE)
    [data] = re.findall(r'id="data">(.*?)</script>', page)
    assert json.loads(data)["job"]["pipeline"] == HOSTILE


def test_page_of_a_checkpoint_is_what_its_history_has(tmp_path: Path) -> None:
    rows = sw.stream("orders", sw.testing.rows_source("k string, t long")).event_time("t", out_of_orderness="5s")
    counts = rows.key_by("k").window(sw.tumbling("1m"), name="per_minute").aggregate(n=sw.count())
    ends = counts.to(sw.sinks.memory()), counts.late.drop(), rows.dead_letters.drop()
    plan = sw.Pipeline("shop", *ends).plan()
    open_checkpoint(tmp_path, plan, partitions=2)
    monitor = Monitor(plan=plan, checkpoint=tmp_path, lateness={"orders": {"0": LatenessSketch.empty()}})
    for batch in range(3):
        monitor.history.append(made_record(batch))
    monitor.close()
    feed = stored_feed(tmp_path)
    assert [record["batch"] for record in feed.records] == [0, 1, 2]
    step = {"name": "per_minute", "size_ms": 60_000, "offset_ms": 0, "lateness_ms": 0, "gap_ms": None}
    assert feed.job["steps"][0] == step
    assert feed.job["streams"] == [{"name": "orders", "slack_ms": 5_000}]
    assert feed.lateness["orders"]["rows"] == 0
    assert feed.job["svg"].startswith("<svg")
    (tmp_path / "slackwater" / "history" / "job.json").write_text("broken")
    assert stored_feed(tmp_path).job["streams"][0]["name"] == "orders"


def test_any_question_gets_an_answer(served: Served) -> None:
    dice, letters = random.Random(4), "ab/%.?&=;\\\"'<>é\u202e0 "
    for _ in range(60):
        place = dice.choice(["api/job", "api/history", "api/samples", "export", "static", "metrics", ""])
        asked_for = "".join(dice.choices(letters, k=dice.randrange(200)))
        path = f"/{place}{dice.choice(['?job=', '?token=', '/', '?'])}{quote(asked_for, safe='%/?&=')}"
        status, headers, _ = asked(served[0], path)
        assert status in {200, 400, 404}, path
        assert "default-src 'none'" in headers["content-security-policy"] or status == 400
