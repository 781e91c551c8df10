"""`docs/reference/checker.md`, made from the rules' own texts: `python -m tests.docs.checker_page` writes it."""

from __future__ import annotations

from slackwater.observe.checker.rule import Rule
from slackwater.observe.checker.rules import RULES, code, outputs, running, state, time
from tests.docs.pages import ROOT, wrapped

PAGE = ROOT / "docs" / "reference" / "checker.md"

_HEAD = """\
# The checker

`slackwater check FILE` looks at a pipeline's definition for what will go wrong in production. It starts nothing and
writes nothing. (This page is generated from the rules by `python -m tests.docs.checker_page`; a test checks that it is
current.)

    slackwater check orders.py                                  # findings, the worst first; exit code 1 on an error
    slackwater check orders.py --strict --format json           # for CI: exit code 1 on anything that is not accepted
    slackwater check orders.py --measure                        # also measure how late the events of its logs are
    slackwater check orders.py --log orders=/data/yesterday     # the same, in another log

`pipeline.check()` returns the same findings in Python. `slackwater run` prints errors and warnings, one line each,
before Spark starts; it never refuses to run because of them.

Accept an intended finding where the pipeline is defined, and give the reason. It is then shown as accepted, and no
longer affects the exit code:

    sw.Pipeline("clicks", ..., accept={"SW402": "late clicks do not matter for the dashboard"})

Some rules need more than the definition: the number of cores, the folders of a log, the measured lateness of at least
1,000 events, how long a Kafka topic keeps its records (asked of the broker, if it answers within two seconds), or what
the last run left in its checkpoint (`--checkpoint`): partitions, lateness, keys, how long it has run. While such a fact
is unknown, its rule finds nothing. Your own code is read, not run: calls through variables that only exist at run time,
and calls inside installed packages, are not seen.
"""
_PARTS = {"Time": time, "State": state, "Your code": code, "Outputs": outputs, "Running": running}


def page() -> str:
    """Return the page as it should be."""
    parts = [_HEAD, *_table()]
    for title, module in _PARTS.items():
        parts += [f"\n## {title}\n", "\n".join(_paragraph(rule) for rule in module.RULES)]
    return "\n".join(parts)


def _table() -> list[str]:
    rows = [f"| [{rule.code}](#{rule.code.lower()}) | {rule.severity} | {rule.title} |" for rule in RULES]
    return ["| code | severity | finds |", "|---|---|---|", *rows]


def _paragraph(rule: Rule) -> str:
    text = f"{rule.title} ({rule.severity}). {rule.why} To fix it: {rule.fix}."
    return f"### {rule.code}\n{wrapped(text)}\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
