"""The command line: what the options of a report become, and one line where it cannot go on."""

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sessionkit as sk
from sessionkit.cli.commands import COMMANDS, main
from sessionkit.records.samples import sample_path
from sessionkit.report import job
from sessionkit.report.job import Report
from sessionkit.report.spark_job import for_spark
from tests.unit.cli.clicks import Capture, refused

TIMES = ["--timestamp", "at", "--unit", "ms", "--gap", "30m", "--grace", "5m"]
CLICKS = pa.table(
    {"user": ["ada", "bob", "ada"], "site": ["a", "b", "a"], "at": [1_000, 3_000, 2_000], "spent": [1.5, 2.5, 3.5],
     "items": [1, 2, 3]},
)  # fmt: skip
CSV = "user,site,at,spent,items\nada,a,1000,1.5,1\nbob,b,3000,2.5,2\nada,a,2000,3.5,3\n"
PLACES = {"partition": pa.array([0, 1, 0], pa.int32()), "offset": pa.array([7, 3, 8])}
WINDOWED = '.windowed_by(sk.SessionWindows(inactivity_gap="30m", grace="5m"))'
NUMBERED = 'timestamp="at", unit="ms", partition="partition", offset="offset")'
MERE = 'timestamp="at", unit="ms")'


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Report]:
    """The reports that were asked for; none is made."""
    asked: list[Report] = []

    def note(report: Report) -> str:
        asked.append(report)
        return ""

    monkeypatch.setattr("sessionkit.report.job.make_report", note)
    monkeypatch.setattr("sessionkit.report.spark_job.make_report_on_spark", note)
    return asked


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real job, in which Spark must not start."""
    monkeypatch.setattr("sessionkit.report.spark_job.start_spark", lambda more: pytest.fail("Spark was started"))


def parquet(folder: Path, **columns: pa.Array) -> Path:
    table = CLICKS
    for name, column in columns.items():
        table = table.append_column(name, column)
    pq.write_table(table, folder / "clicks.parquet")
    return folder / "clicks.parquet"


def asked(calls: list[Report], file: Path, *options: str) -> Report:
    """The one job that these options ask for."""
    assert main(["report", str(file), *options]) == 0
    (call,) = calls
    return call


def code(call: Report) -> list[str]:
    """The calls that build the plan, every text in double quotes."""
    return [line.replace("'", '"') for line in call.plan.code()]


def times_beside(options: list[str]) -> list[str]:
    """The options of TIMES that are not given otherwise."""
    named = {each.partition("=")[0] for each in options}
    pairs = zip(TIMES[::2], TIMES[1::2], strict=True)
    return [word for name, value in pairs if name not in named for word in (name, value)]


# ---- options


def test_options_become_a_plan(calls: list[Report], tmp_path: Path) -> None:
    file = parquet(tmp_path, **PLACES)
    call = asked(calls, file, "--key", "user", *TIMES)
    assert repr(call.plan) == (
        f'(\n    sk.group_by_key("user", {NUMBERED}\n    {WINDOWED}\n    .aggregate(count=sk.count())\n)'
    )
    assert (call.out, call.title, call.file_format, call.overwrite) == (Path("out"), "clicks.parquet", "csv", False)


def test_times_are_read_and_shown_in_the_zone_of_their_column(calls: list[Report], tmp_path: Path) -> None:
    at = pa.array([0, 60_000, 120_000], pa.timestamp("ms", "Asia/Kathmandu"))
    file = tmp_path / "clicks.parquet"
    pq.write_table(pa.table({"user": ["ada", "bob", "ada"], "at": at, **PLACES}), file)
    call = asked(calls, file, "--key", "user", "--timestamp", "at", "--gap", "1h", "--grace", "0s")
    assert call.plan.run(call.records).timezone == "Asia/Kathmandu"
    plan, _ = for_spark(call.plan, file)
    assert plan.source.timezone == "Asia/Kathmandu"  # Spark's type has none


def test_every_option(calls: list[Report], tmp_path: Path) -> None:
    file = parquet(tmp_path, shard=PLACES["partition"], place=PLACES["offset"])
    call = asked(
        calls, file, "--key", "user", "--timestamp", "at", "--unit", "s", "--timezone", "America/New_York",
        "--gap", "1h", "--grace", "0s", "--partition", "shard", "--offset", "place", "--emit", "on_window_close",
        "--mean", "spent", "--mean", "items", "--sum", "items", "--max", "spent", "--min", "spent",
        "--out", str(tmp_path / "results"), "--overwrite",
        "--format", "parquet", "--on-bad-time", "drop", "--sort",
    )  # fmt: skip
    assert code(call) == [
        'sk.group_by_key("user", timestamp="at", unit="s", timezone="America/New_York", partition="shard", '
        'offset="place", on_bad_time="drop", sort=True)',
        '.windowed_by(sk.SessionWindows(inactivity_gap="1h", grace="0s"))',
        '.emit("on_window_close")',
        '.aggregate(count=sk.count(), mean_spent=sk.mean("spent"), mean_items=sk.mean("items"), '
        'sum_items=sk.sum("items"), min_spent=sk.min("spent"), max_spent=sk.max("spent"))',
    ]
    assert call.out == tmp_path / "results" and call.overwrite and call.file_format == "parquet"


@pytest.mark.parametrize(("options", "keys"), [
    (["--key", "user"], '"user"'), (["--key", "user,site"], '"user", "site"'),
    (["--key", " user , site ,"], '"user", "site"'), (["--key", "user,site", "--sep", "/"], '"user", "site"'),
    (["--key", "user", "--sep", "/"], '"user"'),  # one key is never joined
])  # fmt: skip
def test_lists_of_keys(calls: list[Report], tmp_path: Path, options: list[str], keys: str) -> None:
    plan = asked(calls, parquet(tmp_path, **PLACES), *options, *TIMES).plan
    assert plan.code()[0].startswith(f"sk.group_by_key({keys}, timestamp=")
    several = len(plan.source.keys) > 1
    assert plan.source.sep == (None if not several else "/" if "/" in options else "@")


def test_the_plan_runs_over_what_is_handed_on(calls: list[Report], tmp_path: Path) -> None:
    call = asked(calls, parquet(tmp_path), "--key", "user,site", "--sum", "items", *TIMES)
    table = call.plan.run(call.records).table()
    assert (table["user"].to_pylist(), table["site"].to_pylist()) == (["ada", "bob"], ["a", "b"])
    assert table["sum_items"].to_pylist() == [4, 2]


def test_the_demo_is_the_flights(calls: list[Report], tmp_path: Path) -> None:
    assert main(["demo", "--out", str(tmp_path)]) == 0
    (call,) = calls
    assert code(call) == [
        'sk.group_by_key("carrier", "origin", timestamp="scheduled", sep="@", timezone="UTC", partition="partition", '
        'offset="offset")',
        '.windowed_by(sk.SessionWindows(inactivity_gap="1h", grace="30m"))',
        '.aggregate(count=sk.count(), mean_delay=sk.mean("dep_delay"))',
    ]
    assert (call.records, call.out) == (sample_path("flights"), tmp_path)
    assert call.data == 'sk.load_sample("flights")'


# ---- partitions and offsets


def test_a_parquet_file_with_both_columns_is_left_to_spark(
    calls: list[Report], tmp_path: Path, capsys: Capture
) -> None:
    file = parquet(tmp_path, **PLACES)
    call = asked(calls, file, "--key", "user", *TIMES, "--spark")
    assert call.records == file
    assert capsys.readouterr().out.startswith("The columns partition and offset say where each record stands.\n")


def test_a_file_without_them_is_one_partition_in_row_order(calls: list[Report], tmp_path: Path) -> None:
    call = asked(calls, parquet(tmp_path), "--key", "user", *TIMES, "--spark")
    assert code(call)[0] == f'sk.group_by_key("user", {MERE}'
    plan, records = for_spark(call.plan, call.records)
    assert records["partition"].to_pylist() == [0, 0, 0]
    assert records["offset"].to_pylist() == [0, 1, 2]
    assert (plan.source.partition, plan.source.offset, plan.source.timezone) == ("partition", "offset", "UTC")


def test_times_that_are_text_are_times_on_spark_too(calls: list[Report], tmp_path: Path) -> None:
    file = tmp_path / "clicks.jsonl"
    rows = ["00:20:00+02:00", "00:10:00+02:00"]
    text = "".join(f'{{"user": "ada", "at": "2024-07-01T{at}"}}\n' for at in rows)
    file.write_text(text, encoding="utf-8")
    call = asked(calls, file, "--key", "user", "--at", "at", "--gap", "5m", "--sort", "--spark")
    plan, records = for_spark(call.plan, call.records)
    assert records["at"].type == pa.timestamp("ms", "UTC")
    assert [at.hour * 60 + at.minute for at in records["at"].to_pylist()] == [22 * 60 + 10, 22 * 60 + 20]
    assert plan.run(records).table().to_pylist() == call.plan.run(call.records).table().to_pylist()


@pytest.mark.parametrize("name", ["offset", "partition"])
def test_a_lone_column_of_that_name_keeps_its_values(calls: list[Report], tmp_path: Path, name: str) -> None:
    """A column "offset" beside no "partition" may be hours from UTC: its mean is that of the file's numbers."""
    file = parquet(tmp_path, **{name: pa.array([-300, -300, 60])})
    call = asked(calls, file, "--key", "user", "--mean", name, *TIMES, "--spark")
    plan, records = for_spark(call.plan, call.records)
    assert records[name].to_pylist() == [-300, -300, 60]
    assert records[f"{name}_"].to_pylist() == ([0, 1, 2] if name == "offset" else [0, 0, 0])
    assert name not in (plan.source.partition, plan.source.offset)
    for each, rows in ((plan, records), (call.plan, call.records)):
        assert each.run(rows).table()[f"mean_{name}"].to_pylist() == [-120.0, -300.0]


