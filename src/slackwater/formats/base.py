"""The contract between the engine and a format: a column of records in, columns and flaws out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import polars as pl

from slackwater.base.errors import refuse

TOO_LONG: Final = "too_long"
"""The reason of dead letters for records that are longer than their format takes."""
_BAD: Final = pl.Schema({"index": pl.UInt32(), "reason": pl.String(), "message": pl.String()})


@dataclass(frozen=True, kw_only=True)
class Flaw:
    """Why a record is a dead letter: a code, and a message that names the field and what it held."""

    reason: str
    message: str


@dataclass(frozen=True, kw_only=True)
class Decoded:
    """The result of decoding a column of records.

    `frame` has one row per record, in order, with the declared columns; all null where the record is bad. `bad` has
    a row (index, reason, message) for each bad record, in order.
    """

    frame: pl.DataFrame
    bad: pl.DataFrame

    @classmethod
    def of(cls, frame: pl.DataFrame, flaws: dict[int, Flaw]) -> Decoded:
        """Combine `frame` with the flaws of its records, keyed by row index."""
        places = sorted(flaws)
        bad = pl.DataFrame(
            {
                "index": places,
                "reason": [flaws[at].reason for at in places],
                "message": [flaws[at].message for at in places],
            },
            schema=_BAD,
        )
        return cls(frame=frame, bad=bad)


def too_long(size: int, *, most: int) -> Flaw:
    """Return the flaw of a record of `size` bytes, if there may be at most `most`."""
    return Flaw(reason=TOO_LONG, message=f"a record may have at most {most} bytes; got {size}")


def check_limit(what: str, got: object, *, most: int, default: int) -> None:
    """Refuse a limit that is not an integer from 1 to `most`."""
    if isinstance(got, bool) or not isinstance(got, int) or not 1 <= got <= most:
        raise refuse("FORMAT_LIMIT", what=what, least=1, most=most, got=repr(got), default=default)


class Decoder(ABC):
    """Decodes records of one format. Created once per process; it may learn from records it has seen."""

    @abstractmethod
    def decode(self, payload: pl.Series) -> Decoded:
        """Decode a column of bytes (`pl.Binary`, nulls included) into rows and flaws.

        If this raises, smaller parts are decoded again to find the record that caused it, which becomes a dead letter
        with the reason `failed`.
        """


class Format(ABC):
    """Defines how the bytes of a record become columns: a frozen definition that is sent to the workers."""

    schema: pl.Schema
    """The columns of the decoded rows."""
    max_bytes: int | None = None
    """The limit on the size of a record; None if there is none."""

    @property
    def optional(self) -> frozenset[str]:
        """The columns that a decoder can leave out."""
        return frozenset()

    @abstractmethod
    def decoder(self) -> Decoder:
        """Return a new decoder for this format."""

    def narrow_decoder(self, left_out: Collection[str]) -> Decoder:  # noqa: ARG002  no optional columns by default
        """Return a decoder that leaves out some of the optional columns but finds the same flaws."""
        return self.decoder()

    @abstractmethod
    def __str__(self) -> str:
        """Return the format as `explain` shows it."""
