"""The page and its data in one file, for post-mortems: it needs no server and loads nothing."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

from slackwater.observe.page.job_feed import JobFeed

_STATIC: Final = Path(__file__).parent / "static"
MODULES: Final = (
    "format.js",
    "canvas.js",
    "axes.js",
    "spread.js",
    "strips.js",
    "windows.js",
    "sessions.js",
    "picture.js",
    "slack.js",
    "starting.js",
    "tables.js",
    "theme.js",
    "main.js",
)
"""The page's modules, each after its imports. Their top-level names are distinct, so they can be joined into one."""


def one_file(feed: JobFeed) -> str:
    """Return the current page of a job as one HTML file."""
    known = {"job": feed.job, "lateness": feed.lateness, "samples": feed.samples}
    text = f'{json.dumps(known)[:-1]}, "records": [{", ".join(feed.texts)}]}}'
    # "</script>" in a name would end the script block.
    text = text.replace("<", "\\u003c")
    style = (_STATIC / "style.css").read_text(encoding="utf-8")
    code = "\n".join(_plain((_STATIC / name).read_text(encoding="utf-8")) for name in MODULES)
    page = (_STATIC / "index.html").read_text(encoding="utf-8")
    page = page.replace('<link rel="stylesheet" href="static/style.css">', f"<style>\n{style}</style>")
    blocks = f'<script type="application/json" id="data">{text}</script>\n<script type="module">\n{code}</script>\n'
    return page.replace('  <script type="module" src="static/main.js"></script>\n', "").replace(
        "</body>", blocks + "</body>"
    )


def _plain(module: str) -> str:
    """Return a module's text without its imports and exports."""
    return re.sub(r"^export ", "", re.sub(r"^import .*?;\n", "", module, flags=re.MULTILINE), flags=re.MULTILINE)
