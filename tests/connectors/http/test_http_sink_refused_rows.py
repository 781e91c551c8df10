"""Rows that the receiver of the HTTP sink refuses: each is kept once, and spoken of."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import warnings
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from slackwater.base.errors import DefinitionError, RunError
from slackwater.formats.dead_letter_columns import DEAD_LETTER_SCHEMA
from slackwater.sinks import files
from tests.connectors.http.deliveries import BAD, job, letters, refuses_bad_rows, rows, taken
from tests.connectors.http.receiver import Fault, Receiver

pytestmark = pytest.mark.filterwarnings(r"ignore:\[HTTP_REJECTED\]")


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
    copy = replace(run, token="copy", marked=[0], _open_slot=None)  # noqa: S106  not a secret
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
from slackwater.connectors.http.sink import http
from slackwater.operators.identity import Identity
from slackwater.testing import SinkHarness
from tests.connectors.http.deliveries import SCHEMA, rows
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
