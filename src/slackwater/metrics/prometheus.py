"""What Prometheus scrapes: a collector over the last record of a job and the totals of its run.

Counters begin at 0 with each run, as Prometheus expects of a process. Durations are in seconds, sizes in bytes.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from slackwater.errors import cause_of, fault
from slackwater.metrics.exposed import shown
from slackwater.metrics.monitor import Live

if TYPE_CHECKING:
    from prometheus_client.core import Metric

LOCAL: Final = "127.0.0.1"


@dataclass(kw_only=True, eq=False)
class Collector:
    """Shows the last batch that it was given, or that a run has begun; nothing before that."""

    _live: Live | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, live: Live) -> None:
        """Take a batch, or the beginning of a run."""
        with self._lock:
            self._live = live

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics, as `prometheus_client` calls it for each scrape."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily  # noqa: PLC0415  only who uses it

        with self._lock:
            live = self._live
        if live is None:
            return
        for family in shown(live):
            kind = CounterMetricFamily if family.is_counter else GaugeMetricFamily
            metric = kind(family.name, family.said, labels=family.labels)
            for labels, value in family.samples:
                metric.add_metric(labels, value)
            yield metric


def exposition(collector: Collector) -> bytes:
    """Return the metrics as text, as Prometheus reads them."""
    client = check_client()
    registry = client.CollectorRegistry(auto_describe=False)
    registry.register(collector)
    text: bytes = client.generate_latest(registry)
    return text


def check_client() -> Any:  # noqa: ANN401  a module
    """Return the module `prometheus_client`, or say how to get it."""
    try:
        import prometheus_client  # noqa: PLC0415  only who uses it needs it
    except ModuleNotFoundError as error:
        raise fault("METRICS_CLIENT_MISSING") from error
    return prometheus_client


@contextmanager
def serving(collector: Collector, *, port: int, host: str = LOCAL) -> Iterator[int]:
    """Serve `http://<host>:<port>/metrics` in a thread; gives the port, which for 0 is a free one."""
    client = check_client()
    registry = client.CollectorRegistry(auto_describe=False)
    registry.register(collector)
    try:
        server, thread = client.start_http_server(port, addr=host, registry=registry)
    except OSError as error:
        raise fault("METRICS_PORT", host=host, port=port, cause=cause_of(error)) from error
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
