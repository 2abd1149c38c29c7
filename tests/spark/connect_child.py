"""A plan through Spark Connect, in a process of its own: `python -m tests.spark.connect_child FOLDER`.

A process has either a session of its own or one of a server.
"""

import sys
from pathlib import Path
from typing import Any

import sessionkit as sk
from sessionkit.spark import prepare
from tests.spark.common import WINDOWS, plan_of, read_stream, records, write_files
from tests.spark.session import start_spark


def rows(table: object) -> list[str]:
    return sorted(map(repr, table.to_pylist()))  # type: ignore[attr-defined]


def sent(run: Any, **options: Any) -> list[Any]:
    """The dropped records, as they go to a topic."""
    return sk.to_kafka(run, rows="dropped", partitions=3, **options).collect()


def main(folder: Path) -> None:
    """Says what it has found to be right."""
    spark = start_spark(remote=True)
    table, plan = records(2), plan_of(WINDOWS["session"], "on_window_update")
    local = plan.run(table)
    run = plan.stream(read_stream(spark, write_files(table, folder / "in", [700])))
    places = {"changelog": folder / "out", "dropped": folder / "late"}
    query = run.write(checkpoint=folder / "state", **places, available_now=True)
    query.awaitTermination()
    expected = local.changelog()
    written = spark.read.parquet(str(folder / "out")).select(*expected.column_names).toArrow()
    assert rows(written) == rows(expected.cast(written.schema))
    print("a stream through Spark Connect:", written.num_rows, "rows as in the local run")
    metrics, counted = local.metrics(), run.metrics()
    assert counted == {**{name: metrics[name] for name in counted if name in metrics}, "windows-in-state": 24}
    store = sk.open_store("spark", checkpoint=folder / "state")
    assert len(store.to_pandas()) == sk.read_state(folder / "state").count() == 24
    print("its counters and its state, too")
    assert plan.run(spark.read.parquet(str(folder / "in"))).metrics() == metrics
    shown = plan.run(spark.read.parquet(str(folder / "in"))).table()
    assert shown.columns == plan.run(table).table().column_names
    assert dict(shown.dtypes)["window_start"] == "timestamp"
    assert shown.count() == local.metrics()["windows"]
    spark.conf.unset("spark.sql.shuffle.partitions")
    assert plan.run(spark.read.parquet(str(folder / "in"))).by_key().table().count() == shown.count()
    assert prepare(spark, plan) >= 1
    print("and a batch")
    late = spark.read.parquet(str(folder / "late")).drop("batch")
    of_stream, of_batch = sent(run, dropped=late), sent(plan.run(spark.read.parquet(str(folder / "in"))))
    values = [sorted((row.value, row.partition or 0) for row in each) for each in (of_stream, of_batch)]
    assert values[0] == values[1]
    assert {header.key for row in of_batch for header in row.headers} >= {"lateness_ms", "closed_by", "enough_grace_ms"}
    assert len(of_batch) == late.count() == metrics["dropped-records-total"] > 100
    print("and dropped records")
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
