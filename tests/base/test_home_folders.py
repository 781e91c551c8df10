"""`~` in a path that a user gives is their home, wherever a path may be given."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import polars as pl
import pytest
import typer
from typer.testing import CliRunner

import slackwater as sw
from slackwater.base.errors import RunError
from slackwater.base.folders import given_path
from slackwater.connectors.mqtt.definition import mqtt_bridge
from slackwater.spark.options import RunOptions
from slackwater.spark.start import make_job
from slackwater.testing import SinkHarness
from slackwater.tools.cli.main import app
from slackwater.tools.cli.options import at_home
from slackwater.tools.dead_letters.places import where_of
from slackwater.tools.dead_letters.repair import load_repair
from slackwater.tools.lateness import measure_log


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir("/")
    return tmp_path


PLACES: dict[str, Callable[[str], Any]] = {
    "log": lambda path: sw.sources.log(path).path,
    "files": lambda path: sw.sinks.files(path).path,
    "delta sink": lambda path: sw.sinks.delta(path).path,
    "delta source": lambda path: sw.sources.delta(path, schema="id long").path,
    "kafka": lambda path: sw.kafka.tls(ca=path, certificate=path, key=path).ca,
    "kafka's key": lambda path: sw.kafka.tls(ca=path, certificate=path, key=path).key,
    "redis": lambda path: sw.sinks.redis("rediss://h", key="{id}", ca=path).ca,
    "http": lambda path: sw.sinks.http("https://h/", ca=path, rejected=sw.sinks.files("/no")).ca,
    "secret": lambda path: sw.secret("S", file=path).file,
    "dead letters": lambda path: where_of(path, what="dead letters").path,  # type: ignore[union-attr]  # a folder
    "bridge": lambda path: mqtt_bridge("h:1883", ["t"], path).to,
    "bridge's authority": lambda path: mqtt_bridge("h:1883", ["t"], "/log", tls_ca=path).tls_ca,
}


@pytest.mark.parametrize("place", PLACES)
def test_path_of_a_definition_is_in_the_home_of_its_user(home: Path, place: str) -> None:
    assert str(PLACES[place]("~/x")) == f"{home}/x"


def test_path_may_be_a_path(home: Path) -> None:
    assert sw.sources.log(Path("~/x")).path == f"{home}/x"


@pytest.mark.parametrize("path", ["/data/~/x", "./~/x", "~nobody-of-that-name/x", "file:///~/x"])
def test_other_tildes_stay(home: Path, path: str) -> None:
    assert sw.sources.log(path).path == os.path.abspath(path.removeprefix("file://"))  # noqa: PTH100  to compare
    assert not sw.sources.log(path).path.startswith(str(home))


def test_log_is_written_measured_and_its_schema_read_at_home(home: Path) -> None:
    with sw.LogWriter("~/log", format="parquet") as log:
        log.append({"id": 1, "ts": 5}, partition="0")
    assert [path.name for path in (home / "log").iterdir()] == ["0"]
    assert list(sw.sources.log("~/log", format="parquet").typed or ()) == ["id", "ts"]
    assert measure_log("~/log", time="ts").streams[0].events == 1


def test_files_of_a_sink_are_read_at_home(home: Path) -> None:
    schema = pl.Schema({"id": pl.Int64()})
    run = SinkHarness(sink=sw.sinks.files("~/out"), schema=schema)
    run.deliver(pl.DataFrame({"id": [1]}, schema=schema))
    run.close()
    assert sw.sinks.read_files("~/out").collect()["id"].to_list() == [1]
    assert (home / "out").is_dir()


def test_checkpoint_is_at_home(home: Path) -> None:
    (home / "checkpoint" / "offsets").mkdir(parents=True)
    rows = sw.stream("rows", sw.testing.rows_source("id long"))
    plan = sw.Pipeline("p", rows.to(sw.sinks.memory()), rows.dead_letters.drop()).plan()
    with pytest.raises(RunError, match=f"CHECKPOINT_FOREIGN.*`{home}/checkpoint`"):
        make_job(plan, RunOptions(checkpoint="~/checkpoint"))


def test_schemas_and_repairs_are_files_at_home(home: Path) -> None:
    (home / "a.avsc").write_text('{"type": "record", "name": "A", "fields": [{"name": "id", "type": "long"}]}')
    sw.formats.avro(Path("~/a.avsc"))
    (home / "fix.py").write_text("def fix(payload, letter):\n    return payload\n")
    assert load_repair("~/fix.py:fix")(b"x", {}) == b"x"


def paths_of(commands: typer.Typer) -> Iterator[tuple[str, Any]]:
    """Yield the parameters of commands, and of those below them, that are paths: their names, and what Typer knows."""
    for command in commands.registered_commands:
        assert command.callback is not None
        for name, hint in get_type_hints(command.callback, include_extras=True).items():
            if get_origin(hint) is Annotated and Path in (get_args(hint)[0], *get_args(get_args(hint)[0])):
                yield f"{command.callback.__name__} {name}", get_args(hint)[1]
    for group in commands.registered_groups:
        assert group.typer_instance is not None
        yield from paths_of(group.typer_instance)


def test_every_path_of_the_command_line_is_taken_as_its_user_means_it(home: Path) -> None:
    found = dict(paths_of(app))
    assert len(found) >= 14
    for name, parameter in found.items():
        assert parameter.callback is not None, name
        assert parameter.callback(Path("~/x")) == home / "x", name


def test_command_takes_a_path_of_its_users_home(home: Path) -> None:
    (home / "a.ddl").write_text("id long")
    ran = CliRunner().invoke(app, ["schema", "check", "~/a.ddl", "~/a.ddl"])
    assert ran.output.startswith("full: ")


def test_path_that_is_not_given_stays_so() -> None:
    assert at_home(None) is None
    assert given_path("data") == Path("data")
