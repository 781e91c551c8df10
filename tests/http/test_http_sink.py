"""The HTTP sink against a real server: each row taken once, whatever breaks, and refused rows kept once."""

from __future__ import annotations

import os
import pickle
import re
import shutil
import ssl
import subprocess
import sys
import threading
import time
import warnings
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from slackwater.errors import DefinitionError, RunError
from slackwater.formats.dead_letters import DEAD_LETTER_SCHEMA
from slackwater.secrets import secret
from slackwater.sinks import delivery, files
from slackwater.sinks.base import DROP, Slot
from slackwater.sinks.console import console
from slackwater.sinks.delivery import SinkWarning, StoppedWaitingError
from slackwater.sinks.http import HttpSink, http
from slackwater.sinks.http import definition as http_module
from slackwater.sinks.http import sending as http_sending
from slackwater.sinks.memory import MemorySink, memory
from slackwater.state.identity import Identity
from slackwater.testing import SinkHarness
from tests.conftest import Needs
from tests.http.receiver import Fault, Receiver, Seen

SCHEMA = pl.Schema({"user": pl.String(), "orders": pl.Int64()})
BAD = 13
"""The number of orders that the receiver refuses."""

pytestmark = pytest.mark.filterwarnings(r"ignore:\[HTTP_REJECTED\]")


def rows(*orders: int, user: str | None = None) -> pl.DataFrame:
    return pl.DataFrame([(user or f"user-{n}", n) for n in orders], schema=SCHEMA, orient="row")


def job(receiver: Receiver, run: dict[str, Any] | None = None, **options: Any) -> SinkHarness:  # noqa: ANN401  theirs
    told: dict[str, Any] = {"rejected": memory(), "key": "user", "retry_for": "20s"} | options
    sink = http(receiver.url, **told)
    return SinkHarness(sink=sink, schema=SCHEMA, **run or {})


def letters(run: SinkHarness) -> pl.DataFrame:
    assert isinstance(run.sink, HttpSink)
    assert isinstance(run.sink.rejected, MemorySink)
    return run.sink.rejected.rows()


def taken(receiver: Receiver) -> list[int]:
    return sorted(row["orders"] for row in receiver.rows)


def refuses_bad_rows(seen: Seen) -> Fault | None:
    sent = seen.body if isinstance(seen.body, list) else [seen.body]
    is_bad = any(row["orders"] == BAD for row in sent)
    return Fault(status=422, body=b'{"error":"thirteen"}') if is_bad else None


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "FIRST_WAIT_S", 0.01)
    monkeypatch.setattr(http_sending, "FIRST_WAIT_S", 0.01)
    monkeypatch.setattr(http_sending, "SAID_AFTER_S", 60.0)  # a busy machine is no trouble of the receiver's


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


def test_no_more_requests_are_under_way_than_told_and_not_fewer(receiver: Receiver) -> None:
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


# Refused rows


def test_refused_row_becomes_a_dead_letter_and_the_others_are_taken(receiver: Receiver) -> None:
    receiver.judge = refuses_bad_rows
    with job(receiver) as run:
        run.deliver(rows(1, BAD, 2))
    assert taken(receiver) == [1, 2]
    [letter] = letters(run).rows(named=True)
    [sent] = [seen for seen in receiver.seen if seen.body["orders"] == BAD]
    assert letters(run).schema == DEAD_LETTER_SCHEMA
    assert letter.pop("processed_at") > datetime.now(UTC) - timedelta(minutes=1)
    assert letter == {
        "payload": b'{"user":"user-13","orders":13}',
        "key": sent.key.encode(),
        "headers": None,
        "source": "results",
        "partition": "0/0",
        "offset": 1,
        "ingestion_time": None,
        "step": "results",
        "reason": "http_rejected",
        "message": 'HTTP 422 {"error":"thirteen"}',
    }


