"""What every run on Spark starts from: a plan, the columns that it names, and the types of what comes out."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from sessionkit.base.calls import called_as
from sessionkit.base.durations import Duration
from sessionkit.base.moments import known_zone
from sessionkit.base.result_columns import AS_STORED
from sessionkit.errors import InvalidArgument, NotBuilt, UnsupportedData, problem
from sessionkit.plan import Plan
from sessionkit.records.batch import read_records
from sessionkit.records.inputs.nested import root_of
from sessionkit.records.inputs.pandas_columns import check_columns
from sessionkit.records.source import Source, check_not_idle
from sessionkit.run import Run
from sessionkit.spark.environment.worker_python import settle_worker_python
from sessionkit.spark.types import SparkForm, arrow_schema, column, declared_types
from sessionkit.steps import job

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

R = TypeVar("R", bound="SparkInput")
_WAYS = {  # what is read here alone, and what Spark has for it
    "format": 'a column of timestamps: F.to_timestamp("at", "dd/MM/yyyy HH:mm")',
    "separator": 'spark.read.csv(path, sep=";", header=True), which reads the file',
    "header": "spark.read.csv(path, header=False), which reads the file",
    "ambiguous": 'ambiguous="earliest" or "latest", as rows on Spark have no order',
    "on_bad_time": 'F.coalesce("at", F.max("at").over(Window.partitionBy("partition").orderBy("offset"))) as the time',
}
_READ_ANYWHERE = (None, True, "raise", "earliest", "latest", "refuse", "drop")  # values of these options


@dataclass(frozen=True, repr=False)
class SparkInput:
    """A plan over a DataFrame."""

    plan: Plan
    _frame: DataFrame  # only the columns that the plan names, called c0, c1, …
    _columns: tuple[str, ...]  # what they are called in the input
    _retention_ms: int
    _empty: Run = field(compare=False)  # the plan over no records: the columns of every view inside, and their types
    _given: DataFrame = field(compare=False)  # with all its columns, which dropped records are given back with
    _types: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def _over(cls: type[R], plan: Plan, df: DataFrame, retention: Duration | None, clock: str | None = None) -> R:
        """Checks the plan against the columns, and that of a deployment's clock; nothing runs yet."""
        source = plan.source
        if source.sort == "timestamp":
            want = 'partition= and offset= with sort=True, or local records: df.orderBy("at").toPandas()'
            raise InvalidArgument(problem("rows on Spark have no order to keep", 'sort="timestamp"', want))
        if source.partition is None or source.offset is None:
            want = 'group_by_key(…, partition="partition", offset="offset"): rows on Spark have no order of arrival'
            got = f"partition={source.partition!r}, offset={source.offset!r}"
            raise InvalidArgument(problem("a Spark input must name its partition and offset columns", got, want))
        wanted = list(dict.fromkeys([*source.columns(), *plan._value_columns(clock)]))
        check_options(source, dict(df.dtypes), wanted)
        check_columns(df.columns, wanted)
        # mapInArrow takes columns by name and trips over a dot or a backtick in one
        frame = df.select(*[column(name).alias(f"c{place}") for place, name in enumerate(wanted)])
        schema = arrow_schema(frame, wanted)
        _check_types(schema, source)
        retention_ms = plan._complete_windows.retention_ms(retention)
        nothing = read_records(schema.empty_table(), source, plan._value_columns()).replace(form=AS_STORED)
        empty = plan._run_batch(nothing, retention_ms=retention_ms)
        return cls(plan, frame, tuple(wanted), retention_ms, empty, df)

    @called_as('run.with_types(longest="string")')
    def with_types(self: R, /, **types: str) -> R:
        """The run with declared Spark types for results of Python functions; without them a sample of records decides.

        (A stream has no sample, so there they have to be declared.)

        Example:
            >>> plan.run(spark_df).with_types(longest="string")  # doctest: +SKIP
        """
        known = [name for name, _ in self.plan._aggregations]
        for name in types:
            if name not in known:
                raise InvalidArgument(problem("with_types takes names of aggregations", repr(name), f"one of {known}"))
        return dataclasses.replace(self, _types={**self._types, **types})

    # ---- for the views

    @cached_property
    def _form(self) -> SparkForm:
        """How results show keys and times."""
        source = self.plan.source
        types = {name: self._frame.schema[f"c{self._place(name)}"].dataType.simpleString() for name in source.keys}
        return SparkForm(tuple(types.items()), source.sep, self.timezone)

    @property
    def timezone(self) -> str:
        """The zone of the records' times: the plan's, else the session's, in which Spark shows every timestamp."""
        session = self._frame.sparkSession.conf.get("spark.sql.session.timeZone")
        return known_zone(self.plan.source.timezone or str(session))

    @property
    def _zoned_plan(self) -> Plan:
        """The plan with the zone of its records: their columns do not tell it, on Spark or in Arrow's hands."""
        return dataclasses.replace(self.plan, source=dataclasses.replace(self.plan.source, timezone=self.timezone))

    def _place(self, name: str | None) -> int:
        """Which of the input's columns the plan calls so."""
        assert name is not None
        return self._columns.index(name)

    def _input(self, name: str) -> Column:
        """The column of the input that the plan calls `name`."""
        return column(f"c{self._place(name)}")

    def _job(self, view: str, schema: pa.Schema) -> job.Job:
        plan = self.plan
        return job.Job(
            columns=self._columns,
            source=plan.source,
            windows=plan._complete_windows,
            aggregations=plan._aggregations,
            strategy=plan._strategy,
            retention_ms=self._retention_ms,
            view=view,
            schema=self._typed(schema),
            step_records=job.STEP_RECORDS,
            suppression=plan._suppression,
        )

    def _typed(self, schema: pa.Schema) -> pa.Schema:
        fields = [
            field.with_type(self._result_types[field.name]) if pa.types.is_null(field.type) else field
            for field in schema
        ]
        return pa.schema(fields)

    @cached_property
    def _result_types(self) -> dict[str, pa.DataType]:
        declared = declared_types(self._frame, self._types)
        missing = [name for name, a in self.plan._aggregations if not a.parts and name not in declared]
        return declared | (self._sampled_types(missing) if missing else {})

    @abstractmethod
    def _sampled_types(self, names: list[str]) -> dict[str, pa.DataType]:
        """The types of these results, where Python functions make them and none was declared."""


