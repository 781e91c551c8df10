"""The pages of the documentation as programs: their Python blocks, run one after the other.

A `text` block right below a `python` block is what that block prints. `python -m tests.docs.pages`
writes the real output into the pages (after a change that was meant), the tests compare.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl

ROOT = Path(__file__).resolve().parents[2]

WIDTH = 120
"""Characters of a line of prose, at most."""
_FENCE = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:\n?^```text\n(?P<prints>.*?)^```\n)?", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Block:
    """One Python block of a page, and what the page says it prints."""

    code: str
    prints: str | None
    line: int
    span: tuple[int, int]
    """Where in the page the printed text stands."""


def pages() -> list[Path]:
    """Return every page that may hold code."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def texts() -> list[Path]:
    """Return every page that people read, also those without code."""
    return [
        *pages(),
        *(ROOT / name for name in ("CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md")),
    ]


def wrapped(text: str) -> str:
    """Return a paragraph in lines of at most `WIDTH` characters."""
    return "\n".join(textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False))


def prose(page: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a page, with their numbers, that are neither code nor tables."""
    is_code = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        is_code ^= line.startswith("```")
        if not is_code and not line.startswith(("```", "    ", "|")):
            yield number, line


def blocks(page: Path) -> list[Block]:
    """Return the Python blocks of a page, from top to bottom."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            code=match["code"],
            prints=match["prints"],
            line=text.count("\n", 0, match.start("code")) + 1,
            span=match.span("prints"),
        )
        for match in _FENCE.finditer(text)
    ]


def run(page: Path) -> Iterator[tuple[Block, str]]:
    """Run a page's blocks in one namespace, in the current folder; yields each with what it printed."""
    # As a file that is started: what it defines travels to Spark's workers by value.
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(page):
        # Line numbers of errors are the page's.
        code = compile("\n" * (block.line - 1) + block.code, str(page.relative_to(ROOT)), "exec")
        printed = io.StringIO()
        shown = pl.Config(
            tbl_hide_dataframe_shape=True,
            tbl_hide_column_data_types=True,
            tbl_rows=20,
            tbl_cols=12,
            tbl_width_chars=110,
            fmt_str_lengths=60,
            fmt_table_cell_list_len=8,
        )
        with shown, contextlib.redirect_stdout(printed):
            exec(code, namespace)  # noqa: S102  our own pages
        yield block, _settled(printed.getvalue())


def _settled(printed: str) -> str:
    """Return `printed` without what differs from one machine, or one version of a library, to another."""
    text = printed.replace(f"{Path.cwd()}/", "/home/ada/")
    text = re.sub(r"fingerprint [0-9a-f]{16}", "fingerprint 3f8a6c1d20b7e945", text)
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines()) + "\n"


def rewrite(page: Path) -> bool:
    """Run a page and write what it printed into it; returns whether that changed it."""
    text = before = page.read_text(encoding="utf-8")
    for block, printed in reversed(list(run(page))):
        if block.prints is not None:
            text = text[: block.span[0]] + printed + text[block.span[1] :]
    page.write_text(text, encoding="utf-8")
    return text != before


if __name__ == "__main__":
    wanted = [Path(name).resolve() for name in sys.argv[1:]] or pages()
    for each in wanted:
        with tempfile.TemporaryDirectory() as folder:
            here = Path.cwd()
            os.chdir(folder)
            try:
                print(each.relative_to(ROOT), "changed" if rewrite(each) else "as it was")
            finally:
                os.chdir(here)
