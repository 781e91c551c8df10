"""`docs/reference/python.md`, made from signatures and docstrings: `python -m tests.docs.reference_page` writes it."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import slackwater as sw
from slackwater.observe.checker import Finding, Findings
from slackwater.plan import streams
from slackwater.spark.handle import RunningJob
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "reference" / "python.md"

_HEAD = """\
# Python reference

Every public name, with its signature. `import slackwater as sw`. Durations are strings (`"30s"`, `"1h30m"`) or
`timedelta`; schemas are Spark DDL strings or mappings of names to Polars types; expressions are column names, SQL
strings or Polars expressions. The commands are on the [command line](command-line.md) page.
(`python -m tests.docs.reference_page` generates this page; a test checks that it is current.)
"""

_STREAM = (
    *("decode", "event_time", "ingestion_time", "processing_time", "where", "with_columns", "select", "map"),
    *("lookup", "join_table", "validate", "union", "attach", "key_by", "versions", "to"),
)
_KEYED = ("deduplicate", "join", "join_as_of", "match", "process")
_PATTERNS = ("sequence", "times", "absent", "step")
_STATE = ("value_state", "list_state", "map_state", "set_state", "side_output")
_TRIGGERS = ("after_watermark", "after_count", "every", "every_event_time", "any_of", "never")
_WINDOWS = ("tumbling", "hopping", "cumulative", "calendar", "sliding", "session", "count_window", "global_window")
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
_OWN = {"Source", "Reading", "TaskFacts", "Chunk", "Format", "Decoder", "Decoded", "Flaw", "Lookup", "LookupClient"}
_OWN |= {"Question"}
"""What users write classes of their own with: each has a section with all its methods."""
_SHORT = 40
"""Characters of a default that is shown."""
_WIDTH = 100
"""Characters of a line of a signature: what the site shows without scrolling."""


def page() -> str:
    """Return the page as it should be."""
    parts = [_HEAD]
    parts += _section(
        "Streams",
        _entry("sw.stream", sw.stream),
        *(_entry(f"stream.{name}", getattr(streams.Stream, name)) for name in _STREAM),
        _entry("stream.dead_letters", streams.Stream.dead_letters),
        _entry("keyed.window", streams.KeyedStream.window),
        _entry("windowed.aggregate", streams.WindowedStream.aggregate),
        _entry("windowed.join", streams.WindowedStream.join),
        *(_entry(f"keyed.{name}", getattr(streams.KeyedStream, name)) for name in _KEYED),
        _entry("results.late", streams.Results.late),
        _entry("results.output", streams.Results.output),
        _entry("results.final", streams.WindowResults.final),
        _entry("deduplicated.duplicates", streams.Deduplicated.duplicates),
        _entry("output.to", streams.Output.to),
        _entry("output.drop", streams.Output.drop),
    )
    parts += _section("Windows", *(_entry(f"sw.{name}", getattr(sw, name)) for name in _WINDOWS))
    parts += _section("Triggers", *(_entry(f"sw.{name}", getattr(sw, name)) for name in _TRIGGERS))
    parts += _section(
        "Aggregates",
        *(_entry(f"sw.{name}", getattr(sw, name)) for name in _AGGREGATES),
        _type("sw.Accumulator", sw.Accumulator),
        *_class("sw.Aggregate", sw.Aggregate, "aggregate"),
    )
    parts += _section("Patterns", *(_entry(f"sw.{name}", getattr(sw, name)) for name in _PATTERNS))
    parts += _section(
        "State and timers",
        _type("sw.Process", sw.Process),
        *_members("process", sw.Process),
        _type("sw.Context", sw.Context),
        *_members("ctx", sw.Context),
        *(_entry(f"sw.{name}", getattr(sw, name)) for name in _STATE),
        _type("sw.FrameProcess", sw.FrameProcess),
        *_members("process", sw.FrameProcess),
        *_class("sw.FrameContext", sw.FrameContext, "ctx"),
    )
    parts += _section("Where the engines disagree", _type("sw.Semantics", sw.Semantics), *_fields(sw.Semantics))
    parts += _section(
        "Pipelines",
        _entry("sw.Pipeline", sw.Pipeline),
        _entry("pipeline.explain", sw.Pipeline.explain),
        _entry("pipeline.svg", sw.Pipeline.svg),
        _entry("pipeline.check", sw.Pipeline.check),
        *_class("Findings", Findings, "findings"),
        *_class("Finding", Finding, "finding"),
        _entry("pipeline.run", sw.Pipeline.run),
        _entry("pipeline.start", sw.Pipeline.start),
        *_members("job", RunningJob),
        _entry("sw.duration", sw.duration),
        _type("sw.FOREVER", type(sw.FOREVER)),
        _entry("sw.secret", sw.secret),
        _entry("sw.table", sw.table),
    )
    for title, module, prefix in (
        ("Sources", sw.sources, "sw.sources"),
        ("Kafka's TLS and SASL", sw.kafka, "sw.kafka"),
        ("Formats", sw.formats, "sw.formats"),
        ("Lookups", sw.lookups, "sw.lookups"),
        ("Sinks", sw.sinks, "sw.sinks"),
    ):
        names = [name for name in module.__all__ if name.islower()]
        parts += _section(title, *(_entry(f"{prefix}.{name}", getattr(module, name)) for name in sorted(names)))
        if module is not sw.sinks:
            types = sorted(set(module.__all__) - set(names) - _OWN)
            parts += [_type(f"{prefix}.{name}", getattr(module, name)) for name in types]
    parts += [_type("sw.sinks.MemorySink", sw.sinks.MemorySink), *_members("memory", sw.sinks.MemorySink, "rows")]
    parts += _section(
        "Your own window",
        _type("sw.windows.AlignedWindow", sw.windows.AlignedWindow),
        *_members("window", sw.windows.AlignedWindow, "bounds", "windows_of"),
    )
    parts += _section(
        "Your own source",
        *_class("sw.sources.Source", sw.sources.Source, "source"),
        _entry("source.__str__", sw.sources.Source.__str__),
        *_class("sw.sources.Reading", sw.sources.Reading, "reading"),
        *_class("sw.sources.TaskFacts", sw.sources.TaskFacts, "task"),
        *_class("sw.sources.Chunk", sw.sources.Chunk, "chunk"),
    )
    parts += _section(
        "Your own format",
        *_class("sw.formats.Format", sw.formats.Format, "format"),
        _entry("format.__str__", sw.formats.Format.__str__),
        *_class("sw.formats.Decoder", sw.formats.Decoder, "decoder"),
        *_class("sw.formats.Decoded", sw.formats.Decoded, "decoded"),
        *_class("sw.formats.Flaw", sw.formats.Flaw, "flaw"),
    )
    parts += _section(
        "Your own lookup store",
        *_class("sw.lookups.Lookup", sw.lookups.Lookup, "lookup"),
        _entry("lookup.__str__", sw.lookups.Lookup.__str__),
        *_class("sw.lookups.LookupClient", sw.lookups.LookupClient, "client"),
        *_class("sw.lookups.Question", sw.lookups.Question, "question"),
    )
    parts += _section(
        "Your own sink",
        *_class("sw.sinks.Sink", sw.sinks.Sink, "sink"),
        _entry("sink.__str__", sw.sinks.Sink.__str__),
        *_class("sw.sinks.SinkWriter", sw.sinks.SinkWriter, "sink_writer"),
        *_class("sw.sinks.Slot", sw.sinks.Slot, "slot"),
        *_class("sw.sinks.Identity", sw.sinks.Identity, "identity"),
        *_class("sw.sinks.SinkBatch", sw.sinks.SinkBatch, "sink_batch"),
        *_class("sw.sinks.Mark", sw.sinks.Mark, "mark"),
        *_class("sw.sinks.Trial", sw.sinks.Trial, "trial"),
        _type("sw.sinks.Unavailable", sw.sinks.Unavailable),
        _type("sw.sinks.StoppedWaitingError", sw.sinks.StoppedWaitingError),
        _type("sw.sinks.DamagedMarkError", sw.sinks.DamagedMarkError),
    )
    parts += _section(
        "Testing",
        _entry("sw.testing.run", sw.testing.run),
        *_class("sw.testing.Outcome", sw.testing.Outcome, "outcome"),
        _entry("sw.testing.rows_source", sw.testing.rows_source),
        _entry("sw.testing.Harness", sw.testing.Harness),
        *_members("harness", sw.testing.Harness),
        *_class("sw.testing.SinkHarness", sw.testing.SinkHarness, "job"),
    )
    parts += _section(
        "Writing a log",
        _entry("sw.LogWriter", sw.LogWriter),
        *_members("writer", sw.LogWriter),
    )
    errors = (sw.SlackwaterError, sw.DefinitionError, sw.RunError)
    parts += _section("Errors", *(_type(f"sw.{error.__name__}", error) for error in errors))
    return "\n".join(parts)


def covered() -> set[str]:
    """Return the public names that the page speaks of."""
    text = page()
    return {name for name in public() if f"### `sw.{name}" in text or f"`sw.{name}." in text}


def public() -> set[str]:
    """Return the public names of `sw` and of its modules: "tumbling", "sinks.files"."""
    modules = ("sources", "sinks", "formats", "kafka", "lookups", "testing")
    return {*sw.__all__, *(f"{module}.{name}" for module in modules for name in getattr(sw, module).__all__)}


def _section(title: str, *entries: str) -> list[str]:
    return [f"## {title}\n", *entries]


def _entry(name: str, thing: Any) -> str:  # noqa: ANN401  functions, classes and properties
    if isinstance(thing, property):
        return f"### `{name}`\n{_words(thing)}\n"
    return f"### `{name}`\n```\n{_call(name, _signature(thing))}\n```\n{_words(thing)}\n"


def _class(name: str, thing: type, called: str) -> list[str]:
    """Return the entries of a class, its fields and its members."""
    return [_type(name, thing), *_fields(thing), *_members(called, thing)]


def _members(called: str, thing: type, *names: str) -> list[str]:
    """Return the entries of a class's methods and properties; of all that are its own, unless some are named."""
    fields = {field.name for field in dataclasses.fields(thing)} if dataclasses.is_dataclass(thing) else set()
    own = [name for name in vars(thing) if not name.startswith("_") and name not in fields]
    own = [name for name in own if callable(getattr(thing, name)) or isinstance(vars(thing)[name], property)]
    return [_entry(f"{called}.{name}", getattr(thing, name)) for name in names or own]


