"""The pipeline: a name and its ended outputs, checked when it is built."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from slackwater.errors import refuse
from slackwater.ground.names import checked_name
from slackwater.planning.explain import explain
from slackwater.planning.planner import plan_pipeline
from slackwater.streams import Ended

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from slackwater.planning.plan import Plan
    from slackwater.spark.job import Job

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

    def run(self, spark: SparkSession | None = None, **options: Any) -> Job:  # noqa: ANN401  as run_pipeline's
        """Run on Spark until stopped, or to the end with `bounded=True`; see `runtime.start.run_pipeline`."""
        from slackwater.spark.start import run_pipeline  # noqa: PLC0415  definitions load without Spark

        return run_pipeline(self.plan(), spark=spark, **options)
