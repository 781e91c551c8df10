"""Code as users write it, good and bad."""

from __future__ import annotations

import random
import subprocess
import time
import urllib.parse
import urllib.request
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from os import environ
from pathlib import Path
from random import Random
from typing import Any

import polars as pl

import slackwater as sw

HOSTS = Path("/etc/hosts")
LIMIT = float(environ.get("LIMIT", "7"))
"""Read when the file is loaded, before any event: that is the right time."""


def restless_map(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(k=pl.lit(str(uuid.uuid4())))


def sleepy_map(frame: pl.DataFrame) -> pl.DataFrame:
    time.sleep(1)
    return frame


def reading_map(frame: pl.DataFrame) -> pl.DataFrame:
    for _ in range(frame.height):
        with open("/etc/hosts") as file:  # noqa: PTH123  as many write it
            file.read()
    return frame


def calm_map(frame: pl.DataFrame) -> pl.DataFrame:
    """Name things that look bad, and are not."""
    with open("/etc/hosts") as file:  # noqa: PTH123  once for a whole frame
        seed = len(file.read())
    dice = Random(seed)  # the same every time
    quoted = urllib.parse.quote("a b")
    ident = uuid.uuid5(uuid.NAMESPACE_URL, quoted)
    then = datetime.fromisoformat("2026-03-01T12:00:00+00:00")
    return frame.with_columns(v=pl.lit(LIMIT + dice.random()), k=pl.lit(f"{ident} {then}"))


def importing_map(frame: pl.DataFrame) -> pl.DataFrame:
    from time import sleep as wait

    import requests  # type: ignore[import-untyped, unused-ignore]

    wait(1)
    return pl.DataFrame(requests.get("http://example.org", timeout=1).json())


def nested_map(frame: pl.DataFrame) -> pl.DataFrame:
    def inner() -> str:
        return environ["HOME"]

    return frame.with_columns(k=pl.lit("".join(inner() for _ in range(1))))


@dataclass(frozen=True)
class Point:
    """Has a `__hash__` that Python wrote, and that calls `hash`."""

    x: float


class Store:
    def fetch(self, key: str) -> bytes:
        return HOSTS.read_bytes() + key.encode()


class Honest(sw.Process):
    last = sw.value_state(pl.Float64, ttl="1h")

    def __init__(self) -> None:
        self.started = time.time()  # where the pipeline is built

    def on_event(self, event: dict[str, Any], ctx: sw.Context) -> Iterator[dict[str, Any]]:
        yield {"v": Point(event["v"]).x + ctx.event_time.timestamp()}


class Restless(sw.Process):
    last = sw.value_state(pl.Float64, ttl="1h")

    def on_event(self, event: dict[str, Any], ctx: sw.Context) -> Iterator[dict[str, Any]]:
        yield {"v": datetime.now().timestamp() + self._seed()}  # noqa: DTZ005  as many write it

    def _seed(self) -> float:
        return random.random()


class Fetching(sw.Process):
    last = sw.value_state(pl.Float64, ttl="1h")

    def __init__(self) -> None:
        self.store = Store()

    def on_event(self, event: dict[str, Any], ctx: sw.Context) -> Iterator[dict[str, Any]]:
        yield {"v": float(len(self.store.fetch(event["k"])))}


class Impatient(sw.Accumulator):
    output = pl.Float64

    def create(self) -> float:
        return 0.0

    def add(self, acc: float, value: float) -> float:
        with urllib.request.urlopen("http://example.org") as page:
            return acc + value + len(page.read())

    def merge(self, a: float, b: float) -> float:
        return a + b + subprocess.call(["true"])

    def result(self, acc: float) -> float:
        return acc


class RestlessFrames(sw.FrameProcess):
    state = "n long"
    ttl = "1h"

    def on_rows(
        self, rows: pl.DataFrame, state: pl.DataFrame, ctx: sw.FrameContext
    ) -> tuple[pl.DataFrame | None, pl.DataFrame]:
        return rows.with_columns(v=pl.lit(hash("a"))), state
