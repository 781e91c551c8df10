"""A real browser for the tests: Chromium, driven over a pipe by its own protocol."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "chrome")
_PATIENCE_S: Final = 60.0
_LEFT = "Inspected target navigated or closed"
"""What Chromium answers when a page goes away under a command."""


def found() -> str | None:
    """Return the browser's program, None if there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class PageLeftError(AssertionError):
    """A command met a page that was being left for another one."""


class Tab:
    """One page of the browser."""

    def __init__(self, pipe: _Pipe, session: str) -> None:
        self._pipe = pipe
        self._session = session
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:  # noqa: ANN401  as the protocol has it
        """Give the tab a command."""
        return self._pipe.call(method, parameters, self._session)

    def open(self, address: str) -> None:
        """Go to an address, and wait until it is loaded."""
        self.call("Page.navigate", url=address)
        self.until("document.readyState === 'complete'")

    def value(self, expression: str) -> Any:  # noqa: ANN401  whatever it is
        """Evaluate an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def until(self, expression: str, *, patience_s: float = _PATIENCE_S) -> None:
        """Wait until an expression is true in the page."""
        patience = time.monotonic() + patience_s
        while not self._holds(expression):
            assert time.monotonic() < patience, f"never true: {expression}; the page shows {self.text('body')[:600]}"
            self._pipe.pause()

    def _holds(self, expression: str) -> bool:
        """Return whether an expression is true; of a page that is just being left, nothing is."""
        try:
            return bool(self.value(expression))
        except PageLeftError:
            return False

    def text(self, selector: str) -> str:
        """Return the text of the first element that fits."""
        return str(self.value(f"document.querySelector({json.dumps(selector)}).innerText"))

    def resize(self, width: int, height: int, *, dark: bool = False) -> None:
        """Set the size of the page, and whether its user prefers the dark."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        wish = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=wish)

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        """Save a picture of what the tab shows, or of all of the page."""
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(answer["data"]))

    def forget(self) -> None:
        """Forget what the page has logged so far."""
        self._pipe.events.clear()

    @property
    def trouble(self) -> list[str]:
        """What the page has logged as errors, or thrown."""
        own = [event for event in self._pipe.events if event.get("sessionId") == self._session]
        thrown = [event["params"]["exceptionDetails"] for event in own if event["method"] == "Runtime.exceptionThrown"]
        logged = [event["params"]["entry"] for event in own if event["method"] == "Log.entryAdded"]
        said = [str(each.get("exception", {}).get("description", each)) for each in thrown]
        return said + [entry["text"] for entry in logged if entry["level"] == "error"]


class _Pipe:
    """The two pipes between the browser and us: messages end with NUL."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._out, self._in = to_browser, from_browser
        self._buffer = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, parameters: dict[str, Any], session: str | None = None) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        message |= {} if session is None else {"sessionId": session}
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                if answer.get("error", {}).get("message") == _LEFT:
                    raise PageLeftError(parameters)
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def pause(self) -> None:
        time.sleep(0.05)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            got = os.read(self._in, 1 << 20)
            assert got, "the browser has ended"
            self._buffer += got
        text, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        return message


@contextlib.contextmanager
def browser(program: str) -> Iterator[Callable[[], Tab]]:
    """Start a browser; gives what opens a new tab of it."""
    commands, answers = os.pipe(), os.pipe()
    with tempfile.TemporaryDirectory(prefix="slackwater-browser-", ignore_cleanup_errors=True) as folder:
        switches = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--hide-scrollbars"]
        theirs = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (commands[0], answers[1])]
        # The browser reads from descriptor 3 and writes to 4.
        script = (
            f"import os, sys; os.dup2({theirs[0]}, 3); os.dup2({theirs[1]}, 4); os.execv(sys.argv[1], sys.argv[1:])"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", script, program, *switches, f"--user-data-dir={folder}", "about:blank"],
            pass_fds=theirs,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in (commands[0], answers[1], *theirs):
            os.close(end)
        pipe = _Pipe(commands[1], answers[0])

        def opened() -> Tab:
            target = pipe.call("Target.createTarget", {"url": "about:blank"})["targetId"]
            attached = pipe.call("Target.attachToTarget", {"targetId": target, "flatten": True})
            return Tab(pipe, attached["sessionId"])

        try:
            yield opened
        finally:
            process.terminate()
            process.wait()
            for end in (commands[1], answers[0]):
                os.close(end)
