"""The names of an output's sinks, in checkpoints and statistics."""

from __future__ import annotations

from slackwater.connectors.sink import Sink


def named(output: str, sinks: tuple[Sink, ...]) -> dict[str, Sink]:
    """Return the sinks of an output by name; the names stay the same when another sink is added."""
    found: dict[str, Sink] = {}
    for sink in sinks:
        name = f"{output} to {sink.name}"
        same = sum(known == name or known.startswith(f"{name}, ") for known in found)
        found[f"{name}, {same + 1}" if same else name] = sink
    return found
