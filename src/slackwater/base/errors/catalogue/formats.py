"""Errors of formats, sorted by code."""

from __future__ import annotations

from typing import Final

MESSAGES: Final[dict[str, str]] = {
    "AVRO_ARGUMENTS": (
        "Avro records are read with one schema: `schema=` alone, or `registry=` with either `schema=` or `subject=`; "
        'got {got}; write, for example, avro(schema=Path("order.avsc")) or '
        'avro(registry=sw.formats.registry("http://host:8081"), subject="orders-value")'
    ),
    "AVRO_COLUMNS": (
        "the columns written as Avro record `{record}` must match its fields, except fields with a default; got "
        "{got}; choose the columns with .select(...), or change the schema"
    ),
    "AVRO_COLUMN_NAME": (
        "the name of a column written as Avro may contain only A to Z, a to z, digits and `_`, and cannot start with "
        "a digit; got `{got}`; rename it with .select(...)"
    ),
    "AVRO_COLUMN_TYPE": (
        "an Avro field must be able to hold every value of its column; got {got} for {kind} in field `{path}`; cast "
        "the column with .with_columns(...), or declare the field as {fitting}"
    ),
    "AVRO_NO_TYPE": (
        "a column written as Avro must have a type that Avro supports; got {got} in `{path}`; cast it with "
        ".with_columns(...), or drop it with .select(...)"
    ),
    "AVRO_SCHEMA": "an Avro schema must be valid and map to columns; got {problem}; {remedy}",
    "AVRO_UNION": (
        "a union that becomes a column must be null and one other type; got {got} in field `{path}`; declare the "
        "field in a reader schema as null and the type you need (records of other types become dead letters), or "
        "have it written as a record with one field per type"
    ),
    "AVRO_VALUE": "a value written as Avro must fit the type of its field; got {got} in field `{path}`; {remedy}",
    "BAD_SCHEMA": (
        "a schema must be Spark DDL such as `id string, amount double`, or a mapping of names to Polars types; got "
        "{problem}; {remedy}"
    ),
    "CSV_NESTED": (
        "CSV cannot hold nested columns; got `{name}` of type {dtype}; declare it as string and parse it with .map, "
        "or write the records as JSON"
    ),
    "CSV_OPTION": "CSV option `{what}` must be {rule}; got {got}; omit it to use the default",
    "DEAD_LETTER_JSON": (
        "a dead letter in JSON is an object with source, partition, offset, step, reason and processed_at, and with "
        "bytes in base64; {place} is {got}; give the folder or topic that a dead-letter output writes to"
    ),
    "DEBEZIUM_ARGUMENTS": (
        "Debezium events are read with one schema: the columns of the table for JSON, or a format of whole envelopes "
        'as `value`; got {got}; write, for example, debezium("id long, email string", key="id") or '
        'debezium(key="id", value=sw.formats.avro(...))'
    ),
    "DEBEZIUM_ENVELOPE": (
        "`value` must be a format of Debezium envelopes, with records `before`, `after` and `source`, a string `op` "
        "and a long `ts_ms`; got {got}; use the schema that the connector registered for the topic's values"
    ),
    "DEBEZIUM_KEY": "`key` must name one or more columns of the table, each once; got {got}; the columns are {known}",
    "DEBEZIUM_KEY_NAME": (
        "a key column must not have the name of a change event's own column ({taken}); got key `{got}`; rename it "
        "with a transform of the connector, or choose another key"
    ),
    "DEBEZIUM_OPTION": "Debezium option `{what}` must be {takes}; got {got}; omit it if the records carry their schema",
    "DECODER_FAILED": (
        "a format must be able to create its decoder in every worker; `decoder()` of format {form} raised {cause} in "
        "step `{step}`; fix it, then restart: no record is lost"
    ),
    "DECODER_RESULT": (
        "a decoder must return `Decoded` with one row per record, exactly the declared columns, and in `bad` the "
        "index, reason and message of each bad record; step `{step}` got {got} from format {form}; fix its decoder, "
        "then restart: no record is lost"
    ),
    "DUPLICATE_COLUMN": (
        "column names must be unique, ignoring case; got `{name}` after `{other}`{place}; rename one of them"
    ),
    "FORMAT_LIMIT": (
        "format option `{what}` must be a whole number from {least} to {most}; got {got}; omit it to use {default}"
    ),
    "JSON_OPTION": "JSON option `{what}` must be {rule}; got {got}; omit it to use {default}",
    "JSON_UNKNOWN_TAKEN": (
        '`unknown="keep"` adds a column named `unknown`; got a declared column `{name}`; remove it from the schema, '
        "and its values are kept in that column with the other undeclared fields"
    ),
    "JSON_VALUE": (
        "a value written as JSON must be representable in JSON; column `{column}` has one that is not: {cause}; "
        "convert it before the sink with .with_columns(...)"
    ),
    "LOG_RECORD": "{rule}; {got}; {remedy}",
    "PROTOBUF_DESCRIPTOR_SET": (
        "a descriptor set must contain the message's file and everything it imports; got {cause}; create it with "
        "`protoc --include_imports --descriptor_set_out=orders.desc orders.proto`"
    ),
    "PROTOBUF_MAP_KEY": (
        "map keys must be strings; got {got} in `{field}`; declare a message of your own without this field, or with "
        "a repeated message of key = 1 and value = 2 instead, which has the same wire format"
    ),
    "PROTOBUF_MESSAGE": (
        "`protobuf` takes a generated message class or a descriptor, or `descriptor_set` and `name`; got {got}; "
        'write protobuf(orders_pb2.Order) or protobuf(descriptor_set="orders.desc", name="shop.Order")'
    ),
    "PROTOBUF_NAME": (
        "a message must be in the descriptor set, by its full name; got `{name}`{hint}; the set has {known}"
    ),
    "PROTOBUF_RECURSIVE": (
        "a recursive message cannot be mapped to columns; got `{message}` ({way}); declare a message of your own "
        "without this field: records are read by field number, and undeclared fields are skipped"
    ),
    "REGISTRY_ADDRESS": (
        "a registry URL must be http://host:port or https://host, without user, password or query; got {got}; write "
        'registry("http://host:8081", auth=("user", sw.secret("PASSWORD")))'
    ),
    "REGISTRY_ANSWER": (
        "a schema registry must respond as Confluent's does; got {got} for {path} from {url}; check that the URL is "
        "that of a registry, including its path if it has one"
    ),
    "REGISTRY_AUTH": (
        "`auth` of a registry must be a pair of user and password or a bearer token, as secrets; got a "
        '{got}; write auth=("user", sw.secret("PASSWORD")) or auth=sw.secret("TOKEN")'
    ),
    "REGISTRY_DENIED": (
        "the pipeline needs permission to read schemas from the registry; got HTTP {status} for {path} from {url}; "
        "give registry(...) an `auth` that can read them"
    ),
    "REGISTRY_INCOMPATIBLE": (
        "a new schema must be compatible with its subject's earlier versions; got HTTP 409 for {path} from {url} "
        "({cause}); add or drop only nullable columns, write to a new topic, or change the subject's compatibility "
        "level"
    ),
    "REGISTRY_REFUSED": (
        "the schema registry must accept the schema of the records written; got HTTP 422 for {path} from {url} "
        "({cause}); correct the schema, or allow new versions of the subject"
    ),
    "REGISTRY_SUBJECT": (
        "a subject must exist in the registry; got `{subject}`, which {url} does not have; check its name (usually "
        "<topic>-value), or pass schema= instead"
    ),
    "REGISTRY_TOKEN": (
        "a bearer token must be one line of printable ASCII; got other characters in the token for {url}; check the "
        "secret for line breaks and quotes"
    ),
    "REGISTRY_UNREACHABLE": (
        "the schema registry must be available to read or write records; got no response from {url} in {attempts} "
        "attempts ({cause}); check that it is running and that the workers can reach it, then restart: no record is "
        "lost"
    ),
    "REGISTRY_WRITE_DENIED": (
        "the pipeline needs permission to register the schema it writes; got HTTP {status} for {path} from {url}; "
        "give registry(...) an `auth` that can register schemas, or register it yourself and use avro(registry=..., "
        "subject=...)"
    ),
    "SPARK_VALUE": (
        "a value passed to Spark must fit a Spark type; column `{column}` has one that does not: {cause}; convert it "
        "before the sink with .with_columns(...)"
    ),
}
