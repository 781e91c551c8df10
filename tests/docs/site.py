"""The site as `make docs` builds it, and as a browser shows it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.docs.pages import ROOT


def build(site: Path, *, config: Path = ROOT / "mkdocs.yml") -> subprocess.CompletedProcess[str]:
    """Build the site into a folder; warnings, such as dead links and anchors, are failures."""
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", config, "--site-dir", site],
        cwd=config.parent,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
