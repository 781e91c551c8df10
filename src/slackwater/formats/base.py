"""The contract between the engine and a format: a column of records in, columns and flaws out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import polars as pl

from slackwater.errors import refuse

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
        """Return `frame` with the flaws of its records, which are given by place."""
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


def check_limit(what: str, got: object, *, most: int, default: int) -> None:
    """Refuse a limit of a format that is no whole number from 1 to `most`."""
    if isinstance(got, bool) or not isinstance(got, int) or not 1 <= got <= most:
        raise refuse("FORMAT_LIMIT", what=what, least=1, most=most, got=repr(got), default=default)


class Decoder(ABC):
    """Decodes records of one format. Created once per process; it may learn from records it has seen."""

    @abstractmethod
    def decode(self, payload: pl.Series) -> Decoded:
        """Return the rows of a column of bytes (`pl.Binary`, nulls included), and the flaws.

        A record on which it raises is a dead letter with the reason `failed`, found by decoding smaller parts again.
        """


class Format(ABC):
    """Defines how the bytes of a record become columns: a frozen definition that is sent to the workers."""

    schema: pl.Schema
    """The columns of every record."""

    @property
    def optional(self) -> frozenset[str]:
        """The columns that a decoder can do without."""
        return frozenset()

    @abstractmethod
    def decoder(self) -> Decoder:
        """Return a new decoder of such records."""

    def narrow_decoder(self, left_out: Collection[str]) -> Decoder:  # noqa: ARG002  here there is nothing to leave out
        """Return a decoder that does without some of the optional columns; it finds the same flaws."""
        return self.decoder()

    @abstractmethod
    def __str__(self) -> str:
        """Return the format as `explain` shows it."""
