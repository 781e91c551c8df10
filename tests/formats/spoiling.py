"""Ways to spoil a record, whatever its format."""

from __future__ import annotations

import random


def cut(dice: random.Random, record: bytes) -> bytes:
    """Return a beginning of it."""
    return record[: dice.randrange(len(record) + 1)]


def flip(dice: random.Random, record: bytes) -> bytes:
    """Return it with one bit flipped."""
    at = dice.randrange(len(record))
    return record[:at] + bytes([record[at] ^ (1 << dice.randrange(8))]) + record[at + 1 :]


def drop(dice: random.Random, record: bytes) -> bytes:
    """Return it without one to three of its bytes."""
    at = dice.randrange(len(record))
    return record[:at] + record[at + dice.randrange(1, 4) :]
