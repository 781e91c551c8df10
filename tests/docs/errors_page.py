"""`docs/reference/errors.md`, made from the catalogue: `python -m tests.docs.errors_page` writes it."""

from __future__ import annotations

from slackwater.base.errors.catalogue import CATALOGUE
from tests.docs.pages import ROOT, wrapped
from tests.unit.error_codes import notices, placeholders, uses

PAGE = ROOT / "docs" / "reference" / "errors.md"

_HEAD = """\
# Errors

Every error that Slackwater raises on purpose has a stable code and a message in three parts: the rule that was broken;
what was found; what to do. `except sw.SlackwaterError as error` catches them all, and `error.code` is the code. Text in
⟨angle brackets⟩ is filled in. (This page is generated from the catalogue by `python -m tests.docs.errors_page`; a test
checks that it is current.)

A bad *record* raises nothing: it becomes a [dead letter](sources-and-sinks.md#dead-letters).
"""
_BUILT = """\
## Refused when the pipeline is built

These are `sw.DefinitionError`s: the definition is wrong, whatever the data. Nothing has been read or written.
"""
_RUNS = """\
## When a job starts or runs

These are `sw.RunError`s: the job cannot continue without losing or duplicating rows, so it stops. Committed data is
intact. Once the cause is fixed, the same command continues where the job stopped.
"""
_NOTICES = """\
## Notices

These are warnings: the job continues.
"""


def page() -> str:
    """Return the page as it should be."""
    refused, noted = {use.code for use in uses() if use.is_refusal}, notices()
    parts = [_HEAD, _BUILT, *(_entry(code) for code in CATALOGUE if code in refused)]
    parts += [_RUNS, *(_entry(code) for code in CATALOGUE if code not in refused | noted)]
    parts += [_NOTICES, *(_entry(code) for code in CATALOGUE if code in noted)]
    return "\n".join(parts)


def _entry(code: str) -> str:
    text = CATALOGUE[code].format(**{name: f"⟨{name}⟩" for name in placeholders(CATALOGUE[code])})
    return f"### {code}\n{wrapped(text.replace('<', '&lt;'))}\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
