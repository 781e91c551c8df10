"""`.lookup` on a stream, in memory: what becomes of rows, and how the store is asked."""

from __future__ import annotations

import pickle
from typing import Any

import polars as pl
import pytest

import slackwater as sw
from slackwater.base.errors import RunError
from slackwater.plan.streams import Stream
from slackwater.testing import Harness
from tests.engine.enrichment.scripted import Script, looked_up, orders, rows


def started(stream: Stream, **options: Any) -> Harness:  # noqa: ANN401  those of a pipeline
    ended = [stream.to(sw.sinks.memory()), stream.dead_letters.to(sw.sinks.memory())]
    return Harness(sw.Pipeline("p", *ended, **options))


def names(harness: Harness, stream: Stream) -> list[Any]:
    return harness.output(stream)["name"].to_list()


def letters(harness: Harness, stream: Stream) -> list[tuple[Any, ...]]:
    return harness.output(stream.dead_letters).select("offset", "step", "reason", "message").rows()


def test_each_different_key_of_a_chunk_is_asked_for_once() -> None:
    script = Script()
    stream = looked_up(orders(), script)
    harness = started(stream)
    harness.send("orders", rows("ada", "bob", "ada", "ada", "bob")).run_batch()
    assert sorted(script.asked) == ["ada", "bob"]
    found = names(harness, stream)
    assert found[0] == found[2] == found[3]
    assert found[1] == found[4] != found[0]


def test_rows_keep_their_order_and_their_columns() -> None:
    stream = looked_up(orders(), Script(keys=100))
    harness = started(stream)
    harness.send("orders", rows("c", "a", None, "b", "a")).run_batch()
    got = harness.output(stream)
    assert got.columns == ["user", "ts", "x", "name", "seen"]
    assert got["user"].to_list() == ["c", "a", None, "b", "a"]
    assert got["x"].to_list() == [0, 1, 2, 3, 4]
    assert got["name"].to_list() == ["c at 1", "a at 1", None, "b at 1", "a at 1"]


def test_a_null_key_has_null_columns_and_is_not_asked_for() -> None:
    script = Script()
    stream = looked_up(orders(), script, missing="dead_letter", on_error="dead_letter")
    harness = started(stream)
    harness.send("orders", rows(None, None)).run_batch()
    assert script.requests == []
    assert names(harness, stream) == [None, None]


def test_a_missing_key_has_null_columns() -> None:
    stream = looked_up(orders(), Script(lacks={"bob"}))
    harness = started(stream)
    harness.send("orders", rows("ada", "bob")).run_batch()
    assert names(harness, stream) == ["ada at 1", None]


def test_a_missing_key_can_make_its_row_a_dead_letter() -> None:
    stream = looked_up(orders(), Script(lacks={"bob"}), missing="dead_letter")
    harness = started(stream)
    harness.send("orders", rows("ada", "bob", "eve")).run_batch()
    assert harness.output(stream)["user"].to_list() == ["ada", "eve"]
    message = "scripted has nothing for this `user`"
    assert letters(harness, stream) == [(1, "orders.lookup", "lookup_missing", message)]


def test_while_the_store_is_down_the_batch_waits_and_no_row_is_lost() -> None:
    script = Script(is_down=True)
    stream = looked_up(orders(), script)
    harness = started(stream)
    harness.send("orders", rows("ada"))
    with pytest.raises(
        RunError, match=r"LOOKUP_UNAVAILABLE.*scripted of `orders.lookup` did not answer for 1 key.*the store is down"
    ):
        harness.run_batch()
    assert harness.output(stream).is_empty()
    script.is_down = False
    harness.run_batch()
    assert names(harness, stream) == ["ada at 2"]


def test_what_was_answered_before_a_wait_is_not_asked_for_again() -> None:
    script = Script(fails={"bob"})
    stream = looked_up(orders(), script, cache=None)
    harness = started(stream)
    harness.send("orders", rows("ada", "bob"))
    with pytest.raises(RunError, match="LOOKUP_UNAVAILABLE"):
        harness.run_batch()
    script.fails.clear()
    harness.run_batch()
    assert script.asked.count("ada") == 1
    assert names(harness, stream)[1] == "bob at 3"


def test_a_failed_lookup_can_make_its_row_a_dead_letter() -> None:
    stream = looked_up(orders(), Script(is_down=True), on_error="dead_letter")
    harness = started(stream)
    harness.send("orders", rows("ada", None)).run_batch()
    assert harness.output(stream)["user"].to_list() == [None]
    assert letters(harness, stream) == [(0, "orders.lookup", "lookup_failed", "the store is down")]
    assert harness.last.streams["orders"].dead == 1


def test_a_failed_lookup_can_have_null_columns() -> None:
    stream = looked_up(orders(), Script(is_down=True), on_error="null", missing="dead_letter")
    harness = started(stream)
    harness.send("orders", rows("ada", "bob")).run_batch()
    assert names(harness, stream) == [None, None]