def _check_types(schema: pa.Schema, source: Source) -> None:
    """Refuses types that only local records can be keys and times of: other tasks would infer other types."""
    for name in source.keys:
        kind = schema.field(name).type
        if any(getattr(pa.types, f"is_{each}")(kind) for each in ("boolean", "date", "decimal", "floating")):
            want = f'a column of text, integers or bytes, such as df[{name!r}].cast("string")'
            raise UnsupportedData(problem(f"key column {name!r} has a type that cannot be a key on Spark", kind, want))
    for name in filter(None, (source.timestamp, source.arrival)):
        kind = schema.field(name).type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_date(kind):
            want = f'a column of timestamps, such as df[{name!r}].cast("timestamp")'
            raise UnsupportedData(problem(f"column {name!r} must hold times on Spark", kind, want))


def check_options(
    source: Source, types: Mapping[str, str], wanted: Sequence[str], *, takes_format: bool = False
) -> None:
    """Refuses options that only records read in this process can have; `types` are Spark's names of types."""
    for name, way in _WAYS.items():
        value = getattr(source, name)
        if value not in _READ_ANYWHERE and not (takes_format and name == "format"):
            what = "this option is for records that are read here, not on Spark"
            raise NotBuilt(problem(what, f"{name}={value!r}", way))
    for name in wanted:
        root = root_of([*types], name)
        if name not in types and root in types:
            read = f"F.col({name!r})"
            if types[root] == "string":
                is_time = name in (source.timestamp, source.arrival)
                kind = ("bigint" if source.unit else "timestamp") if is_time else "double"
                path = f"$.{name[len(root) + 1 :]}"
                read = f"F.get_json_object({root!r}, {path!r})"
                read += "" if name in source.keys else f".cast({kind!r})"
            want = f"df.withColumn({name!r}, {read})"
            raise NotBuilt(problem("on Spark a field of a column must be a column of its own", repr(name), want))


def check_built(plan: Plan, df: Any, store: object = None) -> None:
    """Refuses what does not run on Spark, batch or stream."""
    from pyspark.sql import DataFrame

    if not isinstance(df, DataFrame):
        want = "a pyspark.sql.DataFrame; of a pandas-on-Spark frame, .to_spark()"
        raise UnsupportedData(problem("these are not records on Spark", type(df).__name__, want))
    if store is not None:
        raise NotBuilt(problem("a run on Spark keeps its own state", repr(store), "leave out store="))
    check_not_idle(plan.source, "on Spark each partition is a task that does not see the others")
    settle_worker_python(df.sparkSession)
