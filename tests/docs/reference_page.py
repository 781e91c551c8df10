"""`docs/reference.md`, made from signatures and docstrings: `python -m tests.docs.reference_page` writes it."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

import slackwater as sw
from slackwater import log_writer, streams
from slackwater.runtime.job import make_job, run_pipeline
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "reference.md"

_HEAD = """\
# Reference

Every public name, with its signature and what it does. `import slackwater as sw`. Durations are strings (`"30s"`,
`"1h30m"`) or `timedelta`; schemas are Spark DDL strings or mappings of names to Polars types; expressions are column
names, SQL strings or Polars expressions. (This page is written by `python -m tests.docs.reference_page`; a test checks
that it is current.)
"""

_STREAM = ("decode", "event_time", "ingestion_time", "processing_time", "where", "with_columns", "select", "map")
_TRIGGERS = ("after_watermark", "after_count", "every", "every_event_time", "any_of", "never")
_WINDOWS = ("tumbling", "hopping", "cumulative", "sliding", "session", "global_window")
_AGGREGATES = (
    "count",
    "count_distinct",
    "approx_distinct",
    "sum",
    "min",
    "max",
    "mean",
    "variance",
    "stddev",
    "first",
    "last",
    "ewma",
    "collect_list",
    "collect_set",
    "top",
    "quantile",
    "quantiles",
    "median",
    "accumulator",
)


def page() -> str:
    """Return the page as it should be."""
    parts = [_HEAD]
    parts += _section(
        "Streams",
        _entry("sw.stream", sw.stream),
        *(_entry(f"stream.{name}", getattr(streams.Stream, name)) for name in (*_STREAM, "validate", "key_by", "to")),
        _entry("stream.dead_letters", streams.Stream.dead_letters),
        _entry("keyed.window", streams.KeyedStream.window),
        _entry("windowed.aggregate", streams.WindowedStream.aggregate),
        _entry("results.late", streams.Results.late),
        _entry("output.to", streams.Output.to),
        _entry("output.drop", streams.Output.drop),
    )
    parts += _section("Windows", *(_entry(f"sw.{name}", getattr(sw, name)) for name in _WINDOWS))
    parts += _section("Triggers", *(_entry(f"sw.{name}", getattr(sw, name)) for name in _TRIGGERS))
    parts += _section(
        "Aggregates",
        *(_entry(f"sw.{name}", getattr(sw, name)) for name in _AGGREGATES),
        _type("sw.Accumulator", sw.Accumulator),
    )
    parts += _section("Where the engines disagree", _type("sw.Semantics", sw.Semantics), *_fields(sw.Semantics))
    parts += _section(
        "Pipelines",
        _entry("sw.Pipeline", sw.Pipeline),
        _entry("pipeline.explain", sw.Pipeline.explain),
        _run(),
        _entry("sw.duration", sw.duration),
        _entry("sw.secret", sw.secret),
    )
    for title, module, prefix in (
        ("Sources", sw.sources, "sw.sources"),
        ("Kafka's TLS and SASL", sw.kafka, "sw.kafka"),
        ("Formats", sw.formats, "sw.formats"),
        ("Sinks", sw.sinks, "sw.sinks"),
    ):
        names = [name for name in module.__all__ if name.islower()]
        parts += _section(title, *(_entry(f"{prefix}.{name}", getattr(module, name)) for name in sorted(names)))
    own = ("Sink", "SinkWriter", "SinkBatch")
    parts += [_type(f"sw.sinks.{name}", getattr(sw.sinks, name)) for name in own]
    harness = [name for name in vars(sw.testing.Harness) if not name.startswith("_")]
    parts += _section(
        "Testing",
        _entry("sw.testing.run", sw.testing.run),
        _entry("sw.testing.rows_source", sw.testing.rows_source),
        _entry("sw.testing.Harness", sw.testing.Harness),
        *(_entry(f"harness.{name}", vars(sw.testing.Harness)[name]) for name in harness),
    )
    writer = [name for name in vars(log_writer.LogWriter) if not name.startswith("_")]
    parts += _section(
        "Writing a log",
        _entry("slackwater.log_writer.LogWriter", log_writer.LogWriter),
        *(_entry(f"writer.{name}", vars(log_writer.LogWriter)[name]) for name in writer),
    )
    errors = (sw.SlackwaterError, sw.DefinitionError, sw.RunError)
    parts += _section("Errors", *(_type(f"sw.{error.__name__}", error) for error in errors))
    return "\n".join(parts)


def covered() -> set[str]:
    """Return the names of `sw` that the page speaks of."""
    text = page()
    return {name for name in sw.__all__ if f"### `sw.{name}" in text or f"`sw.{name}." in text}


def _section(title: str, *entries: str) -> list[str]:
    return [f"## {title}\n", *entries]


def _entry(name: str, thing: Any) -> str:  # noqa: ANN401  functions, classes and properties
    if isinstance(thing, property):
        return f"### `{name}`\n{_words(thing)}\n"
    return f"### `{name}{_signature(thing)}`\n{_words(thing)}\n"


def _run() -> str:
    """Return the entry of `Pipeline.run`, which hands its options on."""
    options = [name for name in inspect.signature(make_job).parameters if name not in {"plan", "clock_hook"}]
    defaults = inspect.signature(make_job).parameters
    said = ", ".join(f"{name}={_quoted(defaults[name].default)}" for name in options[1:])
    return f"### `pipeline.run(spark=None, *, {said})`\n{_words(run_pipeline)}\n"


def _type(name: str, thing: type) -> str:
    return f"### `{name}`\n{_words(thing)}\n"


def _fields(definition: type) -> list[str]:
    source = inspect.getsource(definition).splitlines()
    lines = []
    for field in dataclasses.fields(definition):
        at = next(number for number, line in enumerate(source) if line.strip().startswith(f"{field.name}:"))
        lines.append(f"- `{field.name}={_quoted(field.default)}`: {source[at + 1].strip().strip(chr(34))}")
    return ["\n".join(lines) + "\n"]


def _signature(thing: Callable[..., Any]) -> str:
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for name, parameter in inspect.signature(thing).parameters.items()
        if name != "self"
    ]
    return str(inspect.Signature(parameters)).replace("'", '"')


def _quoted(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _words(thing: Any) -> str:  # noqa: ANN401
    return inspect.getdoc(thing) or ""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
