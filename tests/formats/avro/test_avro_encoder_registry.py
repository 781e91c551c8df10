"""Schemas that are written with are registered, once, and records say which one they have."""

from __future__ import annotations

import json
import pickle

import polars as pl
import pytest

from slackwater.base.errors import DefinitionError, RunError
from slackwater.base.secrets import secret
from slackwater.formats import avro, registry
from tests.formats.registry_server import RegistryServer

FRAME = pl.DataFrame({"id": [1, 2], "note": ["x", None]})
SUBJECT = "orders-value"
ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
CONFLICT = b'{"error_code":409,"message":"Schema being registered is incompatible with an earlier schema"}'


def posts(server: RegistryServer) -> list[str]:
    return [request.path for request in server.requests if request.method == "POST"]


def test_records_begin_with_the_id_of_the_registered_schema(server: RegistryServer) -> None:
    server.register("other", '"string"')
    encoder = avro(registry=registry(server.url)).encoder(FRAME.schema, subject=SUBJECT)
    records = encoder.encode(FRAME)
    assert records.to_list() == [b"\0\0\0\0\x02" + b"\x02\x02\x02\x02x", b"\0\0\0\0\x02" + b"\x02\x04\x00"]
    assert server.schemas[2] == {"schema": encoder.text}
    assert server.subjects[SUBJECT] == [2]


def test_records_are_read_with_the_registry_alone(server: RegistryServer) -> None:
    encoder = avro(registry=registry(server.url)).encoder(FRAME.schema, subject=SUBJECT)
    records = encoder.encode(FRAME)
    reader = avro(registry=registry(server.url), subject=SUBJECT)
    assert reader.decoder().decode(records).frame.equals(FRAME)


def test_an_id_of_four_bytes_is_written_big_endian(server: RegistryServer) -> None:
    server.fail_next(200, body=b'{"id": 16909060}')
    encoder = avro(ORDER, registry=registry(server.url)).encoder(pl.Schema({"id": pl.Int64()}), subject=SUBJECT)
    assert encoder.encode(FRAME.select("id"))[0] == b"\x00\x01\x02\x03\x04\x02"


@pytest.mark.parametrize("answer", [b'{"id": 4294967296}', b'{"id": -1}', b'{"id": true}', b"{}"])
def test_an_answer_without_a_usable_id_is_reported(answer: bytes, server: RegistryServer) -> None:
    server.fail_next(200, body=answer)
    with pytest.raises(RunError, match="got a response without an id for /subjects/orders-value/versions") as caught:
        registry(server.url).register(SUBJECT, '"string"')
    assert caught.value.code == "REGISTRY_ANSWER"


def test_a_schema_is_registered_once_in_a_process(server: RegistryServer) -> None:
    form = avro(registry=registry(server.url))
    for _ in range(3):
        encoder = form.encoder(FRAME.schema, subject=SUBJECT)
        assert encoder.schema_id() == 1
        encoder.encode(FRAME)
    form.encoder(FRAME.schema, subject="refunds-value").encode(FRAME)
    form.encoder(pl.Schema({"id": pl.Int64()}), subject=SUBJECT).encode(FRAME.select("id"))
    assert posts(server) == [f"/subjects/{subject}/versions" for subject in (SUBJECT, "refunds-value", SUBJECT)]


def test_a_schema_of_ones_own_is_registered_as_it_was_written(server: RegistryServer) -> None:
    text = json.dumps({**ORDER, "doc": "an order"}, indent=2)
    form = avro(text, registry=registry(server.url))
    form.encoder(pl.Schema({"id": pl.Int64()}), subject=SUBJECT).encode(FRAME.select("id"))
    assert server.schemas[1] == {"schema": text}


def test_a_schema_of_the_registry_is_written_with_and_not_registered_again(server: RegistryServer) -> None:
    server.register("cents", '{"type":"fixed","name":"Cents","size":2}')
    order = {"type": "record", "name": "Order", "fields": [{"name": "price", "type": "Cents"}]}
    references = [{"name": "Cents", "subject": "cents", "version": 1}]
    server.register("shared", json.dumps(order), references=references)
    form = avro(registry=registry(server.url), subject="shared")
    encoder = form.encoder(form.schema, subject=SUBJECT)
    assert encoder.schema_id() == 2
    assert encoder.encode(pl.DataFrame({"price": [b"ab"]})).to_list() == [b"\0\0\0\0\x02ab"]
    assert posts(server) == []


