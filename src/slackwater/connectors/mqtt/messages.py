"""MQTT messages as records: a JSON object with the message's MQTT metadata, or the bare payload."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final

_PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(/[A-Za-z0-9_-]+)*")
_LONGEST_NAME: Final = 120
_STEM: Final = 40
_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_ONE_LINE: Final = str.maketrans("\r\n", "  ")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Message:
    """One message as received; equal messages remain distinct."""

    topic: str
    payload: bytes
    qos: int
    retain: bool
    dup: bool
    """Whether the broker marked the message as redelivered."""
    packet_id: int
    """The message's id among the unacknowledged ones, the same when it is redelivered; 0 for QoS 0."""
    received_at: datetime
    user_properties: tuple[tuple[str, str], ...] = ()


def wrapped_message(message: Message) -> bytes:
    """Return a message as one line of JSON, without the newline.

    A JSON payload is embedded as written, to the last digit; any other is base64 in `payload_base64`.
    """
    known: dict[str, object] = {
        "topic": message.topic,
        "qos": message.qos,
        "retain": message.retain,
        "dup": message.dup,
        "packet_id": message.packet_id,
        "received_at": message.received_at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    }
    if message.user_properties:
        known["user_properties"] = [{"name": name, "value": value} for name, value in message.user_properties]
    text = _json_text(message.payload)
    if text is None:
        known["payload_base64"] = base64.b64encode(message.payload).decode("ascii")
        return _dumped(known)
    return b'%b,"payload":%b}' % (_dumped(known)[:-1], text.encode())


def fits_a_line(payload: bytes) -> bool:
    """Return whether a log returns exactly these bytes if they are written as a line."""
    return b"\n" not in payload and not payload.endswith(b"\r")


def topic_folder(topic: str, *, partitions: int | None = None) -> str:
    """Return the log partition for a topic's messages; this mapping never changes.

    `sensors/7/temp` becomes `sensors.7.temp`. A long topic, or one with other characters, becomes its readable part and
    a hash. With `partitions`, topics share that many folders.
    """
    if partitions is not None:
        return str(int.from_bytes(_digest(topic)[:8], "big") % partitions)
    if len(topic) <= _LONGEST_NAME and _PLAIN.fullmatch(topic):
        return topic.replace("/", ".")
    stem = re.sub(r"[^A-Za-z0-9]+", "-", topic).strip("-")[:_STEM] or "topic"
    return f"{stem}~{_digest(topic).hex()[:16]}"


def _digest(topic: str) -> bytes:
    return hashlib.sha256(topic.encode("utf-8", "surrogatepass")).digest()


def _dumped(values: dict[str, object]) -> bytes:
    return json.dumps(values, separators=(",", ":")).encode("ascii")


def _json_text(payload: bytes) -> str | None:
    """Return a JSON payload as text on one line; None if it is not JSON, or not JSON that every reader accepts."""
    try:
        text = payload.decode("utf-8")
        value = json.loads(text, parse_constant=_refuse_constant)
        if _SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError):  # not UTF-8, not JSON, half a surrogate pair, or nested too deeply
        return None
    # JSON strings contain no raw line breaks, so any line breaks are between values.
    return text.translate(_ONE_LINE)


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is JavaScript, not JSON")
