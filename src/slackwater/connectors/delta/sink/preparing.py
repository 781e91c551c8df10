"""Checks before the first batch: the table exists, and its columns, partitions and keys fit the sink."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slackwater.base.errors import fault
from slackwater.connectors.delta.sink.errors import NO_FOLDER, explained
from slackwater.connectors.delta.sink.rows import local_frame
from slackwater.connectors.delta.sink.table import DeltaPlace
from slackwater.connectors.sink import Slot
from slackwater.formats.schemas import quoted, to_spark_ddl

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from slackwater.connectors.delta.sink.definition import DeltaSink


@dataclass(kw_only=True)
class DeltaPreparation:
    """The checks and creations at a start."""

    spark: SparkSession
    sink: DeltaSink
    slot: Slot

    def run(self) -> None:
        """Create the table if it does not exist; otherwise check that it fits."""
        place = DeltaPlace(spark=self.spark, path=self.sink.path)
        with explained(self.sink, doing="the start"):
            if place.is_table:
                self._check(place)
            elif place.holds_something:
                raise fault("DELTA_NOT_A_TABLE", path=self.sink.path)
            elif self.slot.delivered_before:
                raise fault("DELTA_TABLE_GONE", path=self.sink.path)
            else:
                self._make_folder(place)
                empty = local_frame(self.spark, self.sink.stored(self.slot.schema).to_frame())
                empty.write.format("delta").partitionBy(*self.sink.partition_by).mode("append").save(self.sink.path)

    def _make_folder(self, place: DeltaPlace) -> None:
        """Create the table's folder separately: if that fails, Delta's error for a table hides the cause."""
        with explained(self.sink, doing="the start", forbidden=NO_FOLDER):
            if not place.make_folder():
                why = f"cannot create a folder at `{place.path}`"
                raise fault("DELTA_NO_PERMISSION", sink=self.sink, doing="the start", why=why)

    def _check(self, place: DeltaPlace) -> None:
        detail = place.detail()
        if self.sink.merge_on and detail["properties"].get("delta.appendOnly") == "true":
            raise fault("DELTA_APPEND_ONLY", path=self.sink.path)
        found = list(detail["partitionColumns"])
        if self.sink.partition_by and _lower(found) != _lower(self.sink.partition_by):
            wanted = list(self.sink.partition_by)
            raise fault("DELTA_PARTITIONS", path=self.sink.path, found=found or "none", wanted=wanted)
        self._check_columns(place)
        if self.sink.merge_on:
            self._check_unique(place)

    def _check_columns(self, place: DeltaPlace) -> None:
        from pyspark.sql.types import StructType  # noqa: PLC0415  needs Spark, which definitions do not

        declared = StructType.fromDDL(to_spark_ddl(self.sink.stored(self.slot.schema)))
        assert isinstance(declared, StructType), "columns make a struct"
        wanted = _types(declared)
        schema = place.schema
        found = _types(schema)
        missing = [name for name in wanted if name not in found]
        problems = [
            f"`{name}` is {found[name][1]} and must be {dtype}"
            for name, (_, dtype) in wanted.items()
            if name in found and found[name][1] != dtype
        ]
        problems += [
            f"`{column.name}` must not be null and is not among the rows' columns"
            for column in schema.fields
            if not column.nullable and column.name.lower() not in wanted
        ]
        if missing and not self.sink.schema_evolution:
            named = ", ".join(f"`{wanted[name][0]}`" for name in missing)
            problems.append(f"it lacks {named} (schema_evolution=True adds them)")
        if problems:
            raise fault("DELTA_TABLE_UNFIT", path=self.sink.path, problems="; ".join(problems))
        if missing:
            columns = ", ".join(f"{quoted(wanted[name][0])} {wanted[name][1]}" for name in missing)
            self.spark.sql(f"ALTER TABLE {_table(self.sink.path)} ADD COLUMNS ({columns})")

    def _check_unique(self, place: DeltaPlace) -> None:
        """Reject a table filled by others in which a key occurs twice; reads the key columns of all rows, once."""
        from slackwater.connectors.delta.sink.writer import app_of  # noqa: PLC0415  needs Spark, which definitions do not

        if place.last_commit(app_of(self.slot)) is not None:
            return
        keys = [quoted(key) for key in self.sink.merge_on]
        twice = place.frame.groupBy(*keys).count().where("count > 1").limit(1).collect()
        if twice:
            example: dict[str, Any] = twice[0].asDict()
            times = example.pop("count")
            raise fault("DELTA_KEYS_TWICE", path=self.sink.path, key=example, times=times)


def _types(schema: StructType) -> dict[str, tuple[str, str]]:
    """Return the name and type of each column by its lowercase name, since Spark ignores case."""
    return {column.name.lower(): (column.name, column.dataType.simpleString()) for column in schema.fields}


def _lower(names: Any) -> list[str]:  # noqa: ANN401  Java has no types here
    return [name.lower() for name in names]


def _table(path: str) -> str:
    return "delta.`" + path.replace("`", "``") + "`"