@pytest.mark.parametrize("ending", ["", ",partition,offset"])
def test_csv(calls: list[Report], tmp_path: Path, ending: str) -> None:
    file = tmp_path / "clicks.csv"
    rows = CSV.splitlines()
    more = [ending, ",0,7", ",1,3", ",0,8"] if ending else [""] * 4
    file.write_text("\n".join(row + cells for row, cells in zip(rows, more, strict=True)), encoding="utf-8")
    call = asked(calls, file, "--key", "user", *TIMES)
    assert call.records.select(CLICKS.column_names) == CLICKS
    assert call.plan.run(call.records).trace.records()["offset"].to_pylist() == ([7, 3, 8] if ending else [0, 1, 2])
    assert call.title == "clicks.csv"


@pytest.mark.parametrize("given", ["user=int64,amount=float64", "user=int64 amount=float64"])
def test_types_of_columns(calls: list[Report], tmp_path: Path, given: str) -> None:
    file = tmp_path / "clicks.csv"
    types = [word for each in given.split() for word in ("--types", each)]
    file.write_text("user,at,amount\n007,1000,1\n7,2000,2\n", encoding="utf-8")
    call = asked(calls, file, "--key", "user", "--sum", "amount", *TIMES, *types)
    assert call.plan.run(call.records).table().to_pylist()[0]["user"] == 7
    assert 'types={"user": "int64", "amount": "float64"}' in code(call)[0]


