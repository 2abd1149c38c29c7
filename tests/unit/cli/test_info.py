"""`info`: what it says of a file, and the command that it proposes, which runs as it stands."""

import json
import re
import shlex
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather

import sessionkit as sk
from sessionkit.cli.commands import main
from tests.unit.cli.clicks import CLICKS, Capture, printed, refused, write_clicks

ROWS = CLICKS.partition("\n")[2]


def proposed(shown: str, out: Path | None = None) -> list[str]:
    """The words of the command that is proposed, which runs where a folder for its report is given."""
    command = shlex.split(shown.splitlines()[-1])[1:]
    assert out is None or main([*command, "--out", str(out)]) == 0
    return command


def test_a_file_without_names_is_noticed(tmp_path: Path, capsys: Capture) -> None:
    file = write_clicks(tmp_path, ROWS)
    assert main(["info", str(file)]) == 0
    shown = capsys.readouterr()
    assert "5 rows, 3 columns" in shown.out
    assert (
        "The first line looks like a record, so columns are called c1, c2 and so on, as with --no-header." in shown.err
    )
    assert proposed(shown.out, tmp_path / "out")[2:7] == ["--no-header", "--key", "c1", "--timestamp", "c2"]
    assert "or read the file with --no-header if its first line is a record" in refused(
        capsys, "sessionize", file, "--by", "user", "--at", "at", "--gap", "30m"
    )


