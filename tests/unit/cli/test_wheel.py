"""The commands where there is nothing but the wheel and what it names: no Spark, no notebook, no leftovers."""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sessionkit.errors import DISTRIBUTION
from tests.unit.cli.clicks import CLICKS, COLUMNS

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("the wheel")]  # which is built once

ROOT = Path(__file__).parents[3]
GAP = ["--gap", "30m"]
COMMANDS = {
    "report": [*COLUMNS, *GAP, "--out", "results"],
    "sessionize": [*COLUMNS, *GAP],
    "info": [],
    "audit": [*COLUMNS, *GAP, "--grace", "1h", "--fail-if-lost"],
}
KINDS = ["clicks.csv", "clicks.csv.gz", "clicks.jsonl", "clicks"]


def needed(name: str, found: set[str]) -> set[str]:
    """A package and all that it needs, without its extras."""
    key = re.sub(r"[-_.]+", "-", name).lower()
    try:
        about = distribution(key)
    except PackageNotFoundError:  # for another system
        return found
    if key not in found:
        found.add(key)
        for line in about.requires or []:
            if "extra ==" not in line:
                needed(re.split(r"[^\w.-]", line, maxsplit=1)[0], found)
    return found


def link(name: str, site: Path) -> None:
    """Puts an installed package into another environment, as links to what it installed here."""
    package = distribution(name)
    for top in {file.parts[0] for file in package.files or []} - {"..", "__pycache__"}:
        if not (site / top).exists():
            (site / top).symlink_to(str(package.locate_file(top)))


def take_what_is_compiled(site: Path) -> None:
    """What this environment has compiled of the same files, modules and loops, which takes ten seconds."""
    for file in (site / "sessionkit").rglob("*.py"):
        shutil.copystat(ROOT / file.relative_to(site), file)
    for cache in (ROOT / "sessionkit").rglob("__pycache__"):
        if (site / cache.parent.relative_to(ROOT)).exists():
            shutil.copytree(cache, site / cache.relative_to(ROOT))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages of a fresh environment: the wheel, built now, and what it needs."""
    folder = tmp_path_factory.mktemp("environment")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    site = folder / "site"
    zipfile.ZipFile(wheel).extractall(site)
    take_what_is_compiled(site)
    (about,) = site.glob("*.dist-info/METADATA")
    lines = re.findall(r"^Requires-Dist: ([\w.-]+)(.*)$", about.read_text(encoding="utf-8"), re.M)
    packages: set[str] = set()
    for name, rest in lines:
        if "extra ==" not in rest:
            needed(name, packages)
    assert {"typer", "pyarrow", "pandas"} <= packages and not {"pyspark", "ipywidgets", DISTRIBUTION} & packages
    for name in packages:
        link(name, site)
    return site


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The clicks as each kind of file."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "clicks.csv").write_text(CLICKS, encoding="utf-8")
    (folder / "clicks.csv.gz").write_bytes(gzip.compress(CLICKS.encode()))
    names, *rows = [line.split(",") for line in CLICKS.splitlines()]
    records = [dict(zip(names, row, strict=True)) for row in rows]
    (folder / "clicks.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in records), encoding="utf-8")
    table = pa.Table.from_pylist(records)
    table = table.set_column(1, "at", table["at"].cast(pa.timestamp("ms")))
    (folder / "clicks").mkdir()
    for part, rows_of in enumerate((table.slice(0, 2), table.slice(2))):
        pq.write_table(rows_of, folder / "clicks" / f"part-{part}.parquet")
    return folder


def run(site: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return python(site, folder, "-m", "sessionkit", *arguments)


ONE_BY_ONE = """
import json, sys
from sessionkit.cli.commands import main
for arguments in json.loads(sys.argv[1]):
    print("status", main(arguments))
"""


def python(site: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A Python without anything of this environment but its own library."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    environment = {**kept, "PYTHONPATH": str(site)}
    place = sysconfig.get_config_var("BINDIR")
    command = [f"{place}/python{sys.version_info.major}.{sys.version_info.minor}", "-s"]
    return subprocess.run(
        [*command, *arguments], cwd=folder, env=environment, capture_output=True, encoding="utf-8", check=False
    )


@pytest.mark.parametrize("kind", KINDS)
def test_with_nothing_but_the_wheel(site: Path, files: Path, tmp_path: Path, kind: str) -> None:
    commands = [[name, str(files / kind), *options] for name, options in COMMANDS.items()]
    if kind == KINDS[0]:  # a process for each, as a user does it
        for command in commands:
            done = run(site, tmp_path, *command)
            assert done.returncode == 0, done.stderr
            assert "Traceback" not in done.stderr and done.stdout
    else:
        done = python(site, tmp_path, "-u", "-c", ONE_BY_ONE, json.dumps(commands))
        assert "Traceback" not in done.stderr
        said = done.stdout.split("status 0\n")
        assert len(said) == len(commands) + 1 and all(said[:-1]), done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["results"]
    assert "<h2>The sessions</h2>" in (tmp_path / "results" / "report.html").read_text(encoding="utf-8")


def test_spark_is_asked_for_in_one_line(site: Path, files: Path, tmp_path: Path) -> None:
    done = run(site, tmp_path, "report", str(files / "clicks.csv"), *COMMANDS["report"], "--spark")
    assert (done.returncode, done.stdout) == (2, "")
    want = "sessionkit: this job runs on Spark; got no package pyspark; pip install 'sessionkit-streams[spark]'"
    assert done.stderr.startswith(want) and len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())