def test_array_that_is_refused_becomes_a_letter_for_each_row(receiver: Receiver) -> None:
    receiver.judge = refuses_bad_rows
    with job(receiver, key=None, batch_rows=2) as run:
        run.deliver(rows(1, 2, BAD, 4, 5))
    assert taken(receiver) == [1, 2, 5]
    assert letters(run)["payload"].to_list() == [b'{"user":"user-13","orders":13}', b'{"user":"user-4","orders":4}']


def test_long_answer_is_cut_and_the_connection_goes_on(receiver: Receiver) -> None:
    receiver.faults.append(Fault(status=400, body=b"x" * 200_000))
    with job(receiver, concurrency=1) as run:
        run.deliver(rows(1, user="ann"), rows(2, user="ann"))
    assert letters(run)["message"].to_list() == ["HTTP 400 " + "x" * 500]
    assert taken(receiver) == [2]


def refused(folder: Path) -> list[int]:
    found = sorted(folder.glob("batch-*/*.parquet"))
    return [n for path in found for n in pl.read_parquet(path)["offset"]]


def test_refused_rows_are_written_once_by_the_protocol_of_all_sinks(receiver: Receiver, tmp_path: Path) -> None:
    receiver.judge = refuses_bad_rows
    run = job(receiver, rejected=files(tmp_path / "refused"))
    run.deliver(rows(BAD, 2))
    run.deliver(rows(1))
    run.deliver(rows(1, 2, BAD))
    run.restart().deliver(rows(1, 2, BAD), batch=2)
    assert refused(tmp_path / "refused") == [0, 2]


@pytest.mark.parametrize("is_restarted", [False, True])
def test_refused_rows_that_were_removed_are_noticed(receiver: Receiver, tmp_path: Path, *, is_restarted: bool) -> None:
    receiver.judge = refuses_bad_rows
    run = job(receiver, rejected=files(tmp_path / "refused"))
    run.deliver(rows(BAD))
    run.deliver(rows(1))
    for batch in (tmp_path / "refused").glob("batch-*"):
        shutil.rmtree(batch)
    run.close()
    after = run.restart() if is_restarted else run
    with pytest.raises(RunError, match=r"SINK_MARK_MISSING.*output `results\.rejected`.*this run wrote batch 0"):
        after.deliver(rows(BAD))


def test_refused_rows_of_another_run_are_an_error(receiver: Receiver, tmp_path: Path) -> None:
    receiver.judge = refuses_bad_rows
    job(receiver, rejected=files(tmp_path / "refused")).deliver(rows(BAD))
    other = job(receiver, {"incarnation": "second"}, rejected=files(tmp_path / "refused"))
    with pytest.raises(RunError, match=r"SINK_OF_ANOTHER_RUN.*output `results\.rejected`"):
        other.deliver(rows(BAD))


def test_refused_rows_of_a_copy_are_an_error(receiver: Receiver, tmp_path: Path) -> None:
    receiver.judge = refuses_bad_rows
    run = job(receiver, rejected=files(tmp_path / "refused"))
    run.deliver(rows(1))
    copy = replace(run, token="copy", marked=[0], _outlet=None)  # noqa: S106  not a secret
    run.deliver(rows(BAD))
    with pytest.raises(RunError, match=r"SINK_OF_A_COPY.*has batch 1 .*now at batch 1"):
        copy.deliver(rows(BAD))
    run.restart().deliver(rows(BAD))
    with pytest.raises(RunError, match=r"SINK_OF_A_COPY.*has batch 2 .*now at batch 1"):
        copy.restart().deliver(rows(BAD))
    assert refused(tmp_path / "refused") == [0, 0]


CRASHING = """
import sys
from slackwater.sinks import files
from slackwater.sinks.http import http
from slackwater.state.identity import Identity
from slackwater.testing import SinkHarness
from tests.http.test_http_sink import SCHEMA, rows
sink = http(sys.argv[1], key="user", rejected=files(sys.argv[2]))
SinkHarness(sink=sink, schema=SCHEMA).deliver(rows(1, 13, 2))
"""


