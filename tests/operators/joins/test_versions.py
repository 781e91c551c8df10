"""A stream of Debezium's changes as versions: what each operation does to the rows that ask for it."""

from __future__ import annotations

import json
import random
from typing import Any, NamedTuple

import polars as pl
import pytest

import slackwater as sw
from slackwater.base.errors import DefinitionError
from slackwater.plan.streams import KeyedStream, Results, Stream
from slackwater.testing import Harness

T0 = 1_772_366_400_000
CUSTOMERS = "id long, name string, tier string"


def changes(schema: str = CUSTOMERS, *, key: Any = "id") -> Stream:  # noqa: ANN401  one name or several
    return sw.stream("customers", sw.sources.log("data/customers")).decode(sw.formats.debezium(schema, key=key))


class Joined(NamedTuple):
    """Orders, joined with the customers of their times."""

    harness: Harness
    results: Results

    def names(self) -> list[tuple[int, str | None]]:
        return self.harness.output(self.results).sort("ts").select(pl.col("ts") - T0, "name").rows()


def joined(versions: KeyedStream, **options: Any) -> Joined:  # noqa: ANN401  the options of `join_as_of`
    orders = sw.stream("orders", sw.testing.rows_source("customer long, ts long, op string")).event_time("ts")
    results = orders.key_by("customer").join_as_of(
        versions, **{"versions_ttl": sw.FOREVER, "how": "left", "name": "joined", **options}
    )
    ends = [results.to(sw.sinks.memory()), results.late.to(sw.sinks.memory())]
    ends += [each.dead_letters.to(sw.sinks.memory()) for each in (orders, versions.stream)]
    return Joined(Harness(sw.Pipeline("p", *ends), now=T0), results)


def change(op: str, at: int, before: dict[str, Any] | None = None, after: dict[str, Any] | None = None) -> str:
    source = {"connector": "postgresql", "ts_ms": T0 + at, "schema": "public", "table": "customers", "lsn": at}
    return json.dumps({"before": before, "after": after, "source": source, "op": op, "ts_ms": T0 + at + 5})


def row(name: str, id: int = 1, **more: Any) -> dict[str, Any]:  # noqa: A002, ANN401  the table's own name
    return {"id": id, "name": name, "tier": "gold", **more}


def orders(*times: int, customer: int = 1) -> list[dict[str, Any]]:
    return [{"customer": customer, "ts": T0 + at, "op": "sale"} for at in times]


HISTORY = [
    change("r", 10, after=row("snapshot")),
    change("u", 20, row("snapshot"), row("update")),
    change("d", 30, {"id": 1}),
    "null",
    change("c", 40, after=row("insert")),
]


def test_every_operation_is_a_version_and_a_delete_ends_the_one_before() -> None:
    """
    time       10          20        30         40
    customer   snapshot    update    deleted    insert
    order    5    15         25         35         45
    """
    done = joined(changes().versions())
    done.harness.send("customers", HISTORY).send("orders", orders(5, 15, 25, 35, 45)).finish()
    assert done.names() == [(5, None), (15, "snapshot"), (25, "update"), (35, None), (45, "insert")]
    assert done.harness.output("customers.dead_letters").is_empty()


@pytest.mark.parametrize("seed", range(20))
def test_the_order_of_arrival_does_not_matter_within_the_out_of_orderness(seed: int) -> None:
    dice = random.Random(seed)
    sent = [*HISTORY, *(change("u", at, None, row(f"b{at}", 2)) for at in range(10, 50, 7))]
    dice.shuffle(sent)
    asked = [*orders(5, 15, 25, 35, 45), *orders(9, 10, 16, 17, 30, 48, customer=2)]
    dice.shuffle(asked)
    done = joined(changes().event_time("source_time", out_of_orderness="50ms").versions())
    while sent or asked:
        for name, rows in (("customers", sent), ("orders", asked)):
            part = [rows.pop() for _ in range(min(len(rows), dice.randint(0, 4)))]
            done.harness.send(name, part, partition=str(dice.randint(0, 1)))
        done.harness.run_batch()
        if dice.random() < 0.2:
            done.harness.restart()
    done.harness.finish()
    late = done.harness.output(done.results.late)["ts"] - T0
    found = done.harness.output(done.results).select("customer", pl.col("ts") - T0, "name").rows()
    expected = {
        1: {5: None, 15: "snapshot", 25: "update", 35: None, 45: "insert"},
        2: {9: None, 10: "b10", 16: "b10", 17: "b17", 30: "b24", 48: "b45"},
    }
    assert all(expected[customer][at] == name for customer, at, name in found)
    assert len(found) + len(late) == 11


