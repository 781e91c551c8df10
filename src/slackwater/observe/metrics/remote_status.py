"""The status of jobs as served by their page, for users without access to the checkpoint."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit, urlunsplit

from slackwater.base.durations import roughly
from slackwater.base.errors import cause_of, counted, fault
from slackwater.base.secrets import shown_url
from slackwater.base.times import render_time
from slackwater.observe.metrics.page_token import kept_token

_PATH: Final = "/api/status"
_TIMEOUT_S: Final = 10.0
_SECOND_MS: Final = 1_000


def fetch_status(url: str) -> list[dict[str, Any]]:
    """Return the status of the jobs of the page at `url`; the token is part of `url`, or the user's own."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise fault("STATUS_URL", url=shown_url(url), cause="it is not an HTTP URL")
    path = parts.path.rstrip("/").removesuffix(_PATH) + _PATH
    if "token" not in parse_qs(parts.query) and (token := kept_token()) is not None:
        parts = parts._replace(query="&".join(filter(None, (parts.query, f"token={token}"))))
    try:
        with urllib.request.urlopen(urlunsplit(parts._replace(path=path)), timeout=_TIMEOUT_S) as answer:  # noqa: S310  HTTP, see above
            found = json.load(answer)
    except (OSError, ValueError) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()  # it keeps the connection open
        reason = error.reason if isinstance(error, urllib.error.URLError) else cause_of(error)
        raise fault("STATUS_URL", url=shown_url(url), cause=reason) from error
    if not isinstance(found, list) or not all(isinstance(job, dict) and "pipeline" in job for job in found):
        raise fault("STATUS_URL", url=shown_url(url), cause="another program answers there")
    return found


def status_lines(job: dict[str, Any]) -> list[str]:
    """Return one job as readable lines: its state and its last batch."""
    lines = [f"{job['pipeline']}  {job.get('state')}, {counted(int(job.get('starts') or 1), 'start')}"]
    if job.get("notice"):
        lines.append(f"  warning: {job['notice']}")
    last = job.get("latest")
    if not last:
        return [*lines, "  no batch yet"]
    now_ms = time.time_ns() // 1_000_000
    ago = roughly(max(0, now_ms - last["at"]) // _SECOND_MS * _SECOND_MS)
    lines.append(
        f"  batch {last['batch']}, delivered {ago} ago: {counted(last['rows'], 'row')} in {last['seconds']:.2f} s"
    )
    for name, stream in last["streams"].items():
        if stream["watermark"] is None:
            lines.append(f"  {name}: {'end of time' if job.get('state') == 'finished' else 'no watermark'}")
            continue
        behind = roughly(max(0, last["at"] - stream["watermark"]) // _SECOND_MS * _SECOND_MS)
        held = f", held by partition {stream['held_by']}" if stream["held_by"] else ""
        lines.append(f"  {name}: watermark {render_time(stream['watermark'])[:19]} UTC, {behind} behind{held}")
    for name, step in last["steps"].items():
        lines.append(
            f"  {name}: {counted(step['rows'], 'row')} of state, {counted(step['late'], 'late row')} in this batch"
        )
    return lines