@pytest.mark.crash
def test_process_killed_when_all_is_sent_and_nothing_noted(receiver: Receiver, tmp_path: Path) -> None:
    receiver.judge = refuses_bad_rows
    dies = {"SLACKWATER_CRASH": "written@0", "SLACKWATER_CRASH_ONCE": str(tmp_path / "once")}
    for code in (-9, 0):
        command = [sys.executable, "-c", CRASHING, receiver.url, str(tmp_path / "refused")]
        assert subprocess.run(command, env=os.environ | dies, check=False).returncode == code
        assert taken(receiver) == [1, 2]
        assert refused(tmp_path / "refused") == ([] if code else [1])
    assert len(receiver.seen) == 6


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


@pytest.mark.parametrize("promise", ["at_least_once", "at_most_once"])
def test_refused_rows_cannot_be_promised_more(receiver: Receiver, promise: str) -> None:
    with pytest.raises(DefinitionError, match=rf'HTTP_REJECTED_PROMISE.*got memory.*delivery="{promise}"'):
        job(receiver, delivery=promise)


def test_refused_rows_are_spoken_of_once_but_always_if_all_are(receiver: Receiver) -> None:
    receiver.judge = refuses_bad_rows
    batches = [rows(1, BAD), rows(2, BAD), rows(3), rows(BAD)]
    with warnings.catch_warnings(record=True) as said, job(receiver) as run:
        warnings.simplefilter("always")
        for batch in batches:
            run.deliver(batch)
    counts = re.compile(r"HTTP_REJECTED.*rejected (\d+) of the (\d+) rows of batch (\d+), for example: HTTP 422 ")
    assert [counts.findall(str(each.message)) for each in said] == [[("1", "2", "0")], [("1", "1", "3")]]


# What cannot be


def test_trouble_that_does_not_pass_fails_the_batch(receiver: Receiver) -> None:
    receiver.judge = lambda _: Fault(status=500, body=b"tide is out")
    with pytest.raises(RunError, match=r"SINK_GAVE_UP.*did not accept batch 0.*HTTP 500 tide is out"):
        job(receiver, retry_for="300ms").deliver(rows(*range(20)))


def test_stop_ends_the_waiting_for_an_answer(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_sending, "FIRST_WAIT_S", 60.0)
    receiver.judge = lambda _: Fault(status=503)
    run = job(receiver)
    outlet, began = run.start(), time.monotonic()
    outlet.is_stopping = lambda: time.monotonic() > began + 0.3
    with pytest.raises(StoppedWaitingError):
        run.deliver(rows(1))
    assert time.monotonic() < began + 10


def test_requests_that_wait_are_spoken_of(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_sending, "SAID_AFTER_S", 0.0)
    receiver.faults.extend([Fault(status=503)] * 6)
    words = r"SINK_WAITING.*output `results` is unavailable: HTTP 503.*retrying for 20s"
    with pytest.warns(SinkWarning, match=words) as said, job(receiver) as run:
        run.deliver(rows(1))
    assert len(said) == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirection_is_not_followed(receiver: Receiver, status: int) -> None:
    receiver.faults.append(Fault(status=status, headers=(("Location", "https://elsewhere/rows?token=1"),)))
    with pytest.raises(RunError, match=rf"HTTP_REDIRECT.*status {status} and the address https://elsewhere/rows\?…;"):
        job(receiver).deliver(rows(1))
    assert len(receiver.seen) == 1


def test_credentials_that_are_refused_stop_the_job_and_nothing_is_shown(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "Bearer tide-table")
    receiver.judge = lambda _: Fault(status=401, body=b"tide-table is no token, nor is Bearer tide-table")
    run = job(receiver, headers={"Authorization": secret("TOKEN")})
    with pytest.raises(RunError, match=r"HTTP_DENIED.*status 401: … is no token, nor is …;.*correct the") as denied:
        run.deliver(rows(1))
    assert receiver.seen[0].headers["Authorization"] == "Bearer tide-table"
    assert "tide-table" not in f"{denied.value} {run!r} {run.sink} {pickle.dumps(run.sink)!r}"


