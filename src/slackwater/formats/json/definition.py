"""JSON records: the definition that users write, and the decoder that turns bytes into columns."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Final, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from slackwater.base.errors import refuse
from slackwater.formats.base import Decoded, Decoder, Flaw, Format, check_limit
from slackwater.formats.exact_rows import Row, with_rows
from slackwater.formats.json.kernel import Kernel
from slackwater.formats.json.parsed import Declarations
from slackwater.formats.json.proof import Proof, Prover
from slackwater.formats.json.records import RecordReader
from slackwater.formats.json.unknown import UNKNOWN, UNKNOWN_TYPE, kept_fields
from slackwater.formats.json.values import is_map
from slackwater.formats.schemas import SchemaSpec, as_schema
from slackwater.formats.texts import to_texts

MAX_DEPTH: Final = 64
MAX_BYTES: Final = 1 << 20

_DEEPEST: Final = 256
_LONGEST: Final = 64 << 20


@dataclass(frozen=True, kw_only=True)
class JsonFormat(Format):
    """JSON objects, one per record, with the columns of `schema`.

    A missing field is null; an undeclared field is skipped, or kept in the column `unknown`. Nothing is coerced: a
    record with a field of the wrong type is a dead letter.
    """

    schema: pl.Schema = field(hash=False)
    max_depth: int = MAX_DEPTH
    max_bytes: int = MAX_BYTES
    unknown: Literal["ignore", "keep"] = "ignore"
    numbers_as_strings: bool = False

    @property
    def declared(self) -> pl.Schema:
        """The declared columns: the schema without the column of undeclared fields."""
        kept = [UNKNOWN] if self.unknown == "keep" else []
        return pl.Schema({name: dtype for name, dtype in self.schema.items() if name not in kept})

    @property
    def optional(self) -> frozenset[str]:
        """All columns except maps, which must be read: a null map reveals a duplicate key."""
        if self.unknown == "keep":
            return frozenset()
        return frozenset(n for n, dtype in self.schema.items() if not (isinstance(dtype, pl.List) and is_map(dtype)))

    def decoder(self) -> JsonDecoder:
        """Return a decoder for this format."""
        return JsonDecoder(self)

    def narrow_decoder(self, left_out: Collection[str]) -> JsonDecoder:
        """Return a decoder that leaves out some columns; if that leaves none, it keeps the first."""
        return JsonDecoder(self, left_out=frozenset(left_out))

    def __str__(self) -> str:
        return "JSON"


def json(
    schema: SchemaSpec,
    *,
    unknown: Literal["ignore", "keep"] = "ignore",
    numbers_as_strings: bool = False,
    max_depth: int = MAX_DEPTH,
    max_bytes: int = MAX_BYTES,
) -> JsonFormat:
    """Read records as JSON objects: `json("order_id string, amount double, placed_at timestamp")`.

    Times are ISO 8601 strings, with an offset or in UTC; `binary` is base64; a `map` is an object.
    Records nested deeper than `max_depth` or longer than `max_bytes` are dead letters.

    With `unknown="keep"`, an additional column `unknown` holds the undeclared fields of a record, as a list of
    `key` and `value`, where the value is the original JSON; null if there are none. Records with the same fields in
    the same order are still decoded in bulk; other records with undeclared fields are decoded one by one, which is
    many times slower.

    With `numbers_as_strings=True`, a number may also be a string that holds a JSON number: `"12"`, `"1.5"`.
    """
    for what, got, most, default in (
        ("max_depth", max_depth, _DEEPEST, MAX_DEPTH),
        ("max_bytes", max_bytes, _LONGEST, MAX_BYTES),
    ):
        check_limit(what, got, most=most, default=default)
    for what, choice, choices in (
        ("unknown", unknown, ("ignore", "keep")),
        ("numbers_as_strings", numbers_as_strings, (False, True)),
    ):
        if choice not in choices:
            rule = " or ".join(map(repr, choices))
            raise refuse("JSON_OPTION", what=what, rule=rule, got=repr(choice), default=repr(choices[0]))
    columns = as_schema(schema)
    if unknown == "keep":
        taken = [name for name in columns if name.lower() == UNKNOWN]
        if taken:
            raise refuse("JSON_UNKNOWN_TAKEN", name=taken[0])
        columns = pl.Schema({**columns, UNKNOWN: UNKNOWN_TYPE})
    return JsonFormat(
        schema=columns,
        max_depth=max_depth,
        max_bytes=max_bytes,
        unknown=unknown,
        numbers_as_strings=numbers_as_strings,
    )


class JsonDecoder(Decoder):
    """Decodes records of one JSON format; never raises, whatever the bytes.

    1. Records that are null, too long or not UTF-8 are set aside.
    2. Patterns prove records valid in bulk; DuckDB reads the proven ones.
    3. The others are read one by one, exactly.

    The path a record takes affects only the speed, never the result. A decoder is created once per task and learns the
    shape of the records from those it has seen.
    """

    def __init__(
        self,
        form: JsonFormat,
        *,
        left_out: frozenset[str] = frozenset(),
        declarations: Declarations = MappingProxyType({}),
    ) -> None:
        self._format = form
        self._declarations = declarations
        self._declared = form.declared
        self._left_out = left_out
        # All declared columns decide which records are valid, even those that are left out.
        self._wanted = [at for at, name in enumerate(self._declared) if name not in left_out] or [0]
        names = self._declared.names()
        self._made = pl.Schema({names[at]: self._declared[names[at]] for at in self._wanted})
        self._keeps = form.unknown == "keep"
        lenient = form.numbers_as_strings
        self._reader = RecordReader(
            self._declared,
            max_depth=form.max_depth,
            keep_unknown=self._keeps,
            numbers_as_strings=lenient,
            declarations=declarations,
        )
        self._prover = Prover(
            self._declared,
            self._reader,
            max_depth=form.max_depth,
            keep_unknown=self._keeps,
            numbers_as_strings=lenient,
        )
        self._kernel = Kernel(self._made)

    def __reduce__(self) -> tuple[Callable[..., JsonDecoder], tuple[JsonFormat]]:
        make = partial(JsonDecoder, left_out=self._left_out, declarations=dict(self._declarations))
        return (make, (self._format,))

    def decode(self, payload: pl.Series) -> Decoded:
        """Decode a column of bytes into rows, and flaws for the records that could not be decoded."""
        texts = to_texts(payload, max_bytes=self._format.max_bytes)
        lines = texts.lines
        proof = self._prover.prove(lines)
        read = self._read_proven(lines, proof.proven)
        lost = self._prover.lost_maps(lines, read, proof.proven)
        if lost:
            proof.proven[lost] = False
            read = self._read_proven(lines, proof.proven)
        if self._keeps:
            read = read.with_columns(kept_fields(lines, proof))
        return self._one_by_one(lines, read, proof, texts.flaws)

    def _read_proven(self, lines: pl.Series, proven: NDArray[np.bool_]) -> pl.DataFrame:
        """Read the proven lines, with null rows for the others; unmark lines that DuckDB could not read after all."""
        if not proven.any():
            return pl.DataFrame(schema=self._made).clear(len(lines))
        if not proven.all():
            lines = pl.select(pl.when(pl.Series(proven)).then(lines)).to_series()
        read, refused = self._kernel.read(lines)
        proven[refused] = False
        return read

    def _one_by_one(self, lines: pl.Series, read: pl.DataFrame, proof: Proof, flaws: dict[int, Flaw]) -> Decoded:
        """Read the unproven lines one by one, and return all rows and flaws."""
        rows: dict[int, Row | None] = {}
        unproven = np.flatnonzero(~proof.proven)
        for at, line in zip(unproven.tolist(), lines.gather(unproven).to_list(), strict=True):
            if line is None:
                continue
            record = self._reader.read(line)
            if isinstance(record, Flaw):
                flaws[at] = record
            if self._keeps or not isinstance(record, Flaw):
                rows[at] = None if isinstance(record, Flaw) else self._narrowed(record)
        return Decoded.of(with_rows(read, rows), flaws)

    def _narrowed(self, record: Row) -> Row:
        return tuple(record[at] for at in self._wanted) if self._left_out else record
