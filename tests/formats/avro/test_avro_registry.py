"""Records of many writers in one column: each is read with its own schema, into the reader's."""

from __future__ import annotations

import importlib
import json as stdlib_json
import pickle
import random
import struct
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import slackwater
from slackwater.base.errors import DefinitionError, RunError
from slackwater.base.secrets import secret
from slackwater.formats import AvroFormat, Registry, avro, registry
from slackwater.formats.base import Decoded
from tests.formats.avro.avro_model import encode
from tests.formats.registry_server import RegistryServer

DECODER: Any = importlib.import_module("slackwater.formats.avro.definition")
DICE = random.Random(1)


def order(*fields: Any, name: str = "Order") -> dict[str, Any]:  # noqa: ANN401
    listed = [{"name": each[0], "type": each[1], **({"default": each[2]} if len(each) > 2 else {})} for each in fields]
    return {"type": "record", "name": name, "fields": listed}


FIRST = order(("id", "int"), ("cents", "int"), ("note", "string"))
SECOND = order(("id", "long"), ("user", "string"), ("cents", "long"))
THIRD = order(("cents", "double"), ("user", ["null", "string"]), ("id", "long"))
READER = order(("id", "long"), ("cents", "double"), ("user", ["null", "string"], None))


def framed(number: int, body: bytes) -> bytes:
    return b"\x00" + struct.pack(">I", number) + body


def add(server: RegistryServer, schema: Any, **more: Any) -> int:  # noqa: ANN401
    return server.register("orders-value", stdlib_json.dumps(schema), **more)


def read(form: AvroFormat, *records: bytes | None) -> Decoded:
    return form.decoder().decode(pl.Series(records, dtype=pl.Binary))


def reasons(decoded: Decoded) -> list[tuple[int, str]]:
    return list(zip(decoded.bad["index"], decoded.bad["reason"], strict=True))


def test_records_of_several_writers_are_read_in_their_places(server: RegistryServer) -> None:
    first, second, third = add(server, FIRST), add(server, SECOND), add(server, THIRD)
    records = []
    for number in range(300):
        match number % 4:
            case 0:
                body = encode(FIRST, {"id": number, "cents": 5, "note": "x" * number}, DICE)
                records.append(framed(first, body))
            case 1:
                records.append(framed(second, encode(SECOND, {"id": number, "user": "ada", "cents": 6}, DICE)))
            case 2:
                records.append(framed(third, encode(THIRD, {"id": number, "user": (0, None), "cents": 7.5}, DICE)))
            case _:
                records.append(framed(second, b"\x80"))
    decoded = read(avro(READER, registry=registry(server.url)), *records)
    rows = {0: (5.0, None), 1: (6.0, "ada"), 2: (7.5, None)}
    expected = [(number, *rows[number % 4]) if number % 4 in rows else (None, None, None) for number in range(300)]
    assert decoded.frame.rows() == expected
    assert reasons(decoded) == [(number, "truncated") for number in range(3, 300, 4)]
    assert len(server.requests) == 3


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(writers=st.lists(st.integers(0, 4), max_size=40), dice=st.randoms(use_true_random=False))
def test_a_record_is_read_the_same_alone_as_among_others(
    writers: list[int], dice: random.Random, server: RegistryServer
) -> None:
    schemas = [FIRST, SECOND, THIRD]
    ids = [add(server, schema) for schema in schemas]
    values: list[dict[str, Any]] = [
        {"id": 1, "cents": 2, "note": "n"},
        {"id": 2, "user": "u", "cents": 3},
        {"id": 3, "user": (1, "v"), "cents": 4.5},
    ]
    bodies = [
        framed(each, encode(schema, value, dice)) for each, schema, value in zip(ids, schemas, values, strict=True)
    ]
    choices = [*bodies, framed(99, b"x"), b"\x00\x00"]
    records = [choices[writer] for writer in writers]
    form = avro(READER, registry=registry(server.url))
    together = read(form, *records)
    for at, record in enumerate(records):
        alone = read(form, record)
        assert alone.frame.rows() == [together.frame.row(at)]
        assert alone.bad.drop("index").rows() == together.bad.filter(pl.col("index") == at).drop("index").rows()