PROPOSED: dict[str, tuple[str, str, list[str], list[str]]] = {  # a file, options, what is said of it, and words
    "a separator that was given": (CLICKS.replace(",", "~"), "--separator ~", [], ["--separator", "~"]),
    "no constant": (
        "loaded,site,user,at\n" + "".join(f"2024-05-05,x,{'ab'[n % 2]},2024-05-01 00:0{n}:00\n" for n in range(8)), "",
        ["no event time: it is the same in all rows", "no key: it has one value"],
        ["--key", "user", "--timestamp", "at"],
    ),
    "times whose day comes first somewhere": (
        "user,at\n" + "".join(f"{'ab'[n % 2]},01/{day:02}/2025 03:1{n} PM\n" for n, day in enumerate((5, 6, 29, 30))),
        "", [], ["--key", "user", "--timestamp", "at", "--time-format", "%m/%d/%Y %I:%M %p"],
    ),
    "one sensor": (
        "sensor,at,heat\n" + "".join(f"s1,2025-11-03 08:0{n}:00,2{n}\n" for n in range(6)), "",
        ["key: all rows are of one key", "in UTC, as the times have no zone; --timezone names one"],
        ["--key", "sensor", "--timestamp", "at"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", PROPOSED)
def test_what_is_proposed_runs(tmp_path: Path, capsys: Capture, case: str) -> None:
    text, options, said, words = PROPOSED[case]
    shown = printed(capsys, "info", write_clicks(tmp_path, text), *options.split())
    assert [each for each in said if each not in shown] == []
    assert proposed(shown, tmp_path / "out")[2 : 2 + len(words)] == words


def test_empty_texts_are_missing_keys(tmp_path: Path, capsys: Capture) -> None:
    shown = printed(
        capsys, "info", write_clicks(tmp_path, CLICKS + ',2024-07-01 02:00:00,1\n"",2024-07-01 02:00:00,1\n')
    )
    (line,) = [line for line in shown.splitlines() if line.startswith("  user")]
    assert line.split()[2] == "1"  # the one in quotes is the empty text


def test_a_log_of_a_web_server(tmp_path: Path, capsys: Capture) -> None:
    line = '{} - - [29/Jan/2024:16:0{}:00 +0200] "GET /?a=1;b=2 HTTP/1.1" 200 5{} "-" "Mozilla/5.0 (X11; Linux, x)"\n'
    file = tmp_path / "access.log"
    file.write_text("".join(line.format(f"10.0.0.{1 + n % 2}", n, n) for n in range(6)), encoding="utf-8")
    shown = printed(capsys, "info", file)
    assert "c10" in shown and "c5 holds the zone of c4" in shown
    command = proposed(shown, tmp_path / "out")
    assert command[2:9] == ["--no-header", "--key", "c1", "--timestamp", "c4", "--timezone", "+02:00"]
    rows = printed(capsys, "sessionize", *command[1:9], "--gap", "2m").splitlines()
    assert len(rows) == 7 and "0,2024-01-29 16:00:00.000+0200,2024-01-29 16:04:00.000+0200,3,1,false" in rows[1]
    for named in (["sessionize", "--gap", "5m"], ["suggest"]):
        said = refused(capsys, named[0], file, "--by", "user", "--at", "time", *named[1:])
        assert "with --no-header if its first line is a record (its columns are then c1, c2 and so on)" in said
    text = file.read_text(encoding="utf-8")
    file.write_text(text + text.replace("+0200", "+0100"), encoding="utf-8")
    shown = printed(capsys, "info", file)
    assert "c5 holds the zone of c4, which changes: join them first" in shown and "--timezone" not in shown


def test_fields_inside_columns_are_listed_as_they_are_named(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "clicks.jsonl"
    at = [f"2024-07-01T00:0{n}:00Z" for n in range(6)]
    rows: list[dict[str, Any]] = [{"meta": {"ts": each, "by": {"user": "ab"[n % 2]}}} for n, each in enumerate(at)]
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    command = proposed(printed(capsys, "info", file), tmp_path / "out")
    assert command[2:6] == ["--key", "meta.by.user", "--timestamp", "meta.ts"]
    rows = [
        {"topic": "t", "partition": 0, "offset": n, "ts": 1_772_442_000_000 + n, "key": "k", "payload": json.dumps(row)}
        for n, row in enumerate(rows)
    ]
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    command = proposed(printed(capsys, "info", file), tmp_path / "other")
    assert command[2:6] == ["--key", "payload.meta.by.user", "--timestamp", "payload.meta.ts"]


def test_a_field_without_its_object_is_told_with_it(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "clicks.jsonl"
    file.write_text('{"by": {"{id}": "a"}, "at": "2024-07-01T00:00:00Z"}\n', encoding="utf-8")
    said = refused(capsys, "report", file, "--by", "{id}", "--at", "at", "--gap", "30m", "--out", tmp_path / "out")
    assert 'name one of these, or perhaps "by.{id}"' in said


def test_a_start_for_days_alone_is_longer_than_a_day(tmp_path: Path, capsys: Capture) -> None:
    days = pd.date_range("2006-01-02", periods=900).strftime("%Y-%m-%d")
    rows = "".join(f"{day},{n * 7919 % 31}\n" for n, day in enumerate(days))
    few = "".join(f"2006-01-0{day},{day % 2}\n" for day in (1, 1, 2, 3, 3, 4))
    for text in (rows, few):
        command = proposed(printed(capsys, "info", write_clicks(tmp_path, f"loan_date,member_no\n{text}")))
        assert re.fullmatch(r"\d+d", command[command.index("--gap") + 1])


@pytest.mark.parametrize("name", ["clicks.csv", "clicks.jsonl"])
def test_times_in_two_forms_are_told_with_the_line_that_reads_both(tmp_path: Path, capsys: Capture, name: str) -> None:
    """`--on-bad-time drop` was proposed, which lost all records of a new schema."""
    at = [f"2026-03-13T01:{n:02}:05Z" if n < 30 else str(1773364565000 + n * 60_000) for n in range(50)]
    data = pd.DataFrame({"user": ["ada", "bob"] * 25, "at": at})
    text = data.to_csv(index=False) if "csv" in name else data.to_json(orient="records", lines=True)
    (tmp_path / name).write_text(text)
    shown = printed(capsys, "info", tmp_path / name)
    assert "make times of at with the line" in shown and "drop" not in shown
    line = re.search(r"read both: (.*)", shown)
    assert line is not None
    exec(line[1], {"df": data, "pandas": pd})  # noqa: S102
    assert data["at"].diff()[1:].dt.total_seconds().median() == 60 and data["at"].notna().all()


@pytest.mark.parametrize(
    "arrival", ["received_at", "arrival_time", "loadedAt", "kafka_ts", "broker_time", "log_append_ts"]
)
def test_the_event_time_comes_before_the_arrival(tmp_path: Path, capsys: Capture, arrival: str) -> None:
    rows = "".join(f"{'ab'[n % 2]},2024-07-01 00:0{n}:05,2024-07-01 00:0{n ^ 1}:00\n" for n in range(6))
    shown = printed(capsys, "info", write_clicks(tmp_path, f"user,{arrival},event_time\n{rows}"))
    assert proposed(shown)[4:6] == ["--timestamp", "event_time"]
    assert (
        f"The name of {arrival} seems to say when a record arrived, so event_time is taken for the event time." in shown
    )


@pytest.mark.parametrize(
    ("prefix", "rows", "words"),
    [
        ("kafka_", range(6), ["--partition", "kafka_partition", "--offset", "kafka_offset"]),
        ("", range(6), ["--partition", "partition", "--offset", "offset"]),
        ("__", [0, 3, 2, 1, 4, 5], ["--partition", "__partition", "--offset", "__offset", "--sort"]),
        ("", [0, 1, 2, 2, 3, 4], ["--partition", "partition"]), ("utc", range(6), []),  # one came twice; other names
        ("", range(-40, 0), ["--partition", "partition", "--sort"]),  # the newest stands first
    ],
)  # fmt: skip
def test_columns_of_partitions_and_offsets_are_proposed(
    tmp_path: Path, capsys: Capture, prefix: str, rows: Iterable[int], words: list[str]
) -> None:
    lines = [f"{n % 2},{50 + n // 2},2024-07-01T00:{abs(n):02}:05Z,{'abc'[n // 2 % 3]}\n" for n in rows]
    file = write_clicks(tmp_path, f"{prefix}partition,{prefix}offset,at,user\n{''.join(lines)}")
    command = proposed(printed(capsys, "info", file), tmp_path / "out")
    del command[(gap := command.index("--gap")) : gap + 2]
    assert command[2:] == ["--key", "user", "--timestamp", "at", *words]


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["n/a"], "Without a time in at: 1 row ('n/a'), which --on-bad-time drop counts as dropped."),
        (["unknown", "", "later"], "Without a time in at: 3 rows ('unknown', '', 'later'), which"),
    ],
)
def test_texts_that_are_no_times_are_named(tmp_path: Path, capsys: Capture, texts: list[str], said: str) -> None:
    bad = "".join(f"ada,{text},1\n" for text in texts)
    shown = printed(capsys, "info", write_clicks(tmp_path, CLICKS + bad))
    assert said in shown
    assert proposed(shown, tmp_path / "out")[6:8] == ["--on-bad-time", "drop"]


def test_a_day_and_a_time_of_day_in_two_columns(tmp_path: Path, capsys: Capture) -> None:
    rows = "".join(f"{'ab'[n % 2]},2024-07-0{1 + n // 3},00:0{n}:00\n" for n in range(6))
    file = write_clicks(tmp_path, "user,day,clock\n" + rows)
    shown = printed(capsys, "info", file)
    assert "df['at'] = df['day'].astype(str) + ' ' + df['clock'].astype(str)" in shown.splitlines()[-1]
    frame = pd.read_csv(file)
    frame["at"] = frame["day"].astype(str) + " " + frame["clock"].astype(str)
    frame.to_csv(file, index=False)
    assert proposed(printed(capsys, "info", file))[4:6] == ["--timestamp", "at"]


def test_seconds_with_a_fraction(tmp_path: Path, capsys: Capture) -> None:
    file = write_clicks(tmp_path, "user,at\n" + "".join(f"{'ab'[n % 2]},{1736035216.123 + n}\n" for n in range(6)))
    command = proposed(printed(capsys, "info", file))
    assert command[4:8] == ["--timestamp", "at", "--unit", "s"]
    shown = printed(capsys, "sessionize", file, "--by", "user", "--at", "at", "--unit", "s", "--gap", "30m")
    assert "2025-01-05 00:00:16.123Z" in shown


@pytest.mark.parametrize("at", [1736035216123.5, "Tue, 3 Nov 2026 10:00:00 CET"])
def test_texts_that_pandas_makes_times_of_are_told_of_json_too(at: Any, tmp_path: Path, capsys: Capture) -> None:
    """After its table, `info` read JSON and Parquet as CSV."""
    rows = pd.DataFrame({"user": list("ab") * 3, "at": at, "n": range(6)})
    files = [tmp_path / f"clicks.{kind}" for kind in ("jsonl", "json", "parquet", "csv")]
    rows.to_json(files[0], orient="records", lines=True)
    rows.to_json(files[1], orient="records", indent=1)
    rows.to_parquet(files[2])
    rows.to_csv(files[3], index=False)
    for file, options in [(file, []) for file in files] + [(file, ["--no-header"]) for file in files[:3]]:
        shown = printed(capsys, "info", file, *options)
        assert shown.splitlines()[-1] == "To go on, make times of at with the line of pandas beside it."
    files[1].write_text('[{"a b": "x"}, {"a b": "y"}]')
    assert "To go on, sessionkit needs a column of times." in printed(capsys, "info", files[1])


@pytest.mark.parametrize("day", ["46023.5", "46023"])
def test_days_as_excel_counts_them_are_told(day: str, tmp_path: Path, capsys: Capture) -> None:
    rows = "".join(f"{'ab'[n % 2]},{day},{day}\n" for n in range(6))
    shown = printed(capsys, "info", write_clicks(tmp_path, "user,bought_at,price\n" + rows))
    (line,) = [line for line in shown.splitlines() if "Excel" in line]
    assert line.split()[0] == "bought_at" and "pandas.to_datetime(df['bought_at'], unit='D'" in line


def test_a_separator_that_the_file_does_not_have(tmp_path: Path, capsys: Capture) -> None:
    file = write_clicks(tmp_path, "user;at\nada;2024-07-01 00:10:00\nada;2024-07-01 00:12:00\n")
    assert main(["info", str(file), "--separator", ","]) == 0
    assert "leave out --separator: its first lines look as if parted by semicolons" in capsys.readouterr().err


def test_a_decimal_comma_is_told(tmp_path: Path, capsys: Capture) -> None:
    rows = "".join(f"{'ab'[n % 2]};2024-07-01 00:0{n}:00;{n % 3},5\n" for n in range(6))
    shown = printed(capsys, "info", write_clicks(tmp_path, "user;at;heat\n" + rows))
    (line,) = [line for line in shown.splitlines() if line.startswith("  heat")]
    assert "numbers as people write them: df['heat'] = df['heat'].str.replace(\",\", \".\").astype(float)" in line


@pytest.mark.parametrize("kind", ["category", "dictionary of Arrow"])
def test_a_column_with_a_dictionary_is_a_key_or_a_time_like_any_other(
    kind: str, tmp_path: Path, capsys: Capture
) -> None:
    times = [f"2026-01-01T10:{n % 60:02d}:{n // 60:02d}Z" for n in range(40)]
    columns = {"symbol": ["ab"[n % 2] for n in range(40)], "at": times, "shop": [7 + n % 2 for n in range(40)]}
    frame = pd.DataFrame(columns).astype("category")
    file = tmp_path / ("trades.parquet" if kind == "category" else "trades.feather")
    if kind == "category":
        frame.to_parquet(file)
    else:
        coded = {name: pa.array(column).dictionary_encode() for name, column in columns.items()}
        feather.write_feather(pa.table(coded), str(file))
    shown = printed(capsys, "info", file)
    assert "  symbol  string        0  key: 2 values, 20.0 rows each" in shown
    assert proposed(shown, tmp_path / "out")[2:6] == ["--key", "symbol", "--timestamp", "at"]
    frame = frame.assign(amount=pd.Categorical([n % 3 for n in range(40)]))
    by_shop = sk.group_by_key("shop", timestamp="at").windowed_by(sk.SessionWindows(inactivity_gap="1h", grace="1h"))
    assert by_shop.aggregate(total=sk.sum("amount")).run(frame).table()["total"].tolist() == [20, 19]
    assert sk.suggest_gap(by_shop, frame).pauses == 38


def test_the_type_of_an_instant_is_shown_whole(tmp_path: Path, capsys: Capture) -> None:
    """A Parquet file of pandas had a column of type "timestamp[…, tz=UTC]"."""
    at = pd.to_datetime(["2024-01-01 10:00", "2024-01-01 11:00"], utc=True).astype("datetime64[us, Europe/Berlin]")
    pd.DataFrame({"user": ["ada", "ada"], "at": at}).to_parquet(tmp_path / "a.parquet")
    assert main(["info", str(tmp_path / "a.parquet")]) == 0
    assert "timestamp[us, tz=Europe/Berlin]" in capsys.readouterr().out


def test_no_gap_is_proposed_that_is_longer_than_the_file(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "trades.parquet"
    for step, gap in ((1, "1ms"), (100, "1s"), (1_000, "1m"), (10_000, "5m"), (60_000, "30m")):
        at = pd.to_datetime([1772700000000 + n * step for n in range(90)], unit="ms", utc=True)
        pd.DataFrame({"user": list("ab") * 45, "at": at}).to_parquet(file)
        assert proposed(printed(capsys, "info", file))[-2:] == ["--gap", gap]


@pytest.mark.parametrize(
    "time",
    ["2026-01-01T10:0{}:00Z", "2026-01-01 10:0{}", "2026-01-0{}", "03.11.2025 08:0{}", "1767225600.{}", "176722560{}",
     "0{}:10:00", "2026-01-01T10:0{}:00+02:00", "20171223-{}:15:29:606", "2026-01-01 9:0{}:1"],
)  # fmt: skip
def test_a_first_line_with_any_kind_of_time_is_a_record(tmp_path: Path, capsys: Capture, time: str) -> None:
    rows = "".join(f"{'ab'[n % 2]},{time.format(n)},{'true' if n else 'false'},2024\n" for n in range(1, 6))
    shown = printed(capsys, "info", write_clicks(tmp_path, rows))
    assert "5 rows, 4 columns" in shown and "  c2  " in shown


@pytest.mark.parametrize("form", ["%Y-%m-%dT%H:%M:%SZ", "%d. %B %Y"])
@pytest.mark.parametrize("command", [["sessionize", "--gap", "30m"], ["suggest"]])
def test_a_first_line_that_is_taken_for_names_is_told(
    tmp_path: Path, capsys: Capture, form: str, command: list[str]
) -> None:
    times = [day.strftime(form) for day in pd.date_range("2026-06-10", periods=8)]
    file = write_clicks(tmp_path, "".join(f"{'ab'[n % 2]},{time}\n" for n, time in enumerate(times)))
    assert "8 rows, 2 columns" in printed(capsys, "info", file, "--time-format", form)
    assert main([command[0], str(file), "--by", "a", "--at", times[0], "--time-format", form, *command[1:]]) == 0
    said = capsys.readouterr().err
    assert f"The first line, with '{times[0]}', is taken for names" in said
    assert "looks like a record; --no-header reads it as one" in said


def test_times_behind_a_word_are_told_with_the_line_of_pandas(tmp_path: Path, capsys: Capture) -> None:
    rows = [f'CreateTime:{1780272013683 + n}\tPartition:0\tu{n % 3}\t{{"n": {n}}}\n' for n in range(9)]
    (file := tmp_path / "console.txt").write_text("".join(rows))
    shown = printed(capsys, "info", file)
    line = """df['c1'] = df['c1'].str.removeprefix("CreateTime:").astype("int64")"""
    read = f'df = pandas.read_csv({json.dumps(str(file))}, sep="\\t", names=["c1", "c2", "c3", "c4"])'
    assert "9 rows, 4 columns" in shown and line in shown and f"beside it, after {read}." in shown
    assert line in refused(capsys, "sessionize", file, "--no-header", "--by", "c3", "--at", "c1", "--gap", "30m")


def test_the_cause_is_that_of_the_report(tmp_path: Path, capsys: Capture) -> None:
    ahead = [0, 0, 0, 10_800, *[0] * 6]
    rows = (f"g{g},{1767225600 + i * 60 + (i * 7 + g * 3) % 5 + ahead[g]}" for i in range(300) for g in range(10))
    shown = printed(capsys, "info", write_clicks(tmp_path, "\n".join(["g,ts", *rows])))
    assert "because the clock of key g3 is some 3 h ahead of the others" in shown


@pytest.mark.parametrize(("day", "clock"), [("03.11.25", "08:0{}"), ("2025-11-03", "8:0{}"), ("2025-11-0{}", "08:00")])
def test_days_beside_times_of_day_as_text(tmp_path: Path, capsys: Capture, day: str, clock: str) -> None:
    rows = [{"user": "ab"[n % 2], "day": day.format(n), "clock": clock.format(n)} for n in range(1, 7)]
    way = "df['at'] = df['day'].astype(str) + ' ' + df['clock'].astype(str)"
    lines = tmp_path / "clicks.jsonl"
    lines.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert printed(capsys, "info", lines).splitlines()[-1].strip() == way
    pd.DataFrame(rows).to_csv(tmp_path / "clicks.csv", index=False)
    assert printed(capsys, "info", tmp_path / "clicks.csv").splitlines()[-1].strip() == way


def test_a_format_and_a_zone_that_were_given_are_proposed(tmp_path: Path, capsys: Capture) -> None:
    rows = "".join(f"{'ab'[n % 2]},03.11.25 08:0{n}\n" for n in range(6))
    file = write_clicks(tmp_path, "user,at\n" + rows)
    assert '--time-format "%d.%m.%y %H:%M" or "%y.%m.%d %H:%M"' in printed(capsys, "info", file)
    shown = printed(capsys, "info", file, "--time-format", "%d.%m.%y %H:%M", "--timezone", "Europe/Berlin")
    assert "Span: 2025-11-03 08:00:00 to 2025-11-03 08:05:00 (5 min), in Europe/Berlin" in shown
    command = proposed(shown, tmp_path / "out")
    assert command[4:10] == ["--timestamp", "at", "--time-format", "%d.%m.%y %H:%M", "--timezone", "Europe/Berlin"]
    assert "timezone must be a zone of the IANA database" in refused(capsys, "info", file, "--timezone", "Nowhere")
    assert "--time-format must name a whole day" in refused(capsys, "info", file, "--time-format", "%H:%M")


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ("2025-06-24 14:36:2{}", 19),
        ("2025-06-24T14:36:2{},123", 23),
        ("[2025-06-24 14:36:2{}]", 20),
        ("[10.30 16:49:0{}]", 15),
        ("03-17 16:13:3{}.811", 18),
    ],
)
@pytest.mark.parametrize("rests", [["INFO web started", "WARN db is slow"], ["up all of it", "conf libc6:amd64 2.35"],
                                   ["INFO a, b", "WARN c, d, e"]])  # fmt: skip
def test_a_log_is_told_with_a_way_to_read_it(
    tmp_path: Path, capsys: Capture, begin: str, end: int, rests: list[str]
) -> None:
    file = tmp_path / "dpkg.log"
    lines = [f"{begin.format(n)} {rests[n % 2]}{' x' * (n // 3)}\n" for n in range(6)]
    file.write_text("".join(lines), encoding="utf-8")
    main(["info", str(file)])
    told = capsys.readouterr()
    said = told.out + told.err
    assert "a log whose lines begin with a time" in said and "complete" not in said
    way = said.partition("df = ")[2].partition("; df[")[0]
    frame = eval(way, {"pandas": pd})  # noqa: S307
    assert frame["at"].tolist() == [line.strip("[").split("]")[0][: end - line.count("[")] for line in lines]
    assert frame["rest"].tolist() == [
        line.strip().removeprefix(begin.format(n)).strip() for n, line in enumerate(lines)
    ]
    for command in (["sessionize", "--gap", "5m"], ["suggest"], ["explain", "--gap", "5m", "--offset", "0"]):
        assert way in refused(capsys, command[0], file, "--by", "user", "--at", "at", *command[1:])
    with pytest.raises((sk.errors.MissingColumn, sk.errors.InvalidData), match=re.escape(way)):
        sk.sessionize(str(file), by="user", at="at", gap="5m")


@pytest.mark.parametrize("begin", ["13.03.26, 0{}:16 - ", "[13.03.2026, 0{}:16:05] ", "3/13/26, {}:16\u202fAM - "])
def test_a_chat_is_told_with_a_way_to_read_it(tmp_path: Path, capsys: Capture, begin: str) -> None:
    lines = [f"{begin.format(n)}{'Anna B' if n % 2 else '+49 151'}: hi: no\n" for n in range(1, 7)]
    names: dict[str, Any] = {"pandas": pd}
    for more in ("", "second line\n"):
        (file := tmp_path / "chat.txt").write_text("".join([*lines, more]), encoding="utf-8")
        main(["info", str(file)])
        said = "".join(capsys.readouterr())
        assert "--time-format" not in said and "Span" not in said
        way = re.findall(r"(df = .*\.dropna\(\))", said)[0]
        exec(way, names, names)  # noqa: S102
        assert names["df"]["key"].tolist() == ["Anna B", "+49 151"] * 3
    names["df"].to_csv(file := tmp_path / "chat.csv", index=False)
    assert re.search("%d.%m.%y, %H:%M|Span: 2026-03-13 01:16", printed(capsys, "info", file))


@pytest.mark.parametrize("command", ["info", "suggest", "explain --offset 0", "audit", "report", "sessionize"])
def test_each_command_says_how_many_times_have_no_zone(tmp_path: Path, capsys: Capture, command: str) -> None:
    times = [f"2026-01-01T00:{n // 60:02}:{n % 60:02}{'' if n == 1_500 else 'Z'}" for n in range(2_000)]
    pd.DataFrame({"user": "a", "at": times}).to_csv(file := tmp_path / "clicks.csv", index=False)
    options = [] if command == "info" else ["--by", "user", "--at", "at", "--gap", "30m"]
    options += ["--out", str(tmp_path / "out")] if command == "report" else []
    assert main([*command.split(), str(file), *options]) == 0
    said = "".join(capsys.readouterr())
    assert "Times in 'at' without a zone are read as UTC: 1 of 2,000, the first in row 1500; --timezone names" in said


def test_digits_that_are_text_are_proposed_with_their_unit(tmp_path: Path, capsys: Capture) -> None:
    rows = [{"user": f"u{n % 2}", "ts": f"177336456{n}000000", "tel": f"177336456{n % 2}"} for n in range(8)]
    (file := tmp_path / "journal.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    command = proposed(printed(capsys, "info", file), tmp_path / "out")
    assert command[2:8] == ["--key", "user", "--timestamp", "ts", "--unit", "us"]
    file.write_text(file.read_text(encoding="utf-8").replace('000000"', '.000000"'), encoding="utf-8")
    command = proposed(printed(capsys, "info", file), tmp_path / "out")
    assert command[2:8] == ["--key", "user", "--timestamp", "ts", "--unit", "s"]


@pytest.mark.parametrize("given", [" - ", "", '"'])
def test_a_separator_is_one_character(tmp_path: Path, capsys: Capture, given: str) -> None:
    for words in (["info"], ["suggest", "--by", "user", "--at", "at"]):
        said = refused(capsys, *words, write_clicks(tmp_path), "--separator", given)
        assert said.startswith("--separator must be a character") and said.endswith('such as --separator ";"')


def test_days_as_numbers_are_proposed_with_their_format(tmp_path: Path, capsys: Capture) -> None:
    rows = "".join(f"{'ab'[n % 2]},2026010{n}\n" for n in range(1, 7))
    file = write_clicks(tmp_path, "user,day\n" + rows)
    command = proposed(printed(capsys, "info", file), tmp_path / "out")
    assert command[4:8] == ["--timestamp", "day", "--time-format", "%Y%m%d"]
    assert '--time-format "%Y%m%d"' in refused(capsys, "sessionize", file, "--by", "user", "--at", "day", "--gap", "1d")


def test_times_with_an_offset_are_told_to_be_shown_in_utc(tmp_path: Path, capsys: Capture) -> None:
    rows = "".join(f"a,2026-05-10T0{n}:06:44+02:00\n" for n in range(6))
    file = write_clicks(tmp_path, "user,at\n" + rows)
    columns = ["--by", "user", "--at", "at", "--gap", "30m"]
    assert main(["sessionize", str(file), *columns]) == 0
    remark = "Times with an offset, such as +02:00, are shown in UTC unless --timezone names another zone."
    assert remark in capsys.readouterr().err
    for command in (["info"], ["suggest", *columns], ["sessionize", *columns]):
        for zone in ([], ["--timezone", "Europe/Berlin"]):
            assert main([command[0], str(file), *command[1:], *zone]) == 0
            assert capsys.readouterr().err.count(remark) == (not zone)
    assert main(["explain", str(file), *columns, "--window-key", "a", "--window-start", "2026-05-10 00:06:45"]) == 2
    said = capsys.readouterr().err
    assert "window_start 2026-05-10 00:06:45 (UTC); the nearest of this key starts at 2026-05-10 00:06:44" in said


@pytest.mark.parametrize("name", ["one.json", "array.json", "lines.jsonl", "frame.parquet"])
@pytest.mark.parametrize("within", ["points", "in.points"])
def test_records_in_a_list_beside_other_columns_are_told_with_the_way(
    name: str, within: str, tmp_path: Path, capsys: Capture
) -> None:
    """json_normalize(data, "points") gave no other columns, and json.load reads no lines."""
    points: list[Any] = [{"user": f"u{n % 3}", "at": f"2026-06-01T10:{n:02d}:00Z"} for n in range(50)]
    rows: list[Any] = [{"device": "007", "at": "x", "points": part} for part in (points, None, points[:9])]
    rows = [{"in": row} if within != "points" else row for row in rows][: 1 if name == "one.json" else 3]
    file = tmp_path / name
    if name == "frame.parquet":
        pd.DataFrame(rows).to_parquet(file)
    else:
        file.write_text("\n".join(map(json.dumps, rows)) if name != "array.json" else json.dumps(rows))
    shown = printed(capsys, "info", file).splitlines()[-1]
    line, ways = re.findall(rf"the records in the list '{within}': (pandas.*), where data is (.*)\.", shown)[0]
    way = re.split(", for [^[d]*", ways)[["json", "jsonl", "parquet"].index(name.partition(".")[2])]
    names: dict[str, Any] = {"pandas": pd, "json": json, "df": pd.read_parquet(file) if name[0] == "f" else None}
    with file.open("rb") as names["file"]:
        df = eval(line, names | {"data": eval(way, names)})  # noqa: S307
    assert df[within.replace("points", "device")].tolist() == ["007"] * (50 if len(rows) == 1 else 59)
    assert len(sk.sessionize(df, by=f"{within}.user", at=f"{within}.at", gap="5m")) == len(df)
    for key in ("user", f"{within}.user"):
        said = refused(capsys, "sessionize", file, "--by", key, "--at", f"{within}.at", "--gap", "5m")
        assert line in said and "or or" not in said


def test_fields_separated_by_a_space_are_told_with_the_option(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "space.txt"
    file.write_text("user at\nada 2026-03-01T10:00:00Z\nbob 2026-03-01T10:05:00Z\n")
    assert 'if the fields are separated by spaces: --separator " "' in printed(capsys, "info", file)
    arguments = ("sessionize", file, "--by", "user", "--at", "at", "--gap", "5m")
    assert 'or --separator " " (pandas: sep=" ")' in refused(capsys, *arguments)
    assert "ada" in printed(capsys, *arguments, "--separator", " ")


@pytest.mark.parametrize(
    "form",
    ["%a, %d %b %Y %H:%M:%S +0100", "%a %b %d %H:%M:%S %Y +0100", "%a %b %d %H:%M:%S %Y", "%a, %d %b %Y %H:%M:%S GMT"],
)
def test_dates_of_mails_and_of_git_are_times(form: str, tmp_path: Path, capsys: Capture) -> None:
    at = pd.date_range("2026-03-10 06:00:06", freq="7min", periods=12).strftime(form)
    pd.DataFrame({"user": list("ab") * 6, "at": at}).to_csv(file := tmp_path / "mails.csv", index=False)
    words, named = proposed(printed(capsys, "info", file)), form.replace("+0100", "%z")
    assert ("--time-format" in words and words[words.index("--time-format") + 1]) == ("," not in form and named)
    assert main(["suggest", *words[1:-2], "--gap", "5m"]) == 0


def test_an_option_of_another_command_is_told_with_the_command(capsys: Capture) -> None:
    assert main(["report", "clicks.csv", "--retention", "2h"]) == 2
    assert "No such option: --retention" in (said := capsys.readouterr().err) and "sessionkit audit has it" in said
    assert main(["report", "clicks.csv", "--nothing-like-it"]) == 2
    assert " has it" not in capsys.readouterr().err


def test_a_day_and_a_time_of_day_as_whole_numbers_are_joined(tmp_path: Path, capsys: Capture) -> None:
    """The day alone was taken for the event time."""
    at = pd.date_range("2026-03-01 08:59:30", periods=60, freq="29min").floor("s")
    data = pd.DataFrame({"TXN_DATE": at.strftime("%Y%m%d"), "TXN_TIME": [int(each) for each in at.strftime("%H%M%S")]})
    data.assign(user=["ada", "bob"] * 30).to_csv(file := tmp_path / "auth.csv", index=False)
    df = pd.read_csv(file)
    exec(printed(capsys, "info", file).splitlines()[-1].strip(), {"df": df, "pandas": pd})  # noqa: S102
    assert df["at"].tolist() == at.tolist()


@pytest.mark.parametrize("parts", [
    {"Date": "%y%m%d", "Time": "%H%M%S"}, {"Month": "%b", "Day": "%d", "Clock": "%H:%M:%S"},
    {"year": "%Y", "month": "%m", "day": "%d", "hour": "%H", "minute": "%M"},
])  # fmt: skip
def test_parts_of_times_in_several_columns_are_joined(parts: dict[str, str], tmp_path: Path, capsys: Capture) -> None:
    """Days such as 081109, whose zero is lost, were taken for times of day; of the others no way was named."""
    at = pd.date_range("2008-11-09 08:59:00", periods=60, freq="29min")
    data = pd.DataFrame({name: at.strftime(form) for name, form in parts.items()}).assign(user=["ada", "bob"] * 30)
    data.to_csv(file := tmp_path / "parts.csv", index=False)
    df, line = pd.read_csv(file), printed(capsys, "info", file).splitlines()[-1].strip()
    exec(line.partition(", with the year")[0].replace("2024", "2008"), {"df": df, "pandas": pd})  # noqa: S102
    assert df["at"].tolist() == at.tolist()


@pytest.mark.parametrize("names", ["", "at\n"])
def test_lines_that_are_times_are_one_column(names: str, tmp_path: Path, capsys: Capture) -> None:
    """A comma in dates of mails parted them, and the first was taken for names."""
    at = pd.date_range("2017-04-22 15:11", periods=40, freq="50min", tz="UTC")
    (file := tmp_path / "commits.txt").write_text(names + "\n".join(at.strftime("%a, %d %b %Y %H:%M:%S %z")) + "\n")
    shown = printed(capsys, "info", file)
    assert "40 rows, 1 column\n" in shown and "event time: times in order" in shown
    assert 'df["all"] = "all" in pandas makes a key' in shown


@pytest.mark.parametrize("command", ["sessionize", "report", "suggest"])
def test_a_missing_key_is_told_with_the_way(command: str, tmp_path: Path, capsys: Capture) -> None:
    file = write_clicks(tmp_path, CLICKS)
    assert 'df["all"] = "all" in pandas makes a key' in refused(capsys, command, file, "--at", "at")


@pytest.mark.parametrize(("last", "rows", "said"), [
    ("7|b|c|d", 3, "takes the rest of it as the last field"), ('7|b|"c\n8|"d|e"|f|g', 2, "a quote in it is not closed"),
])  # fmt: skip
def test_a_line_with_more_fields_is_told_with_the_line_of_pandas(
    last: str, rows: int, said: str, tmp_path: Path, capsys: Capture
) -> None:
    """A log with its separator in the last field, or one line cut off: "check that it is complete"."""
    (file := tmp_path / "health.log").write_text(f"5|a|b\n6|b|c\n{last}\n")
    shown = refused(capsys, "info", file)
    assert "line 3 has more fields than the first" in shown and said in shown
    found = re.search(r"df = pandas\.read_csv\(.*\)(?= (takes|leaves))", shown)
    assert found is not None
    with pytest.warns() if rows == 2 else nullcontext():
        assert len(eval(found[0].removeprefix("df = "), {"pandas": pd})) == rows  # noqa: S307


@pytest.mark.parametrize("mark", [",", "\t", ";", " "])
def test_rows_with_names_of_r_are_told_with_the_line_of_pandas(mark: str, tmp_path: Path, capsys: Capture) -> None:
    """What write.table of R writes: "the rest as the last field", or one column of all that is there."""
    lines = ['"time" "user" "n"', *(f'"{n}" "2020-01-0{n}T10:00" "{"ab"[n % 2]} b" {n}' for n in range(1, 9))]
    (file := tmp_path / "a.txt").write_text("\n".join(lines).replace('" ', f'"{mark}') + "\n")
    shown = refused(capsys, "info", file)
    assert "each line has one field more than the names, as where R writes names of rows" in shown
    found = re.search(r"df = (pandas\.read_csv\(.*\))", shown)
    assert found is not None
    frame = eval(found[1], {"pandas": pd})  # noqa: S307
    assert [*frame.columns] == ["time", "user", "n"] and [*frame["n"]] == [*range(1, 9)]


def test_a_column_without_a_name_is_listed(tmp_path: Path, capsys: Capture) -> None:
    """What write.csv of R and to_csv of pandas write."""
    df = pd.DataFrame({"user": ["a", "b"] * 3, "at": pd.date_range("2024-07-01", periods=6)})
    df.to_csv(file := tmp_path / "a.csv")
    assert "\n  ''      int64" in printed(capsys, "info", file)


@pytest.mark.parametrize(
    ("name", "values", "is_guess"),
    [("stage", range(4), True), ("grade", "ABC", True), ("patient", range(4), False), ("sensor", "s", False)],
)  # fmt: skip
def test_a_key_whose_name_says_nothing_is_told_to_be_a_guess(
    name: str, values: Any, is_guess: bool, tmp_path: Path, capsys: Capture
) -> None:
    """Of a study whose rows are one patient each it proposed a code as the key, as if that were sure."""
    df = pd.DataFrame({"day": pd.date_range("2010-01-01", periods=60), "cured": [True, False] * 30})
    df[name] = [values[7 * n // 3 % len(values)] for n in range(60)]
    df.to_csv(file := tmp_path / "study.csv", index=False)
    shown = printed(capsys, "info", file)
    said = f"No name of a column says whom or what a row is about, so {name} ({len(values)} values, "
    assert (said in shown) == is_guess == ("in pandas makes a key" in shown)
    assert proposed(shown, tmp_path / "out")[2:4] == ["--key", name]
    [flags] = [line for line in shown.splitlines() if line.startswith("  cured")]
    assert flags.endswith("true or false, which groups hardly anything")


def test_records_a_little_ahead_are_not_to_be_left_out(tmp_path: Path, capsys: Capture) -> None:
    """Eight connections of a sensor "lie far ahead" by 5 s: "Leave them out", though a gap of 30 s keeps all."""
    at = [n / 20 - 5 * (n % 150 != 40) - 0.3 * (n % 7 == 3) for n in range(1_200)]
    for ahead in (at, [*at[:40], 3e7, *at[41:]]):
        times = pd.Timestamp("2026-03-02 09:00", tz="UTC") + pd.to_timedelta(ahead, "s")
        pd.DataFrame({"host": ["a", "b"] * 600, "ts": times.astype(str)}).to_csv(file := tmp_path / "a.csv")
        shown = printed(capsys, "info", file)
        assert "of the rows step back" in shown and ("ahead of those" in shown) == (ahead is not at)


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%m/%d/%Y", "%Y-%m-%dT%H:%M:%SZ"])
def test_times_before_1970_are_told_with_the_line_that_moves_them(form: str, tmp_path: Path, capsys: Capture) -> None:
    """Of deaths in 1849 it said that no column holds times."""
    df = pd.DataFrame({"day": pd.date_range("1849-01-20", periods=20).strftime(form), "cause": ["cholera", "flu"] * 10})
    df.to_csv(file := tmp_path / "deaths.csv", index=False)
    shown = printed(capsys, "info", file)
    assert "To go on, make times of day with the line of pandas beside it." in shown
    [line] = re.findall("times, most before 1970, which Kafka refuses; this line moves all by 200 years: (.*)", shown)
    exec(line, {"df": df, "pandas": pd})  # noqa: S102
    assert str(df["day"].iloc[0])[:10] == "2049-01-20"
    assert sk.sessionize(df, by="cause", at="day", gap="3d", timezone="UTC")["session_id"].nunique() == 2


def test_times_before_1970_are_not_told_as_missing(tmp_path: Path, capsys: Capture) -> None:
    """Of a series from 1965 on it said that the rows of five years are without a time."""
    days = pd.date_range("1967-01-01", periods=300, freq="30D").astype(str)
    df = pd.DataFrame({"day": days, "station": ["a", "b"] * 150})
    df.loc[7, "day"] = "later"
    df.to_csv(file := tmp_path / "a.csv", index=False)
    shown = printed(capsys, "info", file)
    assert "Without a time in day: 1 row ('later'), which --on-bad-time drop counts as dropped." in shown
    rows = "Before 1970, which Kafka refuses, in day: 36 rows ('1967-01-01', '1967-01-31', '1967-03-02', …), which "
    [line] = re.findall(re.escape(rows) + ".*; or this line of pandas moves all by 100 years: (.*)", shown)
    exec(line, {"df": df, "pandas": pd})  # noqa: S102
    assert str(df["day"].iloc[0])[:10] == "2067-01-01" and df["day"].isna().sum() == 1
    proposed(shown, tmp_path / "out")


@pytest.mark.parametrize("form", ["%m/%d/%y", "%d.%m.%y %H:%M"])
@pytest.mark.parametrize(("first", "years", "are_later"), [(1949, 12, 240), (1966, 12, 61), (2001, 12, 0)])
def test_years_of_two_digits_in_the_future_are_told(
    form: str, first: int, years: int, are_later: int, tmp_path: Path, capsys: Capture
) -> None:
    """Dates of 1949 were read as 2049, of a series over 1969 some stood behind all others, and nothing was said."""
    days = pd.date_range(f"{first}-01-15", periods=240, freq=f"{years * 365 // 240}D")
    df = pd.DataFrame({"day": days.strftime(form), "station": ["a", "b", "c"] * 80})
    df.to_csv(file := tmp_path / "a.csv", index=False)
    shown, options = printed(capsys, "info", file), {"timestamp": "day", "timezone": "UTC", "format": form}
    plan = sk.group_by_key("station", **options, on_bad_time="drop").windowed_by(sk.TimeWindows(size="1d", grace="0s"))
    said = re.findall("(Years of two digits .*: )(at = .*)", "\n".join([shown, *plan.count().run(df).remarks()]))
    assert len(said) == (2 if are_later else 0) and len({*said}) <= 1
    if are_later:
        assert "'day' are read as 1969 to 2068" in said[0][0] and f"so that {are_later} of " in said[0][0]
        exec(said[0][1], {"df": df, "pandas": pd})  # noqa: S102
        assert [*(df["day"] - pd.DateOffset(years=100))] == [*days]


@pytest.mark.parametrize("form", ["%m-%d", "%d/%m"])
@pytest.mark.parametrize("names", ["Date,Time,Pid\n", ""])
def test_days_without_a_year_beside_times_of_day_are_joined(
    form: str, names: str, tmp_path: Path, capsys: Capture
) -> None:
    """Of the log of a phone it said that no column holds times."""
    days = pd.date_range("2015-03-17 16:13:38.811", periods=40, freq="7h")
    texts = days.strftime(f"{form},%H:%M:%S.%f").str[:-3]
    rows = "".join(f"{text},17{n % 3}\n" for n, text in enumerate(texts))
    (file := tmp_path / "a.csv").write_text(names + rows)
    shown = printed(capsys, "info", file)
    found = re.search('(df\\[.at.\\] = .*), which format="(.*)" reads, with the year of the data for 2024', shown)
    assert found is not None
    bare = re.search(r"in pandas, after df = (.*):", shown)
    assert (bare is None) == (names != "")
    df = eval(bare[1], {"pandas": pd}) if bare else pd.read_csv(file)  # noqa: S307
    exec(found[1], {"df": df})  # noqa: S102
    options = {"format": found[2].replace("2024", "2015"), "timezone": "UTC"}
    kept = sk.sessionize(df, by=df.columns[2], at="at", gap="1s", **options)
    assert [*kept["session_start"].dt.tz_localize(None)] == [*days]


def test_a_pace_is_no_time_of_day(tmp_path: Path, capsys: Capture) -> None:
    """Beside days of runs it said that the time of day is in Pace."""
    days = pd.date_range("2020-01-01", periods=20).strftime("%Y-%m-%d")
    pd.DataFrame({"day": days, "Pace": ["7:42:12", "8:13:00"] * 10, "shoe": ["a", "b"] * 10}).to_csv(
        file := tmp_path / "runs.csv", index=False
    )
    assert proposed(printed(capsys, "info", file), tmp_path / "out")[2:6] == ["--key", "shoe", "--timestamp", "day"]


@pytest.mark.parametrize("clock", ["5:00 a.m.", "5:00 AM"])
def test_a_time_before_noon_is_joined_with_its_day(clock: str, tmp_path: Path, capsys: Capture) -> None:
    """It said that texts begin with the time of day, and no way."""
    days = pd.date_range("2021-04-11", periods=20).strftime("%Y-%m-%d")
    df = pd.DataFrame({"date": days, "time": [clock, clock.replace("a", "p").replace("A", "P")] * 10})
    df.to_csv(file := tmp_path / "turnips.csv", index=False)
    shown = printed(capsys, "info", file)
    [line] = re.findall("the texts in time begin with the time of day: (.*)", shown)
    assert "To go on, make times of date with the line of pandas beside it." in shown
    exec(line, {"df": df, "pandas": pd})  # noqa: S102
    assert [f"{each:%d %H:%M}" for each in df["date"][:2]] == ["11 05:00", "12 17:00"]


def test_a_start_is_longer_than_what_parts_every_record(tmp_path: Path, capsys: Capture) -> None:
    """With 30 min, of hourly readings each is a session of its own."""
    at = pd.date_range("2024-01-01", periods=200, freq="h").repeat(2)
    pd.DataFrame({"at": at, "station": ["a", "b"] * 200, "temp": 1.5}).to_csv(file := tmp_path / "a.csv", index=False)
    shown = printed(capsys, "info", file)
    assert "the pauses show no clear gap; 3 h is only a start" in shown
    assert proposed(shown, tmp_path / "out")[-2:] == ["--gap", "3h"]
    assert "400 records, 2 sessions" in capsys.readouterr().out


@pytest.mark.parametrize("form", ["%b %d, %Y, %I:%M:%S %p", "%b %d, %Y", "%B %d, %Y"])
def test_dates_that_name_the_month_are_times(form: str, tmp_path: Path, capsys: Capture) -> None:
    """Of an export such as "Jul 12, 2016, 5:13:58 PM" it said that no column holds times."""
    at = pd.date_range("2016-07-12 17:13:58", periods=40, freq="D").strftime(form)
    pd.DataFrame({"when": at, "kind": ["Run", "Ride"] * 20}).to_csv(file := tmp_path / "a.csv", index=False)
    words = proposed(printed(capsys, "info", file), tmp_path / "out")
    assert words[words.index("--time-format") + 1] == form


def test_columns_of_one_name_are_told_with_the_line_of_pandas(tmp_path: Path, capsys: Capture) -> None:
    (file := tmp_path / "a.csv").write_text("at,user,time,time\n2024-05-01,ada,1,2\n2024-05-02,ada,3,4\n")
    shown = refused(capsys, "info", file)
    [line] = re.findall(r"rename all but one.*; df = (.*) numbers them", shown)
    assert line.startswith("pandas.read_csv(") and "time.1" in pd.read_csv(file).columns


def test_times_in_two_ways_are_told_and_nothing_is_proposed_to_be_dropped(tmp_path: Path, capsys: Capture) -> None:
    """Of two thirds of the rows it said that they have no time, and proposed to drop them."""
    texts = ["04/12/2016 00:00", "4/13/2016 12:00:00 AM", "4/13/2016 1:00:00 PM"] * 20
    pd.DataFrame({"user": ["a", "b"] * 30, "at": texts}).to_csv(file := tmp_path / "a.csv", index=False)
    line = "df['at'] = pandas.to_datetime(df['at'], format=\"mixed\")"
    for options in ((), ("--time-format", "%m/%d/%Y %I:%M:%S %p")):
        shown = printed(capsys, "info", file, *options)
        assert f"times, written in several ways, which this line reads: {line}" in shown and "drop" not in shown


def test_keys_of_long_pauses_are_no_half_an_hour_apart(tmp_path: Path, capsys: Capture) -> None:
    """Rescues of twelve years by ward, six each: half an hour left each of them alone."""
    rng = np.random.default_rng(1)
    days = pd.Timestamp("2009-01-01") + pd.to_timedelta(np.sort(rng.integers(0, 12 * 365 * 1_440, 6_000)), "min")
    frame = pd.DataFrame({"ward": rng.choice([f"ward {n}" for n in range(1_000)], 6_000), "at": days})
    frame.to_csv(file := tmp_path / "a.csv", index=False)
    shown = printed(capsys, "info", file)
    gap = re.search(r"--gap (\d+)d", shown)
    assert gap is not None and 100 < int(gap[1]) < 1_500


@pytest.mark.parametrize("name", ["author    id", "id.orig_h", "individual-local-identifier", "animal", "agent"])
def test_names_that_say_whom_a_row_is_about(name: str, tmp_path: Path, capsys: Capture) -> None:
    """Beside the number of a transaction and a score, which were taken for the key."""
    count = 800
    frame = pd.DataFrame({
        "trans_id": [(n // 3 * 7919) % 65536 for n in range(count)], "num_points": [n * n % 97 for n in range(count)],
        name: [f"a{n * 7 % 230}" for n in range(count)],
        "at": pd.date_range("2026-01-01", periods=count, freq="7min", tz="UTC"),
    })  # fmt: skip
    frame.to_csv(file := tmp_path / "a.csv", index=False)
    shown = printed(capsys, "info", file)
    assert f"--key {shlex.quote(name)} " in shown and "is a guess" not in shown
