"""What a query tells Spark's metrics system, as Prometheus reads it, and that the alarm rules name what is there."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.common import WINDOWS, plan_of, records, write_files

pytest.importorskip("pyspark", reason="pyspark is not installed")

ROOT = Path(__file__).parents[2]
RULES = ROOT / "examples/prometheus/alarms.yml"
PREFIX = "metrics_streams_driver_AccumulatorSource_sessionkit_clicks_"
CHILD = """
import json, sys, urllib.request
from tests.spark.common import WINDOWS, plan_of, read_stream
from tests.spark.session import start_spark

folder, properties = sys.argv[1:]
own = {"spark.metrics.conf": properties, "spark.metrics.namespace": "streams", "spark.ui.port": "0"}
spark = start_spark("local[1]", **own, **{"spark.ui.enabled": "true"})
run = plan_of(WINDOWS["session"], "on_window_update").stream(read_stream(spark, folder + "/in"))
query = run.write(checkpoint=folder + "/state", changelog=folder + "/out", available_now=True, name="clicks")
query.awaitTermination()
metrics = run.metrics()
text = urllib.request.urlopen(spark.sparkContext.uiWebUrl + "/metrics/prometheus", timeout=20).read().decode()
print(json.dumps([metrics, text]))
"""


@pytest.mark.spark
def test_prometheus_reads_what_the_query_counts(tmp_path: Path) -> None:
    table = records(2)
    write_files(table, tmp_path / "in", [700])
    command = [sys.executable, "-c", CHILD, str(tmp_path), str(RULES.with_name("metrics.properties"))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=300)
    counted, text = json.loads(done.stdout.splitlines()[-1])
    told = {name: int(value) for name, value in re.findall(rf"^{PREFIX}(\w+)_Value\S* (\d+)$", text, re.MULTILINE)}
    local = plan_of(WINDOWS["session"], "on_window_update").run(table).metrics()
    assert counted == {**local, "windows-in-state": counted["windows-in-state"]}
    assert {name: told[name.replace("-", "_")] for name in counted} == counted
    assert (told["running"], told["failed"], told["batch"]) == (0, 0, 1)
    assert told["stream_time_ms"] > 1_700_000_000_000
    named = set(re.findall(rf"{PREFIX}(\w+)_Value", RULES.read_text(encoding="utf-8")))
    assert named - {"records_lag"} <= set(told)  # which takes a source that tells its newest offsets, as Kafka's does