@pytest.mark.parametrize(
    "record, reason, message",
    [
        (None, "empty_record", "the record has no payload"),
        (b"", "empty_record", "the record has no bytes"),
        (b"{}", "malformed", "a record in Confluent's wire format begins with byte 0x00; got 0x7b"),
        (b"\x00\x00\x00", "truncated", "a record in Confluent's wire format begins with 5 bytes; got 3"),
        (framed(1, b""), "truncated", "field `id`, byte 5: it is truncated"),
        (framed(77, b"abc"), "unknown_schema", "schema 77 is not in http://127.0.0.1:"),
        (framed(2**32 - 1, b"abc"), "unknown_schema", "schema 4294967295 is not in http://127.0.0.1:"),
    ],
)
def test_what_is_wrong_with_a_frame_is_reported(
    record: bytes | None, reason: str, message: str, server: RegistryServer
) -> None:
    add(server, FIRST)
    good = framed(1, encode(FIRST, {"id": 9, "cents": 5, "note": ""}, DICE))
    decoded = read(avro(READER, registry=registry(server.url)), good, record, good)
    assert decoded.frame["id"].to_list() == [9, None, 9]
    assert decoded.bad["reason"].to_list() == [reason]
    assert decoded.bad["message"][0].startswith(message)


@pytest.mark.parametrize(
    "schema, why",
    [
        (order(("id", "string"), ("cents", "int")), "field `id`: the writer has string, the reader long"),
        (order(("id", "int")), "field `cents`: the writer has no such field, and the reader has no default for it"),
        (
            order(("id", "int"), ("cents", "int"), name="Refund"),
            "the writer has record `Refund`, the reader record `Order`",
        ),
        ("string", "the writer has string, the reader record `Order`"),
        (["null", FIRST], "the writer has a union at the top"),
        (
            order(("id", "int"), ("cents", "int"), ("next", ["null", "Order"])),
            "`Order`, which contains itself in field",
        ),
        (order(("id", "nope")), "unknown type `nope` in field `id`"),
    ],
)
def test_a_writer_that_the_reader_cannot_read_is_reported_with_both_schemas_and_why(
    schema: Any,  # noqa: ANN401
    why: str,
    server: RegistryServer,
) -> None:
    number = add(server, schema)
    decoded = read(avro(READER, registry=registry(server.url)), framed(number, b"\x02\x04"))
    assert reasons(decoded) == [(0, "incompatible_schema")]
    assert decoded.bad["message"][0].startswith(f"writer's schema {number}, reader's schema as declared: {why}")


def test_many_problems_are_not_all_listed(server: RegistryServer) -> None:
    number = add(server, order(("x", "int")))
    reader = order(*((name, "int") for name in "abcde"))
    decoded = read(avro(reader, registry=registry(server.url)), framed(number, b"\x02"))
    assert decoded.bad["message"][0].endswith("(and 2 more)")


def test_a_schema_of_another_type_is_reported(server: RegistryServer) -> None:
    number = server.register("orders-value", 'syntax = "proto3";', kind="PROTOBUF")
    decoded = read(avro(READER, registry=registry(server.url)), framed(number, b"\x02"))
    assert "a schema of type PROTOBUF" in decoded.bad["message"][0]


def test_only_the_records_with_a_value_that_the_reader_lacks_are_bad(server: RegistryServer) -> None:
    colours = {"type": "enum", "name": "Colour", "symbols": ["RED", "BLUE"]}
    writer = order(("id", ["null", "long", "string"]), ("colour", colours))
    reader = order(("id", "long"), ("colour", {**colours, "symbols": ["RED"]}))
    number = add(server, writer)
    add(server, reader)
    form = avro(registry=registry(server.url), subject="orders-value")
    bodies = [b"\x02\x0a\x00", b"\x02\x0a\x02", b"\x00\x00", b"\x04\x02x\x00"]
    decoded = read(form, *(framed(number, body) for body in bodies))
    assert decoded.frame.rows() == [(5, "RED"), (None, None), (None, None), (None, None)]
    assert set(decoded.bad["reason"]) == {"incompatible_schema"}
    both = "writer's schema 1, reader's schema 2 (version 2 of `orders-value`): field "
    assert decoded.bad["message"].to_list() == [
        f"{both}`colour`, byte 7: the reader's enum `Colour` lacks BLUE, and has no default",
        f"{both}`id`, byte 6: the writer has null, the reader long",
        f"{both}`id`, byte 6: the writer has string, the reader long",
    ]


def test_the_latest_version_of_a_subject_is_the_readers_schema(server: RegistryServer) -> None:
    old, new = add(server, FIRST), add(server, READER)
    form = avro(registry=registry(server.url), subject="orders-value")
    assert form.schema == {"id": pl.Int64(), "cents": pl.Float64(), "user": pl.String()}
    assert str(form) == f"Avro, schemas from {server.url}"
    add(server, SECOND)
    records = [
        framed(old, encode(FIRST, {"id": 1, "cents": 2, "note": ""}, DICE)),
        framed(new, encode(READER, {"id": 3, "cents": 4.5, "user": (1, "ada")}, DICE)),
    ]
    assert read(form, *records).frame.rows() == [(1, 2.0, None), (3, 4.5, "ada")]


