"""Looking at dead letters: `slackwater dead-letters list`, `show` and `stats`."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import polars as pl
import pytest
from typer.testing import CliRunner

from slackwater.base.errors import SlackwaterError
from slackwater.tools.cli.dead_letters import dead_letters
from slackwater.tools.dead_letters.places import Folder
from slackwater.tools.dead_letters.reading import scan_letters
from slackwater.tools.dead_letters.selecting import since_time
from tests.tools.dead_letters.letters import deliver, headers, letters

ORDER = b'{"id": 7, "price": 1e400, "price": 3, "tags": ["a", {}, []]}'


def run(*arguments: object) -> str:
    done = CliRunner().invoke(dead_letters, [str(each) for each in arguments], catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def words(said: str) -> list[list[str]]:
    """Return the cells of a table's rows."""
    return [re.split(r"\s{2,}", line.strip()) for line in said.splitlines() if line.strip() and "─" not in line]


@pytest.fixture(params=["parquet", "json"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Give a folder of two batches: noon and one o'clock."""
    form: Literal["parquet", "json"] = request.param
    first = letters(
        [ORDER, b"\xff\x00order"], key=pl.Series([b"k", b"\xff"]), headers=headers([("h", b"1"), ("h", None)], [])
    )
    second = letters(
        [b"a \x1b[31mred", None, b""],
        hour=1,
        first=10,
        reason=pl.Series(["wrong_type", "malformed", "empty_record"]),
        step="orders.check",
        message="field `id`:\nno number",
        source="/data/orders/web/0.jsonl",
        partition="web",
    )
    return deliver(tmp_path / "dead", first, second, format=form)


def ids(folder: Path) -> list[str]:
    return scan_letters(Folder(path=folder)).collect()["id"].to_list()


def test_list_shows_the_newest_last_with_their_ids(folder: Path) -> None:
    head, *rows = words(run("list", folder))
    assert head == ["id", "processed at", "retried", "partition", "offset", "step", "reason", "message"]
    assert [row[0] for row in rows] == [letter[:10] for letter in ids(folder)]
    assert rows[0][1:] == ["2026-03-01 12:00:00", "phones", "0", "orders.decode", "malformed", "broken off"]
    assert rows[-1][1:] == [
        "2026-03-01 13:00:00",
        "web",
        "12",
        "orders.check",
        "empty_record",
        "field `id`: no number",
    ]


def test_ids_do_not_depend_on_the_format(tmp_path: Path) -> None:
    rows = letters([b"a", b"b", None])
    as_parquet, as_json = deliver(tmp_path / "p", rows), deliver(tmp_path / "j", rows, format="json")
    assert ids(as_parquet) == ids(as_json)
    assert len(set(ids(as_parquet))) == 3
    assert ids(as_parquet)[0] == "2c01ddbf33634164", "an id is forever: it stands in ledgers"


def test_letters_of_one_place_in_different_batches_have_different_ids(tmp_path: Path) -> None:
    folder = deliver(tmp_path, letters([b"a"]), letters([b"a"], hour=1))
    assert len(set(ids(folder))) == 2, "a streaming DataFrame counts its rows anew in every batch"


def test_files_come_back_with_all_their_bytes(folder: Path) -> None:
    first, second, *_, last = scan_letters(Folder(path=folder)).collect().rows(named=True)
    assert (first["payload"], first["key"]) == (ORDER, b"k")
    assert first["headers"] == [{"name": "h", "value": b"1"}, {"name": "h", "value": None}]
    assert (second["payload"], second["key"], second["headers"]) == (b"\xff\x00order", b"\xff", [])
    assert (last["payload"], last["key"], last["headers"]) == (b"", None, None)


@pytest.mark.parametrize(
    "arguments, offsets",
    [
        (["--reason", "malformed"], ["0", "1", "11"]),
        (["--step", "orders.check"], ["10", "11", "12"]),
        (["--source", "*/phones/?.jsonl"], ["0", "1"]),
        (["--source", "*/phones"], []),
        (["--since", "2026-03-01T12:30"], ["10", "11", "12"]),
        (["--since", "2026-03-01T13:00:00+01:00", "--reason", "malformed"], ["0", "1", "11"]),
        (["--limit", "2"], ["11", "12"]),
    ],
)
def test_filters_choose_letters(folder: Path, arguments: list[str], offsets: list[str]) -> None:
    said = run("list", folder, *arguments)
    assert re.findall(r"(?:phones|web) +(\d+) ", said) == offsets
    assert ("no matching dead letters" in said) == (not offsets)
    assert ("the newest 2 of 5" in said) == ("--limit" in arguments)


def test_show_lays_out_json_as_it_was_written(folder: Path) -> None:
    said = run("show", folder, ids(folder)[0])
    for line in ("reason          malformed", "offset          0", "key             k", "  h: 1", "  h: none"):
        assert f"{line}\n" in said
    lines = [
        "{",
        '  "id": 7,',
        '  "price": 1e400,',
        '  "price": 3,',
        '  "tags": [',
        '    "a",',
        "    {},",
        "    []",
        "  ]",
        "}",
    ]
    layout = "\n  ".join(lines)
    assert said.endswith(f"payload         60 bytes, JSON\n  {layout}\n")


def test_show_dumps_bytes_that_are_no_text(folder: Path) -> None:
    said = run("show", folder, ids(folder)[1][:6])
    assert "key             0xff\nheaders         0\n" in said
    assert "  00000000  ff 00 6f 72 64 65 72" in said
    assert said.endswith("  ..order\n")


def test_show_never_sends_control_characters_to_the_terminal(folder: Path) -> None:
    said = run("show", folder, ids(folder)[2].upper())
    assert "a \\x1b[31mred" in said
    assert "message         field `id`:\\nno number\n" in said
    assert "\x1b" not in said + run("list", folder) + run("stats", folder)


def test_show_tells_no_payload_from_an_empty_one(folder: Path) -> None:
    assert run("show", folder, ids(folder)[3]).endswith("payload         none\n")
    assert run("show", folder, ids(folder)[4]).endswith("payload         0 bytes\n")


@pytest.mark.parametrize(
    "by, groups",
    [
        ("reason", ["malformed", "empty_record", "wrong_type"]),
        ("step", ["orders.check", "orders.decode"]),
        ("source", ["/data/orders/web/0.jsonl", "/data/orders/phones/0.jsonl"]),
        ("hour", ["2026-03-01 12:00:00", "2026-03-01 13:00:00"]),
    ],
)
def test_stats_count_by_what_is_asked(folder: Path, by: str, groups: list[str]) -> None:
    head, *rows, total = words(run("stats", folder, "--by", by))
    assert head == [by, "letters", "share", "first", "last", "for example"]
    assert [row[0] for row in rows] == groups
    assert sum(int(row[1]) for row in rows) == 5
    assert total[0].startswith("5 dead letters in ")


def test_stats_say_share_times_and_an_example(folder: Path) -> None:
    _, row, *_ = words(run("stats", folder))
    assert row == ["malformed", "3", "60.0%", "2026-03-01 12:00:00", "2026-03-01 13:00:00", "broken off"]


def test_output_without_letters_so_far_is_no_mistake(tmp_path: Path) -> None:
    folder = deliver(tmp_path / "dead")
    assert run("list", folder) == run("stats", folder) == f"no matching dead letters in {folder}\n"


def test_batch_that_is_still_being_written_is_not_seen(folder: Path) -> None:
    (folder / "batch-000000000001").rename(folder / ".batch-000000000001")
    assert len(ids(folder)) == 2


def test_letters_of_a_time_before_keys_and_headers_are_read(tmp_path: Path) -> None:
    (tmp_path / "batch-000000000000").mkdir()
    letters([b"a"]).drop("key", "headers").write_parquet(tmp_path / "batch-000000000000" / "part-00000.parquet")
    [row] = scan_letters(Folder(path=tmp_path)).collect().rows(named=True)
    assert (row["payload"], row["key"], row["headers"]) == (b"a", None, None)


def write_part(folder: Path, frame: pl.DataFrame) -> None:
    (folder / "batch-000000000000").mkdir()
    frame.write_parquet(folder / "batch-000000000000" / "part-00000.parquet")


@pytest.mark.parametrize(
    "arguments, code, words",
    [
        (["list", "nowhere"], "DEAD_LETTERS_NOWHERE", "is not a folder; give the folder of"),
        (["stats", "empty"], "DEAD_LETTERS_NOWHERE", "is a folder without batches; give"),
        (["list", "results"], "DEAD_LETTERS_SCHEMA", "lacks payload, source, "),
        (["list", "other"], "DEAD_LETTERS_SCHEMA", "has other types: payload is String; give"),
        (["list", "broken"], "DEAD_LETTERS_SCHEMA", "is not readable: "),
        (["list", "lines"], "DEAD_LETTER_JSON", "line 1 of "),
        (["list", "good", "--since", "noon"], "DEAD_LETTERS_SINCE", "got 'noon'; times are in UTC"),
        (["show", "good", "zz"], "DEAD_LETTER_UNKNOWN", "has none that starts with `zz`; list the ids"),
        (["show", "good", " "], "DEAD_LETTER_UNKNOWN", "list the ids"),
        (["show", "many", "a"], "DEAD_LETTER_AMBIGUOUS", " more; give more digits"),
        (["list", "kafka://localhost:9092"], "DEAD_LETTERS_TOPIC", "got 'kafka://localhost:9092'; try kafka://"),
        (["list", "kafka://a:1/b/c"], "DEAD_LETTERS_TOPIC", "WHERE on Kafka must be written as kafka://SERVERS/TOPIC"),
        (["list", "kafka://host/b"], "KAFKA_SERVERS", "got 'host'"),
        (["list", "s3://bucket/x"], "FOLDER_REMOTE", "s3://bucket/x"),
    ],
)
def test_mistake_is_reported_with_its_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: str, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("empty", "results", "other", "broken", "lines"):
        Path(name).mkdir()
    write_part(Path("results"), pl.DataFrame({"user": ["ada"]}))
    write_part(Path("other"), letters([b"a"]).with_columns(pl.col("payload").cast(pl.String)))
    write_part(Path("broken"), pl.DataFrame())
    Path("broken/batch-000000000000/part-00000.parquet").write_bytes(b"nothing")
    Path("lines/batch-000000000000").mkdir()
    Path("lines/batch-000000000000/part-00000.jsonl").write_text('{"user": "ada"}\n')
    deliver(Path("good"), letters([b"a"]))
    deliver(Path("many"), letters([b"a"] * 200))
    with pytest.raises(SlackwaterError) as caught:
        CliRunner().invoke(dead_letters, arguments, catch_exceptions=False)
    assert caught.value.code == code
    assert words in str(caught.value)


def test_since_may_say_how_long_ago() -> None:
    now = datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert since_time("1h30m", now=now) == datetime(2026, 3, 1, 10, 30, tzinfo=UTC)
    assert since_time("2026-03-01") == datetime(2026, 3, 1, tzinfo=UTC)
