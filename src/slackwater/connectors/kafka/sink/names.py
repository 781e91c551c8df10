"""The names by which Kafka identifies an output: for its transactions and its marks."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Final

_LONGEST: Final = 200
_DIGITS: Final = 12
_ILLEGAL: Final = re.compile(r"[^A-Za-z0-9._-]")


def identity_of(pipeline: str, output: str, topic: str) -> str:
    """Return a unique name for an output and its topic, legal in Kafka and short enough.

    It is `pipeline.output.topic`. Where that could be ambiguous (a name contains dots, characters that Kafka does not
    allow, or is too long), a hash of the three names is appended.
    """
    whole = f"{pipeline}.{output}.{topic}"
    legal = _ILLEGAL.sub("_", whole)
    if legal == whole and "." not in pipeline + output and len(whole) <= _LONGEST:
        return whole
    digits = hashlib.sha256(json.dumps([pipeline, output, topic]).encode()).hexdigest()[:_DIGITS]
    return f"{legal[: _LONGEST - _DIGITS - 1]}-{digits}"
