"""What counts as code that changes or blocks, and what only looks like it."""

from __future__ import annotations

import random
import sqlite3
import threading
import time
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.observe.checker.pipelines import codes, mapped

Function = Callable[..., Any]
DICE, GENERATOR = random.Random(7), np.random.default_rng(7)
now = datetime.now
STOPPED, FILE = threading.Event(), Path("out")


def with_default(frame: pl.DataFrame, clock: Function = time.time) -> pl.DataFrame:
    return (frame, clock())[0]


def with_function(frame: pl.DataFrame, clock: Function) -> pl.DataFrame:
    return (frame, clock())[0]


def catching(frame: pl.DataFrame) -> pl.DataFrame:
    try:
        return frame
    except sqlite3.Error:
        return frame


def writing(frame: pl.DataFrame, file: Path | None = None) -> pl.DataFrame:
    for name in frame["k"]:
        (file or FILE).write_text("now")
        Path(name).write_text("now")
    return frame


CHANGING: dict[str, Function] = {
    "a generator that draws on from batch to batch": lambda frame: (frame, DICE.random())[0],
    "one of NumPy's": lambda frame: (frame, GENERATOR.normal())[0],
    "a generator without a seed": lambda frame: (frame, random.Random().random())[0],
    "one of NumPy's without a seed": lambda frame: (frame, np.random.default_rng().normal())[0],
    "another name of a clock": lambda frame: (frame, now())[0],
    "the time of day as text": lambda frame: (frame, time.strftime("%S"))[0],
    "the current time of a function of times": lambda frame: (frame, time.gmtime())[0],
    "a clock by number": lambda frame: (frame, time.clock_gettime(time.CLOCK_REALTIME))[0],
    "NumPy's clock": lambda frame: (frame, np.datetime64("now"))[0],
    "a default": with_default,
    "an argument": partial(with_function, clock=time.time),
    "a sample": lambda frame: frame.filter(pl.col("v") > 1).sample(fraction=0.5),
    "a column in random order": lambda frame: frame.with_columns(pl.col("v").shuffle()),
    "a series in random order": lambda frame: (frame, frame["v"].shuffle())[0],
}
BLOCKING: dict[str, Function] = {
    "files that are written row by row": writing,
    "a wait": lambda frame: (frame, threading.Event().wait(0))[0],
    "a wait for an event of the module": lambda frame: (frame, STOPPED.wait(0))[0],
    "a database": lambda frame: (frame, sqlite3.connect(":memory:"))[0],
}
HARMLESS: dict[str, Function] = {
    "a generator with a seed": lambda frame: (frame, random.Random(frame.height).random())[0],
    "one of NumPy's with a seed": lambda frame: (frame, np.random.default_rng(seed=frame.height).normal())[0],
    "a time from a column": lambda frame: (frame, time.mktime(time.gmtime(frame["t"].max())))[0],
    "a column's time as text": lambda frame: (frame, time.strftime("%S", time.gmtime(frame["t"].max())))[0],
    "a duration": lambda frame: (frame, time.perf_counter())[0],
    "a date": lambda frame: (frame, np.datetime64("2026-03-01"))[0],
    "a sample with a seed": lambda frame: frame.sample(fraction=0.5, seed=1),
    "an error of a database": catching,
    "an argument that is not a clock": partial(with_default, clock=dict),
}


@pytest.mark.parametrize("what", CHANGING)
def test_code_that_changes_is_found(what: str) -> None:
    assert codes(mapped(CHANGING[what])) == ["SW301"]


@pytest.mark.parametrize("what", BLOCKING)
def test_code_that_blocks_is_found(what: str) -> None:
    assert codes(mapped(BLOCKING[what])) == ["SW302"]


@pytest.mark.parametrize("what", HARMLESS)
def test_harmless_code_is_not_reported(what: str) -> None:
    assert codes(mapped(HARMLESS[what])) == []
