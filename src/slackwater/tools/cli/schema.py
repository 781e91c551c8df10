"""`slackwater schema check OLD NEW`: whether a new version of a schema may follow an old one."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import polars as pl
import typer

from slackwater.base.errors import refuse
from slackwater.formats.avro import read_schema
from slackwater.formats.avro.compat import Compatibility, Level, compare_avro, compare_columns
from slackwater.formats.avro.parser import AvroSchemaError
from slackwater.formats.avro.resolution import Unreadable
from slackwater.formats.avro.schema import AvroType
from slackwater.formats.schemas import as_schema
from slackwater.tools.cli.options import at_home

schema = typer.Typer(help="Check schema changes.", no_args_is_help=True)

_WORDS: Final[dict[Level, str]] = {
    "full": "each version can read records of the other",
    "backward": "the new version can read records of the old, but not the other way round: update readers first",
    "forward": "the old version can read records of the new, but not the other way round: update writers first",
    "none": "neither version can read records of the other",
}


class Need(StrEnum):
    """The compatibility that a schema change must have."""

    BACKWARD = "backward"
    FORWARD = "forward"
    FULL = "full"


@schema.command("check")
def check_schemas(
    old: Annotated[
        Path,
        typer.Argument(callback=at_home, help="Old version: an Avro schema (.avsc), or DDL as in sw.formats.json."),
    ],
    new: Annotated[Path, typer.Argument(callback=at_home, help="New version, in the same notation.")],
    *,
    need: Annotated[Need, typer.Option(help="Required compatibility; anything less exits with code 1.")] = Need.FULL,
) -> None:
    """Check whether a schema change is backward or forward compatible, and why, field by field.

    The decoders apply the same rules: whatever is listed here becomes dead letters in a job.

    [dim]Examples:[/dim]

      slackwater schema check order-v1.avsc order-v2.avsc

      slackwater schema check order-v1.avsc order-v2.avsc --need backward

      slackwater schema check old.ddl new.ddl
    """
    found = _compared(old, new)
    typer.echo(f"{found.level}: {_WORDS[found.level]}")
    _list("the new version cannot read records of the old", found.backward)
    _list("the old version cannot read records of the new", found.forward)
    if not found.meets(need):
        raise typer.Exit(code=1)


def _compared(old: Path, new: Path) -> Compatibility:
    before, after = _read(old), _read(new)
    if isinstance(before, pl.Schema) and isinstance(after, pl.Schema):
        return compare_columns(before, after)
    if isinstance(before, pl.Schema) or isinstance(after, pl.Schema):
        kinds = " and ".join("DDL" if isinstance(each, pl.Schema) else "Avro" for each in (before, after))
        raise refuse("SCHEMA_KINDS", got=kinds)
    return compare_avro(before, after)


def _read(path: Path) -> AvroType | pl.Schema:
    """Return the schema in a file; Avro schemas are JSON, and DDL never looks like JSON."""
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".avsc" or text.lstrip().startswith(("{", "[", '"')):
            return read_schema(text)
    except (OSError, UnicodeDecodeError) as error:
        raise refuse("SCHEMA_FILE", path=path, cause=getattr(error, "strerror", None) or "not UTF-8") from None
    except AvroSchemaError as error:
        raise refuse("AVRO_SCHEMA", problem=f"{error.problem} in `{path}`", remedy=error.remedy) from None
    return as_schema(text)


def _list(title: str, found: tuple[Unreadable, ...]) -> None:
    if found:
        typer.echo(f"{title}:")
    for problem in found:
        typer.echo(f"  {problem}")
