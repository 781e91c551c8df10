"""Sending dead letters to a log: each record once, with a crash after every step of the protocol."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner, Result

from slackwater.base.errors import SlackwaterError
from slackwater.connectors.log.listing import list_log
from slackwater.connectors.log.writing import LogWriter
from slackwater.tools.cli.dead_letters import dead_letters
from slackwater.tools.dead_letters import retry as protocol
from slackwater.tools.dead_letters import targets
from slackwater.tools.dead_letters.ledger import Ledger, open_ledger, read_ledger
from slackwater.tools.dead_letters.places import Folder
from slackwater.tools.dead_letters.reading import scan_letters
from slackwater.tools.dead_letters.to_log import RetriesToLog, _Publication
from tests.tools.dead_letters.letters import deliver, letters

PAYLOADS = [f'{{"id": {number}'.encode() for number in range(7)]


class Crash(BaseException):
    """The process dies here: nothing that would catch an error is run."""


@pytest.fixture(autouse=True)
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a log with two records, and letters of seven others in two partitions and batches."""
    monkeypatch.chdir(tmp_path)
    with LogWriter("log") as writer:
        writer.append(b"good", "phones")
        writer.append(b"better", "phones")
    deliver(Path("dead"), letters(PAYLOADS[:4]), letters(PAYLOADS[4:], hour=1, partition="web", reason="wrong_type"))


def retry(*arguments: str) -> Result:
    command = ["retry", "dead", "--to", "log", "--yes", *arguments]
    return CliRunner().invoke(dead_letters, command, catch_exceptions=False)


def records() -> dict[str, list[bytes]]:
    """Return what the log holds, by partition, and check that offsets have no holes."""
    found: dict[str, list[bytes]] = {}
    for file in list_log("log"):
        lines = found.setdefault(file.partition, [])
        assert int(Path(file.path).stem) == len(lines)
        lines.extend(Path(file.path).read_bytes().splitlines())
    return found


def ids() -> list[str]:
    return scan_letters(Folder(path=Path("dead"))).collect()["id"].to_list()


ALL = {"phones": [b"good", b"better", *PAYLOADS[:4]], "web": PAYLOADS[4:]}


def test_records_go_back_to_their_partitions_once() -> None:
    done = retry()
    assert done.exit_code == 0
    assert f"sent 7 records to {Path('log').absolute()}; recorded in" in done.stdout
    assert records() == ALL
    again = retry()
    assert (again.exit_code, again.stdout) == (0, "7 already sent\nnothing to send\n")
    assert records() == ALL
    assert list(Path("log").rglob(".*")) == [], "nothing is left besides the records"


def test_partition_of_a_topic_becomes_one_folder_unless_the_log_has_it() -> None:
    target = RetriesToLog(folder=Path("log"))
    Path("log/eu/3").mkdir(parents=True)
    found = [target.facts("b", pl.DataFrame({"partition": [name]}))["partition"] for name in ("orders/0", "eu/3", "7")]
    assert found == ["orders-0", "eu/3", "7"]


def test_list_and_show_say_when_a_letter_was_retried() -> None:
    retry("--reason", "wrong_type")
    said = CliRunner().invoke(dead_letters, ["list", "dead"]).stdout
    rows = [line for line in said.splitlines() if "orders.decode" in line]
    assert [line.count(":") for line in rows] == [2] * 4 + [4] * 3, "those that were sent have a second time"
    shown = [CliRunner().invoke(dead_letters, ["show", "dead", each]).stdout for each in ids()]
    assert ["retried         no" in each for each in shown] == [True] * 4 + [False] * 3


def test_filters_choose_what_is_sent() -> None:
    assert retry("--reason", "wrong_type").exit_code == 0
    assert records() == {"phones": [b"good", b"better"], "web": PAYLOADS[4:]}
    assert retry("--since", "2026-03-01T12:30").stdout == "3 already sent\nnothing to send\n"
    retry("--source", "*")
    assert records() == ALL


def test_dry_run_leaves_no_trace() -> None:
    done = retry("--dry-run")
    assert (done.exit_code, "would send 7 records" in done.stdout) == (0, True)
    assert records() == {"phones": [b"good", b"better"]}
    assert not Path("dead/_retried.jsonl").exists()


def test_nothing_is_sent_unless_the_user_says_so() -> None:
    command = ["retry", "dead", "--to", "log"]
    assert CliRunner().invoke(dead_letters, command, input="n\n").exit_code == 1
    assert records() == {"phones": [b"good", b"better"]}
    assert CliRunner().invoke(dead_letters, command, input="y\n").exit_code == 0
    assert records() == ALL


def test_ledger_says_which_letters_went_where_and_when() -> None:
    retry("--reason", "wrong_type")
    intent, end = (json.loads(line) for line in Path("dead/_retried.jsonl").read_text().splitlines())
    assert intent["ids"] == ids()[4:]
    assert (intent["to"], intent["partition"]) == (str(Path("log").absolute()), "web")
    assert intent["batch"] == end["batch"]
    assert (end["state"], end["offset"], end["records"]) == ("sent", 0, 3)
    assert intent["at"] <= end["at"]


