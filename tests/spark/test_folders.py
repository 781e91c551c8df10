"""Folders that a pipeline reads and writes lie apart, however they are spelt; else it is refused when it is built."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import slackwater as sw
from slackwater.base.errors import DefinitionError, RunError
from slackwater.base.folders import plain_path
from slackwater.connectors.sink import Sink
from slackwater.spark.folders import check_folders


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "out").mkdir()
    (tmp_path / "log").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "out")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def build(rows: Sink, dead: Sink, log: str = "log") -> sw.Pipeline:
    orders = sw.stream("orders", sw.sources.log(log)).decode(sw.formats.json("id long"))
    return sw.Pipeline("p", orders.to(rows), orders.dead_letters.to(dead))


def test_path_is_shown_without_the_way_back_unless_a_link_makes_it_another_place(home: Path) -> None:
    (home / "out" / "deep").mkdir()
    (home / "deep").symlink_to(home / "out" / "deep")
    assert plain_path("log/../out") == home / "out"
    assert plain_path("nowhere/../out") == home / "out"
    assert plain_path("link") == home / "link", "a link stays what it is called"
    assert plain_path("deep/../x") == home / "deep" / ".." / "x", "which is in `out`"


@pytest.mark.parametrize(
    "spelt", ["out", "./out/", "zz/../out", "link", "{home}/out", "file://{home}/out", "file:{home}/out"]
)
def test_one_folder_for_two_outputs_is_refused_however_it_is_spelt(home: Path, spelt: str) -> None:
    with pytest.raises(
        DefinitionError, match=r"SINK_SHARED.*for both `orders.rows` and `orders.dead_letters`; choose another target"
    ):
        build(sw.sinks.files("out"), sw.sinks.files(spelt.format(home=home)))


@pytest.mark.parametrize("sink", [sw.sinks.files, sw.sinks.delta])
@pytest.mark.parametrize("inner", ["out/dead", "link/dead", "out/a/../dead"])
def test_output_inside_another_one_is_refused(home: Path, inner: str, sink: Callable[[str], Sink]) -> None:
    words = r"FOLDERS_NESTED.*dead` of output `orders\.{}` is inside `{}/out` of output `orders\.{}`; choose another"
    with pytest.raises(DefinitionError, match=words.format("dead_letters", home, "rows")):
        build(sw.sinks.files("out"), sink(inner))
    with pytest.raises(DefinitionError, match=words.format("rows", home, "dead_letters")):
        build(sink(inner), sw.sinks.files("out"))


@pytest.mark.parametrize(
    "dead, log, words",
    [
        ("log/dead", "log", r"`{}/log/dead` of output `orders\.dead_letters` is inside `{}/log` of stream `orders`"),
        ("dead", "link/log", r"`{}/link/log` of stream `orders` is inside `{}/out` of output `orders\.rows`;"),
        ("dead", "link", r"`{}/out` of output `orders\.rows` is the same folder as `{}/link` of stream"),
    ],
)
def test_output_and_log_inside_one_another_or_in_one_folder_are_refused(
    home: Path, dead: str, log: str, words: str
) -> None:
    with pytest.raises(DefinitionError, match="FOLDERS_NESTED.*" + words.format(home, home)):
        build(sw.sinks.files("out"), sw.sinks.files(dead), log=log)


def test_rejected_rows_of_an_http_sink_count_as_well(home: Path) -> None:
    rejected = sw.sinks.http("https://host/rows", rejected=sw.sinks.files("out/refused"))
    with pytest.raises(DefinitionError, match="FOLDERS_NESTED"):
        build(sw.sinks.files(home / "out"), rejected)


def test_folders_beside_one_another_are_fine_and_so_are_names_that_begin_alike(home: Path) -> None:
    assert build(sw.sinks.files("out/rows"), sw.sinks.files("out/rows-dead"), log=str(home / "out" / "log")).name == "p"


class Executors:
    """A cluster whose executors see what this process sees."""

    master, defaultParallelism = "spark://host:7077", 2  # noqa: N815  Spark's name

    def parallelize(self, numbers: Iterable[int], _: int) -> Executors:
        self.numbers = numbers
        return self

    def map(self, look: Callable[[int], bool]) -> Executors:
        self.numbers = [look(number) for number in self.numbers]
        return self

    def collect(self) -> list[object]:
        return list(self.numbers)


def test_lookups_need_a_checkpoint_that_executors_can_write_to(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fetch(key: int) -> dict[str, str]:
        return {"name": str(key)}

    orders = sw.stream("orders", sw.sources.log("log")).decode(sw.formats.json("id long"))
    named = orders.lookup(sw.lookups.function(fetch), key="id", output="name string")
    plain, looked = (
        sw.Pipeline("p", stream.to(sw.sinks.memory()), stream.dead_letters.drop()).plan() for stream in (orders, named)
    )
    cluster: Any = Executors()
    check_folders(looked, home, cluster)
    monkeypatch.setattr(os, "access", lambda _, mode: not mode & os.W_OK)
    check_folders(plain, home, cluster)
    with pytest.raises(RunError, match=f"CHECKPOINT_READ_ONLY.*cannot write to `{home}`"):
        check_folders(looked, home, cluster)
