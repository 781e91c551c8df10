"""Every bad definition is refused when the pipeline is built, with its own code and words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.base.error_codes import uses
from tests.plan.bad_definition import Bad, built, check_refused, sw, windowed
from tests.plan.bad_join_definitions import JOINS
from tests.plan.bad_kafka_definitions import KAFKA
from tests.plan.bad_output_definitions import OUTPUTS
from tests.plan.bad_row_definitions import ROWS
from tests.plan.bad_window_definitions import TIME, WINDOWS

TESTS = Path(__file__).resolve().parents[1]
BAD = [*TIME, *ROWS, *WINDOWS, *OUTPUTS, *JOINS, *KAFKA]


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.sentence)
def test_bad_definition_is_refused_with_its_code_and_words(bad: Bad) -> None:
    check_refused(bad)


def test_every_code_for_bad_definitions_is_tried_here_or_beside_what_it_is_about() -> None:
    elsewhere = "\n".join(path.read_text() for path in TESTS.rglob("test_*.py"))
    refused = {use.code for use in uses() if use.is_refusal} - {bad.code for bad in BAD}
    assert sorted(code for code in refused if code not in elsewhere) == []


def test_the_same_definition_without_the_mistake_is_built() -> None:
    assert built(windowed(allowed_lateness="5m").aggregate(n=sw.count(), total=sw.sum("amount"))).name == "p"
