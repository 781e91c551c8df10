"""What errors and notices of formats say, by code, sorted."""

from __future__ import annotations

from typing import Final

MESSAGES: Final[dict[str, str]] = {
    "AVRO_ARGUMENTS": (
        "records in Avro are read by one schema: `schema=` alone, or `registry=` with either "
        '`schema=` or `subject=`; got {got}; write for example avro(schema=Path("order.avsc")) or '
        'avro(registry=sw.formats.registry("http://host:8081"), subject="orders-value")'
    ),
    "AVRO_COLUMNS": (
        "the columns that are written as Avro record `{record}` and its fields must be the same, but "
        "for fields with a default; got {got}; choose the columns with .select(...), or change the "
        "schema"
    ),
    "AVRO_COLUMN_NAME": (
        "a column that is written as Avro must have a name of letters A to Z, digits and `_` that "
        "does not begin with a digit; got `{got}`; rename it with .select(...)"
    ),
    "AVRO_COLUMN_TYPE": (
        "a column that is written as Avro must be of a type whose every value its field can hold; got "
        "{got} for {kind} in field `{path}`; cast the column with .with_columns(...), or declare the "
        "field as {fitting}"
    ),
    "AVRO_NO_TYPE": (
        "a column that is written as Avro must be of a type that Avro has; got {got} in `{path}`; "
        "cast it with .with_columns(...), or leave it out with .select(...)"
    ),
    "AVRO_SCHEMA": ("an Avro schema must be one whose records can be read as columns; got {problem}; {remedy}"),
    "AVRO_UNION": (
        "a union that becomes a column must be of null and one other type; got {got} in field "
        "`{path}`; declare the field in a reader's schema as null and the type you need (records with "
        "another one become dead letters), or have it written as a record with a field for each type"
    ),
    "AVRO_VALUE": (
        "a value that is written as Avro must be one of its field's type; got {got} in field `{path}`; {remedy}"
    ),
    "BAD_SCHEMA": (
        "a schema must be Spark DDL such as `id string, amount double`, or names with Polars types; "
        "got {problem}; {remedy}"
    ),
    "CSV_NESTED": (
        "a CSV record has plain columns; got `{name}` of type {dtype}; declare it as string and take "
        "it apart with .map, or write records as JSON"
    ),
    "CSV_OPTION": "`{what}` of CSV must be {rule}; got {got}; leave it out for the default",
    "DEAD_LETTER_JSON": (
        "a dead letter as JSON is an object with source, partition, offset, step, reason and "
        "processed_at, and with bytes in base64; {place} is {got}; name the place that a dead-letter "
        "output was written to"
    ),
    "DEBEZIUM_ARGUMENTS": (
        "change events are read by one schema: that of the table's columns for JSON, or a format of "
        'whole envelopes as `value`; got {got}; write for example debezium("id long, email string", '
        'key="id") or debezium(key="id", value=sw.formats.avro(...))'
    ),
    "DEBEZIUM_ENVELOPE": (
        "`value` must be a format of Debezium's envelopes, with records `before`, `after` and "
        "`source`, a string `op` and a long `ts_ms`; got {got}; take the schema that the connector "
        "has registered for the topic's values"
    ),
    "DEBEZIUM_KEY": ("`key` must name one or more columns of the table, each once; got {got}; its columns are {known}"),
    "DEBEZIUM_KEY_NAME": (
        "a key column becomes a column beside those of every change ({taken}); got a key `{got}`; "
        "rename it with a transform of the connector, or choose another key"
    ),
    "DEBEZIUM_OPTION": (
        "`{what}` of change events must be {takes}; got {got}; leave it out if records come with their schema"
    ),
    "DUPLICATE_COLUMN": (
        "two columns must not have one name (capitals make no difference); got `{name}` after "
        "`{other}`; rename one of them"
    ),
    "FORMAT_LIMIT": (
        "`{what}` of a format must be a whole number from {least} to {most}; got {got}; leave it out for {default}"
    ),
    "JSON_OPTION": "`{what}` of JSON must be {rule}; got {got}; leave it out for {default}",
    "JSON_UNKNOWN_TAKEN": (
        '`unknown="keep"` adds a column `unknown`; got a declared column `{name}` of that name; take '
        "it out of the schema, and it is kept in the column with the others that are not declared"
    ),
    "JSON_VALUE": (
        "a value that is written as JSON must be one that JSON can hold; column `{column}` has another: {cause}; "
        "convert it before the sink with .with_columns(...)"
    ),
    "LOG_RECORD": "{rule}; got {got}; {remedy}",
    "PROTOBUF_DESCRIPTOR_SET": (
        "a descriptor set must hold the message's file and all that it imports; got {cause}; make it "
        "with `protoc --include_imports --descriptor_set_out=orders.desc orders.proto`"
    ),
    "PROTOBUF_MAP_KEY": (
        "a map's keys must be strings; got {got} in `{field}`; read it with a message of your own "
        "that leaves the field out, or has a repeated message with key = 1 and value = 2 in its "
        "place: on the wire they are the same"
    ),
    "PROTOBUF_MESSAGE": (
        "`protobuf` takes a generated message class or a descriptor, or `descriptor_set` and `name`; "
        'got {got}; write protobuf(orders_pb2.Order) or protobuf(descriptor_set="orders.desc", '
        'name="shop.Order")'
    ),
    "PROTOBUF_NAME": (
        "a message must be in the descriptor set, by its full name; got `{name}`{hint}; the set has {known}"
    ),
    "PROTOBUF_RECURSIVE": (
        "a message that contains itself has no columns; got `{message}` ({way}); read it with a "
        "message of your own that leaves the field out: records are read by field numbers, and what "
        "is not declared is passed over"
    ),
    "REGISTRY_ADDRESS": (
        "a registry's address must be http://host:port or https://host, with no user, password or "
        'query in it; got {got}; write registry("http://host:8081", auth=("user", '
        'sw.secret("PASSWORD")))'
    ),
    "REGISTRY_ANSWER": (
        "a schema registry must answer as Confluent's does; got {got} for {path} from {url}; check "
        "that the address is a registry's, with its path if it has one"
    ),
    "REGISTRY_AUTH": (
        "`auth` of a registry must be a pair of user and password or a bearer token, given as strings "
        'or secrets; got a {got}; write auth=("user", sw.secret("PASSWORD")) or '
        'auth=sw.secret("TOKEN")'
    ),
    "REGISTRY_DENIED": (
        "a schema registry must let the pipeline read its schemas; got HTTP {status} for {path} from "
        "{url}; give registry(...) an `auth` that may read them"
    ),
    "REGISTRY_INCOMPATIBLE": (
        "a schema must be compatible with those that its subject has, by the rule the registry keeps "
        "for it; got HTTP 409 for {path} from {url} ({cause}); add or drop only columns that may be "
        "null, write to a new topic, or change the subject's rule"
    ),
    "REGISTRY_REFUSED": (
        "a schema registry must take the schema that records are written with; got HTTP 422 for "
        "{path} from {url} ({cause}); correct the schema, or let the registry take new ones for the "
        "subject"
    ),
    "REGISTRY_SUBJECT": (
        "a subject must be in the registry; got `{subject}`, which {url} does not have; check its "
        "name (a topic's records are often under <topic>-value), or give schema= instead"
    ),
    "REGISTRY_TOKEN": (
        "a bearer token must be one line of printable ASCII; got another one for {url}; look for line "
        "breaks or quotes in the secret"
    ),
    "REGISTRY_UNREACHABLE": (
        "a schema registry must answer before records can be read or written; got no answer from "
        "{url} in {attempts} attempts ({cause}); check that it runs and can be reached from the "
        "workers, then start again: no record is lost"
    ),
    "REGISTRY_WRITE_DENIED": (
        "a schema registry must let the pipeline register the schema it writes with; got HTTP "
        "{status} for {path} from {url}; give registry(...) an `auth` that may register it, or "
        "register it yourself and name it with avro(registry=..., subject=...)"
    ),
    "SPARK_VALUE": (
        "a value that is handed to Spark must be one of a type of Spark's; column `{column}` has another: {cause}; "
        "convert it before the sink with .with_columns(...)"
    ),
}
