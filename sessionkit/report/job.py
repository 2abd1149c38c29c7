"""The main job: a plan over a file on Spark, its results as Parquet, and a report for a person."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from sessionkit.aggregations import built_ins as agg
from sessionkit.base.result_folders import Results, save
from sessionkit.errors import InvalidArgument, InvalidData, problem
from sessionkit.plan import Plan, group_by_key
from sessionkit.records.files.tables import parquet_schema, read_file
from sessionkit.records.inputs.pandas_columns import check_columns
from sessionkit.records.samples import sample_path
from sessionkit.report.page import Findings, page
from sessionkit.run import Run
from sessionkit.spark.session import QUICK_START, start_spark
from sessionkit.windows.session import SessionWindows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from sessionkit.spark.batch_run import SparkRun

PARTITION, OFFSET = "partition", "offset"
RESULTS = ("table", "changelog", "trace", "report.html")

SMALL_BYTES = 64 * 2**20


class Progress:
    """Says what is being done, a line a step, with the seconds since the start."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def __call__(self, step: str) -> None:
        """Says that this step begins."""
        # The line in one piece: `print` writes its end by itself, and another thread's step can come between.
        sys.stdout.write(f"[{time.monotonic() - self._began:5.1f} s] {step}\n")
        sys.stdout.flush()


def demo(out: Path, *, overwrite: bool = False) -> None:
    """Writes a folder of results: sessions of airline at airport over the departures of July 2013."""
    plan = (
        group_by_key(
            "carrier", "origin", sep="@", timestamp="scheduled", timezone="UTC", partition=PARTITION, offset=OFFSET
        )
        .windowed_by(SessionWindows(inactivity_gap="1h", grace="30m"))
        .aggregate(count=agg.count(), mean_delay=agg.mean("dep_delay"))
    )
    run_job(plan, sample_path("flights"), out, "Departures from New York, July 2013", overwrite=overwrite)


def of_file(options: argparse.Namespace) -> None:
    """Runs a plan over a user's own file, as the command line describes both, and writes its folder of results.

    Raises:
        InvalidArgument: no such file, or only one of --partition and --offset.
    """
    keys = tuple(name.strip() for name in options.key.split(",") if name.strip())
    partition, offset = options.partition, options.offset
    if (partition is None) != (offset is None):
        want = "give both, or neither: then the order of rows is the order of arrival"
        raise InvalidArgument(
            problem("--partition and --offset must be given together", f"{partition!r} and {offset!r}", want)
        )
    schema = parquet_schema(options.file)
    records: Path | pa.Table = options.file
    if schema is None:
        records, remarks = read_file(options.file, keys=keys)
        schema = records.schema
        for remark in remarks:
            print(remark)
    if partition is None:
        table_names = schema.names
        listed = {PARTITION, OFFSET} <= set(table_names)
        partition, offset = (name if listed else _free_name(name, table_names) for name in (PARTITION, OFFSET))
        if not listed:
            table = records if isinstance(records, pa.Table) else read_file(options.file).table
            records = _numbered(table, partition, offset)
        said = "as the columns of these names say" if listed else "one partition, in which rows arrive in their order"
        print(f"partition and offset: {said}")
    plan = group_by_key(
        *keys,
        timestamp=options.timestamp,
        sep=options.sep if len(keys) > 1 else None,
        unit=options.unit,
        timezone=options.timezone or _zone_of(schema, options.timestamp),
        partition=partition,
        offset=offset,
    )
    plan = plan.windowed_by(SessionWindows(inactivity_gap=options.gap, grace=options.grace)).emit(options.emit)
    results = {f"mean_{name}": agg.mean(name) for name in options.mean}
    results |= {f"sum_{name}": agg.sum(name) for name in options.sum}
    plan = plan.aggregate(count=agg.count(), **results)
    run_job(plan, records, options.out, options.file.name, overwrite=options.overwrite)


