"""The command line: what options become, how a file without offsets is numbered, and one line where it cannot go on."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sessionkit.cli.commands import main
from sessionkit.records.samples import sample_path
from sessionkit.report import job as report

TIMES = ["--timestamp", "at", "--unit", "ms", "--gap", "30m", "--grace", "5m"]
CLICKS = pa.table(
    {
        "user": ["ada", "bob", "ada"],
        "site": ["a", "b", "a"],
        "at": [1_000, 3_000, 2_000],
        "spent": [1.5, 2.5, 3.5],
        "items": [1, 2, 3],
    }
)
CSV = "user,site,at,spent,items\nada,a,1000,1.5,1\nbob,b,3000,2.5,2\nada,a,2000,3.5,3\n"
PLACES = {"partition": pa.array([0, 1, 0], pa.int32()), "offset": pa.array([7, 3, 8])}
WINDOWED = '.windowed_by(sk.SessionWindows(inactivity_gap="30m", grace="5m"))'
NUMBERED = 'timestamp="at", unit="ms", timezone="UTC", partition="partition", offset="offset")'


class Call(NamedTuple):
    """What the job was asked to do."""

    plan: Any
    records: Any
    out: Path
    title: str
    overwrite: bool


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    """The jobs that were asked for; none runs."""
    asked: list[Call] = []
    monkeypatch.setattr(
        "sessionkit.report.job.run_job", lambda *arguments, overwrite: asked.append(Call(*arguments, overwrite))
    )
    return asked


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real job, in which Spark must not start."""
    monkeypatch.setattr("sessionkit.report.job.start_spark", lambda more: pytest.fail("Spark was started"))


def parquet(folder: Path, **columns: pa.Array) -> Path:
    """The clicks, with more columns."""
    table = CLICKS
    for name, column in columns.items():
        table = table.append_column(name, column)
    pq.write_table(table, folder / "clicks.parquet")
    return folder / "clicks.parquet"


def asked(calls: list[Call], file: Path, *options: str) -> Call:
    """The one job that these options ask for."""
    assert main(["report", str(file), *options]) == 0
    (call,) = calls
    return call


