"""Metrics as PromQL selectors. Unknown names and labels are rejected, because such an alert would never fire."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Final

from slackwater.base.durations import render_ms
from slackwater.observe.metrics.exposed import INFO
from slackwater.observe.metrics.families import FAMILIES

LABELS: Final = {INFO: ("version",), **{family.name: family.labels for family in FAMILIES}}
"""The labels of every metric apart from the pipeline."""
TARGET: Final = "pipeline, instance, job"
"""The labels of a job that Prometheus scrapes: one pipeline may have several, such as production and staging."""
_MATCHER: Final = re.compile(r'(\w+)(=|!=|=~|!~)"[^"]*"')


@dataclass(frozen=True, kw_only=True)
class Selectors:
    """Selects metrics of one pipeline, or of all."""

    pipeline: str = ""
    """The matcher of the label `pipeline`; "" for all pipelines."""

    def __call__(self, name: str, *matchers: str) -> str:
        """Return the selector of the metric `name` with `matchers` such as `phase="total"`."""
        for matcher in matchers:
            found = _MATCHER.fullmatch(matcher)
            assert found is not None, f"{matcher} is not a matcher"
            assert found[1] in LABELS[name], f"{name} has no label {found[1]}"
        assert name in LABELS, f"there is no metric {name}"
        chosen = ",".join(filter(None, [self.pipeline, *matchers]))
        return f"{name}{{{chosen}}}" if chosen else name

    def grown(self, name: str, over_ms: int, *matchers: str) -> str:
        """Return the expression for the recent growth of a counter.

        Counters start at 0 with each run, and those of a reason appear with its first dead letter: a new counter has
        grown by its whole value, but `increase` would see no growth.
        """
        counter, over = self(name, *matchers), render_ms(over_ms)
        return f"({counter} unless {counter} offset {over}) or increase({counter}[{over}])"


def of_pipeline(name: str | None) -> Selectors:
    """Return selectors for one pipeline, or for all if `name` is None."""
    return Selectors() if name is None else Selectors(pipeline=f"pipeline={json.dumps(name, ensure_ascii=False)}")
