"""Repairing dead letters by a user's function on their way back."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from slackwater.base.errors import SlackwaterError
from slackwater.connectors.log.listing import list_log
from slackwater.tools.cli.dead_letters import dead_letters
from slackwater.tools.dead_letters.places import Folder
from slackwater.tools.dead_letters.reading import scan_letters
from tests.tools.dead_letters.letters import deliver, letters

REPAIR = """
import json

LIMIT = 5

def mend(payload, letter):
    assert sorted(letter) == sorted(
        "id payload key headers source partition offset ingestion_time step reason message processed_at".split()
    )
    if letter["offset"] == 1:
        raise ValueError("beyond repair")
    if letter["offset"] == 2:
        return payload.decode()
    if letter["offset"] == 3:
        return None
    return payload + b"}"

def silent(payload, letter):
    raise KeyError

def marked(payload, letter):
    return b"none" if letter["payload"] is None else payload + b"!"
"""


@pytest.fixture(autouse=True)
def dead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write five broken records and a repair for them."""
    monkeypatch.chdir(tmp_path)
    Path("log").mkdir()
    Path("mend.py").write_text(REPAIR)
    deliver(Path("dead"), letters([f'{{"id": {number}'.encode() for number in range(5)]))


def retry(*arguments: str) -> Result:
    command = ["retry", "dead", "--to", "log", "--yes", *arguments]
    return CliRunner().invoke(dead_letters, command, catch_exceptions=False)


def lines() -> list[bytes]:
    return [line for file in list_log("log") for line in Path(file.path).read_bytes().splitlines()]


def ids() -> list[str]:
    return scan_letters(Folder(path=Path("dead"))).collect()["id"].to_list()


def test_letter_that_cannot_be_repaired_is_left_and_the_others_go_on() -> None:
    done = retry("--repair", "mend.py:mend")
    assert done.exit_code == 1
    assert "1 skipped by the repair function\n2 cannot be sent:\n" in done.stdout
    assert f"  {ids()[1]}: the repair raised ValueError: beyond repair\n" in done.stdout
    words = "the repair returned str; it must return bytes, or None to skip the letter"
    assert f"  {ids()[2]}: {words}\n" in done.stdout
    assert lines() == [b'{"id": 0}', b'{"id": 4}']


def test_letters_that_were_left_can_be_sent_later() -> None:
    retry("--repair", "mend.py:mend")
    done = retry("--repair", "mend.py:marked")
    assert (done.exit_code, "2 already sent\n" in done.stdout) == (0, True)
    assert lines()[2:] == [b'{"id": 1!', b'{"id": 2!', b'{"id": 3!']


def test_dry_run_repairs_as_well() -> None:
    done = retry("--repair", "mend.py:mend", "--dry-run")
    assert done.exit_code == 1
    assert "beyond repair" in done.stdout
    assert "would send 2 records" in done.stdout
    assert lines() == []


def test_long_list_of_failures_is_cut() -> None:
    deliver(Path("many"), letters([b"x"] * 30))
    command = ["retry", "many", "--to", "log", "--yes", "--repair", "mend.py:silent"]
    said = CliRunner().invoke(dead_letters, command).stdout
    assert said.count("the repair raised KeyError\n") == 20
    assert "  … and 10 more\nnothing to send\n" in said


def test_letter_without_a_payload_can_be_repaired() -> None:
    deliver(Path("none"), letters([None, b""]))
    CliRunner().invoke(dead_letters, ["retry", "none", "--to", "log", "--yes", "--repair", "mend.py:marked"])
    assert lines() == [b"none", b"!"]


@pytest.mark.parametrize(
    "name, code, words",
    [
        ("mend.py", "REPAIR_NAME", "got 'mend.py'; try --repair repair.py:fix"),
        ("mend.py:", "REPAIR_NAME", "got 'mend.py:'"),
        (":mend", "REPAIR_NAME", "got ':mend'"),
        ("mend.py:mned", "REPAIR_MISSING", "mend.py has no function `mned` (did you mean `mend`?); define it"),
        ("mend.py:LIMIT", "REPAIR_MISSING", "has no function `LIMIT`"),
        ("nowhere.py:mend", "REPAIR_FILE", "failed: FileNotFoundError"),
        ("broken.py:mend", "REPAIR_FILE", "broken.py failed: line 2: ZeroDivisionError: division by zero; correct it"),
        ("syntax.py:mend", "REPAIR_FILE", "SyntaxError"),
    ],
)
def test_repair_that_is_not_there_is_reported_before_anything_is_sent(name: str, code: str, words: str) -> None:
    Path("broken.py").write_text("x = 1\ny = x / 0\n")
    Path("syntax.py").write_text("def mend(:\n")
    with pytest.raises(SlackwaterError) as caught:
        retry("--repair", name)
    assert caught.value.code == code
    assert words in str(caught.value)
    assert lines() == []