def _type(name: str, thing: type) -> str:
    return f"### `{name}`\n{_words(thing)}\n"


def _fields(definition: type) -> list[str]:
    """Return the attributes of the class and the fields as a list; the words about one are the string below it."""
    [body] = [node.body for node in ast.parse(inspect.getsource(definition)).body if isinstance(node, ast.ClassDef)]
    said = {
        field.target.id: " ".join(str(below.value.value).split())
        for field, below in pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
    }
    fields = {field.name: field for field in dataclasses.fields(definition)} if _is_record(definition) else {}
    own = {
        each.target.id: each for each in body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }
    shown = {name: _field(fields[name]) if name in fields else _attribute(own[name]) for name in {**own, **fields}}
    lines = [
        f"- `{text}`" + (f": {said[name]}" if name in said else "")
        for name, text in shown.items()
        if not name.startswith("_")
    ]
    return ["\n".join(_wrapped(line) for line in lines) + "\n"] if lines else []


def _is_record(definition: type) -> bool:
    return dataclasses.is_dataclass(definition)


def _attribute(written: ast.AnnAssign) -> str:
    """Return an attribute of a class by its default, or by its type where it has none that is short."""
    assert isinstance(written.target, ast.Name)
    value = "" if written.value is None else ast.unparse(written.value).replace("'", '"')
    if value and len(value) < _SHORT:
        return f"{written.target.id}={value}"
    kind = ast.unparse(written.annotation)
    return f"{written.target.id}: {kind.removeprefix('ClassVar[').removesuffix(']') if 'ClassVar' in kind else kind}"


