"""A rule that is switched off for a line has its reason beside it."""

from __future__ import annotations

import re
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "slackwater"
BARE = re.compile(r"# (noqa(: [A-Z]+[0-9]+(, ?[A-Z]+[0-9]+)*)?|type: ignore(\[[a-z, -]+\])?)\s*$")


def test_rule_that_is_switched_off_has_its_reason_beside_it() -> None:
    bare = [
        f"{path.relative_to(PACKAGE)}:{number}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if BARE.search(line)
    ]
    assert bare == []
