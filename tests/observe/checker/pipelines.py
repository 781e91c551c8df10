"""Pipelines that the checker has nothing to say about, and the parts to break them with."""

# ruff: noqa: ANN401  options are handed on

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl

import slackwater as sw
from slackwater.connectors.sink import Sink
from slackwater.connectors.source import Source
from slackwater.observe.checker import Facts, check_plan
from slackwater.plan.streams import Deduplicated, Ended, KeyedStream, Results, Stream

SCHEMA = "k string, v double, t timestamp"


def decoded(source: Source | None = None) -> Stream:
    """Return a stream without a time."""
    return sw.stream("rows", source or sw.sources.log("/data/rows")).decode(sw.formats.json(SCHEMA))


def rows(name: str = "rows", source: Source | None = None, **options: Any) -> Stream:
    """Return a stream as it should be."""
    stream = sw.stream(name, source or sw.sources.log(f"/data/{name}")).decode(sw.formats.json(SCHEMA))
    return stream.event_time("t", **{"max_ahead": "1m", "out_of_orderness": "10s", **options})


def files(name: str) -> Sink:
    return sw.sinks.files(f"/out/{name}")


def kept(stream: Stream) -> Ended:
    """Return a stream's dead letters, kept."""
    return stream.dead_letters.to(files(f"{stream.name}.dead"))


def piped(*streams: Stream, results: Results, late: bool = True, to: Sink | None = None, **options: Any) -> sw.Pipeline:
    """Return a pipeline of one step, all of whose outputs are kept."""
    ends = [results.to(to or files("results")), *map(kept, streams)]
    if late:
        ends.append(results.late.to(files("late")))
    if isinstance(results, Deduplicated):
        ends.append(results.duplicates.drop())
    return sw.Pipeline("p", *ends, **options)


def windowed(stream: Stream | None = None, window: Any = None, lateness: str = "1m", **options: Any) -> sw.Pipeline:
    """Return a pipeline of one window; with `computes`, of these aggregates."""
    stream = stream or rows()
    computes = options.pop("computes", None) or {"n": sw.count()}
    keyed = stream.key_by("k").window(window or sw.tumbling("1m"), allowed_lateness=lateness, name="w")
    return piped(stream, results=keyed.aggregate(**computes), **options)


def stepped(step: Callable[[KeyedStream], Results], *, late: bool = True) -> sw.Pipeline:
    """Return a pipeline of the step that `step` makes of a keyed stream."""
    stream = rows()
    return piped(stream, results=step(stream.key_by("k")), late=late)


def joined(step: Callable[[KeyedStream, KeyedStream], Results]) -> sw.Pipeline:
    """Return a pipeline of a join."""
    left, right = rows("left"), rows("right")
    results = step(left.key_by("k"), right.key_by("k"))
    return piped(left, right, results=results)


def mapped(function: Callable[[pl.DataFrame], pl.DataFrame]) -> sw.Pipeline:
    """Return a pipeline of a map function."""
    stream = rows().map(function, output=SCHEMA)
    return sw.Pipeline("p", stream.to(files("rows")), kept(stream))


def processed(process: sw.Process | sw.FrameProcess) -> sw.Pipeline:
    """Return a pipeline of a user's own process."""
    return stepped(lambda keyed: keyed.process(process, output="v double", name="own"), late=False)


def chained(lateness: str) -> sw.Pipeline:
    """Return a pipeline of two windows; the second waits for the first."""
    stream = rows()
    first = (
        stream.key_by("k")
        .window(sw.tumbling("1m"), allowed_lateness=lateness, accumulation="discarding", name="minutes")
        .aggregate(n=sw.count())
    )
    second = first.key_by("k").window(sw.tumbling("1h"), name="hours").aggregate(m=sw.sum("n"))
    late = [first.late.to(files("first.late")), second.late.to(files("second.late"))]
    return sw.Pipeline("p", second.to(files("hours")), *late, kept(stream))


def dropping(what: str) -> sw.Pipeline:
    """Return a pipeline of a window that drops its late rows or its dead letters."""
    stream = rows()
    results = stream.key_by("k").window(sw.tumbling("1m"), name="w").aggregate(n=sw.count())
    late = results.late.drop() if what == "late" else results.late.to(files("late"))
    dead = stream.dead_letters.drop() if what == "dead letters" else kept(stream)
    return sw.Pipeline("p", results.to(files("results")), late, dead)


def passing(source: Source) -> sw.Pipeline:
    """Return a pipeline that passes the rows of a typed source on."""
    stream = sw.stream("rows", source)
    return sw.Pipeline("p", stream.to(files("rows")), kept(stream))


def codes(pipeline: sw.Pipeline, **facts: Any) -> list[str]:
    """Return the codes of what is found, accepted or not."""
    return [finding.code for finding in check_plan(pipeline.plan(), facts=Facts(**facts)).all]


def said(pipeline: sw.Pipeline, code: str, **facts: Any) -> list[str]:
    """Return what is found under one code, with where."""
    found = check_plan(pipeline.plan(), facts=Facts(**facts)).all
    return [f"{finding.where}: {finding.what}" for finding in found if finding.code == code]
