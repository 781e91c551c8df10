"""Hints for calls that do not exist: misspelled ones, calls of another kind of stream, and calls of other engines."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, ClassVar, Final, NoReturn

from slackwater.base.errors import NoSuchCallError, refuse

_FOREIGN: Final = {
    call: written
    for calls, written in (
        ("filter", ".where(...)"),
        ("group_by groupBy groupby keyBy keyby partition_by partitionBy", ".key_by(...)"),
        ("withColumn with_column withColumns assign", '.with_columns(name="...")'),
        ("withColumnRenamed rename selectExpr select_expr", '.select("column", new="old")'),
        ("flatMap flat_map mapInPandas mapInArrow map_batches mapPartitions pipe transform", ".map(function)"),
        ("unionAll union_all unionByName concat", ".union(other)"),
        (
            "withWatermark with_watermark watermark assignTimestampsAndWatermarks assign_timestamps_and_watermarks",
            '.event_time("column", out_of_orderness="30s")',
        ),
        ("withIdleness with_idleness", '.event_time("column", idle_after="5m")'),
        ("agg", ".aggregate(orders=sw.count())"),
        ("reduce fold", '.aggregate(result=sw.accumulator(YourClass, "column"))'),
        ("count", ".aggregate(n=sw.count())"),
        ("sum", '.aggregate(total=sw.sum("column"))'),
        ("avg mean", '.aggregate(mean=sw.mean("column"))'),
        ("min", '.aggregate(least=sw.min("column"))'),
        ("max", '.aggregate(most=sw.max("column"))'),
        ("allowedLateness allowed_lateness", '.window(..., allowed_lateness="5m")'),
        ("trigger", ".window(..., trigger=sw.after_watermark(...))"),
        ("countWindow count_window", ".window(sw.count_window(100))"),
        ("windowAll window_all", ".window(...)"),
        ("dropDuplicates drop_duplicates distinct unique dedup dedupe", '.deduplicate(within="24h")'),
        ("dropDuplicatesWithinWatermark drop_duplicates_within_watermark", '.deduplicate(within="24h")'),
        ("intervalJoin interval_join", '.join(other, between=("-5m", "1h"))'),
        ("joinAsof join_asof asof_join temporal_join", ".join_as_of(versions, versions_ttl=...)"),
        ("transformWithState transformWithStateInPandas transform_with_state", ".process(YourProcess(), output=...)"),
        ("applyInPandas applyInPandasWithState flatMapGroupsWithState", ".process(YourProcess(), output=...)"),
        ("pattern detect matchRecognize match_recognize", ".match(sw.sequence(...))"),
        ("sideOutput side_output getSideOutput get_side_output", '.output("name")'),
        ("sideOutputLateData side_output_late_data late_data", ".late.to(sink)"),
        ("sinkTo sink_to addSink add_sink writeStream write_stream write write_to", ".to(sink)"),
        ("foreachBatch foreach_batch", ".to(sw.sinks.foreach_batch(function))"),
        ("print show", ".to(sw.sinks.console())"),
        ("execute execute_async run start awaitTermination collect", 'sw.Pipeline("name", ...).run()'),
        ("explain printSchema print_schema", 'sw.Pipeline("name", ...).explain()'),
    )
    for call in calls.split()
}
"""Calls of Flink, Spark and DataFrame libraries, each with its equivalent here."""
_WAYS: Final = {
    ("a stream", "a keyed stream"): "after .key_by(...)",
    ("a stream", "a windowed stream"): "after .key_by(...).window(...)",
    ("a stream", "results"): "on the results of a keyed step",
    ("a stream", "an output"): "on .dead_letters, .late or a side output, or .select(...) the columns to keep",
    ("a keyed stream", "a stream"): "before .key_by(...)",
    ("a keyed stream", "a windowed stream"): "after .window(...)",
    ("a keyed stream", "results"): "on results, for example of .window(...).aggregate(...)",
    ("a windowed stream", "a stream"): "before .key_by(...), or after .aggregate(...)",
    ("a windowed stream", "a keyed stream"): "on the keyed stream",
    ("a windowed stream", "results"): "after .aggregate(...)",
    ("results", "a keyed stream"): "after .key_by(...)",
    ("results", "a windowed stream"): "after .key_by(...).window(...)",
    ("results", "an output"): "on .late, .dead_letters or a side output, or .select(...) the columns to keep",
}
"""For (a kind of stream, the kind that has the call): where the call can be made."""
_KINDS: Final[dict[str, type[Hinting]]] = {}


class Hinting:
    """A definition that answers an unknown method call with the call that was probably meant."""

    _kind: ClassVar[str]
    """The name of this kind of stream in messages."""

    def __init_subclass__(cls, *, kind: str | None = None) -> None:
        super().__init_subclass__()
        if kind is not None:
            cls._kind = kind
            _KINDS[kind] = cls

    if not TYPE_CHECKING:  # with `__getattr__`, a type checker would accept any attribute

        def __getattr__(self, name: str) -> NoReturn:
            """Raise an error that names the call that was meant, or a plain `AttributeError` if there is none."""
            remedy = None if name.startswith("_") or name in type(self).__dataclass_fields__ else _remedy(self, name)
            if remedy is None:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
            raise remedy


def _remedy(asked: Hinting, name: str) -> NoSuchCallError | None:
    """Return an error that says what to call instead of `name`; None if no similar call is known."""
    kind, stream = asked._kind, _stream_of(asked)  # noqa: SLF001  defined in this module
    home = _home(name)
    if home in ("a keyed stream", "a windowed stream") and kind in ("a stream", "results"):
        way = _WAYS[kind, home].removeprefix("after ")
        return NoSuchCallError.of(refuse("KEY_MISSING", method=name, stream=stream, remedy=way))
    if home == "a windowed stream" and kind == "a keyed stream":
        return NoSuchCallError.of(refuse("WINDOW_MISSING", stream=stream))
    if home is not None:
        remedy = _placed(kind, _written(home, name))
    elif name in _FOREIGN:
        remedy = _placed(kind, _FOREIGN[name])
    else:
        remedy = _near(kind, name)
    if remedy is None:
        return None
    return NoSuchCallError.of(refuse("NO_SUCH_CALL", name=name, kind=kind, stream=stream, remedy=remedy))


def _near(kind: str, name: str) -> str | None:
    """Return a hint with the call whose name is closest to `name`: of this kind, or else of another."""
    for known in (kind, *_KINDS):
        if close := difflib.get_close_matches(name, _calls(_KINDS[known]), n=1):
            meant = _placed(kind, _written(known, close[0]))
            return None if meant is None else f"did you mean {meant.removeprefix('write ')}?"
    return None


def _placed(kind: str, written: str) -> str | None:
    """Return the advice to write this call and, if this kind does not have it, where."""
    method = re.match(r"\.(\w+)", written)
    if method is None or hasattr(_KINDS[kind], method[1]):
        return f"write {written}"
    if method[1] == "key_by" and kind in ("a keyed stream", "a windowed stream"):
        return "name all columns of the key in one .key_by(...)"
    # A stream can also be written to a sink before `key_by`, but results are what is meant here.
    home = "results" if method[1] == "to" else _home(method[1])
    way = "on the stream" if method[1] == "dead_letters" else _WAYS.get((kind, home or ""))
    return None if way is None else f"write {written} {way}"


def _home(name: str) -> str | None:
    """Return the first kind that has the call `name`."""
    return next((kind for kind, cls in _KINDS.items() if name in _calls(cls)), None)


def _written(kind: str, name: str) -> str:
    return f".{name}" if isinstance(getattr(_KINDS[kind], name), property) else f".{name}(...)"


def _calls(cls: type) -> list[str]:
    found = ((name, getattr(cls, name)) for name in dir(cls) if not name.startswith("_"))
    return [name for name, value in found if callable(value) or isinstance(value, property)]


def _stream_of(asked: Hinting) -> str:
    """Return the name of the stream or step that the call was made on."""
    for name in ("name", "stream", "keyed", "of"):
        if name in vars(asked):
            inner = vars(asked)[name]
            return inner if isinstance(inner, str) else _stream_of(inner)
    return ""