# ---- grace


def test_without_a_grace_the_smallest_round_one_that_keeps_all_is_taken(
    calls: list[Report], tmp_path: Path, capsys: Capture
) -> None:
    file = tmp_path / "clicks.csv"
    minutes = [0, 90, 10]  # the last comes 80 minutes late, 50 more than the gap
    file.write_text("user,at\n" + "".join(f"ada,{60_000 * at}\n" for at in minutes), encoding="utf-8")
    options = ["--key", "user", "--timestamp", "at", "--unit", "ms", "--gap", "30m"]
    call = asked(calls, file, *options)
    assert 'grace="1h"' in repr(call.plan)
    assert call.plan.run(call.records).metrics()["dropped-records-total"] == 0
    said = "The grace is 1 h: the smallest round one that keeps every record. --grace sets another."
    assert said in call.remarks and said in capsys.readouterr().out
    calls.clear()
    file.write_text("user,at\nada,0\nada,1000\n", encoding="utf-8")
    assert (
        "The grace is 0 s: with it no record comes too late. --grace sets another."
        in asked(calls, file, *options).remarks
    )


def test_times_without_a_zone_are_utc_and_that_is_said(calls: list[Report], tmp_path: Path) -> None:
    file = tmp_path / "clicks.csv"
    file.write_text("user,at\nada,2024-07-01 00:10:00\n", encoding="utf-8")
    options = ["--key", "user", "--at", "at", "--gap", "30m"]
    said = "The times in 'at' have no zone and are read as UTC; --timezone names another."
    assert said in asked(calls, file, *options).remarks
    calls.clear()
    call = asked(calls, file, *options, "--timezone", "Europe/Berlin")
    assert said not in call.remarks and call.plan.source.timezone == "Europe/Berlin"


