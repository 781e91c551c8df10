"""The fraud example on Spark: a lookup, a process, a pattern and a join of the two, against a plain recomputation."""

from __future__ import annotations

import runpy
from pathlib import Path

import polars as pl
import pytest
from pyspark.sql import SparkSession

from tests.docs.pages import ROOT

FRAUD = ROOT / "examples" / "fraud"


@pytest.mark.spark
def test_every_decision_on_spark_is_that_of_a_plain_recomputation(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(FRAUD / "make_data.py"))["main"](count=400)
    runpy.run_path(str(FRAUD / "pipeline.py"))["pipeline"].run(spark=spark, bounded=True, checkpoint="checkpoint")

    def rows(output: str) -> pl.DataFrame:
        return pl.read_parquet(list((tmp_path / "out" / output).glob("*/*.parquet")))

    decisions, late, dead = (rows(output) for output in ("decisions", "late", "dead_letters"))
    assert {"approve", "decline"} <= set(decisions["decision"])
    assert runpy.run_path(str(FRAUD / "truth.py"))["differences"](decisions, late, dead) == []
