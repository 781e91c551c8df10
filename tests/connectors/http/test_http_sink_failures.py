"""What stops the HTTP sink: troubles that last, and answers that end the job; and no message shows a secret."""

from __future__ import annotations

import pickle
import ssl
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from slackwater.base.errors import DefinitionError, RunError
from slackwater.base.secrets import secret
from slackwater.connectors.delivery import SinkWarning, StoppedWaitingError
from slackwater.connectors.http.sink import http
from slackwater.connectors.http.sink import sending as http_sending
from slackwater.connectors.memory.sink import memory
from slackwater.testing import SinkHarness
from tests.connectors.http.deliveries import SCHEMA, job, letters, rows, taken
from tests.connectors.http.receiver import Fault, Receiver

pytestmark = pytest.mark.filterwarnings(r"ignore:\[HTTP_REJECTED\]")


def test_trouble_that_does_not_pass_fails_the_batch(receiver: Receiver) -> None:
    receiver.judge = lambda _: Fault(status=500, body=b"tide is out")
    with pytest.raises(RunError, match=r"SINK_GAVE_UP.*did not accept batch 0.*HTTP 500 tide is out"):
        job(receiver, retry_for="300ms").deliver(rows(*range(20)))


def test_stop_ends_the_waiting_for_an_answer(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_sending, "BACKOFF", replace(http_sending.BACKOFF, first_s=60.0, longest_s=60.0))
    receiver.judge = lambda _: Fault(status=503)
    run = job(receiver)
    open_slot, began = run.start(), time.monotonic()
    open_slot.is_stopping = lambda: time.monotonic() > began + 0.3
    with pytest.raises(StoppedWaitingError):
        run.deliver(rows(1))
    assert time.monotonic() < began + 10


def test_requests_that_wait_are_spoken_of(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_sending, "REPORTED_AFTER_S", 0.0)
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


def test_what_fails_for_good_is_reported_before_what_may_pass(receiver: Receiver) -> None:
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


def test_receiver_that_is_not_there_is_reported(receiver: Receiver) -> None:
    receiver.kill()
    with pytest.raises(RunError, match=r"SINK_UNREACHABLE.*http POST http://localhost:\d+/results.*refused"):
        job(receiver).start()
    with pytest.raises(RunError, match=r"SINK_UNREACHABLE.*cannot connect to http .* for output `results`: "):
        SinkHarness(sink=http("http://no-such-host.invalid", rejected=memory()), schema=SCHEMA).start()


def test_receiver_that_goes_away_is_reported(receiver: Receiver) -> None:
    run = job(receiver, retry_for="100ms")
    run.start()
    receiver.kill()
    with pytest.raises(RunError, match=r"SINK_GAVE_UP.*cannot connect: .*refused"):
        run.deliver(rows(1))


def test_tls_is_spoken_and_the_certificate_checked(tls: tuple[ssl.SSLContext, Path]) -> None:
    context, certificate = tls
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
