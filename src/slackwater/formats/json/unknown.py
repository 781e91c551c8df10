"""Extracts the undeclared fields of JSON records with their original text, for many records of one shape at once."""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl
import pyarrow as pa

from slackwater.formats.ddl import map_type
from slackwater.formats.json.proof import Proof, Shape
from slackwater.formats.slices import cut, listed

UNKNOWN: Final = "unknown"
"""The name of the column for undeclared fields."""

UNKNOWN_TYPE: Final = map_type(pl.String())


def kept_fields(lines: pl.Series, proof: Proof) -> pl.Series:
    """Return the undeclared fields of the lines that were proven by a shape with such fields; null for the others."""
    if not proof.with_unknown:
        return pl.Series(UNKNOWN, [None], dtype=UNKNOWN_TYPE).new_from_index(0, len(lines))
    entries = [_entries(lines.gather(places), shape) for shape, places in proof.with_unknown]
    places = np.concatenate([places for _, places in proof.with_unknown])
    source = np.full(len(lines), -1)
    source[places] = np.arange(len(places))
    return pl.concat(entries).gather(pl.Series(source).replace(-1, None)).alias(UNKNOWN)


def _entries(lines: pl.Series, shape: Shape) -> pl.Series:
    """Return the name and text of each undeclared field, in order.

    The start of every line is removed, first up to a value and then including it: the lengths removed give the value's
    position, and this is cheaper than a pattern with groups.
    """
    whole = lines.rechunk().to_arrow()
    _, offsets, content = whole.buffers()
    assert offsets is not None
    assert content is not None
    ends = np.frombuffer(memoryview(offsets), dtype=np.int64)[whole.offset + 1 : whole.offset + len(whole) + 1]
    data = np.frombuffer(memoryview(content), dtype=np.uint8)
    values, rest = [], lines
    for field in shape.unknown:
        rest = rest.str.replace(field.before, "")
        starts = ends - rest.str.len_bytes().to_numpy()
        rest = rest.str.replace(field.value, "")
        stops = ends - rest.str.len_bytes().to_numpy()
        values.append(pl.Series(cut(data, starts, stops).view(pa.large_string())))
    per_line, total = len(shape.unknown), len(shape.unknown) * len(lines)
    line_by_line = np.arange(total).reshape(per_line, len(lines)).T.ravel()
    names = pl.Series([field.name for field in shape.unknown]).gather(np.tile(np.arange(per_line), len(lines)))
    entries = pl.DataFrame({"key": names, "value": pl.concat(values).gather(line_by_line)}).to_struct()
    return listed(np.full(len(lines), per_line), entries, UNKNOWN_TYPE)
