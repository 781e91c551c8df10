"""Change events as Debezium's documentation shows them, and as its connectors write them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import polars as pl

from slackwater.formats import DebeziumFormat, debezium
from slackwater.formats.base import Decoded

Json = dict[str, Any]

CUSTOMERS = "id int, first_name string, last_name string, email string"
FORM = debezium(CUSTOMERS, key="id")
COMPANY = 100
"""So many records are read all at once; one alone is read one by one."""

ANNE = {"id": 1, "first_name": "Anne", "last_name": "Kretchmar", "email": "annek@noanswer.org"}
MARIE = {**ANNE, "first_name": "Anne Marie"}
POSTGRES = {
    "version": "2.5.3.Final",
    "connector": "postgresql",
    "name": "PostgreSQL_server",
    "ts_ms": 1559033904863,
    "snapshot": "false",
    "db": "postgres",
    "sequence": '["24023119","24023128"]',
    "schema": "public",
    "table": "customers",
    "txId": 555,
    "lsn": 24023128,
    "xmin": None,
}
MYSQL = {
    "version": "2.5.3.Final",
    "connector": "mysql",
    "name": "mysql-server-1",
    "ts_ms": 1465491411000,
    "snapshot": "false",
    "db": "inventory",
    "table": "customers",
    "server_id": 223344,
    "gtid": None,
    "file": "mysql-bin.000003",
    "pos": 484,
    "row": 0,
    "thread": 7,
    "query": None,
}
HAPPENED = datetime(2019, 5, 28, 8, 58, 24, 863000, tzinfo=UTC)
PROCESSED = datetime(2019, 5, 28, 8, 58, 24, 961000, tzinfo=UTC)
SOURCE_TYPES = {str: "string", int: "int64", bool: "boolean"}


def change(
    op: str, before: Json | None = None, after: Json | None = None, source: Json | None = None, **more: object
) -> Json:
    """Return a payload; everything is in the order in which Debezium writes it."""
    source = POSTGRES if source is None else source
    return {"before": before, "after": after, "source": source, "op": op, "ts_ms": 1559033904961, **more}


CHANGES = {
    "insert": change("c", None, ANNE),
    "update": change("u", ANNE, MARIE),
    "delete": change("d", MARIE, None),
    "snapshot": change("r", None, ANNE, {**POSTGRES, "snapshot": "first"}),
    "truncate": {"source": POSTGRES, "op": "t", "ts_ms": 1559033904961},
    "message": {
        "op": "m",
        "ts_ms": 1559033904961,
        "source": {**POSTGRES, "schema": "", "table": ""},
        "message": {"prefix": "foo", "content": "Ymfy"},
    },
}
ROW_FIELDS: list[Json] = [
    {"type": "int32", "optional": False, "default": 0, "field": "id"},
    {"type": "string", "optional": False, "field": "first_name"},
    {"type": "string", "optional": False, "field": "last_name"},
    {"type": "string", "optional": False, "field": "email"},
]


def wrapped(payload: Json | None, fields: list[Json] = ROW_FIELDS) -> Json:
    """Return a payload in the wrapper of Connect's JSON converter, with a schema that describes it."""
    source = (payload or {}).get("source") or POSTGRES
    value = {"type": "struct", "fields": fields, "optional": True, "name": "server.public.customers.Value"}
    described = [
        {"type": SOURCE_TYPES[type(each)], "optional": False, "field": name}
        for name, each in source.items()
        if each is not None
    ]
    schema = {
        "type": "struct",
        "fields": [
            {**value, "field": "before"},
            {**value, "field": "after"},
            {"type": "struct", "fields": described, "optional": False, "name": "Source", "field": "source"},
            {"type": "string", "optional": False, "field": "op"},
            {"type": "int64", "optional": True, "field": "ts_ms"},
        ],
        "optional": False,
        "name": "server.public.customers.Envelope",
        "version": 1,
    }
    return {"schema": schema, "payload": payload}


def written(record: object) -> bytes:
    """Return a record as Connect writes it, without blanks."""
    return json.dumps(record, separators=(",", ":")).encode()


def decode(form: DebeziumFormat, *records: bytes | None) -> Decoded:
    return form.decoder().decode(pl.Series(records, dtype=pl.Binary))


def outcome(form: DebeziumFormat, record: Any) -> Json | tuple[str, str]:  # noqa: ANN401  JSON, bytes or None
    """Return the row of a record, or its reason and message; the same alone and in company."""
    record = record if isinstance(record, bytes | None) else written(record)
    alone, together = decode(form, record), decode(form, *[record] * COMPANY)
    assert together.frame.schema == form.schema
    assert together.frame.unique().equals(alone.frame)
    assert together.bad.drop("index").unique().equals(alone.bad.drop("index"))
    if alone.bad.is_empty():
        return alone.frame.row(0, named=True)
    assert together.bad.height == COMPANY
    assert all(value is None for value in alone.frame.row(0))
    return alone.bad["reason"][0], alone.bad["message"][0]


def row(record: Any, *, schema: str = CUSTOMERS, key: str | list[str] = "id", **options: Any) -> Json:  # noqa: ANN401
    """Return the row of a record that is good."""
    found = outcome(debezium(schema, key=key, **options), record)
    assert isinstance(found, dict), found
    return found


def flaw(record: Any, *, schema: str = CUSTOMERS, key: str | list[str] = "id", **options: Any) -> tuple[str, str]:  # noqa: ANN401
    """Return reason and message of a record that is bad."""
    found = outcome(debezium(schema, key=key, **options), record)
    assert isinstance(found, tuple), found
    return found
