"""Writers' schemas: fetched from a registry, parsed, and resolved with the reader's."""

from __future__ import annotations

from typing import Final

from slackwater.formats.avro.parser import AvroParser, AvroSchemaError
from slackwater.formats.avro.resolution import AsStruct, problems, resolve_schemas
from slackwater.formats.avro.schema import AvroRecord, AvroType
from slackwater.formats.base import Flaw
from slackwater.formats.registry import Reference, RegisteredSchema, Registry

_MOST_REFERENCES: Final = 200
_SHOWN_PROBLEMS: Final = 3


def parse_registered(registry: Registry, schema: RegisteredSchema) -> AvroType:
    """Parse a registered schema, after the schemas it refers to."""
    if schema.kind != "AVRO":
        raise AvroSchemaError(f"a schema of type {schema.kind}", "use the format of that type")
    parser = AvroParser()
    _read_references(registry, schema.references, parser, seen=set())
    return parser.parse(schema.text)


def reading_of(registry: Registry, schema: RegisteredSchema, reader: AvroRecord, label: str) -> AsStruct | Flaw:
    """Return how to read records of a writer's schema as the reader's, or the flaw if that is impossible."""
    try:
        action = resolve_schemas(parse_registered(registry, schema), reader)
    except AvroSchemaError as error:
        return incompatible(schema.id, label, error.problem)
    found = [str(problem) for problem in problems(action, only_always=True)]
    if found or not isinstance(action, AsStruct):
        more = f" (and {len(found) - _SHOWN_PROBLEMS} more)" if len(found) > _SHOWN_PROBLEMS else ""
        why = "; ".join(found[:_SHOWN_PROBLEMS]) + more if found else "the writer has a union at the top"
        return incompatible(schema.id, label, why)
    return action


def incompatible(schema_id: int, label: str, why: str) -> Flaw:
    """Return the flaw of a record whose writer's schema is incompatible with the reader's."""
    return Flaw(reason="incompatible_schema", message=f"writer's schema {schema_id}, reader's {label}: {why}")


def _read_references(
    registry: Registry, references: tuple[Reference, ...], parser: AvroParser, *, seen: set[tuple[str, int]]
) -> None:
    for reference in references:
        place = (reference.subject, reference.version)
        if place in seen:
            continue
        seen.add(place)
        if len(seen) > _MOST_REFERENCES:
            raise AvroSchemaError(f"more than {_MOST_REFERENCES} references", "refer to fewer schemas")
        found = registry.version(*place)
        if found is None:
            words = f"a reference to version {reference.version} of `{reference.subject}`, which the registry lacks"
            raise AvroSchemaError(words, "register it")
        _read_references(registry, found.references, parser, seen=seen)
        parser.parse(found.text)
