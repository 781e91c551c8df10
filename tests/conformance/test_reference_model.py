"""The slow reference model reproduces every case, so each can be trusted against the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conformance.reference import load, run_case

CASES = [case for _, case in load([str(Path(__file__).parent / "cases")])]


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_reference_model_reproduces_the_case(case: dict[str, Any]) -> None:
    assert run_case(case) == []


def test_case_ids_are_unique() -> None:
    assert len({case["id"] for case in CASES}) == len(CASES)