def test_many_letters_go_in_several_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "_BATCH_ROWS", 2)
    retry()
    assert records() == ALL
    assert len(list_log("log")) == 1 + 2 + 2
    monkeypatch.setattr(targets, "_BATCH_ROWS", 100)
    monkeypatch.setattr(targets, "_BATCH_BYTES", 5)
    deliver(Path("more"), letters([b"123", b"456", b"7"], partition="more"))
    CliRunner().invoke(dead_letters, ["retry", "more", "--to", "log", "--yes"], catch_exceptions=False)
    assert records()["more"] == [b"123", b"456", b"7"]
    assert len(list(Path("log/more").iterdir())) == 2


def test_record_with_several_letters_is_sent_once() -> None:
    twice = pl.concat([letters([b"a", b"b"], step="x.one"), letters([b"a", b"b"], step="x.two")])
    deliver(Path("twice"), pl.concat([twice, letters([b"a"], step="x.two")]))
    done = CliRunner().invoke(dead_letters, ["retry", "twice", "--to", "log", "--step", "x.two", "--yes"])
    assert "1 skipped: another letter of the same record is sent\n" in done.stdout
    assert records()["phones"] == [b"good", b"better", b"a", b"b"]
    assert "4 already sent" not in done.stdout
    again = CliRunner().invoke(dead_letters, ["retry", "twice", "--to", "log", "--yes"])
    assert again.stdout == "5 already sent\nnothing to send\n"


def then_crash(call: Callable[..., Any]) -> Callable[..., Any]:
    def wrapped(*arguments: Any, **options: Any) -> None:  # noqa: ANN401
        call(*arguments, **options)
        raise Crash

    return wrapped


def half_a_line(ledger: Ledger, entry: Any) -> None:  # noqa: ANN401
    ledger._file.write(json.dumps(entry).encode()[:-5])
    ledger._file.flush()
    raise Crash


def half_a_file(publication: _Publication, prepared: Path, content: bytes) -> None:
    prepared.write_bytes(content[:-3])
    raise Crash


CRASHES: dict[str, tuple[object, str, Callable[..., Any]]] = {
    "after 1": (protocol, "settle_open", then_crash(protocol.settle_open)),
    "after 2": (protocol, "plan_retry", then_crash(protocol.plan_retry)),
    "within 3": (Ledger, "_append", half_a_line),
    "after 3": (Ledger, "intend", then_crash(Ledger.intend)),
    "within 4, the file half written": (_Publication, "prepare", half_a_file),
    "within 4, the file written": (_Publication, "prepare", then_crash(_Publication.prepare)),
    "within 4, the file linked": (os, "link", then_crash(os.link)),
    "after 4": (RetriesToLog, "publish", then_crash(RetriesToLog.publish)),
    "after 5": (Ledger, "settle", then_crash(Ledger.settle)),
    "after 5, tidied up": (RetriesToLog, "tidy", then_crash(RetriesToLog.tidy)),
}


def crash(monkeypatch: pytest.MonkeyPatch, point: str, *arguments: str) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(*CRASHES[point])
        with pytest.raises(Crash):
            retry(*arguments)


@pytest.mark.parametrize("point", CRASHES)
@pytest.mark.parametrize("times", [1, 2])
def test_crash_neither_loses_nor_doubles_a_record(monkeypatch: pytest.MonkeyPatch, point: str, times: int) -> None:
    for _ in range(times):
        crash(monkeypatch, point)
    with LogWriter("log") as other:  # it clears up what dead writers left, but not what a retry still needs
        other.append(b"between", "phones")
    assert retry().exit_code == 0
    found = records()
    assert sorted(found["phones"]) == sorted([*ALL["phones"], b"between"])
    assert found["web"] == PAYLOADS[4:]
    assert not list(Path("log").rglob(".retry-*"))
    book = read_ledger(Path("dead/_retried.jsonl"))
    assert sorted(book.retried["id"]) == sorted(ids())
    assert book.open == ()
    assert retry().stdout == "7 already sent\nnothing to send\n"


def test_letter_of_a_retry_that_was_cut_off_is_unsettled_until_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    crash(monkeypatch, "after 4", "--reason", "wrong_type")
    assert CliRunner().invoke(dead_letters, ["list", "dead"]).stdout.count("unsettled") == 3
    assert "unsettled: a retry was interrupted" in CliRunner().invoke(dead_letters, ["show", "dead", ids()[4]]).stdout
    assert "3 already sent\nwould send 4 records" in retry("--dry-run").stdout
    retry("--reason", "nothing of the kind")
    assert CliRunner().invoke(dead_letters, ["list", "dead"]).stdout.count("unsettled") == 0