def test_an_answer_that_does_not_fit_makes_its_row_a_dead_letter_whatever_is_chosen() -> None:
    script = Script(keys=10)
    script.judge = lambda _: {"ada": {"name": "Ada", "seen": 1}, "bob": {"name": 7}, "eve": {"name": "Eve"}}
    stream = looked_up(orders(), script, on_error="null")
    harness = started(stream)
    harness.send("orders", rows("ada", "bob", "eve")).run_batch()
    assert harness.output(stream)["user"].to_list() == ["ada", "eve"]
    [(offset, _, reason, message)] = letters(harness, stream)
    assert (offset, reason) == (1, "lookup_answer")
    assert "column `name` is declared String; got 7" in message


def test_an_answer_is_cached_with_what_is_missing_until_its_time_is_over() -> None:
    script = Script(lacks={"bob"})
    stream = looked_up(orders(), script, cache="1m")
    harness = started(stream)
    harness.send("orders", rows("ada", "bob")).run_batch()
    harness.send("orders", rows("ada", "bob")).advance_processing_time("59s")
    assert sorted(script.asked) == ["ada", "bob"]
    assert (harness.last.lookups["orders.lookup"].hits, harness.last.lookups["orders.lookup"].misses) == (2, 0)
    harness.send("orders", rows("ada", "bob")).advance_processing_time("1s")
    assert sorted(script.asked) == ["ada", "ada", "bob", "bob"]


def test_without_a_cache_every_batch_asks() -> None:
    script = Script()
    stream = looked_up(orders(), script, cache=None)
    harness = started(stream)
    for _ in range(3):
        harness.send("orders", rows("ada")).run_batch()
    assert script.asked == ["ada"] * 3


def test_what_failed_is_not_cached() -> None:
    script = Script(is_down=True)
    stream = looked_up(orders(), script, on_error="null")
    harness = started(stream)
    harness.send("orders", rows("ada")).run_batch()
    script.is_down = False
    harness.send("orders", rows("ada")).run_batch()
    assert names(harness, stream) == [None, "ada at 2"]


def test_a_restart_forgets_the_cache() -> None:
    script = Script()
    harness = started(looked_up(orders(), script))
    harness.send("orders", rows("ada")).run_batch()
    harness.restart().send("orders", rows("ada")).run_batch()
    assert script.asked == ["ada", "ada"]
    assert script.opened == 2


def test_looked_up_columns_are_columns_like_any_other() -> None:
    stream = looked_up(orders().where("x < 3"), Script(keys=10))
    per_name = stream.where("seen = 1").key_by("name").window(sw.tumbling("1s")).aggregate(n=sw.count())
    pipeline = sw.Pipeline("p", per_name.to(sw.sinks.memory()), per_name.late.drop(), stream.dead_letters.drop())
    harness = Harness(pipeline)
    harness.send("orders", rows("ada", "bob", "ada", "eve"))
    harness.finish()
    assert sorted(harness.output(per_name).select("name", "n").rows()) == [("ada at 1", 2), ("bob at 1", 1)]


def test_an_event_time_can_be_looked_up() -> None:
    script = Script()
    script.judge = lambda keys: {keys[0]: {"placed": 60_000}}
    bare = sw.stream("orders", sw.testing.rows_source("user string"))
    stream = looked_up(bare, script, output="placed long").event_time("placed")
    harness = started(stream)
    harness.send("orders", [{"user": "ada"}]).run_batch()
    assert harness.watermark == {"orders": 60_000}


def test_results_of_a_window_can_be_looked_up() -> None:
    script = Script(keys=10)
    source = orders()
    per_user = source.key_by("user").window(sw.tumbling("1s")).aggregate(n=sw.count())
    named = looked_up(per_user, script, missing="dead_letter")
    script.lacks = {"bob"}
    ended = [named.to(sw.sinks.memory()), per_user.late.drop(), source.dead_letters.drop()]
    harness = Harness(sw.Pipeline("p", *ended, named.dead_letters.to(sw.sinks.memory())))
    harness.send("orders", rows("ada", "bob", "ada"))
    harness.finish()
    assert [row[:2] for row in harness.output("orders.window.rows").select("user", "n", "name").rows()] == [("ada", 2)]
    assert letters(harness, named) == [
        (4294967296, "orders.window.lookup", "lookup_missing", "scripted has nothing for this `user`")
    ]


def test_two_lookups_follow_one_another() -> None:
    first, second = Script(keys=10), Script(keys=10)
    stream = looked_up(orders(), first)
    stream = looked_up(stream, second, key="name", output="city string", name="cities")
    second.judge = lambda keys: {key: {"city": f"city of {key}"} for key in keys}
    harness = started(stream)
    harness.send("orders", rows("ada")).run_batch()
    assert harness.output(stream)["city"].to_list() == ["city of ada at 1"]
    assert set(harness.last.lookups) == {"orders.lookup", "cities"}


