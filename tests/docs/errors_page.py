"""`docs/reference/errors/`, made from the catalogue: `python -m tests.docs.errors_page` writes it.

A page for each family of errors, and an index of all codes.
"""

from __future__ import annotations

import pkgutil
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from slackwater.base.errors import catalogue
from slackwater.base.errors.catalogue import CATALOGUE, OF_ANOTHER_VERSION, VERSIONED
from tests.base.error_codes import notices, placeholders, uses
from tests.docs.pages import ROOT, wrapped

FOLDER = ROOT / "docs" / "reference" / "errors"


@dataclass(frozen=True, kw_only=True)
class Family:
    """Errors that share a page: those of one file of the catalogue."""

    page: str
    title: str
    file: str

    def codes(self) -> list[str]:
        """Return the codes of the family, sorted."""
        return sorted(import_module(f"{catalogue.__name__}.{self.file}").MESSAGES)


FAMILIES = (
    Family(page="streams", title="Streams, keys and pipelines", file="streams"),
    Family(page="windows", title="Windows, triggers and aggregates", file="windows"),
    Family(page="joins", title="Joins", file="joins"),
    Family(page="state", title="State and deduplication", file="state"),
    Family(page="patterns", title="Patterns", file="patterns"),
    Family(page="lookups", title="Lookups and tables", file="enrichment"),
    Family(page="sources", title="Sources", file="sources"),
    Family(page="formats", title="Formats", file="formats"),
    Family(page="sinks", title="Sinks", file="sinks"),
    Family(page="kafka", title="Kafka", file="kafka"),
    Family(page="postgres", title="The Postgres sink", file="postgres_sink"),
    Family(page="running", title="Checkpoints and running on Spark", file="spark"),
    Family(page="basics", title="Durations, expressions, folders and secrets", file="ground"),
    Family(page="tools", title="Command line, monitoring and tests", file="tools"),
)

_INDEX = """\
# Errors

Every error that Slackwater raises on purpose has a stable code and a message in three parts: the rule that was broken;
what was found; what to do. `except sw.SlackwaterError as error` catches them all, and `error.code` is the code. Text in
⟨angle brackets⟩ is filled in.

- **when built**: a `sw.DefinitionError`. The definition is wrong, whatever the data. Nothing has been read or written.
- **when run**: a `sw.RunError`. The job cannot continue without losing or duplicating rows, so it stops. Committed data
  is intact. Once the cause is fixed, the same command continues where the job stopped.
- **notice**: a warning. The job continues.

A bad *record* raises nothing: it becomes a [dead letter](../sources-and-sinks.md#dead-letters).

`python -m tests.docs.errors_page` generates these pages from the catalogue; a test checks that they are current.

## Families
"""
_RAISED = {
    "when built": "## When the pipeline is built\n",
    "when run": "## When a job starts or runs\n",
    "notice": "## Notices\n",
}


def folder() -> dict[Path, str]:
    """Return every page as it should be, by its path."""
    return {FOLDER / "README.md": _index(), **{FOLDER / f"{each.page}.md": _page(each) for each in FAMILIES}}


def files() -> list[str]:
    """Return the files of the catalogue."""
    return [module.name for module in pkgutil.iter_modules(catalogue.__path__)]


def write() -> None:
    """Write every page, and remove those of families that are gone."""
    pages = folder()
    FOLDER.mkdir(exist_ok=True)
    for path in set(FOLDER.iterdir()) - set(pages):
        path.unlink()
    for path, text in pages.items():
        path.write_text(text, encoding="utf-8")
    print(f"wrote {len(pages)} pages in {FOLDER.relative_to(ROOT)}")


def _index() -> str:
    counts = [f"| [{each.title}]({each.page}.md) | {len(each.codes())} |" for each in FAMILIES]
    places = sorted((code, each) for each in FAMILIES for code in each.codes())
    rows = [f"| [{code}]({each.page}.md#{code.lower()}) | {raised(code)} | {each.title} |" for code, each in places]
    families = ["| family | codes |", "|---|---:|", *counts]
    return "\n".join([_INDEX, *families, "\n## All codes\n", "| code | raised | family |", "|---|---|---|", *rows, ""])


def _page(family: Family) -> str:
    parts = [f"# Errors: {_lowered(family.title)}\n", "[All codes](README.md#all-codes), and how to read them.\n"]
    for when, heading in _RAISED.items():
        if codes := [code for code in family.codes() if raised(code) == when]:
            parts += [heading, *map(_entry, codes)]
    return "\n".join(parts)


def raised(code: str) -> str:
    """Return when an error is raised: "when built", "when run", or "notice" for a warning."""
    if any(use.code == code and use.is_refusal for use in uses()):
        return "when built"
    return "notice" if code in notices() else "when run"


def _entry(code: str) -> str:
    texts = [CATALOGUE[code]]
    if code in VERSIONED:
        texts.append(f"If another version of Slackwater wrote it: {OF_ANOTHER_VERSION}")
    filled = [text.format(**{name: f"⟨{name}⟩" for name in placeholders(text)}) for text in texts]
    return f"### {code}\n" + "\n".join(f"{wrapped(text.replace('<', '&lt;'))}\n" for text in filled)


def _lowered(title: str) -> str:
    """Return a title as it stands inside a line; names keep their capital."""
    return title if title.startswith("Kafka") else title[0].lower() + title[1:]


if __name__ == "__main__":
    write()