def test_results_have_the_columns_of_the_table_and_not_those_of_the_envelope() -> None:
    done = joined(changes().versions())
    assert dict(done.harness.plan.by_name["joined"].spec.result_types) == {
        "customer": pl.Int64(),
        "ts": pl.Int64(),
        "op": pl.String(),
        "id": pl.Int64(),
        "name": pl.String(),
        "tier": pl.String(),
        "event_time": pl.Datetime("us", "UTC"),
    }


def test_a_table_may_have_a_column_called_op() -> None:
    done = joined(changes("id long, name string, op string").versions())
    sent = [change("c", 10, after=row("a", op="x")), change("d", 20, {"id": 1})]
    done.harness.send("customers", sent).send("orders", orders(15, 25)).finish()
    found = done.harness.output(done.results).sort("ts")
    assert found.select("name", "op", "op_right").rows() == [("a", "sale", "x"), (None, "sale", None)]


def test_a_key_of_several_columns_is_the_key_of_the_versions() -> None:
    versions = changes(key=["tier", "id"]).versions()
    assert versions.keys == ("tier", "id")


def test_tombstones_are_filtered_before_they_need_a_time() -> None:
    done = joined(changes().event_time("source_time", out_of_orderness="1s").versions())
    done.harness.send("customers", [change("c", 1, after=row("a")), "null"]).run_batch()
    assert done.harness.output("customers.dead_letters").is_empty()


def test_a_truncate_is_a_dead_letter_because_it_does_not_say_what_it_deletes() -> None:
    done = joined(changes().versions())
    done.harness.send("customers", [change("c", 1, after=row("a")), change("t", 5), change("m", 6)]).finish()
    [letter] = done.harness.output("customers.dead_letters").rows(named=True)
    assert (letter["reason"], letter["offset"]) == ("invalid", 1)
    assert letter["message"] == "rule `no_truncate` does not hold: op <> 'truncate'"


def test_a_condition_of_the_user_ends_versions_as_well() -> None:
    done = joined(changes().versions(), deleted="tier = 'none'")
    sent = [
        change("c", 10, after=row("a")),
        change("u", 20, None, row("b", tier="none")),
        change("u", 30, None, row("c", tier=None)),
        change("d", 40, {"id": 1}),
    ]
    done.harness.send("customers", sent).send("orders", orders(15, 25, 35, 45)).finish()
    assert done.names() == [(15, "a"), (25, None), (35, "c"), (45, None)]
    assert "op = 'delete' or tier = 'none'" in done.harness.pipeline.explain()


def test_versions_of_one_stream_can_be_joined_twice() -> None:
    customers = changes()
    first = joined(customers.versions())
    again = first.results.key_by("customer").join_as_of(
        customers.versions(), versions_ttl=sw.FOREVER, name="again", suffixes=("", "_again"), late="process"
    )
    orders_ = first.results.origin.inputs["left"].stream  # type: ignore[union-attr]  # it comes from a step
    ends = [first.results.late.drop(), customers.dead_letters.drop(), orders_.dead_letters.drop()]
    pipeline = sw.Pipeline("p", again.to(sw.sinks.memory()), *ends)
    done = sw.testing.run(pipeline, {"customers": [change("c", 10, after=row("a"))], "orders": orders(15)})
    assert done[again].select("name", "name_again").rows() == [("a", "a")]


@pytest.mark.parametrize(
    "stream, words",
    [
        (sw.stream("s", sw.testing.rows_source("id long")), "got a stream without decode in `s`"),
        (
            sw.stream("s", sw.sources.log("data/s")).decode(sw.formats.json("id long")),
            "got a stream of JSON in `s`; key other streams with .key_by(...)",
        ),
        (changes().union(changes(), name="both"), "got a union in `both`"),
    ],
)
def test_other_streams_have_no_versions(stream: Stream, words: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        stream.versions()
    assert caught.value.code == "VERSIONS_FORMAT"
    assert words in str(caught.value)