# ---- refusals: status 2, one line


@pytest.mark.thorough
@pytest.mark.usefixtures("no_spark")
@pytest.mark.parametrize(("options", "telling"), [
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
    (["--key", "user", "--types", "user"], "--types takes a column and its type; got 'user'; --types user=int64"),
    (["--key", "user", "--types", "user=word"], "--types takes a column and its type; got 'user=word'; --types"),
    (["--key", "user", "--format", "xlsx"], "--format must be a known choice"),
    (["--key", "user", "--emit", "never"], "emit must be a known choice"),
    (["--key", "user", "--on-bad-time", "keep"], "on_bad_time must be a known choice"),
])  # fmt: skip
@pytest.mark.parametrize(("kind", "engine"), [("parquet", ["--spark"]), ("csv", ["--spark"]), ("csv", [])])
def test_refused_before_anything_is_written(
    tmp_path: Path, capsys: Capture, kind: str, engine: list[str], options: list[str], telling: str
) -> None:
    file = parquet(tmp_path)
    if kind == "csv":
        file = file.with_suffix(".csv")
        file.write_text(CSV, encoding="utf-8")
    out = tmp_path / "out"
    line = refused(capsys, "report", str(file), *times_beside(options), "--out", str(out / "deep"), *options, *engine)
    assert line.startswith(telling)
    assert not out.exists()


