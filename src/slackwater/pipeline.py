"""The pipeline: a name and its ended outputs, checked when it is built."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from slackwater.errors import refuse
from slackwater.ground.durations import Duration
from slackwater.ground.names import checked_name
from slackwater.planning.explain import explain
from slackwater.planning.planner import plan_pipeline
from slackwater.streams import Ended

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from slackwater.planning.plan import Plan
    from slackwater.spark.handle import RunningJob
    from slackwater.spark.job import Job
    from slackwater.metrics.report import BatchReport

DEFAULT_KEY_GROUPS: Final = 16
_MOST_KEY_GROUPS: Final = 4096


@dataclass(frozen=True)
class Pipeline:
    """A named set of outputs with their sinks; building it checks everything that can be checked without data."""

    name: str
    outputs: tuple[Ended, ...]
    key_groups: int = field(default=DEFAULT_KEY_GROUPS, kw_only=True)

    def __init__(self, name: str, *outputs: Ended, key_groups: int = DEFAULT_KEY_GROUPS) -> None:
        """Check and keep the pipeline; `key_groups` is the limit of parallelism, chosen once."""
        object.__setattr__(self, "name", checked_name(name, "pipeline"))
        object.__setattr__(self, "outputs", outputs)
        object.__setattr__(self, "key_groups", key_groups)
        power_of_two = isinstance(key_groups, int) and key_groups > 0 and key_groups & (key_groups - 1) == 0
        if not power_of_two or key_groups > _MOST_KEY_GROUPS:
            raise refuse("KEY_GROUPS", got=repr(key_groups))
        for ended in outputs:
            if not isinstance(ended, Ended):
                raise refuse("OUTPUT_NOT_ENDED", pipeline=name, got=type(ended).__name__)
        if not outputs:
            raise refuse("PIPELINE_EMPTY", pipeline=name)
        self.plan()

    def plan(self) -> Plan:
        """Return the plan of this pipeline: every step named, typed and placed."""
        return plan_pipeline(self.name, self.outputs, key_groups=self.key_groups)

    def explain(self) -> str:
        """Return the plan as a readable graph."""
        return explain(self.plan())

    def run(
        self,
        spark: SparkSession | None = None,
        *,
        checkpoint: str | Path | None = None,
        bounded: bool = False,
        trigger: Duration = "1s",
        master: str | None = None,
        partitions: int | None = None,
        accept_changes: bool = False,
        take_over: bool = False,
        on_batch: Callable[[BatchReport], None] | None = None,
    ) -> Job:
        """Run on Spark until Ctrl-C or SIGTERM, or with `bounded=True` to the end of the input; returns the job.

        Without a session (`spark`), one is started on `master`, by default on all local cores. `checkpoint` is the
        folder for progress and state, by default `.slackwater/<name>`: run it again to resume. `trigger` is the
        interval between batches, and `partitions` the number of tasks that keep state. `accept_changes` finishes a
        started batch with changed code or files; `take_over` writes to sinks that hold rows of another run.
        `on_batch` is called with the report of each batch.
        """
        from slackwater.spark.start import run_pipeline  # noqa: PLC0415  definitions load without Spark

        return run_pipeline(
            self.plan(),
            spark=spark,
            checkpoint=checkpoint,
            bounded=bounded,
            trigger=trigger,
            master=master,
            partitions=partitions,
            accept_changes=accept_changes,
            take_over=take_over,
            on_batch=on_batch,
        )

    def start(
        self,
        spark: SparkSession | None = None,
        *,
        checkpoint: str | Path | None = None,
        bounded: bool = False,
        trigger: Duration = "1s",
        master: str | None = None,
        partitions: int | None = None,
        accept_changes: bool = False,
        take_over: bool = False,
        on_batch: Callable[[BatchReport], None] | None = None,
    ) -> RunningJob:
        """Start on Spark, beside the code that follows; returns a handle to look at the job and to stop it.

        Takes what `run` takes. What can be checked before the first batch is checked before this returns.
        """
        from slackwater.spark.handle import RunningJob  # noqa: PLC0415  as above
        from slackwater.spark.start import make_job  # noqa: PLC0415  as above

        return RunningJob(
            make_job(
                self.plan(),
                spark=spark,
                checkpoint=checkpoint,
                bounded=bounded,
                trigger=trigger,
                master=master,
                partitions=partitions,
                accept_changes=accept_changes,
                take_over=take_over,
                on_batch=on_batch,
            )
        )
