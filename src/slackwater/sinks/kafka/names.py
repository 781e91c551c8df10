"""Names that Kafka knows an output by: of its transactions, and of its marks."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Final

_LONGEST: Final = 200
_DIGITS: Final = 12
_ILLEGAL: Final = re.compile(r"[^A-Za-z0-9._-]")


def identity_of(pipeline: str, output: str, topic: str) -> str:
    """Return a name for an output and its topic that no other has: legal in Kafka, and short enough.

    It is `pipeline.output.topic`. Where that could be another's as well (a name has dots of its own, characters
    that Kafka does not take, or is long), digits made of the three names follow.
    """
    whole = f"{pipeline}.{output}.{topic}"
    legal = _ILLEGAL.sub("_", whole)
    if legal == whole and "." not in pipeline + output and len(whole) <= _LONGEST:
        return whole
    digits = hashlib.sha256(json.dumps([pipeline, output, topic]).encode()).hexdigest()[:_DIGITS]
    return f"{legal[: _LONGEST - _DIGITS - 1]}-{digits}"