def test_a_subject_whose_schema_cannot_be_read_is_refused(server: RegistryServer) -> None:
    add(server, order(("id", ["int", "string"])))
    with pytest.raises(DefinitionError, match="got int, string in field `id`") as caught:
        avro(registry=registry(server.url), subject="orders-value")
    assert caught.value.code == "AVRO_UNION"
    server.register("events-value", "message", kind="PROTOBUF")
    with pytest.raises(DefinitionError, match="got a schema of type PROTOBUF; use the format of that type") as caught:
        avro(registry=registry(server.url), subject="events-value")
    assert caught.value.code == "AVRO_SCHEMA"


def test_schemas_may_refer_to_other_schemas(server: RegistryServer) -> None:
    server.register("money", '{"type":"record","name":"shop.Money","fields":[{"name":"cents","type":"Cents"}]}',
                    references=[{"name": "Cents", "subject": "cents", "version": 1}])  # fmt: skip
    server.register("cents", '{"type":"fixed","name":"shop.Cents","size":2}')
    references = [
        {"name": "shop.Money", "subject": "money", "version": 1},
        {"name": "shop.Cents", "subject": "cents", "version": 1},
    ]
    number = add(server, order(("price", "shop.Money"), ("tip", "shop.Cents")), references=references)
    form = avro(registry=registry(server.url), subject="orders-value")
    assert read(form, framed(number, b"abcd")).frame.to_dicts() == [{"price": {"cents": b"ab"}, "tip": b"cd"}]


def test_a_reference_that_leads_nowhere_is_reported(server: RegistryServer) -> None:
    number = add(server, order(("price", "Money")), references=[{"name": "Money", "subject": "money", "version": 3}])
    decoded = read(avro(READER, registry=registry(server.url)), framed(number, b"abcd"))
    assert "a reference to version 3 of `money`, which the registry lacks" in decoded.bad["message"][0]


def test_references_in_a_circle_are_reported(server: RegistryServer) -> None:
    circle = [{"name": "Order", "subject": "orders-value", "version": 1}]
    number = add(server, order(("price", "Money")), references=circle)
    decoded = read(avro(READER, registry=registry(server.url)), framed(number, b"abcd"))
    assert reasons(decoded) == [(0, "incompatible_schema")]


def test_a_registry_that_does_not_answer_fails_the_batch_and_not_the_record(server: RegistryServer) -> None:
    number = add(server, FIRST)
    decoder = avro(READER, registry=registry(server.url)).decoder()
    payload = pl.Series([framed(number, encode(FIRST, {"id": 1, "cents": 2, "note": ""}, DICE))])
    server.fail_next(500, times=4)
    with pytest.raises(RunError, match="no record is lost") as caught:
        decoder.decode(payload)
    assert caught.value.code == "REGISTRY_UNREACHABLE"
    assert decoder.decode(payload).frame.rows() == [(1, 2.0, None)]


def test_an_id_that_was_unknown_is_looked_for_again(server: RegistryServer) -> None:
    decoder = avro(READER, registry=registry(server.url)).decoder()
    payload = pl.Series([framed(1, encode(FIRST, {"id": 1, "cents": 2, "note": ""}, DICE))])
    assert reasons(decoder.decode(payload)) == [(0, "unknown_schema")]
    add(server, FIRST)
    assert decoder.decode(payload).bad.is_empty()


def test_noise_does_not_ask_the_registry_about_every_number_in_it(
    server: RegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DECODER, "_MOST_UNKNOWN", 5)
    number = add(server, FIRST)
    good = framed(number, encode(FIRST, {"id": 1, "cents": 2, "note": ""}, DICE))
    noise = [framed(1000 + place, b"") for place in range(50)]
    decoded = read(avro(READER, registry=registry(server.url)), *noise, good, good)
    assert decoded.frame["id"].to_list()[-2:] == [1, 1]
    assert set(decoded.bad["reason"]) == {"unknown_schema"}
    assert len(server.requests) == 6
    assert decoded.bad["message"][49] == f"schema 1049 was not looked up: 5 other ids are not in {server.url}"


def test_a_format_travels_without_the_values_of_its_secrets(
    server: RegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGISTRY_PASSWORD", "swordfish!")
    server.require_basic("ada", "swordfish!")
    number = add(server, FIRST)
    form = avro(registry=registry(server.url, auth=("ada", secret("REGISTRY_PASSWORD"))), subject="orders-value")
    travelled = pickle.dumps(form)
    assert b"swordfish!" not in travelled
    assert "swordfish!" not in repr(form) + str(form) + repr(form.decoder())
    copy = pickle.loads(travelled)  # noqa: S301  our own bytes
    body = encode(FIRST, {"id": 1, "cents": 2, "note": "n"}, DICE)
    assert read(copy, framed(number, body)).frame.rows() == [(1, 2, "n")]


def test_the_names_are_public() -> None:
    assert slackwater.formats.avro is avro
    assert slackwater.formats.registry is registry
    assert slackwater.formats.Registry is Registry