def code(call: Call) -> list[str]:
    """The calls that build the plan, every text in double quotes."""
    return [line.replace("'", '"') for line in call.plan.code()]


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line on stderr with which the command ends, at status 2."""
    capsys.readouterr()
    assert main(arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("sessionkit: ")
    return line.removeprefix("sessionkit: ")


# ---- options


def test_options_become_a_plan(calls: list[Call], tmp_path: Path) -> None:
    file = parquet(tmp_path, **PLACES)
    call = asked(calls, file, "--key", "user", *TIMES)
    assert repr(call.plan) == (
        f'(\n    sk.group_by_key("user", {NUMBERED}\n    {WINDOWED}\n    .aggregate(count=sk.count())\n)'
    )
    assert (call.records, call.out, call.title, call.overwrite) == (file, Path("out"), "clicks.parquet", False)


def test_times_are_read_and_shown_in_the_zone_of_their_column(calls: list[Call], tmp_path: Path) -> None:
    at = pa.array([0, 60_000, 120_000], pa.timestamp("ms", "Asia/Kathmandu"))
    file = tmp_path / "clicks.parquet"
    pq.write_table(pa.table({"user": ["ada", "bob", "ada"], "at": at, **PLACES}), file)
    call = asked(calls, file, "--key", "user", "--timestamp", "at", "--gap", "1h", "--grace", "0s")
    assert call.plan.source.timezone == "Asia/Kathmandu"
    assert call.plan.run(file).timezone == "Asia/Kathmandu"


def test_every_option(calls: list[Call], tmp_path: Path) -> None:
    file = parquet(tmp_path, shard=PLACES["partition"], place=PLACES["offset"])
    call = asked(
        calls, file, "--key", "user", "--timestamp", "at", "--unit", "s", "--timezone", "America/New_York",
        "--gap", "1h", "--grace", "0s", "--partition", "shard", "--offset", "place", "--emit", "on_window_close",
        "--mean", "spent", "--mean", "items", "--sum", "items", "--out", str(tmp_path / "results"), "--overwrite",
    )  # fmt: skip
    assert code(call) == [
        'sk.group_by_key("user", timestamp="at", unit="s", timezone="America/New_York", partition="shard", '
        'offset="place")',
        '.windowed_by(sk.SessionWindows(inactivity_gap="1h", grace="0s"))',
        '.emit("on_window_close")',
        '.aggregate(count=sk.count(), mean_spent=sk.mean("spent"), mean_items=sk.mean("items"), '
        'sum_items=sk.sum("items"))',
    ]
    assert call.records == file and call.out == tmp_path / "results" and call.overwrite


@pytest.mark.parametrize(
    ("options", "keys"),
    [
        (["--key", "user"], '"user"'),
        (["--key", "user,site"], '"user", "site"'),
        (["--key", " user , site ,"], '"user", "site"'),
        (["--key", "user,site", "--sep", "/"], '"user", "site"'),
        (["--key", "user", "--sep", "/"], '"user"'),  # one key is never joined
    ],
)
def test_lists_of_keys(calls: list[Call], tmp_path: Path, options: list[str], keys: str) -> None:
    plan = asked(calls, parquet(tmp_path, **PLACES), *options, *TIMES).plan
    assert plan.code()[0].startswith(f"sk.group_by_key({keys}, timestamp=")
    several = len(plan.source.keys) > 1
    assert plan.source.sep == (None if not several else "/" if "/" in options else "@")


def test_the_plan_runs_over_what_is_handed_on(calls: list[Call], tmp_path: Path) -> None:
    call = asked(calls, parquet(tmp_path), "--key", "user,site", "--sum", "items", *TIMES)
    table = call.plan.run(call.records).table()
    assert (table["user"].to_pylist(), table["site"].to_pylist()) == (["ada", "bob"], ["a", "b"])
    assert table["sum_items"].to_pylist() == [4, 2]


def test_the_demo_is_the_flights(calls: list[Call], tmp_path: Path) -> None:
    assert main(["demo", "--out", str(tmp_path)]) == 0
    (call,) = calls
    assert code(call) == [
        'sk.group_by_key("carrier", "origin", timestamp="scheduled", sep="@", timezone="UTC", partition="partition", '
        'offset="offset")',
        '.windowed_by(sk.SessionWindows(inactivity_gap="1h", grace="30m"))',
        '.aggregate(count=sk.count(), mean_delay=sk.mean("dep_delay"))',
    ]
    assert (call.records, call.out) == (sample_path("flights"), tmp_path)


# ---- partitions and offsets


def test_a_parquet_file_with_both_columns_is_left_to_spark(
    calls: list[Call], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = parquet(tmp_path, **PLACES)
    call = asked(calls, file, "--key", "user", *TIMES)
    assert call.records == file
    assert capsys.readouterr().out == "partition and offset: as the columns of these names say\n"


def test_a_file_without_them_is_one_partition_in_row_order(
    calls: list[Call], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = asked(calls, parquet(tmp_path), "--key", "user", *TIMES)
    assert call.records.drop_columns(["partition", "offset"]) == CLICKS
    assert call.records["partition"].to_pylist() == [0, 0, 0]
    assert call.records["offset"].to_pylist() == [0, 1, 2]
    assert (call.plan.source.partition, call.plan.source.offset) == ("partition", "offset")
    assert capsys.readouterr().out == "partition and offset: one partition, in which rows arrive in their order\n"


@pytest.mark.parametrize("name", ["offset", "partition"])
def test_a_lone_column_of_that_name_keeps_its_values(calls: list[Call], tmp_path: Path, name: str) -> None:
    """A column "offset" beside no "partition" may be hours from UTC: its mean is that of the file's numbers."""
    file = parquet(tmp_path, **{name: pa.array([-300, -300, 60])})
    call = asked(calls, file, "--key", "user", "--mean", name, *TIMES)
    assert call.records[name].to_pylist() == [-300, -300, 60]
    assert call.records[f"{name}_"].to_pylist() == ([0, 1, 2] if name == "offset" else [0, 0, 0])
    assert name not in (call.plan.source.partition, call.plan.source.offset)
    assert call.plan.run(call.records).table()[f"mean_{name}"].to_pylist() == [-120.0, -300.0]


@pytest.mark.parametrize("ending", ["", ",partition,offset"])
def test_csv(calls: list[Call], tmp_path: Path, ending: str) -> None:
    file = tmp_path / "clicks.csv"
    rows = CSV.splitlines()
    more = [ending, ",0,7", ",1,3", ",0,8"] if ending else [""] * 4
    file.write_text("\n".join(row + cells for row, cells in zip(rows, more, strict=True)), encoding="utf-8")
    call = asked(calls, file, "--key", "user", *TIMES)
    assert call.records.select(CLICKS.column_names) == CLICKS
    assert call.records["partition"].to_pylist() == ([0, 1, 0] if ending else [0, 0, 0])
    assert call.records["offset"].to_pylist() == ([7, 3, 8] if ending else [0, 1, 2])
    assert call.title == "clicks.csv"


# ---- refusals: status 2, one line


@pytest.mark.usefixtures("no_spark")
@pytest.mark.parametrize(
    ("options", "telling"),
    [
        (
            ["--key", "user", "--partition", "site"],
            "--partition and --offset must be given together; got 'site' and None; give both",
        ),
        (
            ["--key", "user", "--offset", "site"],
            "--partition and --offset must be given together; got None and 'site'; give both",
        ),
        (["--key", ","], "a plan groups by one column or more"),
        (["--key", "user,site", "--sep", ""], "several key columns need a separator"),
        (["--key", "user", "--gap", "soon"], "inactivity_gap must be a duration; got 'soon'; a number with a unit"),
        (["--key", "user", "--grace", "5"], 'grace needs a unit; got \'5\'; "5ms" for milliseconds, "5s" for'),
        (["--key", "user", "--grace=-5m"], "grace must be 0 ms or more"),
        (["--key", "user", "--unit", "weeks"], "unit must be a known choice; got 'weeks'"),
        (["--key", "nobody"], "column 'nobody' is not in the data; got 'user', 'site', 'at'"),
        (["--key", "user", "--timestamp", "when"], "column 'when' is not in the data"),
        (["--key", "user", "--mean", "price"], "column 'price' is not in the data"),
        (["--key", "user", "--sum", "price\nand more"], r"column 'price\nand more' is not in the data"),
        (["--key", "user", "--partition", "p", "--offset", "at"], "column 'p' is not in the data"),
    ],
)
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_refused_before_spark_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, options: list[str], telling: str
) -> None:
    file = parquet(tmp_path)
    if kind == "csv":
        file = file.with_suffix(".csv")
        file.write_text(CSV, encoding="utf-8")
    out = tmp_path / "out"
    line = refusal(capsys, "report", str(file), *TIMES, "--out", str(out), *options)
    assert line.startswith(telling)
    assert not out.exists()


