"""The report of a file as a folder, made on Spark: the page, and the results as Parquet."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from sessionkit.base.result_folders import Results, save
from sessionkit.errors import InvalidData, attempted, problem
from sessionkit.plan import Plan
from sessionkit.records.files.tables import parquet_schema
from sessionkit.records.inputs.pandas_columns import check_columns
from sessionkit.records.times import to_milliseconds
from sessionkit.report.job import Report, counted, write_page
from sessionkit.report.sessions import free_name
from sessionkit.spark.session import QUICK_START, start_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from sessionkit.spark.batch_run import SparkRun

PARTITION, OFFSET = "partition", "offset"
RESULTS = ("table", "changelog", "trace", "report.html")
STEPS_ON_SPARK = 9  # that this job says
SMALL_BYTES = 64 * 2**20


def make_report_on_spark(report: Report) -> str:
    """Writes `table`, `changelog` and `trace` as Parquet, the page and its tables; what came of it, in words."""
    plan, records = for_spark(report.plan, report.records)
    schema = parquet_schema(records) if isinstance(records, Path) else records.schema
    if schema is None:
        raise InvalidData(problem("this is not a Parquet file", str(records), "a Parquet file, or a table"))
    check_columns(schema.names, list(dict.fromkeys([*plan.source.columns(), *plan._value_columns()])))
    with report.place_for([*RESULTS, *_files(report).values()]) as results:
        counts = _run(report, plan, records, schema, results)
        results.place()
    out = report.out
    return (
        f"{counted(report.plan, counts)}\n{out / 'table'}, {out / 'changelog'}, {out / 'trace'}: Parquet\n"
        f"{out / 'report.html'}: open it in a browser"
    )


def _files(report: Report) -> dict[str, str]:
    """The tables beside the page; Spark writes the changelog as Parquet."""
    return {name: f"{name}.csv" for name in report.tables if name != "changelog"}


def for_spark(plan: Plan, records: Path | pa.Table) -> tuple[Plan, Path | pa.Table]:
    """The plan and records with what Spark needs: numbers of partitions and offsets, and a zone.

    Rows without such numbers are one partition, in the order in which they are.
    """
    if isinstance(records, pa.Table):
        records = _with_timestamps(records, plan)
        plan = _with_source(plan, format=None, ambiguous=plan.source.ambiguous.replace("infer", "raise"))
    plan = _with_source(plan, types=(), separator=None, header=True)  # they were applied as the file was read
    if plan.source.offset is None:
        assert isinstance(records, pa.Table), "a file that Spark reads by itself has these columns"
        partition, offset = (free_name(name, records.column_names) for name in (PARTITION, OFFSET))
        if plan.source.sort:
            records = records.sort_by(plan.source.timestamp)
        records = records.append_column(partition, pa.array(np.zeros(len(records), np.int32)))
        records = records.append_column(offset, pa.array(np.arange(len(records))))
        plan = _with_source(plan, partition=partition, offset=offset, sort=False)
    if plan.source.timezone is None:
        schema: Any = records.schema if isinstance(records, pa.Table) else parquet_schema(records)
        place = schema.get_field_index(plan.source.timestamp)
        zone = getattr(schema.field(place).type, "tz", None) if place >= 0 else None
        plan = _with_source(plan, timezone=zone or "UTC")
    return _with_source(plan, sort=False), records  # Spark goes by the offsets


def _with_timestamps(records: pa.Table, plan: Plan) -> pa.Table:
    """The records with text and dates of the time column as what Spark knows as times."""
    source = plan.source
    place = records.schema.get_field_index(source.timestamp)
    kind = records.schema.field(place).type if place >= 0 else pa.null()
    is_read_by_spark = pa.types.is_timestamp(kind) and not (source.ambiguous == "infer" and kind.tz is None)
    if is_read_by_spark or (pa.types.is_integer(kind) and source.format is None) or pa.types.is_null(kind):
        return records
    ms, bad = to_milliseconds(records[source.timestamp], source)
    times = pa.array(ms, pa.timestamp("ms", source.timezone or "UTC"), mask=bad)
    return records.set_column(place, source.timestamp, times)


def _with_source(plan: Plan, **changed: Any) -> Plan:
    return dataclasses.replace(plan, source=dataclasses.replace(plan.source, **changed))


def _run(report: Report, plan: Plan, records: Path | pa.Table, schema: pa.Schema, results: Results) -> dict[str, int]:
    """Writes the results aside; the counts that the page shows."""
    progress = report.progress
    progress("starting Spark")
    small = (records.stat().st_size if isinstance(records, Path) else records.nbytes) < SMALL_BYTES
    with ThreadPoolExecutor(max_workers=1) as aside:
        aside.submit(_warm_up, plan, schema)  # Java starts in its own process meanwhile
        spark = start_spark(QUICK_START if small else {})
        try:
            aside.submit(_warm_up_worker, spark)  # Python starts while Java reads
            progress("reading the records")
            frame = spark.read.parquet(str(records)) if isinstance(records, Path) else spark.createDataFrame(records)
            run = plan.run(frame)
            _write(results, "table", run.table, progress)
            drawn = aside.submit(_draw, report, run, results, spark.version)  # mostly Python, the writing mostly Java
            _write(results, "changelog", run.changelog, progress)
            _write(results, "trace/records", run.trace.records, progress)
            _write(results, "trace/windows", run.trace.windows, progress)
            counts = drawn.result()
        finally:
            spark.stop()
    progress("done")
    return counts


def _write(results: Results, name: str, view: Callable[[], DataFrame], progress: Callable[[str], None]) -> None:
    from sessionkit.spark.batch_run import readable_errors

    progress(f"writing {results.folder / name}")
    with readable_errors():
        results.write(name, lambda path: save(view(), path))


def _draw(report: Report, run: SparkRun, results: Results, version: str) -> dict[str, int]:
    """Writes the page and, where the records fit into this process, its tables; the counts that it shows."""
    report.progress("counting")
    counts = run.metrics()
    local, systems = attempted(run.local, but=InvalidData), [("Spark", version)]
    write_page(report, results, counts, local, _files(report), remarks=report.remarks, systems=systems)
    return counts


def _warm_up(plan: Plan, schema: pa.Schema) -> None:
    """Loads what the job will need: the compiled loops and the charts."""
    import sessionkit.views.lanes.lanes
    import sessionkit.views.plane.plane  # noqa: F401

    plan.run(schema.empty_table())


def _warm_up_worker(spark: SparkSession) -> None:
    """Has a worker's Python load what the job will need."""

    def load(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import sessionkit.steps.partition_run  # noqa: F401

        yield from batches

    spark.range(1).mapInArrow(load, "id long").collect()
