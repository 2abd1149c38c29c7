"""Plans through Spark Connect: nothing that sessionkit does needs the driver's own Java."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.session import OWN_SPARK

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.xdist_group(OWN_SPARK)]


def test_a_stream_and_a_batch_through_spark_connect(tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="grpcio is not installed: pip install pyspark[connect]")
    command = [sys.executable, "-m", "tests.spark.connect_child", str(tmp_path)]
    done = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3_000:]
    assert "a stream through Spark Connect" in done.stdout
    assert "and a batch" in done.stdout
    assert "and dropped records" in done.stdout
