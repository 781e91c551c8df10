"""The options of a run; this module does not import PySpark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slackwater.base.durations import Duration, duration_ms
from slackwater.base.errors import fault
from slackwater.base.folders import given_path
from slackwater.observe.metrics.prometheus import LOCAL
from slackwater.observe.page.recording import Takers, recording
from slackwater.spark.session_conf import check_master

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from slackwater.observe.metrics.report import BatchReport
    from slackwater.plan.plan import Plan


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How a pipeline runs, apart from what it computes: the keywords of `Pipeline.run`, which explains them.

    Creating it checks all that can be checked without the plan. It is handed down whole, from `Pipeline.run`,
    `Pipeline.start` or the command line to the job.
    """

    spark: SparkSession | None = None
    checkpoint: str | Path | None = None
    bounded: bool = False
    trigger: Duration = "1s"
    master: str | None = None
    partitions: int | None = None
    accept_changes: bool = False
    take_over: bool = False
    page: bool | int = False
    show_data: bool = False
    skip_rows: Sequence[str] = ()
    metrics_port: int | None = None
    metrics_file: str | Path | None = None
    otlp: str | None = None
    on_batch: Callable[[BatchReport], None] | None = None

    def __post_init__(self) -> None:
        duration_ms(self.trigger, what="`trigger`", least_ms=0)
        check_master(self.master)
        if self.spark is not None and ".connect." in type(self.spark).__module__:
            raise fault("SPARK_CONNECT")

    @classmethod
    def of_call(cls, given: Mapping[str, Any]) -> RunOptions:
        """Return the options in the `locals()` of a method whose parameters are the fields of this class."""
        return cls(**{name: value for name, value in given.items() if name != "self"})

    @property
    def trigger_ms(self) -> int:
        """The interval between batches; 0 for as fast as possible."""
        return duration_ms(self.trigger, what="`trigger`", least_ms=0)

    def recording(
        self,
        plan: Plan,
        *,
        say: Callable[[str], None],
        page_host: str = LOCAL,
        metrics_host: str = LOCAL,
        environ: Mapping[str, str] | None = None,
    ) -> AbstractContextManager[Takers]:
        """Open the receivers of the run's figures; `environ` may name an endpoint if `otlp` does not."""
        return recording(
            plan,
            page=None if self.page is False else (page_host, 0 if self.page is True else self.page),
            port=self.metrics_port,
            host=metrics_host,
            file=None if self.metrics_file is None else given_path(self.metrics_file),
            otlp=self.otlp,
            environ=environ or {},
            say=say,
        )