def test_writer_that_takes_the_offset_first_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    prepare = _Publication.prepare

    def overtaken(publication: _Publication, prepared: Path, content: bytes) -> None:
        prepare(publication, prepared, content)
        with LogWriter("log") as other:
            other.append(b"faster", publication.folder.name)
            other.append(b"fastest", publication.folder.name)

    monkeypatch.setattr(_Publication, "prepare", overtaken)
    assert retry().exit_code == 0
    theirs = [b"faster", b"fastest"]
    assert records() == {"phones": [b"good", b"better", *theirs, *PAYLOADS[:4]], "web": [*theirs, *PAYLOADS[4:]]}
    times = [file.modified_ms for file in list_log("log") if file.partition == "phones"]
    assert times == sorted(set(times)), "Spark takes files by time: none may be older than the one before"


def test_log_that_went_away_before_it_could_be_asked_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    crash(monkeypatch, "after 4")
    Path("log").rename("away")
    Path("new").mkdir()
    with pytest.raises(SlackwaterError, match=r"\[RETRY_UNSURE\].* does not exist; find out, then add the line"):
        retry("--to", "new")
    Path("away").rename("log")
    assert retry("--to", "new").exit_code == 0
    assert records()["phones"] == ALL["phones"], "what was in the log already is not sent to the new one"
    assert sorted(path.name for path in Path("new").iterdir()) == ["web"]


def test_place_without_letters_is_reported_and_stays_as_it_was() -> None:
    with pytest.raises(SlackwaterError, match=r"\[DEAD_LETTERS_NOWHERE\].*typo` is not a folder"):
        CliRunner().invoke(dead_letters, ["retry", "typo", "--to", "log", "--yes"], catch_exceptions=False)
    assert not Path("typo").exists()


def test_one_retry_at_a_time() -> None:
    with (
        open_ledger(Path("dead/_retried.jsonl").absolute()),
        pytest.raises(SlackwaterError, match=r"\[RETRY_BUSY\] .*_retried.jsonl; wait until it finishes"),
    ):
        retry()


@pytest.mark.parametrize("line", ["{", "[]", '{"batch": "a", "state": "sent"}', '{"batch": "a", "state": "intent"}'])
def test_ledger_that_was_not_written_here_is_a_fault(line: str) -> None:
    Path("dead/_retried.jsonl").write_text(line + "\n")
    with pytest.raises(SlackwaterError, match=r"\[RETRY_LEDGER\].*; line 1 of .* is b'.*; restore the file"):
        retry()


def test_ledger_may_be_elsewhere() -> None:
    retry("--ledger", "notes/mine.jsonl")
    assert not Path("dead/_retried.jsonl").exists()
    assert retry("--ledger", "notes/mine.jsonl").stdout == "7 already sent\nnothing to send\n"


@pytest.mark.parametrize(
    "to, words",
    [
        ("nowhere", "is not a folder; give the log that the pipeline reads"),
        ("dead", "is the folder of a files sink; give"),
        ("typed", "is a log of Parquet files; give"),
    ],
)
def test_target_that_is_no_log_of_lines_is_refused(to: str, words: str) -> None:
    with LogWriter("typed", format="parquet") as writer:
        writer.append({"id": 1})
    for more in ([], ["--dry-run"]):
        with pytest.raises(SlackwaterError, match="RETRY_TARGET") as caught:
            retry("--to", to, *more)
        assert words in str(caught.value)


def test_file_system_without_links_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    with monkeypatch.context() as patched:
        patched.setattr(os, "link", no_links)
        with pytest.raises(SlackwaterError, match=r"\[RETRY_LINKS\].*has none: Operation not permitted; copy the log"):
            retry()
    retry()
    assert records() == ALL


def test_letters_that_a_line_cannot_hold_are_left_and_reported() -> None:
    deliver(
        Path("odd"),
        letters([None, b"a\nb", b"a\r", b"fine"]),
        letters([b"x"], partition="../../etc"),
        letters([b"root"], partition=""),
    )
    odd = scan_letters(Folder(path=Path("odd"))).collect()["id"].to_list()
    done = CliRunner().invoke(dead_letters, ["retry", "odd", "--to", "log", "--yes"])
    assert done.exit_code == 1
    assert "4 cannot be sent:\n" in done.stdout
    assert f"  {odd[0]}: a log line cannot hold a record without a payload\n" in done.stdout
    assert f"  {odd[1]}: a log line cannot hold a newline; remove it with --repair" in done.stdout
    assert f"  {odd[2]}: a log line cannot hold a carriage return at its end" in done.stdout
    assert f"  {odd[4]}: a log cannot have a partition `../../etc`" in done.stdout
    assert records()["phones"][2:] == [b"fine"]
    assert records()[""] == [b"root"]


def test_results_of_a_step_are_not_sent_as_records() -> None:
    results = letters([b'{"user": "ada"}'], partition="unique/000012", source="unique", step="unique")
    deliver(Path("results"), results)
    before = records()
    command = ["retry", "results", "--to", "log", "--yes", "--step", "unique"]
    done = CliRunner().invoke(dead_letters, command, catch_exceptions=False)
    assert records() == before
    assert "it is a result of step `unique`, not a record of a source" in done.output