@pytest.mark.usefixtures("no_spark")
@pytest.mark.parametrize(("name", "content", "telling"), [
    ("gone.parquet", None, "there is no such file; got {folder}/gone.parquet; the path of a file, a folder"),
    ("gone\n.csv", None, r"there is no such file; got {folder}/gone\n.csv; the path"),
    (".", None, "the folder holds no file with records; got {folder}; a folder with files of Parquet, CSV"),
    ("clicks.xlsx", b"PK", "the file is of a kind that is not read; got clicks.xlsx; run the plan on pandas."),
    ("torn.parquet", b"PAR1 and no more", "the file cannot be read; got "),
    ("empty.csv", b"", "the file cannot be read; got "),
])  # fmt: skip
def test_files_that_cannot_be_read(
    tmp_path: Path, capsys: Capture, name: str, content: bytes | None, telling: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    line = refused(capsys, "report", str(tmp_path / name), "--key", "user", *TIMES)
    assert line.startswith(telling.format(folder=tmp_path))


@pytest.mark.parametrize(("arguments", "telling"), [
    (["report"], "Missing argument 'FILE'; sessionkit report --help shows what is possible"),
    (["report", "a.csv"], "Missing option '--key'"), (["paint"], "No such command 'paint'"),
    (["info", "a.csv", "--key", "user"], "No such option: --key"),
])  # fmt: skip
def test_what_is_no_command(arguments: list[str], telling: str, capsys: Capture) -> None:
    assert refused(capsys, *arguments).startswith(telling)


@pytest.mark.parametrize("arguments", [[], ["--help"]])
def test_the_commands_are_listed(arguments: list[str], capsys: Capture) -> None:
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    assert "Session windows, and others, as Kafka Streams computes them" in shown
    assert [name for name in COMMANDS if not re.search(rf"^  {name} +[A-Z].*\.$", shown, re.M)] == []


# ---- progress


def test_a_step_is_said_when_it_begins(capsys: Capture) -> None:
    progress = job.Progress()
    progress("reading")
    assert re.fullmatch(r"\[ *\d\.\d s\] reading\n", capsys.readouterr().out)


# ---- before Spark starts


def test_a_folder_that_cannot_be_made(no_spark: None, tmp_path: Path, capsys: Capture) -> None:
    taken = tmp_path / "taken"
    taken.touch()
    said = refused(capsys, "demo", "--out", str(taken))
    assert said == (
        f"the results cannot be written to this folder; got {taken} (File exists); "
        "a folder that can be created and written to"
    )


@pytest.mark.parametrize("place", ["table/mine.csv", "trace/records/notes", "keys.csv", "report.html", "thesis.tex"])
def test_files_of_the_users_are_refused(no_spark: None, tmp_path: Path, capsys: Capture, place: str) -> None:
    """A report of another run, and what somebody put into the folders of a former one, went without a word."""
    mine = tmp_path / place
    mine.parent.mkdir(parents=True, exist_ok=True)
    mine.write_text("mine", encoding="utf-8")
    said = refused(capsys, "demo", "--out", str(tmp_path), "--spark")
    assert said.startswith(
        f"the folder holds files that sessionkit did not write; got {tmp_path / Path(place).parts[0]}; "
    )
    if place != "thesis.tex":
        said = refused(capsys, "demo", "--out", str(tmp_path), "--overwrite", "--spark")
        assert said.startswith(f"files that sessionkit did not write are in the way; got {mine}; choose another folder")
    assert mine.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("command", [["demo"], ["report", "none.csv", "--key", "user", *TIMES]], ids=["demo", "report"])
def test_spark_without_pyspark_is_refused_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, command: list[str]
) -> None:
    monkeypatch.setattr("sessionkit.spark.session.find_spec", lambda name: None)
    said = refused(capsys, *command, "--out", str(tmp_path / "out"), "--spark")
    assert not (tmp_path / "out").exists()
    assert said.startswith("this job runs on Spark; got no package pyspark; pip install 'sessionkit-streams[spark]'")


def test_the_format_of_times_is_not_that_of_tables(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "clicks.csv").write_text("user,at\nada,01/02/2024\n", encoding="utf-8")
    given = ["report", str(tmp_path / "clicks.csv"), "--by", "user", "--at", "at", "--gap", "30m"]
    assert main([*given, "--format", "%d/%m/%Y", "--out", str(tmp_path / "out")]) == 2
    assert "--time-format for times; --format csv or parquet is that of the tables" in capsys.readouterr().err
    assert main([*given, "--time-format", "%d/%m/%Y", "--out", str(tmp_path / "out")]) == 0


def test_a_report_on_spark_gets_times_that_were_read_here(tmp_path: Path) -> None:
    texts = ["27/10/2024 01:50", "27/10/2024 02:10", "27/10/2024 02:05"]
    records = pa.table({"user": ["ada"] * 3, "at": texts})
    start = sk.group_by_key("user", timestamp="at", format="%d/%m/%Y %H:%M", separator=";", header=False,
                            timezone="Europe/Berlin", ambiguous="infer")  # fmt: skip
    plan, given = for_spark(start.windowed_by(sk.SessionWindows(inactivity_gap="30m", grace="0s")).count(), records)
    source = plan.source
    assert (source.format, source.separator, source.header, source.ambiguous) == (None, None, True, "raise")
    assert isinstance(given, pa.Table)
    assert [time.hour for time in given["at"].cast(pa.timestamp("ms", "UTC")).to_pylist()] == [23, 0, 1]