def _wrapped(item: str) -> str:
    """Return an item of a list in lines of the page's width."""
    return textwrap.fill(item, width=118, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _field(field: dataclasses.Field[Any]) -> str:
    """Return a field by its default, or by its type where it has none that can be shown."""
    if field.default is dataclasses.MISSING or callable(field.default):
        return f"{field.name}: {field.type}"
    if isinstance(field.default, frozenset):
        return f"{field.name}={{{', '.join(map(_quoted, sorted(field.default)))}}}"
    return f"{field.name}={_quoted(field.default)}"


def _signature(thing: Callable[..., Any]) -> str:
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for name, parameter in inspect.signature(thing).parameters.items()
        if name != "self"
    ]
    return str(inspect.Signature(parameters)).replace("'", '"')


def _call(name: str, signature: str) -> str:
    """Return a call; one that is too long for a line has its parameters in lines of their own."""
    if len(call := f"{name}{signature}") <= _WIDTH:
        return call
    inside = signature.removeprefix("(").removesuffix(")")
    indent = " " * 4
    lines = textwrap.wrap(
        inside, _WIDTH, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join([f"{name}(", *lines, ")"])


def _quoted(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _words(thing: Any) -> str:  # noqa: ANN401
    return inspect.getdoc(thing) or ""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
