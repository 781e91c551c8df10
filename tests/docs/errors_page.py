"""`docs/errors.md`, made from the catalogue: `python -m tests.docs.errors_page` writes it."""

from __future__ import annotations

from slackwater.errors.catalogue import CATALOGUE
from tests.docs.pages import ROOT
from tests.unit.error_codes import placeholders, uses

PAGE = ROOT / "docs" / "errors.md"

_HEAD = """\
# Errors

Every error that Slackwater raises on purpose has a stable code and says three things: the rule that was broken; what
was got; what to do. `except sw.SlackwaterError as error` catches them all, and `error.code` is the code. Words in
⟨angle brackets⟩ are filled in. (This page is written from the catalogue by `python -m tests.docs.errors_page`; a test
checks that it is current.)

What is wrong with single *records* raises nothing: they end as [dead letters](sources-and-sinks.md#dead-letters).
"""
_BUILT = """\
## Refused when the pipeline is built

These are `sw.DefinitionError`s: the definition cannot be right, whatever the data. Nothing has been read or written.
"""
_RUNS = """\
## When a job starts or runs

These are `sw.RunError`s: the job cannot go on without losing or doubling rows, so it stops. What was committed is
unharmed; after the cause is mended, the same command goes on where the job stopped.
"""


def page() -> str:
    """Return the page as it should be."""
    refused = {use.code for use in uses() if use.is_refusal}
    parts = [_HEAD, _BUILT, *(_entry(code) for code in CATALOGUE if code in refused)]
    parts += [_RUNS, *(_entry(code) for code in CATALOGUE if code not in refused)]
    return "\n".join(parts)


def _entry(code: str) -> str:
    words = CATALOGUE[code].format(**{name: f"⟨{name}⟩" for name in placeholders(CATALOGUE[code])})
    return f"### {code}\n{words.replace('<', '&lt;')}\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
