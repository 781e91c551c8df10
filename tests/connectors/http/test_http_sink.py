"""The HTTP sink against a real server: what is sent, and each row taken once, whatever breaks."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import polars as pl
import pytest

from slackwater.connectors.console.sink import console
from slackwater.connectors.delivery import SinkWarning
from slackwater.connectors.http.sink import http
from slackwater.connectors.http.sink import sending as http_sending
from slackwater.connectors.memory.sink import memory
from slackwater.connectors.sink import DROP
from slackwater.operators.identity import Identity
from slackwater.testing import SinkHarness
from tests.connectors.http.deliveries import BAD, SCHEMA, job, letters, refuses_bad_rows, rows, taken
from tests.connectors.http.receiver import Fault, Receiver, Seen

pytestmark = pytest.mark.filterwarnings(r"ignore:\[HTTP_REJECTED\]")

# What is sent


def test_each_row_is_a_request_with_its_key(receiver: Receiver) -> None:
    with job(receiver, headers={"X-Tenant": "north"}) as run:
        run.deliver(rows(1, 2), rows(3))
    assert taken(receiver) == [1, 2, 3]
    assert {(seen.method, seen.path, seen.headers["X-Tenant"]) for seen in receiver.seen} == {
        ("POST", "/results", "north")
    }
    assert {seen.headers["Content-Type"] for seen in receiver.seen} == {"application/json"}
    assert len({seen.key for seen in receiver.seen}) == 3


def test_arrays_carry_many_rows(receiver: Receiver) -> None:
    with job(receiver, key=None, batch_rows=100, method="PUT") as run:
        run.deliver(rows(*range(250)))
    assert sorted(len(seen.body) for seen in receiver.seen) == [50, 100, 100]
    assert taken(receiver) == list(range(250))


def test_as_many_requests_are_under_way_as_configured(receiver: Receiver) -> None:
    receiver.judge = lambda _: Fault(status=200, takes_row=True, wait_s=0.02)
    with job(receiver, key=None, concurrency=4) as run:
        run.deliver(rows(*range(64)))
    assert receiver.most_at_once == 4
    assert taken(receiver) == list(range(64))


def test_rows_of_one_key_are_taken_in_order(receiver: Receiver) -> None:
    receiver.judge = lambda seen: Fault(status=200, takes_row=True, wait_s=seen.body["orders"] % 3 / 100)
    receiver.faults.extend([Fault(status=503), Fault(), Fault(takes_row=True)])
    frame = pl.DataFrame([(f"user-{n % 5}", n) for n in range(60)], schema=SCHEMA, orient="row")
    with job(receiver) as run:
        run.deliver(frame[:30], frame[30:])
    for user in range(5):
        orders = [row["orders"] for row in receiver.rows if row["user"] == f"user-{user}"]
        assert orders == list(range(user, 60, 5))


def test_connections_are_kept_open(receiver: Receiver) -> None:
    with job(receiver, concurrency=2) as run:
        run.deliver(rows(*range(30)))
        run.deliver(rows(*range(30, 60)))
        assert receiver._server is not None
        assert len(receiver._server.connections) <= 3  # one of them asked whether anyone is there


# Exactly once


def test_batch_delivered_again_is_sent_again_and_taken_once(receiver: Receiver) -> None:
    run = job(receiver)
    run.deliver(rows(1, 2))
    run.restart().deliver(rows(1, 2), batch=0)
    run.deliver(rows(1, 2))
    assert len(receiver.seen) == 6
    assert taken(receiver) == [1, 1, 2, 2]


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_trouble_that_may_pass_is_tried_again_with_the_same_key(receiver: Receiver, status: int) -> None:
    receiver.faults.extend([Fault(status=status)] * 3)
    with job(receiver) as run:
        run.deliver(rows(1))
    assert len(receiver.seen) == 4
    assert len({seen.key for seen in receiver.seen}) == 1
    assert letters(run).is_empty()


def test_answer_that_is_lost_or_late_doubles_nothing(receiver: Receiver) -> None:
    receiver.faults.extend([Fault(takes_row=True), Fault(), Fault(status=200, takes_row=True, wait_s=0.6)])
    with job(receiver, timeout="200ms") as run:
        run.deliver(rows(1))
    assert len(receiver.seen) >= 4
    assert taken(receiver) == [1]


@pytest.mark.parametrize(
    "after",
    ["1", lambda: format_datetime(datetime.now(UTC) + timedelta(seconds=2), usegmt=True)],
    ids=["seconds", "date"],
)
def test_retry_after_is_obeyed(receiver: Receiver, after: Any) -> None:  # noqa: ANN401
    said = after if isinstance(after, str) else after()
    receiver.faults.append(Fault(status=429, headers=(("Retry-After", said),)))
    began = datetime.now(UTC)
    with job(receiver) as run:
        run.deliver(rows(1))
    assert timedelta(seconds=0.9) < datetime.now(UTC) - began < timedelta(seconds=5)
    assert taken(receiver) == [1]


@pytest.mark.parametrize("said", ["", "soon", "-1", "Wed, 99 Foo 2026 99:99:99 GMT"])
def test_retry_after_that_cannot_be_read_is_as_none(receiver: Receiver, said: str) -> None:
    receiver.faults.append(Fault(status=503, headers=(("Retry-After", said),)))
    with job(receiver) as run:
        run.deliver(rows(1))
    assert taken(receiver) == [1]


def test_receiver_killed_in_mid_batch_and_started_again(receiver: Receiver) -> None:
    back = threading.Timer(0.5, receiver.start)

    def killed_at_ten(_: Seen) -> Fault | None:
        if len(receiver.seen) == 10:
            threading.Thread(target=receiver.kill).start()
            back.start()
        return None

    receiver.judge = killed_at_ten
    with job(receiver) as run:
        run.deliver(rows(*range(200)))
    back.join()
    assert taken(receiver) == list(range(200))


def test_conflict_after_a_lost_answer_means_that_the_first_is_in_work(receiver: Receiver) -> None:
    receiver.faults.extend([Fault(), Fault(status=409), Fault(status=409)])
    with job(receiver) as run:
        run.deliver(rows(1))
    assert taken(receiver) == [1]
    assert letters(run).is_empty()


def test_conflict_that_does_not_end_and_any_other_conflict_are_refusals(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_sending, "IN_WORK_S", 0.1)
    receiver.judge = lambda _: Fault(status=409)
    with job(receiver) as run:
        run.deliver(rows(1))
        assert len(receiver.seen) == 1
        receiver.faults.append(Fault())
        run.deliver(rows(2))
    assert len(receiver.seen) > 3
    assert letters(run)["message"].to_list() == ["HTTP 409", "HTTP 409"]


def test_new_run_sends_panes_by_the_same_keys(receiver: Receiver) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    pane = pl.DataFrame([{"user": "ann", "window_start": at, "window_end": at, "pane_index": 0, "orders": 1}])
    window = Identity(keys=("user",), bounds=("window_start", "window_end"), version="pane_index")
    for incarnation in ("first", "second"):
        sink = http(receiver.url, key="user", rejected=memory())
        SinkHarness(sink=sink, schema=pane.schema, identity=window, incarnation=incarnation).deliver(pane)
    assert len(receiver.seen) == 2
    assert taken(receiver) == [1]


# Promises


def test_at_most_once_sends_once_and_says_what_is_lost(receiver: Receiver) -> None:
    receiver.faults.extend([Fault(takes_row=True), Fault(status=503, body=b"no")])
    run = job(receiver, delivery="at_most_once", rejected=console(), concurrency=1, key=None)
    with pytest.warns(SinkWarning, match=r"SINK_LOST.*2 requests failed, one with: the connection was closed"):
        run.deliver(rows(1, 2, 3))
    assert len(receiver.seen) == 3
    assert taken(receiver) == [1, 3]


def test_at_least_once_needs_no_marks(receiver: Receiver) -> None:
    receiver.judge = refuses_bad_rows
    with job(receiver, delivery="at_least_once", rejected=DROP) as run:
        run.deliver(rows(1, BAD))
        run.deliver(rows(2))
    assert taken(receiver) == [1, 2]
