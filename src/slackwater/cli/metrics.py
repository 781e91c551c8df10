"""Where `slackwater run` sends the figures of its batches: Prometheus, a file, or both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from slackwater.metrics.monitor import Live, MetricsFile, OnRecord
from slackwater.metrics.prometheus import LOCAL, Collector, serving


@contextmanager
def recording(
    *, port: int | None, host: str | None, file: Path | None, say: Callable[[str], None]
) -> Iterator[OnRecord | None]:
    """Give what takes the records of a run; None if nobody wants them."""
    takers: list[OnRecord] = []
    with ExitStack() as stack:
        if file is not None:
            takers.append(stack.enter_context(closing(MetricsFile(path=file))).note)
        if port is not None:
            collector, address = Collector(), host or LOCAL
            served = stack.enter_context(serving(collector, port=port, host=address))
            takers.append(collector.note)
            say(f"metrics at http://{address}:{served}/metrics")

        def note(live: Live) -> None:
            for take in takers:
                take(live)

        yield note if takers else None
