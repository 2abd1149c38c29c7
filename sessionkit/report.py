"""The main job: a plan over a file on Spark, its results as Parquet, and a report for a person."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from sessionkit import aggregations as agg
from sessionkit.errors import InvalidArgument, InvalidData, problem
from sessionkit.files import parquet_schema, read_table
from sessionkit.plan import Plan, Run, group_by_key
from sessionkit.records import check_columns
from sessionkit.report_page import Findings, page
from sessionkit.samples import sample_path
from sessionkit.windows.session import SessionWindows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sessionkit.spark import SparkRun

PARTITION, OFFSET = "partition", "offset"


class Progress:
    """Says what is being done and how long it took, a line a step."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    @contextmanager
    def step(self, what: str) -> Iterator[None]:
        """One step: its name at once, its time when it is done."""
        began = time.monotonic()
        print(f"[{began - self._began:5.1f} s] {what} …", end="", flush=True)
        try:
            yield
        except BaseException:
            print(flush=True)
            raise
        print(f" {time.monotonic() - began:.1f} s", flush=True)


def demo(out: Path) -> None:
    """Sessions of airline at airport over the departures of July 2013."""
    plan = (
        group_by_key(
            "carrier", "origin", sep="@", timestamp="scheduled", timezone="UTC", partition=PARTITION, offset=OFFSET
        )
        .windowed_by(SessionWindows(inactivity_gap="1h", grace="30m"))
        .aggregate(count=agg.count(), mean_delay=agg.mean("dep_delay"))
    )
    run_job(plan, sample_path("flights"), out, "Departures from New York, July 2013")


def of_file(options: argparse.Namespace) -> None:
    """The same for a user's own file, as the command line describes it.

    Raises:
        InvalidArgument: no such file, or only one of --partition and --offset.
    """
    keys = tuple(name.strip() for name in options.key.split(",") if name.strip())
    partition, offset = options.partition, options.offset
    if (partition is None) != (offset is None):
        want = "both, or neither: then the order of rows is the order of arrival"
        raise InvalidArgument(problem("--partition and --offset go together", f"{partition!r} and {offset!r}", want))
    schema = parquet_schema(options.file)
    records: Path | pa.Table = options.file if schema is not None else read_table(options.file)
    if partition is None:
        table_names = schema.names if schema is not None else read_table(options.file).column_names
        found = {PARTITION, OFFSET} <= set(table_names)
        partition, offset = (name if found else _free_name(name, table_names) for name in (PARTITION, OFFSET))
        if not found:
            records = _numbered(read_table(options.file), partition, offset)
        said = "as the columns of these names say" if found else "one partition, in which rows arrive in their order"
        print(f"partition and offset: {said}")
    plan = group_by_key(
        *keys,
        timestamp=options.timestamp,
        sep=options.sep if len(keys) > 1 else None,
        unit=options.unit,
        timezone=options.timezone,
        partition=partition,
        offset=offset,
    )
    plan = plan.windowed_by(SessionWindows(inactivity_gap=options.gap, grace=options.grace)).emit(options.emit)
    results = {f"mean_{name}": agg.mean(name) for name in options.mean}
    results |= {f"sum_{name}": agg.sum(name) for name in options.sum}
    run_job(plan.aggregate(count=agg.count(), **results), records, options.out, options.file.name)


def run_job(plan: Plan, records: Path | pa.Table, out: Path, title: str) -> None:
    """Runs the plan on Spark and writes `table`, `changelog`, `trace` and `report.html` into `out`.

    Args:
        records: a Parquet file, which Spark reads, or a table that it is handed.
    """
    schema = parquet_schema(records) if isinstance(records, Path) else records.schema
    if schema is None:
        raise InvalidData(problem("this is no Parquet file", str(records), "a Parquet file, or a table"))
    check_columns(schema.names, list(dict.fromkeys([*plan.source.columns(), *plan.value_columns()])))
    progress = Progress()
    with progress.step("starting Spark"), ThreadPoolExecutor(max_workers=1) as aside:
        aside.submit(_warm_up, plan, schema)  # Java starts in its own process meanwhile
        spark = start_spark()
    try:
        with progress.step("reading the records"):
            frame = spark.read.parquet(str(records)) if isinstance(records, Path) else spark.createDataFrame(records)
            run = plan.run(frame)
        views = {
            "table": run.table,
            "changelog": run.changelog,
            "trace/records": run.trace.records,
            "trace/windows": run.trace.windows,
        }
        from sessionkit.spark import readable_errors

        for name, view in views.items():
            with progress.step(f"writing {out / name}"), readable_errors():
                view().write.mode("overwrite").parquet(str(out / name))
        with progress.step("counting"):
            counts = run.metrics()
        with progress.step("drawing the report"):
            (out / "report.html").write_text(page(_findings(plan, run, counts, title)), encoding="utf-8")
    finally:
        spark.stop()
    print(_summary(counts, out))


def _warm_up(plan: Plan, schema: pa.Schema) -> None:
    """Loads what the job will need: the compiled loops and the charts."""
    import sessionkit.views.charts  # noqa: F401

    plan.run(schema.empty_table())


def _free_name(name: str, taken: Sequence[str]) -> str:
    """`name`, or one like it that no column has: a file may have an "offset" of its own that is none in a stream."""
    while name in taken:
        name += "_"
    return name


def _numbered(records: pa.Table, partition: str, offset: str) -> pa.Table:
    """One partition, in which the order of rows is the order of arrival."""
    numbered = records.append_column(partition, pa.array(np.zeros(len(records), np.int32)))
    return numbered.append_column(offset, pa.array(np.arange(len(records))))


def start_spark() -> SparkSession:
    """A quiet local Spark on a Java that it accepts."""
    from sessionkit.java import use_java

    use_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the workers' Python is this one
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession

    log = resources.files("sessionkit").joinpath("_assets", "log4j2.properties")
    settings = {
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={log}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
        "spark.sql.timestampType": "TIMESTAMP_NTZ",  # a time without a zone stays one
        "spark.sql.session.timeZone": "UTC",
    }
    builder = SparkSession.builder.master("local[*]").appName("sessionkit")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


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
