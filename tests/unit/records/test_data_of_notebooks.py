"""The files in data/ that the exploring notebooks read are what data/README.md says."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

DATA = Path(__file__).parents[3] / "data"
README = (DATA / "README.md").read_text(encoding="utf-8")
LICENCES = {
    "flights-2013-07.parquet": "creativecommons.org/publicdomain/zero/1.0",
    "quakes-2022-02.parquet": "www.usgs.gov/information-policies-and-instructions/copyrights-and-credits",
    "commits-2024-2025.parquet": "creativecommons.org/publicdomain/zero/1.0",
}


@pytest.fixture(scope="module")
def quakes() -> pa.Table:
    return pq.read_table(DATA / "quakes-2022-02.parquet")


@pytest.fixture(scope="module")
def commits() -> pa.Table:
    return pq.read_table(DATA / "commits-2024-2025.parquet")


def test_every_file_has_a_section_with_its_licence() -> None:
    assert {path.name for path in DATA.glob("*.parquet")} == set(LICENCES)
    sections = README.split("\n# ")
    for name, licence in LICENCES.items():
        (section,) = [section for section in sections if section.split("\n\n")[1].startswith(f"`{name}`")]
        assert licence in section


@pytest.mark.parametrize("name", ["quakes-2022-02.parquet", "commits-2024-2025.parquet"])
def test_the_file_stays_small_and_its_size_is_said(name: str) -> None:
    size = (DATA / name).stat().st_size
    assert size <= 300_000
    assert f"`{name}` ({size / 1000:.0f} kB)" in README


def test_columns_and_rows_of_the_earthquakes(quakes: pa.Table) -> None:
    assert {field.name: str(field.type) for field in quakes.schema} == {
        "time": "timestamp[ms, tz=UTC]", "near": "string", "mag": "double", "depth": "double",
        "latitude": "double", "longitude": "double",
    }  # fmt: skip
    assert quakes.num_rows == 9_918
    assert {name: quakes[name].null_count for name in quakes.column_names if quakes[name].null_count} == {"mag": 1}


def test_figures_of_the_earthquakes(quakes: pa.Table) -> None:
    times = quakes["time"].to_pylist()
    assert times == sorted(times, reverse=True)
    assert [f"{at:%m-%d %H:%M}" for at in (times[-1], times[0])] == ["02-06 17:33", "03-08 17:05"]
    assert pc.count_distinct(quakes["near"]).as_py() == 1_263
    assert pc.sum(pc.less(quakes["mag"], 0)).as_py() == 285


def test_columns_and_rows_of_the_commits(commits: pa.Table) -> None:
    assert {field.name: str(field.type) for field in commits.schema} == {
        "commit": "string", "author": "string", "written": "timestamp[ms, tz=UTC]", "applied": "timestamp[ms, tz=UTC]",
    }  # fmt: skip
    assert commits.num_rows == 4_921
    assert all(column.null_count == 0 for column in commits.columns)
    assert pc.count_distinct(commits["commit"]).as_py() == 4_921
    assert {len(commit) for commit in commits["commit"].to_pylist()} == {10}


def test_commits_are_in_the_order_in_which_they_were_applied(commits: pa.Table) -> None:
    applied, written = commits["applied"].to_pylist(), commits["written"].to_pylist()
    assert applied == sorted(applied)
    assert {at.year for at in applied} == {2024, 2025}
    assert all(earlier <= later for earlier, later in zip(written, applied, strict=True))


def test_figures_of_the_commits(commits: pa.Table) -> None:
    authors = list(dict.fromkeys(commits["author"].to_pylist()))
    assert authors == [f"author {number:03d}" for number in range(1, 252)]
    written = commits["written"]
    newest = pc.cumulative_max(written.cast(pa.int64()))
    late = pc.sum(pc.less(written.cast(pa.int64()), newest)).as_py()
    assert round(100 * late / commits.num_rows) == 33
    assert f"{pc.min(written).as_py():%Y-%m}" == "2014-01"
