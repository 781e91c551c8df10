"""The page of a job from its checkpoint alone: one that has ended, or that runs elsewhere."""

from __future__ import annotations

from pathlib import Path

from slackwater.metrics.history import history_folder, read_history
from slackwater.metrics.job_facts import read_facts
from slackwater.metrics.monitor import JOB, LATENESS
from slackwater.metrics.status import read_status
from slackwater.page.feed import Feed
from slackwater.page.view import shown_record


def stored_feed(checkpoint: Path) -> Feed:
    """Return what a checkpoint tells of its job, up to now."""
    status, folder = read_status(checkpoint), history_folder(checkpoint)
    records = read_history(folder)
    job = {"streams": [], "steps": [], "outputs": {}, "svg": None, **read_facts(folder / JOB)}
    if records and not job["streams"]:
        job["streams"] = [
            {"name": name, "slack_ms": each.out_of_orderness_ms or 0} for name, each in records[-1].streams.items()
        ]
    job |= {"pipeline": status.pipeline, "state": status.state, "starts": status.starts}
    return Feed(job, map(shown_record, records), read_facts(folder / LATENESS))