@pytest.mark.usefixtures("no_spark")
@pytest.mark.parametrize(
    ("name", "content", "telling"),
    [
        ("gone.parquet", None, "there is no such file; got {folder}/gone.parquet; the path of a file, a folder"),
        ("gone\n.csv", None, r"there is no such file; got {folder}/gone\x0a.csv; the path"),
        (".", None, "the folder holds no file with records; got {folder}; a folder with files of Parquet, CSV"),
        ("clicks.xlsx", b"PK", "the file is of a kind that is not read; got clicks.xlsx; run the plan on pandas."),
        ("torn.parquet", b"PAR1 and no more", "the file cannot be read; got "),
        ("empty.csv", b"", "the file cannot be read; got "),
    ],
)
def test_files_that_cannot_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: bytes | None, telling: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    line = refusal(capsys, "report", str(tmp_path / name), "--key", "user", *TIMES)
    assert line.startswith(telling.format(folder=tmp_path))


@pytest.mark.usefixtures("no_spark")
def test_a_column_that_is_there_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    twice = pa.Table.from_arrays([*CLICKS.columns, CLICKS["user"]], names=[*CLICKS.column_names, "user"])
    pq.write_table(twice, tmp_path / "clicks.parquet")
    line = refusal(capsys, "report", str(tmp_path / "clicks.parquet"), "--key", "user", *TIMES)
    assert line.startswith("column 'user' is in clicks.parquet more than once")


@pytest.mark.parametrize(
    ("arguments", "telling"),
    [
        ([], "the following arguments are required: command"),
        (["report"], "the following arguments are required: file, --key, --timestamp, --gap, --grace"),
        (["paint"], "invalid choice: 'paint'"),
        (["report", "a.csv", "--key", "user", *TIMES, "--emit", "never"], "invalid choice: 'never'"),
    ],
)
def test_what_is_no_command(arguments: list[str], telling: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert telling in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "telling"),
    [
        (["--help"], ["demo", "report", "Session windows as Kafka Streams computes them"]),
        (["demo", "--help"], ["--out"]),
        (["report", "--help"], ["--key", "--sep", "(default @)", "--partition", "--offset", "--emit", "--out"]),
    ],
)
def test_help(arguments: list[str], telling: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 0
    shown = capsys.readouterr().out
    assert [words for words in telling if words not in shown] == []


# ---- progress


def test_a_step_is_said_when_it_begins(capsys: pytest.CaptureFixture[str]) -> None:
    progress = report.Progress()
    progress("reading")
    assert re.fullmatch(r"\[ *\d\.\d s\] reading\n", capsys.readouterr().out)


# ---- before Spark starts


def test_a_folder_that_cannot_be_made(no_spark: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    taken = tmp_path / "taken"
    taken.touch()
    said = refusal(capsys, "demo", "--out", str(taken))
    assert said == (
        f"the results cannot be written to this folder; got {taken} (File exists); "
        "a folder that can be created and written to"
    )


@pytest.mark.parametrize("place", ["table/mine.csv", "trace/records/notes.txt", "report.html", "thesis.tex"])
def test_files_of_the_users_are_refused(
    no_spark: None, tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    """A report of another run, and what somebody put into the folders of a former one, went without a word."""
    mine = tmp_path / place
    mine.parent.mkdir(parents=True, exist_ok=True)
    mine.write_text("mine", encoding="utf-8")
    refused = refusal(capsys, "demo", "--out", str(tmp_path))
    assert refused.startswith(
        f"the folder holds files that sessionkit did not write; got {tmp_path / Path(place).parts[0]}; "
    )
    if place != "thesis.tex":
        refused = refusal(capsys, "demo", "--out", str(tmp_path), "--overwrite")
        assert refused.startswith(
            f"files that sessionkit did not write are in the way; got {mine}; choose another folder"
        )
    assert mine.read_text(encoding="utf-8") == "mine"


def test_without_pyspark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sessionkit.spark.session.find_spec", lambda name: None)
    said = refusal(capsys, "demo", "--out", str(tmp_path / "out"))
    assert said.startswith("this job runs on Spark; got no package pyspark; pip install 'sessionkit-streams[spark]'")