def run_job(plan: Plan, records: Path | pa.Table, out: Path, title: str, *, overwrite: bool = False) -> None:
    """Runs the plan on Spark and writes `table`, `changelog`, `trace` and `report.html` into `out`.

    Args:
        records: a Parquet file, which Spark reads, or a table that it is handed.
        overwrite: writes also into a folder that has other things in it; these stay.
    Raises:
        InvalidArgument: in `out` is what no former report wrote.
        WriteFailed: the disk is full, read-only or broken; `out` is as it was.
    """
    schema = parquet_schema(records) if isinstance(records, Path) else records.schema
    if schema is None:
        raise InvalidData(problem("this is not a Parquet file", str(records), "a Parquet file, or a table"))
    check_columns(schema.names, list(dict.fromkeys([*plan.source.columns(), *plan.value_columns()])))
    with Results(out, RESULTS, alone=not overwrite) as results:
        counts = _run(plan, records, schema, results, title)
        results.place()
    print(_summary(counts, out))


def _run(plan: Plan, records: Path | pa.Table, schema: pa.Schema, results: Results, title: str) -> dict[str, int]:
    """Writes the results aside; the counts that the page shows."""
    progress = Progress()
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
            drawn = aside.submit(_draw, plan, run, results, title, progress)  # mostly Python, the writing mostly Java
            _write(results, "changelog", run.changelog, progress)
            _write(results, "trace/records", run.trace.records, progress)
            _write(results, "trace/windows", run.trace.windows, progress)
            counts = drawn.result()
        finally:
            spark.stop()
    progress("done")
    return counts


def _write(results: Results, name: str, view: Callable[[], DataFrame], progress: Progress) -> None:
    from sessionkit.spark.batch_run import readable_errors

    progress(f"writing {results.folder / name}")
    with readable_errors():
        results.write(name, lambda path: save(view(), path))


def _draw(plan: Plan, run: SparkRun, results: Results, title: str, progress: Progress) -> dict[str, int]:
    """Writes the page; the counts that it shows."""
    progress("counting")
    counts = run.metrics()
    progress("drawing the report")
    text = page(_findings(plan, run, counts, title))
    results.write("report.html", lambda path: path.write_text(text, encoding="utf-8"))
    return counts


def _warm_up(plan: Plan, schema: pa.Schema) -> None:
    """Loads what the job will need: the compiled loops and the charts."""
    import sessionkit.views.charts  # noqa: F401

    plan.run(schema.empty_table())


def _warm_up_worker(spark: SparkSession) -> None:
    """Has a worker's Python load what the job will need."""

    def load(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import sessionkit.steps.partition_run  # noqa: F401

        yield from batches

    spark.range(1).mapInArrow(load, "id long").collect()


def _zone_of(schema: pa.Schema, name: str) -> str:
    """The zone of a column of times; UTC where it has none."""
    place = schema.get_field_index(name)
    zone: str | None = getattr(schema.field(place).type, "tz", None) if place >= 0 else None
    return zone or "UTC"


def _free_name(name: str, taken: Sequence[str]) -> str:
    """`name`, or one like it that no column has: a file may have an "offset" of its own that is none in a stream."""
    while name in taken:
        name += "_"
    return name


def _numbered(records: pa.Table, partition: str, offset: str) -> pa.Table:
    """One partition, in which the order of rows is the order of arrival."""
    numbered = records.append_column(partition, pa.array(np.zeros(len(records), np.int32)))
    return numbered.append_column(offset, pa.array(np.arange(len(records))))


def _findings(plan: Plan, run: SparkRun, counts: dict[str, int], title: str) -> Findings:
    """What the page shows; pictures only where the records fit into this process."""
    local: Run | None
    try:
        local = run.local()
    except InvalidData:
        local = None
    return Findings(title=title, plan=plan, counts=counts, local=local)


def _summary(counts: dict[str, int], out: Path) -> str:
    records, dropped = counts["process-total"], counts["dropped-records-total"]
    share = f" ({dropped / records:.2%})" if records else ""
    return (
        f"{records:,} records, {counts['windows']:,} sessions ({counts['windows-open']:,} still open), "
        f"{counts['windows-merged']:,} merges, {dropped:,} dropped{share}\n"
        f"{out / 'table'}, {out / 'changelog'}, {out / 'trace'}: Parquet\n{out / 'report.html'}: open it in a browser"
    )