def test_nothing_is_asked_before_the_first_record_and_without_a_registry_never(server: RegistryServer) -> None:
    encoder = avro(registry=registry(server.url)).encoder(FRAME.schema, subject=SUBJECT)
    assert server.requests == []
    assert avro().encoder(FRAME.schema, subject=SUBJECT).schema_id() is None
    encoder.encode(FRAME.clear())
    assert posts(server) == [f"/subjects/{SUBJECT}/versions"]


def test_a_registry_that_does_not_answer_may_be_asked_again(server: RegistryServer) -> None:
    encoder = avro(registry=registry(server.url)).encoder(FRAME.schema, subject=SUBJECT)
    server.fail_next(503, times=4)
    with pytest.raises(RunError, match="to read or write records; got no response") as caught:
        encoder.encode(FRAME)
    assert caught.value.code == "REGISTRY_UNREACHABLE"
    assert len(encoder.encode(FRAME)) == 2


def test_a_schema_that_the_subjects_rule_does_not_allow_is_reported(server: RegistryServer) -> None:
    encoder = avro(registry=registry(server.url)).encoder(FRAME.schema, subject=SUBJECT)
    server.fail_next(409, body=CONFLICT)
    with pytest.raises(RunError, match=r"got HTTP 409 .* \(Schema being registered is incompatible") as caught:
        encoder.schema_id()
    assert caught.value.code == "REGISTRY_INCOMPATIBLE"
    assert "add or drop only nullable columns" in str(caught.value)
    assert len(posts(server)) == 1


def test_a_schema_that_the_registry_does_not_take_is_reported(server: RegistryServer) -> None:
    encoder = avro(registry=registry(server.url)).encoder(FRAME.schema, subject=SUBJECT)
    server.fail_next(422, body=b'{"error_code":42205,"message":"Subject orders-value is in read-only mode"}')
    with pytest.raises(RunError, match=r"got HTTP 422 .* \(Subject orders-value is in read-only mode\)") as caught:
        encoder.encode(FRAME)
    assert caught.value.code == "REGISTRY_REFUSED"
    assert "correct the schema" in str(caught.value)


@pytest.mark.parametrize("status", [401, 403])
def test_a_user_who_may_not_register_schemas_learns_what_else_to_do(status: int, server: RegistryServer) -> None:
    encoder = avro(registry=registry(server.url)).encoder(FRAME.schema, subject=SUBJECT)
    server.fail_next(status)
    with pytest.raises(RunError, match=rf"got HTTP {status} for /subjects/orders-value/versions") as caught:
        encoder.encode(FRAME)
    assert caught.value.code == "REGISTRY_WRITE_DENIED"
    assert "use avro(registry=..., subject=...)" in str(caught.value)


def test_credentials_are_sent_and_never_shown(server: RegistryServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGISTRY_PASSWORD", "swordfish!")
    server.require_basic("ada", "swordfish!")
    form = avro(registry=registry(server.url, auth=("ada", secret("REGISTRY_PASSWORD"))))
    encoder = form.encoder(FRAME.schema, subject=SUBJECT)
    travelled = pickle.dumps((form, encoder))
    assert b"swordfish!" not in travelled
    assert "swordfish!" not in repr(form) + str(form) + repr(encoder)
    _, copy = pickle.loads(travelled)  # noqa: S301  our own bytes
    assert copy.schema_id() == 1


def test_users_register_for_themselves(server: RegistryServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGISTRY_PASSWORD", "swordfish!")
    for user in ("ada", "bob", "ada"):
        registry(server.url, auth=(user, secret("REGISTRY_PASSWORD"))).register(SUBJECT, '"string"')
    assert len(posts(server)) == 2


def test_a_format_without_a_schema_cannot_read_what_the_registry_has(server: RegistryServer) -> None:
    form = avro(registry=registry(server.url))
    assert str(form) == f"Avro, schemas in {server.url}"
    for read in (form.decoder, lambda: form.schema):
        with pytest.raises(DefinitionError, match="got registry; write, for example,") as caught:
            read()
        assert caught.value.code == "AVRO_ARGUMENTS"