def test_what_fails_for_good_is_said_before_what_may_pass(receiver: Receiver) -> None:
    receiver.judge = lambda seen: Fault(status=seen.body["orders"], wait_s=0.3)
    with pytest.raises(RunError, match="HTTP_DENIED"):
        job(receiver, key=None, concurrency=3, retry_for="0s").deliver(rows(500, 401, 503))
    assert len(receiver.seen) == 3


def test_secret_is_not_shown_in_letters(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "tide-table")
    receiver.judge = lambda _: Fault(status=400, body=b"who is tide-table?")
    with job(receiver, headers={"X-Api-Key": secret("TOKEN")}) as run:
        run.deliver(rows(1))
    assert letters(run)["message"].to_list() == ["HTTP 400 who is …?"]


def test_path_of_a_webhook_is_shown_nowhere(receiver: Receiver) -> None:
    receiver.judge = lambda seen: Fault(status=404, body=f"no {seen.path}".encode())
    sink = http(f"{receiver.url}/T0/tide-table", key="user", rejected=memory())
    with SinkHarness(sink=sink, schema=SCHEMA) as run, pytest.warns(SinkWarning, match="HTTP_REJECTED") as said:
        run.deliver(rows(1))
    assert letters(run)["message"].to_list() == ["HTTP 404 no /results/T0/…"]
    assert "tide-table" not in f"{sink} {sink!r} {said[0].message}"


def test_secret_that_is_no_header_is_not_shown(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "tide\r\ntable")
    with pytest.raises(RunError, match=r"HTTP_HEADER_VALUE.*`X-Api-Key` in secret TOKEN") as failed:
        job(receiver, headers={"X-Api-Key": secret("TOKEN")}).start()
    assert "tide" not in str(failed.value)


def test_receiver_that_is_not_there_is_said(receiver: Receiver) -> None:
    receiver.kill()
    with pytest.raises(RunError, match=r"SINK_UNREACHABLE.*http POST http://localhost:\d+/results.*refused"):
        job(receiver).start()
    with pytest.raises(RunError, match=r"SINK_UNREACHABLE.*cannot connect to http .* for output `results`: "):
        SinkHarness(sink=http("http://no-such-host.invalid", rejected=memory()), schema=SCHEMA).start()


def test_receiver_that_goes_away_is_said(receiver: Receiver) -> None:
    run = job(receiver, retry_for="100ms")
    run.start()
    receiver.kill()
    with pytest.raises(RunError, match=r"SINK_GAVE_UP.*cannot connect: .*refused"):
        run.deliver(rows(1))


