"""Producer settings that users may choose, and those that the delivery guarantee depends on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from slackwater.base.errors import refuse
from slackwater.connectors.sink import Delivery

Option = str | int | float | bool

TIMEOUT: Final = "transaction.timeout.ms"
DEFAULT_TIMEOUT_MS: Final = 300_000
"""Long enough for a slot's share of a large batch; the broker's own limit is three times that by default."""
MOST_BYTES: Final = 1_000_000
"""The maximum size of a record, unless `message.max.bytes` sets another."""

_PROMISE: Final = "the sink sets it by `delivery`"
_CALLBACKS: Final = "the sink sets it itself"
_REFUSED: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        (
            "acks",
            "request.required.acks",
            "enable.gapless.guarantee",
            "enable.idempotence",
            "max.in.flight",
            "max.in.flight.requests.per.connection",
            "message.send.max.retries",
            "queuing.strategy",
            "retries",
            "transactional.id",
        ),
        _PROMISE,
    ),
    **dict.fromkeys(
        ("dr_cb", "dr_msg_cb", "on_delivery", "delivery.report.only.error", "error_cb", "log_cb", "stats_cb", "logger"),
        _CALLBACKS,
    ),
    **dict.fromkeys(("bootstrap.servers", "metadata.broker.list"), "give them as `servers`"),
    **dict.fromkeys(("partitioner", "partitioner_cb"), "give it as `partitioner`"),
}
_PREFIXES: Final[Mapping[str, str]] = {
    "sasl.": "give it as sasl=sw.kafka.sasl(...), which keeps secrets",
    "ssl.": "give it as tls=sw.kafka.tls(...)",
    "ssl_": "give it as tls=sw.kafka.tls(...)",
    "security.": "it follows from `tls` and `sasl`",
}


def checked_options(options: Any, delivery: Delivery) -> dict[str, Option]:  # noqa: ANN401  users may pass anything
    """Return `options` unchanged; rejects those that would break the sink's guarantee."""
    if not isinstance(options, Mapping):
        raise refuse("KAFKA_SINK_OPTION", got=type(options).__name__, why='give a mapping, such as {"linger.ms": 5}')
    for name, value in options.items():
        if not isinstance(name, str) or not isinstance(value, str | int | float | bool):
            raise refuse("KAFKA_SINK_OPTION", got=f"{name!r}", why="names must be strings, values strings or numbers")
        plain = name.lower()
        why = _REFUSED.get(plain) or next((why for prefix, why in _PREFIXES.items() if plain.startswith(prefix)), None)
        if why is not None:
            raise refuse("KAFKA_SINK_OPTION", got=f"`{name}`", why=why)
    timeout = options.get(TIMEOUT)
    if timeout is not None and delivery != "exactly_once":
        raise refuse("KAFKA_SINK_OPTION", got=f"`{TIMEOUT}`", why='only delivery="exactly_once" uses transactions')
    if timeout is not None and not (str(timeout).isdecimal() and int(timeout) >= 1_000):  # noqa: PLR2004  librdkafka's minimum
        raise refuse("KAFKA_SINK_OPTION", got=f"`{TIMEOUT}` {timeout!r}", why="it must be 1000 ms or more")
    return dict(options)
