"""Takes the screenshots in the docs, of the demo's page and the simulator: `python -m tests.observe.page.pictures`."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from slackwater.tools.simulator.server import SimulatorServer
from tests.browser import browser, found

FOLDER: Final = Path(__file__).resolve().parents[3] / "docs" / "images"
_SECONDS: Final = 90
_BATCHES: Final = 18
"""After so many, late rows of all kinds have come."""
_SIMULATOR: Final = (1280, 940)
_SIZES: Final = {"page-light": (1280, 820, False), "page-dark": (1280, 820, True), "page-narrow": (390, 820, False)}


def main() -> int:
    """Take the pictures whose names are given, or all of them; returns the exit code."""
    program = found()
    if program is None:
        sys.stderr.write("Chromium is missing: apt-get install chromium\n")
        return 1
    FOLDER.mkdir(exist_ok=True)
    wanted = sys.argv[1:] or ["simulator", "demo"]
    if "simulator" in wanted:
        _simulator(program)
    if "demo" in wanted:
        _demo(program)
    return 0


def _simulator(program: str) -> None:
    """Take a picture of the tunnel, after its remedy was tried."""
    with SimulatorServer({"preset": "tunnel"}) as server, browser(program) as opened:
        tab = opened()
        tab.resize(*_SIMULATOR)
        tab.open(server.address)
        tab.until("document.querySelector('[data-account=late]') !== null")
        tab.value("document.getElementById('remedy').click()")
        tab.until("document.querySelector('.was') !== null")
        tab.screenshot(FOLDER / "simulator.png")
        sys.stdout.write("took docs/images/simulator.png\n")


def _demo(program: str) -> None:
    """Run the demo, and take a picture of its page for each size."""
    with tempfile.TemporaryDirectory(prefix="slackwater-pictures-") as folder:
        command = [sys.executable, "-m", "slackwater", "demo", "--seconds", str(_SECONDS), "--folder", f"{folder}/demo"]
        with (
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder, start_new_session=True) as demo,
            browser(program) as opened,
        ):
            assert demo.stdout is not None
            address = next(said[1] for line in demo.stdout if (said := re.match(r"page: (\S+)", line)))
            tab = opened()
            tab.resize(*_SIZES["page-light"][:2])
            tab.open(address)
            # The first figure is the batch.
            tab.until(f"parseInt(document.querySelector('#figures dd')?.innerText) >= {_BATCHES}", patience_s=240)
            for name, (width, height, dark) in _SIZES.items():
                tab.resize(width, height, dark=dark)
                tab.open(address)
                tab.until("document.querySelectorAll('#figures dd').length > 3")
                tab.screenshot(FOLDER / f"{name}.png")
                sys.stdout.write(f"took docs/images/{name}.png\n")
            os.killpg(demo.pid, signal.SIGKILL)  # its account is not wanted, and takes minutes


if __name__ == "__main__":
    sys.exit(main())
