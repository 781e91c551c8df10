"""The pipeline: a name and its outputs with their sinks, checked when it is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from slackwater.base.call_sites import remember
from slackwater.base.durations import Duration
from slackwater.base.errors import refuse
from slackwater.base.names import checked_name
from slackwater.connectors.sink import Sink
from slackwater.plan.defaults import Defaults
from slackwater.plan.described import describe
from slackwater.plan.explain import explain
from slackwater.plan.planner import plan_pipeline
from slackwater.plan.streams import Ended

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from slackwater.observe.checker import Facts, Findings
    from slackwater.observe.metrics.report import BatchReport
    from slackwater.plan.plan import Plan
    from slackwater.spark.handle import RunningJob
    from slackwater.spark.job import Job

DEFAULT_KEY_GROUPS: Final = 16
_MOST_KEY_GROUPS: Final = 4096


@dataclass(frozen=True, repr=False)
class Pipeline:
    """A named set of outputs with their sinks; building it checks everything that can be checked without data.

    `late` and `dead_letters` are the sinks of all late rows and dead letters for which `outputs` has no end. Late rows
    are then `step`, `stream`, `event_time`, `late_by_ms`, `watermark` and `row`: the other columns as JSON.
    """

    name: str
    outputs: tuple[Ended, ...]
    defaults: Defaults = field(default_factory=Defaults, kw_only=True)
    key_groups: int = field(default=DEFAULT_KEY_GROUPS, kw_only=True)
    accept: Mapping[str, str] = field(default_factory=dict, kw_only=True, hash=False)

    def __init__(
        self,
        name: str,
        *outputs: Ended,
        late: Sink | None = None,
        dead_letters: Sink | None = None,
        key_groups: int = DEFAULT_KEY_GROUPS,
        accept: Mapping[str, str] | None = None,
    ) -> None:
        """Create and check the pipeline.

        Without `late` and `dead_letters`, every output of late rows and dead letters must end in `.to(sink)` or
        `.drop()`. `key_groups` limits the parallelism and is fixed once the pipeline has run. `accept` gives a reason
        for each finding of `slackwater check` that is intended: `accept={"SW402": "late clicks do not matter"}`.
        """
        object.__setattr__(self, "name", checked_name(name, "pipeline"))
        object.__setattr__(self, "accept", {} if accept is None else _checked(accept, name))
        object.__setattr__(self, "outputs", outputs)
        object.__setattr__(self, "defaults", remember(Defaults(late=late, dead_letters=dead_letters)))
        object.__setattr__(self, "key_groups", key_groups)
        power_of_two = isinstance(key_groups, int) and key_groups > 0 and key_groups & (key_groups - 1) == 0
        if not power_of_two or key_groups > _MOST_KEY_GROUPS:
            raise refuse("KEY_GROUPS", got=repr(key_groups))
        for ended in outputs:
            if not isinstance(ended, Ended):
                remedy = "end it with .to(sink) or .drop()" if hasattr(type(ended), "drop") else "end it with .to(sink)"
                if isinstance(ended, list | tuple):
                    remedy = f'unpack it: sw.Pipeline("{name}", *outputs)'
                raise refuse("OUTPUT_NOT_ENDED", pipeline=name, got=type(ended).__name__, remedy=remedy)
        if not outputs:
            raise refuse("PIPELINE_EMPTY", pipeline=name)
        self.plan()

    def __repr__(self) -> str:
        outputs = ", ".join(output.name for output in self.plan().outputs)
        return f"<Pipeline {self.name}, outputs {outputs}>"

    def plan(self) -> Plan:
        """Return the plan of this pipeline, with all names, types and places resolved."""
        return plan_pipeline(self.name, self.outputs, key_groups=self.key_groups, defaults=self.defaults)

    def check(self, *, checkpoint: str | Path | None = None, facts: Facts | None = None) -> Findings:
        """Return the `Findings` of `slackwater check` for the definition; see the checker's page for the rules.

        `checkpoint` is the pipeline's checkpoint, by default `.slackwater/<name>`: some rules use the last run.
        `facts` are further facts, such as a measured lateness; by default, the cores of this machine. Kafka is asked
        for the retention of topics; if it does not answer, the retention is unknown.
        """
        from slackwater.observe import checker  # noqa: PLC0415  few pipelines are checked
        from slackwater.spark.portable import check_portable  # noqa: PLC0415  as above

        plan, known = self.plan(), facts or checker.Facts(cores=checker.master_cores())
        check_portable(plan)
        place = Path(checkpoint or Path(".slackwater") / self.name)
        known = checker.facts_of_topics(plan, facts=checker.facts_of_run(plan, place, facts=known))
        return checker.check_plan(plan, facts=known, accept=self.accept)

    def explain(self, form: Literal["text", "json"] = "text") -> str:
        """Return the plan as readable text or, with `form="json"`, as JSON."""
        described = describe(self.plan())
        if form not in ("text", "json"):
            raise refuse("EXPLAIN_FORM", got=repr(form))
        return explain(described) if form == "text" else described.to_json()

    def svg(self) -> str:
        """Return the plan as an SVG drawing: `Path("plan.svg").write_text(pipeline.svg())`."""
        from slackwater.plan.drawing import draw  # noqa: PLC0415  few pipelines are drawn

        return draw(describe(self.plan()))

    def _repr_html_(self) -> str:
        """Return the drawing for display in a notebook."""
        return self.svg()

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
        page: bool | int = False,
        show_data: bool = False,
        skip_rows: Sequence[str] = (),
        metrics_port: int | None = None,
        metrics_file: str | Path | None = None,
        otlp: str | None = None,
        on_batch: Callable[[BatchReport], None] | None = None,
    ) -> Job:
        """Run on Spark until Ctrl-C or SIGTERM or, with `bounded=True`, to the end of the input; return the job.

        Without a session (`spark`), one is started on `master`, by default on all local cores. `checkpoint` is the
        folder for progress and state, by default `.slackwater/<name>`; a later run resumes from it. `trigger` is the
        interval between batches, and `partitions` the number of tasks that keep state. `accept_changes` finishes a
        started batch with changed code or files; `take_over` writes to sinks that hold rows of another run.
        `page` shows the job live in a browser, at an address that is printed; a number is its port. `show_data` also
        shows the data of late rows and dead letters. `skip_rows`, such as `["orders/0:1200-1300"]`, sends rows on which
        a batch fails every time to the dead letters, unread. `metrics_port` serves metrics for Prometheus on this
        machine, `metrics_file` gets the figures of each batch as JSON, and `otlp` is an endpoint for metrics.
        `on_batch` is called with the report of each batch.
        """
        given = locals()
        from slackwater.spark.options import RunOptions  # noqa: PLC0415  definitions load without Spark
        from slackwater.spark.start import run_pipeline  # noqa: PLC0415  as above

        plan, options = self.plan(), RunOptions.of_call(given)
        with options.recording(plan, say=_say) as takers:
            job = run_pipeline(
                plan, options, on_record=takers.on_record, on_run=takers.on_run, on_phase=takers.on_phase
            )
            takers.end(is_finished=job.is_finished)
            return job

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
        page: bool | int = False,
        show_data: bool = False,
        skip_rows: Sequence[str] = (),
        metrics_port: int | None = None,
        metrics_file: str | Path | None = None,
        otlp: str | None = None,
        on_batch: Callable[[BatchReport], None] | None = None,
    ) -> RunningJob:
        """Start on Spark in the background; return a handle to watch and stop the job.

        It takes the same arguments as `run`, and returns once Spark has started and all checks that are possible before
        the first batch are done. With `page`, `job.page` is the page's address.
        """
        given = locals()
        from slackwater.spark.handle import start_job  # noqa: PLC0415  definitions load without Spark
        from slackwater.spark.options import RunOptions  # noqa: PLC0415  as above

        return start_job(self.plan(), RunOptions.of_call(given))


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201  where to look


def _checked(accept: Mapping[str, str], pipeline: str) -> dict[str, str]:
    from slackwater.observe.checker import checked_accept  # noqa: PLC0415  few pipelines accept anything

    return checked_accept(accept, pipeline=pipeline)