def test_tls_is_spoken_and_the_certificate_checked(tmp_path: Path, needs: Needs) -> None:
    needs(shutil.which("openssl"), "the certificate is made with openssl")
    key, certificate = tmp_path / "key.pem", tmp_path / "ca.pem"
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
    )
    subprocess.run([*command.split(), "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    receiver = Receiver(context=context)
    receiver.start()
    try:
        with job(receiver, ca=certificate) as run:
            run.deliver(rows(1))
        with pytest.raises(RunError, match=r"SINK_UNREACHABLE.*certificate is not trusted .*give its root as `ca`"):
            job(receiver).start()
        other = http(receiver.url.replace("localhost", "127.0.0.1"), rejected=memory(), ca=certificate)
        with pytest.raises(RunError, match=r"SINK_UNREACHABLE.*IP address mismatch"):
            SinkHarness(sink=other, schema=SCHEMA).start()
    finally:
        receiver.kill()
    assert taken(receiver) == [1]


def test_key_that_the_output_does_not_have_is_an_error(receiver: Receiver) -> None:
    with pytest.raises(DefinitionError, match=r"HTTP_COLUMN.*no column `usr` \(did you mean `user`\?\)"):
        job(receiver, key="usr").start()


def test_missing_client_says_what_to_install(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "urllib3", None)
    with pytest.raises(RunError, match=r"HTTP_CLIENT_MISSING.*pip install 'slackwater\[http\]'"):
        job(receiver).start()


@pytest.mark.parametrize(
    "url, options, words",
    [
        ("https://ann:hush@host/", {}, r"without credentials; got https://…@host/; write headers="),
        ("ftp://host/", {}, "https://host/path; got 'ftp://host/'"),
        ("https:///path", {}, "https://host/path"),
        ("https://host/#top", {}, "https://host/path"),
        ("https://host:port/", {}, "an invalid URL"),
        ("https://höst/", {}, "in ASCII"),
        (7, {}, "in ASCII; got int"),
        ("http://host/", {"ca": "ca.pem"}, "write https:// for TLS"),
        ("http://host/?token=hush", {}, r"without credentials; got http://host/\?…; write headers="),
        ("http://host/?a=1&API_Key=hush", {}, "without credentials"),
        ("http://host/?access%5Ftoken=hush", {}, "without credentials"),
        ("ftp://host/?a=hush", {}, r"https://host/path; got 'ftp://host/\?…'"),
        ("http://host/", {"rejected": None}, "a sink for rejected rows; got None; write, for example,"),
        ("http://host/", {"method": "GET"}, "one of POST, PUT, PATCH; got 'GET'"),
        ("http://host/", {"concurrency": 0}, "a whole number from 1 to 64; got 0"),
        ("http://host/", {"concurrency": 65}, "a whole number from 1 to 64; got 65"),
        ("http://host/", {"batch_rows": True}, "a whole number from 1 to 10000; got True"),
        ("http://host/", {"key": ["user", "user"]}, "distinct names"),
        ("http://host/", {"delivery": "twice"}, "one of exactly_once"),
        ("http://host/", {"headers": [("a", "b")]}, "a dictionary of names and values; got list"),
        ("http://host/", {"headers": {"Idempotency-Key": "1"}}, "the sink does not set itself; got 'Idempotency-Key'"),
        ("http://host/", {"headers": {"a b": "1"}}, "got 'a b'"),
        ("http://host/", {"headers": {"X-A": "hush\r\n"}}, "an invalid value for 'X-A'"),
    ],
)
def test_definition_that_cannot_be_right_is_refused(url: Any, options: dict[str, Any], words: str) -> None:  # noqa: ANN401
    with pytest.raises(DefinitionError, match=rf"SINK_OPTION.*of the HTTP sink must be.*{words}") as refused_as:
        http(url, **{"rejected": memory()} | options)
    assert "hush" not in str(refused_as.value)


@pytest.mark.parametrize("name", ["Authorization", "X-Auth-Token", "x-api-key", "Client-Secret"])
def test_credentials_must_be_secrets(name: str) -> None:
    with pytest.raises(DefinitionError, match=rf"SECRET_EXPECTED.*`headers\['{name}'\]`"):
        http("http://host/", rejected=memory(), headers={name: "Bearer hush"})


def test_what_follows_the_question_mark_is_not_shown() -> None:
    sink = http("http://host/rows?k=hush", rejected=memory())
    assert "hush" not in f"{sink} {sink!r}"


def test_sink_has_the_place_of_its_refused_rows(tmp_path: Path) -> None:
    sink = http("http://host/rows?x=1", rejected=files(tmp_path))
    assert sink.place == str(tmp_path)
    assert str(sink) == f"http POST http://host/rows?… (refused rows to files {tmp_path} (Parquet))"
    slot = Slot(pipeline="test", output="results", schema=SCHEMA)
    assert http_module._rejected_slot(slot) == replace(slot, output="results.rejected", schema=DEAD_LETTER_SCHEMA)
