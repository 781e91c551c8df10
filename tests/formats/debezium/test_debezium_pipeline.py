"""Change events in pipelines: in memory, keyed by the table's key; and as Avro, with the schemas of a registry."""

from __future__ import annotations

import json as stdlib_json
import pickle
import random
import struct
from datetime import UTC, datetime
from typing import Any

import polars as pl

import slackwater as sw
from tests.formats.avro.avro_model import encode
from tests.formats.debezium.debezium_samples import ANNE, CUSTOMERS, MYSQL, POSTGRES, change, decode, wrapped
from tests.formats.registry_server import RegistryServer

DICE = random.Random(1)


def test_changes_are_counted_by_key_and_every_record_has_its_account() -> None:
    customers = (
        sw.stream("customers", sw.sources.log("data/customers"))
        .decode(sw.formats.debezium(CUSTOMERS, key="id"))
        .where("op <> 'tombstone'")
        .event_time("source_time")
    )
    counted = customers.key_by("id", "op").window(sw.tumbling("1h"), name="changes").aggregate(changes=sw.count())
    pipeline = sw.Pipeline(
        "customers", counted.to(sw.sinks.memory()), counted.late.drop(), customers.dead_letters.to(sw.sinks.memory())
    )
    ben = {**ANNE, "id": 2}
    harness = sw.testing.Harness(pipeline)
    harness.send(
        "customers",
        [
            change("r", None, ANNE, {**POSTGRES, "snapshot": "last"}),
            wrapped(change("c", None, ben)),
            change("u", None, ben),
            wrapped(change("u", {"id": 2}, ben)),
            change("d", {"id": 1}, None),
            {"schema": None, "payload": None},
            change("d", None, None),
            '{"before":null,"aft',
        ],
    )
    harness.finish()
    results = harness.output("changes").sort("id", "op")
    assert results.select("id", "op", "changes").rows() == [
        (1, "delete", 1),
        (1, "snapshot", 1),
        (2, "insert", 1),
        (2, "update", 2),
    ]
    assert sorted(harness.output("customers.dead_letters")["reason"]) == ["malformed", "no_key"]


VALUE = {
    "type": "record",
    "name": "Value",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "email", "type": ["null", "string"], "default": None},
        {
            "name": "price",
            "type": {
                "type": "bytes",
                "scale": 2,
                "precision": 10,
                "connect.version": 1,
                "connect.name": "org.apache.kafka.connect.data.Decimal",
                "logicalType": "decimal",
            },
        },
        {"name": "at", "type": {"type": "long", "connect.version": 1, "connect.name": "io.debezium.time.Timestamp"}},
    ],
    "connect.name": "mysql_server.inventory.customers.Value",
}
SOURCE_TYPES: dict[str, Any] = {
    "version": "string",
    "connector": "string",
    "ts_ms": "long",
    "snapshot": [{"type": "string", "connect.version": 1, "connect.default": "false"}, "null"],
    "db": "string",
    "table": ["null", "string"],
    "server_id": "long",
    "file": "string",
    "pos": "long",
    "row": "int",
}
BLOCK = {
    "type": "record",
    "name": "block",
    "namespace": "event",
    "fields": [{"name": "id", "type": "string"}, {"name": "total_order", "type": "long"}],
}


def envelope(value: dict[str, Any], *, named: bool) -> dict[str, Any]:
    """Return the schema that a connector registers; `named`, it refers to a type by its name, as Avro has it."""
    source = [{"name": name, "type": kind} for name, kind in SOURCE_TYPES.items()]
    return {
        "type": "record",
        "name": "Envelope",
        "namespace": "mysql_server.inventory.customers",
        "fields": [
            {"name": "before", "type": ["null", value], "default": None},
            {"name": "after", "type": ["null", "Value" if named else value], "default": None},
            {"name": "source", "type": {"type": "record", "name": "Source", "namespace": "io", "fields": source}},
            {"name": "op", "type": "string"},
            {"name": "ts_ms", "type": ["null", "long"], "default": None},
            {"name": "transaction", "type": ["null", BLOCK], "default": None},
        ],
    }


def body(op: str, before: Any, after: Any, transaction: Any = (0, None)) -> bytes:  # noqa: ANN401
    source = {name: MYSQL[name] for name in SOURCE_TYPES} | {"snapshot": (0, "false"), "table": (1, "customers")}
    payload = {
        "before": (0, None) if before is None else (1, before),
        "after": (0, None) if after is None else (1, after),
        "source": source,
        "op": op,
        "ts_ms": (1, 1465491411815),
        "transaction": transaction,
    }
    return encode(envelope(VALUE, named=False), payload, DICE)


def test_avro_envelopes_of_a_registry_are_changes_as_those_of_json_are(server: RegistryServer) -> None:
    number = server.register("customers-value", stdlib_json.dumps(envelope(VALUE, named=True)))
    value = sw.formats.avro(registry=sw.formats.registry(server.url), subject="customers-value")
    form = sw.formats.debezium(key="id", value=value)
    customer = {"id": 7, "email": (1, "a@b.c"), "price": b"\x04\xd2", "at": 1465491411000}
    head = b"\x00" + struct.pack(">I", number)
    block = (1, {"id": "tx-1", "total_order": 1})
    records = [
        head + body("c", None, customer, block),
        head + body("d", customer, None),
        None,
        head + body("d", None, None),
        head + body("z", None, customer),
        b"\x00\x00",
        head + body("r", None, customer),
    ]
    decoded = decode(form, *records)
    assert decoded.frame.schema == form.schema
    assert decoded.frame["op"].to_list() == ["insert", "delete", "tombstone", None, None, None, "snapshot"]
    assert decoded.bad.select("index", "reason").rows() == [(3, "no_key"), (4, "unknown_op"), (5, "truncated")]
    row = decoded.frame.row(0, named=True)
    assert row == {
        "op": "insert",
        "id": 7,
        "before": None,
        "after": {
            "id": 7,
            "email": "a@b.c",
            "price": pl.Series(["12.34"]).cast(pl.Decimal(10, 2))[0],
            "at": 1465491411000,
        },
        "source_time": datetime(2016, 6, 9, 16, 56, 51, tzinfo=UTC),
        "processed_time": datetime(2016, 6, 9, 16, 56, 51, 815000, tzinfo=UTC),
        "position": (3 << 36) + 484,
        "snapshot": False,
        "transaction": "tx-1",
        "table": "inventory.customers",
    }
    assert decoded.frame["id"].to_list() == [7, 7, None, None, None, None, 7]
    assert str(form).startswith("Debezium, Avro")
    again = pickle.loads(pickle.dumps(form.decoder()))  # noqa: S301  our own bytes
    assert again.decode(pl.Series(records, dtype=pl.Binary)).frame.equals(decoded.frame)


def test_avro_column_that_the_table_got_later_is_passed_over(server: RegistryServer) -> None:
    older = {**VALUE, "fields": VALUE["fields"][:2]}
    number = server.register("customers-value", stdlib_json.dumps(envelope(VALUE, named=True)))
    value = sw.formats.avro(envelope(older, named=True), registry=sw.formats.registry(server.url))
    form = sw.formats.debezium(key=["id"], value=value)
    customer = {"id": 7, "email": (0, None), "price": b"\x01", "at": 5}
    decoded = decode(form, b"\x00" + struct.pack(">I", number) + body("u", None, customer))
    assert decoded.frame["after"].to_list() == [{"id": 7, "email": None}]
