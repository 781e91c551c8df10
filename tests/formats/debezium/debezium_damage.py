"""Changes as Debezium writes them, good and damaged, for the contract of decoders."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import strategies as st

from slackwater.formats import debezium
from tests.formats.debezium.debezium_samples import ANNE, CHANGES, MYSQL, change, wrapped, written

FORM = debezium(
    "id int, email string, at timestamp, on date, price decimal(10,2), photo binary, tags array<string>",
    key="id",
    times="auto",
)
FULL = {**ANNE, "at": 1559033904863, "on": 17000, "price": "BNI=", "photo": "AQI=", "tags": ["x"]}
GOOD = [
    *(written(payload) for payload in CHANGES.values()),
    *(written(wrapped(payload)) for payload in CHANGES.values()),
    written(change("u", None, {**FULL, "at": "2026-03-01T12:00:00Z"}, MYSQL)),
    written(change("c", None, FULL, {**MYSQL, "snapshot": True})),
    written(wrapped(change("c", None, FULL))),
]
VALUES = [
    b"null", b"true", b"-1", b"1e400", b"9" * 30, b"NaN", b'""', b'"\\ud800"', b"[]", b"{}", b'{"scale":1}', b'"BNI="',
    b'"2026-02-30"', b"[" * 70, b'{"op":"c"}', b'"payload"', b"9223372036854775807", b"-9223372036854775808", b"1.5",
]  # fmt: skip
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["c", "d", "struct", "int64"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "schema",
                    "payload",
                    "before",
                    "after",
                    "source",
                    "op",
                    "ts_ms",
                    "id",
                    "at",
                    "fields",
                    "field",
                    "type",
                    "lsn",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


def damaged(record: bytes, dice: random.Random) -> bytes:
    """Return a record with a value replaced, a byte changed, or a piece missing or doubled."""
    at = dice.randrange(len(record))
    until = min(len(record), at + dice.randrange(1, 20))
    match dice.randrange(5):
        case 0:
            return record[:at]
        case 1:
            return record[:at] + bytes([dice.randrange(256)]) + record[at + 1 :]
        case 2:
            return record[:at] + record[until:]
        case 3:
            return record[:until] + record[at:]
        case _:
            places = [place for place, byte in enumerate(record) if byte == ord(":")]
            at = dice.choice(places) + 1
            ends = [place for place in range(at, len(record)) if record[place] in b",}"]
            return record[:at] + dice.choice(VALUES) + record[ends[0] :]
