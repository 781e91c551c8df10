"""Temporary."""

from dataclasses import dataclass
import polars as pl
from slackwater.formats.schemas import SchemaSpec, as_schema


@dataclass(frozen=True, kw_only=True)
class JsonFormat:
    """Records that are JSON objects."""

    schema: pl.Schema
    max_depth: int = 64
    max_bytes: int = 1_048_576


@dataclass(frozen=True, kw_only=True)
class Decoded:
    """Rows and what was bad."""

    frame: pl.DataFrame
    bad: pl.DataFrame


class JsonDecoder:
    """Temporary."""

    def __init__(self, form: JsonFormat) -> None:
        self.form = form

    def decode(self, payload: pl.Series) -> Decoded:
        frame = payload.cast(pl.String).str.json_decode(pl.Struct(dict(self.form.schema))).struct.unnest()
        return Decoded(
            frame=frame,
            bad=pl.DataFrame(schema={"index": pl.UInt32, "reason": pl.String, "message": pl.String}),
        )


def json(schema: SchemaSpec, *, max_depth: int = 64, max_bytes: int = 1_048_576) -> JsonFormat:
    """Temporary."""
    return JsonFormat(schema=as_schema(schema), max_depth=max_depth, max_bytes=max_bytes)
