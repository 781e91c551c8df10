"""Other places for the demo's results: a database, broker or receiver, started and stopped on this machine.

The rows are read back with the place's own client, as anyone would, without any of the sink's code.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from slackwater.base.stopping import stopped_by_signals
from slackwater.tools.demo.places.base import Place
from slackwater.tools.demo.places.delta import Delta
from slackwater.tools.demo.places.http import Http
from slackwater.tools.demo.places.kafka import Kafka
from slackwater.tools.demo.places.postgres import Postgres
from slackwater.tools.demo.places.redis import Redis

__all__ = ["PLACES", "Place", "opened"]

PLACES: Final[dict[str, type[Place]]] = {place.kind: place for place in (Kafka, Postgres, Delta, Redis, Http)}


@contextmanager
def opened(place: Place) -> Iterator[None]:
    """Start `place` and always stop it at the end; signals take effect only after it is stopped."""

    def interrupt() -> None:
        raise KeyboardInterrupt

    with stopped_by_signals(interrupt):
        try:
            with place.translated():
                place.start()
            yield
        finally:
            with stopped_by_signals(_wait), place.translated():
                place.stop()


def _wait() -> None:
    """Ignore a signal: the stop it asks for is already under way."""
