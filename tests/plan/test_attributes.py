"""What a definition or a public module does not have is an `AttributeError`, with the name that was meant."""

from __future__ import annotations

import copy
import pickle

import pytest

import slackwater as sw
from slackwater.base.errors import NoSuchCallError

STREAM = sw.stream("a", sw.testing.rows_source("k string, ts long")).event_time("ts")
KEYED = STREAM.key_by("k")
WINDOWED = KEYED.window(sw.tumbling("1m"), name="w")
RESULTS = WINDOWED.aggregate(n=sw.count())
EVERY = [STREAM, KEYED, WINDOWED, RESULTS, RESULTS.late]


@pytest.mark.parametrize("definition", EVERY, ids=lambda definition: type(definition).__name__)
@pytest.mark.parametrize("name", ["no_such_thing", "__no_dunder__", "_repr_png_", "__array__"])
def test_an_attribute_that_nothing_has_is_an_attribute_error(definition: object, name: str) -> None:
    assert not hasattr(definition, name)
    with pytest.raises(
        AttributeError, match=f"'{type(definition).__name__}' object has no attribute '{name}'"
    ) as caught:
        getattr(definition, name)
    assert type(caught.value) is AttributeError


@pytest.mark.parametrize(
    "definition, name, hint",
    [
        (STREAM, "filter", "write .where(...)"),
        (STREAM, "group_by", "write .key_by(...)"),
        (STREAM, "groupBy", "write .key_by(...)"),
        (STREAM, "keyBy", "write .key_by(...)"),
        (STREAM, "withColumn", 'write .with_columns(name="...")'),
        (STREAM, "withWatermark", 'write .event_time("column", out_of_orderness="30s")'),
        (STREAM, "watermark", 'write .event_time("column", out_of_orderness="30s")'),
        (STREAM, "assign_timestamps_and_watermarks", 'write .event_time("column", out_of_orderness="30s")'),
        (STREAM, "writeStream", "write .to(sink)"),
        (STREAM, "drop_duplicates", 'write .deduplicate(within="24h") after .key_by(...)'),
        (STREAM, "agg", "write .aggregate(orders=sw.count()) after .key_by(...).window(...)"),
        (STREAM, "late", "write .late on the results of a keyed step"),
        (STREAM, "wher", "did you mean .where(...)?"),
        (STREAM, "aggregat", "did you mean .aggregate(...) after .key_by(...).window(...)?"),
        (KEYED, "where", "write .where(...) before .key_by(...)"),
        (KEYED, "filter", "write .where(...) before .key_by(...)"),
        (KEYED, "dropDuplicates", 'write .deduplicate(within="24h")'),
        (KEYED, "groupBy", "name all columns of the key in one .key_by(...)"),
        (KEYED, "reduce", 'write .aggregate(result=sw.accumulator(YourClass, "column")) after .window(...)'),
        (KEYED, "to", "write .to(...) on results, for example of .window(...).aggregate(...)"),
        (KEYED, "dead_letters", "write .dead_letters on the stream"),
        (KEYED, "windw", "did you mean .window(...)?"),
        (WINDOWED, "agg", "write .aggregate(orders=sw.count())"),
        (WINDOWED, "sum", 'write .aggregate(total=sw.sum("column"))'),
        (WINDOWED, "sink_to", "write .to(sink) after .aggregate(...)"),
        (WINDOWED, "allowedLateness", 'write .window(..., allowed_lateness="5m") on the keyed stream'),
        (WINDOWED, "select", "write .select(...) before .key_by(...), or after .aggregate(...)"),
        (RESULTS, "side_output", 'write .output("name")'),
        (RESULTS, "sinkTo", "write .to(sink)"),
        (RESULTS, "lat", "did you mean .late?"),
        (RESULTS, "run", 'write sw.Pipeline("name", ...).run()'),
        (RESULTS.late, "sink_to", "write .to(sink)"),
    ],
)
def test_call_that_does_not_exist_names_the_one_that_does(definition: object, name: str, hint: str) -> None:
    assert not hasattr(definition, name)
    with pytest.raises(NoSuchCallError) as caught:
        getattr(definition, name)
    assert caught.value.code == "NO_SUCH_CALL"
    assert caught.value.message.endswith(f"; {hint}")


def test_call_that_needs_a_key_is_an_attribute_error_too() -> None:
    assert not hasattr(STREAM, "window")
    assert not hasattr(KEYED, "aggregate")


@pytest.mark.parametrize("definition", EVERY, ids=lambda definition: type(definition).__name__)
def test_definitions_can_be_copied(definition: object) -> None:
    assert vars(copy.copy(definition)) == vars(definition)
    assert vars(copy.deepcopy(definition)).keys() == vars(definition).keys()
    assert type(pickle.loads(pickle.dumps(definition))) is type(definition)  # noqa: S301  made here


@pytest.mark.parametrize(
    "module, name, hint",
    [
        (sw, "tumblng", " (did you mean `tumbling`?)"),
        (sw, "avg", " (write sw.mean)"),
        (sw, "json", " (write sw.formats.json)"),
        (sw, "zzz", ""),
        (sw.sources, "kafak", " (did you mean `kafka`?)"),
        (sw.sinks, "postgress", " (did you mean `postgres`?)"),
        (sw.formats, "jsno", " (did you mean `json`?)"),
        (sw.lookups, "reddis", " (did you mean `redis`?)"),
        (sw.windows, "AlignedWindows", " (did you mean `AlignedWindow`?)"),
        (sw.testing, "Harnes", " (did you mean `Harness`?)"),
        (sw.kafka, "sasll", " (did you mean `sasl`?)"),
    ],
)
def test_name_that_a_public_module_does_not_have_comes_with_the_one_it_has(
    module: object, name: str, hint: str
) -> None:
    assert not hasattr(module, name)
    with pytest.raises(AttributeError) as caught:
        getattr(module, name)
    assert str(caught.value).endswith(f"has no attribute {name!r}{hint}")