def test_streams_that_were_united_are_looked_up_apart() -> None:
    script = Script(keys=10)
    one, two = orders(), sw.stream("more", sw.testing.rows_source("user string, ts long, x long")).event_time("ts")
    both = looked_up(one.union(two), script, cache=None, name="users")
    pipeline = sw.Pipeline("p", both.to(sw.sinks.memory()), one.dead_letters.drop(), two.dead_letters.drop())
    harness = Harness(pipeline)
    harness.send("orders", rows("ada")).send("more", rows("ada")).run_batch()
    assert script.asked == ["ada", "ada"]
    assert sorted(harness.output(both)["seen"].to_list()) == [1, 2]


def test_statistics_say_what_was_asked_and_how_long_it_took() -> None:
    script = Script(keys=2, lacks={"c"})
    harness = started(looked_up(orders(), script))
    harness.send("orders", rows("a", "b", "c", "a")).run_batch()
    stats = harness.last.lookups["orders.lookup"]
    assert (stats.requests, stats.hits, stats.misses, stats.missing, stats.errors) == (2, 0, 3, 1, 0)
    assert 0 < stats.p50_ms <= stats.p99_ms


def test_a_lookup_travels_with_its_plan() -> None:
    from pyspark import cloudpickle

    async def fetch(key: str) -> dict[str, str]:
        return {"name": key.upper()}

    stream = orders().lookup(sw.lookups.function(fetch), key="user", output="name string")
    pipeline = sw.Pipeline("p", stream.to(sw.sinks.memory()), stream.dead_letters.drop())
    again = pickle.loads(cloudpickle.dumps(pipeline.plan()))  # type: ignore[no-untyped-call]  # noqa: S301  our own bytes
    assert again.fingerprint == pipeline.plan().fingerprint


@pytest.mark.parametrize("change", [{"timeout": "1s"}, {"retries": 5}, {"cache": None}, {"concurrency": 7}])
def test_how_a_store_is_asked_does_not_change_what_a_batch_is(change: dict[str, Any]) -> None:
    script = Script()
    plans = [started(looked_up(orders(), script, **given)).plan.fingerprint for given in ({}, change)]
    assert plans[0] == plans[1]


@pytest.mark.parametrize(
    "change", [{"missing": "dead_letter"}, {"on_error": "null"}, {"output": "name string"}, {"key": "x"}]
)
def test_what_becomes_of_rows_does(change: dict[str, Any]) -> None:
    script = Script()
    plans = [started(looked_up(orders(), script, **given)).plan.fingerprint for given in ({}, change)]
    assert plans[0] != plans[1]


def test_explain_shows_the_store_and_what_happens_without_an_answer() -> None:
    stream = looked_up(orders(), Script(), on_error="dead_letter")
    shown = sw.Pipeline("p", stream.to(sw.sinks.memory()), stream.dead_letters.drop()).explain()
    assert (
        "└ orders.lookup: user in scripted: name string, seen bigint   100 at once, timeout 200ms, 0 retries, cache 5m"
        in shown
    )
    assert "missing: null, error: dead_letter" in shown


def test_only_the_key_is_decoded_for_a_lookup() -> None:
    script = Script(keys=10)
    bytes_ = sw.stream("orders", sw.sources.log("nowhere")).decode(sw.formats.json("user string, ts long, note string"))
    stream = looked_up(bytes_.event_time("ts"), script)
    counted = stream.key_by("name").window(sw.tumbling("1s")).aggregate(n=sw.count())
    pipeline = sw.Pipeline(
        "p", counted.to(sw.sinks.memory()), counted.late.to(sw.sinks.memory()), stream.dead_letters.drop()
    )
    harness = Harness(pipeline)
    harness.send("orders", ['{"user": "ada", "ts": 5, "note": "x"}']).run_batch()
    harness.advance_watermark(10_000)
    harness.send("orders", ['{"user": "bob", "ts": 6, "note": "late"}']).run_batch()
    assert harness.output(counted)["name"].to_list() == ["ada at 1"]
    assert harness.output(counted.late).select("note", "name").rows() == [("late", "bob at 2")]


def test_frames_of_many_rows_and_few_keys_are_answered_at_once() -> None:
    script = Script(keys=10_000)
    stream = looked_up(orders(), script)
    harness = started(stream)
    many = pl.DataFrame({"user": [f"u{at % 1_000}" for at in range(200_000)]})
    harness.send("orders", many.with_columns(ts=pl.lit(1), x=pl.lit(1)))
    harness.run_batch()
    assert len(script.requests) == 1
    assert harness.output(stream)["name"].null_count() == 0
