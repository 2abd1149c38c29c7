"""Records from text: keys as they are written, what is guessed is said, and no field is cut."""

import gzip
import io
import json
import re
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sessionkit as sk
from sessionkit.errors import InvalidArgument, InvalidData, MissingColumn, UnsupportedData
from sessionkit.records.files.content import Content
from sessionkit.records.files.tables import read_file
from sessionkit.records.files.text import csv_batches, names_of
from tests.kinds import group_in_ms

API: Any = sk  # for arguments that a type checker would refuse


def plan(*keys: str, **options: Any) -> sk.Plan:
    return (
        group_in_ms(*(keys or ("user",)), **options)
        .windowed_by(sk.SessionWindows(inactivity_gap="30s", grace="10s"))
        .count()
    )


def written(folder: Path, text: str | bytes) -> Path:
    file = folder / "clicks.csv"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def keys_of(run: sk.Run) -> list[Any]:
    return list(run.table()["key"])


@pytest.mark.parametrize(
    "users",
    [
        *(["007", "7"], ["0x1F", "31"], ["1.0", "1", "+1"], ["true", "false"], ["2020-01-01"], ["1", "NA", "null"]),
        ["007", "7", "0x1F", "31", "1.0", "1", "+1", "NA", "null", "true", "2020-01-01", " 7", "é"],
    ],
)
def test_keys_are_text_as_it_is_written(tmp_path: Path, users: list[str]) -> None:
    file = written(tmp_path, "user,at\n" + "".join(f"{user},{at}\n" for at, user in enumerate(users)))
    assert keys_of(plan().run(file)) == sorted(users, key=str.encode)


@pytest.mark.parametrize("word", ["NA", "null", "NaN", "N/A", "#N/A"])
def test_a_key_of_words_for_missing_is_a_key(tmp_path: Path, word: str) -> None:
    run = plan().run(written(tmp_path, f"user,at\n{word},1\n{word},2\n"))
    assert (keys_of(run), len(run.dropped())) == ([word], 0)


def test_an_empty_field_is_a_missing_key_and_a_quoted_one_the_empty_text(tmp_path: Path) -> None:
    run = plan().run(written(tmp_path, 'user,at\n,1\n"",2\nNA,3\n'))
    assert keys_of(run) == ["", "NA"]
    assert run.dropped()["offset"].tolist() == [0]
    assert run.dropped()["reason"].tolist() == ["null_key"]


@pytest.mark.parametrize("in_steps", [False, True])
def test_an_empty_field_is_a_missing_value_of_text_too(tmp_path: Path, in_steps: bool) -> None:
    path = written(tmp_path, 'user,at,name,n\na,1,,1\na,2,"",\na,3,ada,3\na,4,NA,\n')
    named = {"first": sk.first("name"), "last": sk.last("name"), "all": sk.collect("name"), "numbers": sk.collect("n")}
    if in_steps:
        plan().aggregate(**named).write(path, table=tmp_path / "out")
        row = pq.read_table(tmp_path / "out").to_pylist()[0]
    else:
        row = plan().aggregate(**named).run(path, frame="arrow").table().to_pylist()[0]
    assert (row["first"], row["last"], row["all"]) == ("", "NA", [None, "", "ada", "NA"])
    assert row["numbers"] == [1, None, 3, None]


@pytest.mark.parametrize("form", ["CSV", "JSON lines", "JSON"])
@pytest.mark.parametrize("other", ["18446744073709551615", "null", "1.5", "-1"])
def test_unsigned_integers_of_64_bits_keep_their_digits(form: str, other: str) -> None:
    large = 2**63 + 5
    rows = [f'{{"user": "a", "at": 1, "amount": {large}}}', f'{{"user": "b", "at": 2, "amount": {other}}}']
    texts = {
        "CSV": f"user,at,amount\na,1,{large}\nb,2,{other}\n",
        "JSON lines": "\n".join(rows),
        "JSON": f"[{','.join(rows)}]",
    }
    run = plan().aggregate(amount=sk.last("amount")).run(io.BytesIO(texts[form].encode()), frame="arrow")
    found = float(large) if other in ("1.5", "-1") else large
    expected = [found, None if other == "null" else type(found)(other)]
    assert run.table()["amount"].to_pylist() == expected
    assert list(map(type, run.table()["amount"].to_pylist())) == list(map(type, expected))
    assert f"'amount' ({'double' if found != large or isinstance(found, float) else 'uint64'})" in run.remarks()[-1]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_floats_written_as_text_are_remarked_where_they_are_keys(kind: pa.DataType) -> None:
    users = ["1e10", "12.5e+99", "a", "1.2345678901234568e+18"]
    data = pa.table({"user": pa.array(users).cast(kind), "at": range(4)})
    said = (
        "Keys in 'user' are floats written as text, such as '1.2345678901234568e+18': their last digits may be "
        "lost, so that one may stand for several."
    )
    assert plan().run(data).remarks() == [said]
    assert plan().run(data.slice(0, 3)).remarks() == []


@pytest.mark.parametrize("mark", ["N/A", "-", "NULL"])
def test_marks_for_missing_values_are_keys_and_told(mark: str) -> None:
    """Rows that had nothing in common became sessions of a client "N/A", without a word."""
    data = pd.DataFrame({"user": ["7", mark, "00173", mark], "at": range(4)})
    (said,) = plan().run(data).remarks()
    assert said.startswith(f"{mark!r} in 'user' is a key like any other, of 2 records; without them: df = ")
    exec(said.split(": ")[1], names := {"df": data})  # noqa: S102
    assert plan().run(names["df"]).remarks() == [] and len(names["df"]) == 2


def test_marks_in_one_of_several_key_columns_are_told() -> None:
    """Visits without a campaign became those of a campaign "NULL" as soon as the device was in the key, too."""
    data = pd.DataFrame({"from": ["ad", "NULL", "NULL"], "device": ["phone", "-", "phone"], "at": range(3)})
    said = plan("from", "device", sep="|").run(data).remarks()
    assert [each.partition(";")[0] for each in said] == [
        "'NULL' in 'from' is a key like any other, of 2 records",
        "'-' in 'device' is a key like any other, of 1 record",
    ]
    with pytest.warns(UserWarning, match="is a key like any other") as told:
        sk.sessionize(data, by=["from", "device"], at="at", unit="s", gap="1m")
    assert [str(each.message) for each in told] == said


def test_several_key_columns_are_text(tmp_path: Path) -> None:
    file = written(tmp_path, "a,b,at\n01,1,1\n1,01,2\n")
    assert keys_of(plan("a", "b", sep="-").run(file)) == ["01-1", "1-01"]


def test_types_say_otherwise(tmp_path: Path) -> None:
    file = written(tmp_path, "user,at,amount\n007,1,2\n7,2,3\n")
    steps = plan(types={"user": "int64", "amount": "float64", "at": "int64"}).aggregate(total=sk.sum("amount"))
    run = steps.run(file)
    assert (keys_of(run), run.table()["total"].tolist()) == ([7], [5.0])
    assert run.remarks() == []


def test_what_is_guessed_is_remarked(tmp_path: Path) -> None:
    file = written(tmp_path, "user,at,code,note\n007,1,007,x\n7,2,8,y\n")
    steps = plan().aggregate(first=sk.first("code"), note=sk.last("note"))
    run = steps.run(file)
    telling = (
        "clicks.csv is text, and the types of 'at' (int64) and 'code' (int64) were guessed; "
        'types={"code": "string"} in group_by_key would set one'
    )
    assert run.remarks() == [telling]
    assert telling in repr(run)
    assert steps.run(file, trace=False).remarks() == [telling]
    assert plan().run(pa.table({"user": ["a"], "at": [1]})).remarks() == []


def test_types_are_part_of_the_code_of_a_plan() -> None:
    steps = plan(types={"user": "int64"})
    assert 'types={"user": "int64"}' in repr(steps)
    assert steps == plan(types={"user": "int64"}) != plan()
    assert hash(steps) == hash(plan(types={"user": "int64"}))


@pytest.mark.parametrize(("types", "telling"), [
    ({"user": "integer"}, "types names an unknown type; got user: 'integer'; such as"),
    ({"user": int}, "types names an unknown type; got user: <class 'int'>"),
    ("int64", "types must map columns to types; got 'int64'"),
    ({"usr": "int64"}, "types names a column that the plan does not read; got 'usr'; one of ['user', 'at']"),
])  # fmt: skip
def test_types_that_cannot_be(types: Any, telling: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        plan(types=types).run(pa.table({"user": ["a"], "at": [1]}))
    assert telling in str(caught.value)


def test_a_value_that_is_not_of_the_type_said(tmp_path: Path) -> None:
    file = written(tmp_path, "user,at\n1,1\nada,2\n")
    with pytest.raises(InvalidData, match=r"does not match types=.*invalid value 'ada'.*another type"):
        plan(types={"user": "int64"}).run(file)
    with pytest.raises(UnsupportedData, match=r"key column 'user' has a number with a fraction; got 1.5 in row 0"):
        plan(types={"user": "float64"}).run(written(tmp_path, "user,at\n1.5,1\n"))


@pytest.mark.parametrize("size", [10, 2**20, 5 * 2**20, 40 * 2**20])
@pytest.mark.slow
def test_a_field_may_span_blocks(tmp_path: Path, size: int) -> None:
    """Arrow reads a file in blocks of a megabyte."""
    note = "line\n" * (size // 5)
    rows = "".join(f'k{i},{i},"{note}"\n' for i in range(3))
    run = plan().aggregate(note=sk.first("note")).run(written(tmp_path, "user,at,note\n" + rows))
    assert [len(each) for each in run.table()["note"].tolist()] == [len(note)] * 3
    assert run.table()["note"][0] == note


def test_line_breaks_in_fields_all_over_a_large_file(tmp_path: Path) -> None:
    rows = "".join(f'k,{i},"a\n{"b" * (i % 97)},\n"\n' for i in range(60_000))
    assert len(rows) > 3 * 2**20
    run = plan().aggregate(n=sk.count(), notes=sk.collect("note")).run(written(tmp_path, "user,at,note\n" + rows))
    table = run.table()
    assert table["n"].tolist() == [60_000]
    assert list(table["notes"][0]) == [f"a\n{'b' * (i % 97)},\n" for i in range(60_000)]


@pytest.mark.parametrize("column", ["user", "note"])
def test_text_that_is_not_utf8_is_refused(tmp_path: Path, column: str) -> None:
    file = written(tmp_path, "user,at,note\nZo\u00eb,1,Zo\u00eb\n".encode("latin-1"))
    steps = group_in_ms("user").windowed_by(plan().windows)
    if column == "note":
        file = written(tmp_path, b"user,at,note\nzoe,1,Zo\xeb\n")
    with pytest.raises(InvalidData, match=r"not UTF-8.*save it as UTF-8"):
        steps.aggregate(note=sk.first("note")).run(file)
    if column == "note":
        assert keys_of(steps.count().run(file)) == ["zoe"]  # a column that nobody reads


def test_bytes_are_read_where_the_plan_says_so(tmp_path: Path) -> None:
    file = written(tmp_path, b"user,at\nZo\xeb,1\n")
    assert keys_of(plan(types={"user": "binary"}).run(file)) == [b"Zo\xeb"]


def test_names_of_columns_that_are_not_utf8(tmp_path: Path) -> None:
    with pytest.raises(InvalidData, match="not UTF-8"):
        plan().run(written(tmp_path, b"us\xebr,user,at\na,b,1\n"))


def test_text_of_utf16_is_not_guessed(tmp_path: Path) -> None:
    file = tmp_path / "clicks.txt"
    file.write_bytes("user\tat\r\na\t1\r\n".encode("utf-16"))
    with pytest.raises(
        InvalidData, match=r"clicks\.txt holds text that is not UTF-8; got UTF-16, as its first bytes say"
    ):
        plan().run(file)


@pytest.mark.parametrize("name", ["a.csv", "a.txt", "a.tsv"])
@pytest.mark.parametrize(
    ("separator", "named"), [(";", "semicolons"), ("|", "the character |"), ("\t", "tabs"), (",", "commas")]
)
def test_a_separator_that_the_first_lines_show(tmp_path: Path, name: str, separator: str, named: str) -> None:
    (tmp_path / name).write_text("user,at,note\nada,1,x\n".replace(",", separator), encoding="utf-8")
    read = read_file(tmp_path / name)
    assert read.table.to_pylist() == [{"user": "ada", "at": 1, "note": "x"}]
    usual = {"a.csv": "commas", "a.tsv": "tabs"}.get(name) == named
    assert any(f"separated by {named}" in remark for remark in read.remarks) is not usual


@pytest.mark.parametrize(("separator", "named"), [(";", "semicolons"), ("|", "the character |"), ("\t", "tabs")])
@pytest.mark.parametrize("more", ["", "2016-12-19 16:31:48,025;ERROR\n"])
def test_the_comma_before_a_fraction_of_a_second_separates_nothing(
    tmp_path: Path, separator: str, named: str, more: str
) -> None:
    """Times and levels cut from the log of a broker became keys such as "999;TRACE"."""
    file, lines = tmp_path / "state.csv", f"2016-12-19 16:31:47,999;TRACE\n{more}"
    file.write_text(lines.replace(";", separator), encoding="utf-8")
    read = read_file(file, header=False)
    assert read.table["c2"][0].as_py() == "TRACE" and any(f"separated by {named}" in each for each in read.remarks)
    file.write_text("12:00:00,125,a|b\n12:00:01,250,c|d\n", encoding="utf-8")  # other commas do
    assert read_file(file, header=False).table["c3"].to_pylist() == ["a|b", "c|d"]


def test_a_separator_that_they_do_not_show_is_the_usual_one_unless_it_is_said(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("user;at|place\nada;1|2\n", encoding="utf-8")
    assert read_file(file).table.column_names == ["user;at|place"]
    assert read_file(file, separator=";").table.to_pylist() == [{"user": "ada", "at|place": "1|2"}]
    file.write_text("7f|2026-03-02|a; b\n8a|2026-03-03|c\n9c|2026-03-04|d, e, f\n", encoding="utf-8")
    assert read_file(file, header=False).table["c3"].to_pylist() == ["a; b", "c", "d, e, f"]
    file.write_text("7f|a, b\n8a|c, d\n9c|e, f, g\n", encoding="utf-8")  # both as often
    with pytest.raises(
        InvalidData, match=r"; separator= if its fields are parted by the character \|, or check that a"
    ):
        read_file(file)
    file.write_text("note: a;b\nx;y;z\n", encoding="utf-8")
    assert read_file(file).table.column_names == ["note: a;b"]


def test_a_file_without_a_line_of_names(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("ada,5,5\nbob,6,\n,7,1\n", encoding="utf-8")
    table = read_file(file, None, ["c1"], header=False).table
    assert table.to_pydict() == {"c1": ["ada", "bob", None], "c2": [5, 6, 7], "c3": [5, None, 1]}
    assert read_file([file, file], ["c2"], header=False).table["c2"].to_pylist() == [5, 6, 7] * 2
    with pytest.raises(
        MissingColumn, match=r"or read the file with header=False in group_by_key \(pandas: header=None\) if its first"
    ):
        read_file(tmp_path / "a.csv", ["user"])
    with pytest.raises(
        InvalidData, match=r"'5' is in a.csv more than once.*rename all but one, or read the file with header=False"
    ):
        read_file(file)


def test_a_plan_says_how_lines_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ada;2024-07-01T00:00:00Z;1,5\n", encoding="utf-8")
    start = sk.group_by_key("c1", timestamp="c2", separator=";", header=False)
    run = start.windowed_by(sk.SessionWindows(inactivity_gap="30s", grace="0s")).count().run(str(tmp_path / "a.csv"))
    assert run.table()["c1"].tolist() == ["ada"]
    with open(tmp_path / "a.csv", "rb") as opened:
        assert len(start.windowed_by(run.plan.windows).count().run(opened).table()) == 1
    with pytest.raises(InvalidArgument, match="separator must be a character of ASCII; got '::'"):
        sk.group_by_key("c1", timestamp="c2", separator="::")


LOG = '10.0.0.{} - - [29/Jan/2024:16:00:0{}] "GET /?a=1;b=2, c HTTP/1.1" 200 "Mozilla/5.0 (X11; Linux, x)"\n'


@pytest.mark.parametrize("name", ["access.log", "access.log.gz", "access.txt"])
def test_fields_of_a_log_are_parted_by_spaces_outside_quotes(tmp_path: Path, name: str) -> None:
    text = "".join(LOG.format(n % 2, n) for n in range(4)).encode()
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    plan = sk.group_by_key("c1", timestamp="c4", timezone="UTC", header=False)
    run = plan.windowed_by(sk.SessionWindows(inactivity_gap="5s", grace="0s")).count().run(tmp_path / name)
    assert run.table()["count"].tolist() == [2, 2]
    assert f"{name} is read as text separated by spaces, as its first lines have it" in run.remarks()


@pytest.mark.parametrize(("text", "names"), [
    ("user,note\nada,a b\n", ["user", "note"]), ('"user; or so",at\n"a;b",1\n', ["user; or so", "at"]),
    ("one name\nits value\n", ["one name"]), ("a b c\n1 2\n", ["a b c"]), ("a b c\n1 2 3\n", ["a", "b", "c"]),
])  # fmt: skip
def test_what_stands_in_quotes_parts_nothing(tmp_path: Path, text: str, names: list[str]) -> None:
    assert read_file(written(tmp_path, text)).table.column_names == names


@pytest.mark.parametrize(
    ("given", "has", "word"), [(",", ";", "semicolons"), (";", ",", "commas"), (",", "\t", "tabs")]
)
def test_a_wrong_separator_names_that_of_the_file(tmp_path: Path, given: str, has: str, word: str) -> None:
    file = written(tmp_path, f"user{has}at{has}x\na{has}1{has}2\n")
    said = f"clicks.csv is one column; leave out separator=: its first lines look as if parted by {word}"
    assert said in read_file(file, separator=given).remarks
    with pytest.raises(MissingColumn, match="leave out separator=: its first lines look as if parted by " + word):
        plan(separator=given).run(file)
    file = written(tmp_path, f"user{has}at{has}x\na{has}1{has}2{given}5\n")
    with pytest.raises(InvalidData, match="leave out separator=: its first lines look as if parted by " + word):
        plan(separator=given).run(file)


@pytest.mark.parametrize("place", [0, 3])
def test_a_web_server_may_escape_the_quotes_within_quotes(place: int, tmp_path: Path) -> None:
    line = '10.0.0.{} - - [10/Mar/2026:09:0{}:00 +0100] "GET /a b HTTP/1.1" 200 5 "-" "{}"\n'
    agents = ["-", "curl", r"\x16\x03", r"a\\", "-", "-"]
    agents[place] = r"Apache \"style\" agent\\\"s"
    file = tmp_path / "access.log"
    file.write_text("".join(line.format(n % 2, n, agent) for n, agent in enumerate(agents)))
    found = read_file(file, None, header=False).table
    expected = [r'Apache "style" agent\\"s' if n == place else agent for n, agent in enumerate(agents)]
    assert found["c10"].to_pylist() == expected


def test_escaped_quotes_in_a_csv_are_told_with_the_way(tmp_path: Path) -> None:
    rows = r'a,1,"x"' + "\n" + r'a,2,"say \"hi\", and \"ho\""' + "\n"
    file = written(tmp_path, "user,at,text\n" + rows)
    with pytest.raises(InvalidData, match=r"cannot be read; .* as quotes within quotes are written") as refusal:
        plan().count().run(file)
    way = str(refusal.value).rpartition("; ")[2].partition(", as quotes")[0]
    assert eval(way, {"pandas": pd})["text"].tolist() == ["x", 'say "hi", and "ho"']  # noqa: S307


@pytest.mark.parametrize(("encoding", "above"), [("cp1252", ""), ("utf-16", ""), ("cp1252", "Überwachung\n\n")])
def test_other_encodings_are_told_with_the_line_that_reads_them(tmp_path: Path, encoding: str, above: str) -> None:
    """The line past what stands above the names failed in pandas, where the file was written on Windows."""
    file = tmp_path / "clicks.csv"
    file.write_text(f"{above}user;at;größe\na;1;5\nb;2;7\n", encoding=encoding)
    with pytest.raises(InvalidData) as refusal:
        plan().count().run(file)
    line = re.findall(r"pandas\.read_csv\(.*?\)", str(refusal.value))[0]
    assert eval(line, {"pandas": pd})["größe"].tolist() == [5, 7]  # noqa: S307


@pytest.mark.parametrize(
    ("texts", "total"),
    [
        (["1.234,56", "7,00"], 1241.56), (["1,234.56", "7.00"], 1241.56), (["1.234.567", "7"], 1234574),
        (["1'234.50", "7.00"], 1241.5), (["1\u00a0234,50", "7,00"], 1241.5), (["1\u202f234,50", "-7"], 1227.5),
        (["1,234", "7,000"], 8234), (["7,00", "500", "1.234,56"], 1741.56), (["500", "7.00", "1,234.56"], 1741.56),
        (["$3.50", "$1,000.25"], 1003.75), (["3,50 €", "1.000,25 €"], 1003.75), (["EUR 3,5", "-2,25 USD"], 1.25),
        (["PT15S", "P1DT1M"], 86475), (["00:15:20", "1:00:00"], 4520),
        (["1.234", "7,00"], 1241), (["0,123", "1,234"], 1.357), (["1.5", "3,50"], 5), (["1.234.567", "1,5"], 1234568.5),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_numbers_as_people_write_them_are_told_with_the_way(
    texts: list[str], total: float, kind: str, tmp_path: Path
) -> None:
    """pandas.read_csv(…, thousands=".") made the number 28092026 of the day beside them, and 12 of the list 1,2."""
    others = {"user": "a", "day": "28.09.2026", "clock": "10:30", "ids": "1,2", "part": "1.2.3"}
    rows = pd.DataFrame([{**others, "at": n, "amount": text} for n, text in enumerate(texts)])
    file, summed = tmp_path / f"clicks.{kind}", plan().aggregate(sum=sk.sum("amount"))
    if kind == "csv":
        rows.to_csv(file, sep=";", index=False)
    else:
        rows.to_json(file, orient="records", lines=True)
    with pytest.raises(UnsupportedData) as refusal:
        summed.run(file).table()
    line = str(refusal.value).partition(f"got string, {texts[0]!r}; ")[2].partition(" makes ")[0]
    df = pd.read_csv(file, sep=";") if kind == "csv" else pd.read_json(file, lines=True, dtype=False)
    exec(line, {"df": df, "pandas": pd})  # noqa: S102
    assert summed.run(df).table()["sum"].tolist() == [total]
    assert df[[*others]].to_dict("records") == [others] * len(texts)


@pytest.mark.parametrize(
    ("texts", "how", "zone"),
    [
        (["31/12/2025 01:26", "01/02/2026 01:26"], 'format="%d/%m/%Y %H:%M"', None),
        (["2026-01-02T03:04Z", "2026-01-02T03:04:05Z"], 'format="ISO8601"', "UTC"),
        (["2026-01-02 03:04", "2026-01-02 03:05", "2026-01-02T03:05+02:00"], 'format="ISO8601"', "UTC"),
        (["2026-01-02 03:04", "2026-01-02"], 'format="ISO8601"', None), (["28.09.2026 09:00"], "dayfirst=True", None),
        (["28.09.2026 09:00 +0200", "28.09.2026 09:30 +0100"], "dayfirst=True", "UTC"),
        (["Thu Nov 26 06:08:37 2026 +0100", "Thu Nov 26 06:08:37 2026 -0100"], "%Y %z", "UTC"),
        (["Thu Nov 26 06:08:37 2026"], "%H:%M:%S %Y", None),
    ],
)  # fmt: skip
def test_the_latest_of_times_in_a_text_is_told_with_the_way(texts: list[str], how: str, zone: str | None) -> None:
    df = pd.DataFrame({"user": "a", "at": range(len(texts)), "seen": texts})
    latest = plan().aggregate(seen=sk.max("seen"))
    with pytest.raises(UnsupportedData) as refusal:
        latest.run(df).table()
    line = str(refusal.value).partition(f"got string, {texts[0]!r}; ")[2]
    assert how in line
    exec(line.removesuffix(" makes times of it"), {"df": df, "pandas": pd})  # noqa: S102
    assert (df["seen"].dt.tz and str(df["seen"].dt.tz)) == zone  # a clock without a zone is that of the plan
    assert latest.run(df).table()["seen"].tolist() == [df["seen"].max()]


@pytest.mark.parametrize("mark", ["-", r"\N", "unknown", "Bad"])
@pytest.mark.parametrize("kind", ["csv", "jsonl", "json"])
def test_a_mark_for_missing_values_among_numbers_is_told(mark: str, kind: str, tmp_path: Path) -> None:
    """An error of Arrow about bytes and an 'int' object, in JSON; na_values= of pandas changed other columns, too."""
    rows, file = [(n, value) for n, value in enumerate([mark, 1.5, None, -20])], tmp_path / f"clicks.{kind}"
    if kind == "csv":
        file.write_text("user,at,amount\n" + "".join(f"a,{n},{'' if each is None else each}\n" for n, each in rows))
    else:
        lines = [json.dumps({"user": "a", "at": n, "amount": each}) for n, each in rows]
        file.write_text("\n".join(lines) if kind == "jsonl" else f"[{','.join(lines)}]")
    summed, told = plan().aggregate(sum=sk.sum("amount")), f" for a plan to run on, if {mark!r} stands for a missing"
    with pytest.raises((UnsupportedData, InvalidData)) as refusal:
        summed.run(file).table()
    assert "object" not in str(refusal.value)
    line = re.findall(r"; (df.*)" + re.escape(told), str(refusal.value))[0]
    df = pd.read_csv(file) if kind == "csv" else pd.read_json(file, lines=kind == "jsonl")
    exec(line, {"df": df, "pandas": pd})  # noqa: S102
    assert summed.run(df).table()["sum"].tolist() == [-18.5]
    with pytest.raises(InvalidData, match=r"does not match types=; .*; df\['column'\] = .*" + re.escape(told)):
        plan(types={"amount": "float64"}).aggregate(sum=sk.sum("amount")).run(file)


@pytest.mark.parametrize("separator", [None, ";"])
def test_the_line_of_excel_that_says_the_separator_is_understood(separator: str | None, tmp_path: Path) -> None:
    file = written(tmp_path, "\ufeffsep=;\nuser;at\na;1\nb;2\n")
    assert read_file(file, separator=separator).table.to_pydict() == {"user": ["a", "b"], "at": [1, 2]}
    assert read_file(file, separator=separator, header=False).table["c1"].to_pylist() == ["user", "a", "b"]


@pytest.mark.parametrize("given", [None, ";"])
@pytest.mark.parametrize("above", ["# Station 42\n# logger v3\n", "Export of the shop\n\n"])
def test_lines_above_the_names_are_told_with_the_way(above: str, given: str | None, tmp_path: Path) -> None:
    file = written(tmp_path, f"{above}user;at;amount\na;1;2\nb;2;3\n")
    with pytest.raises(InvalidData) as refusal:
        plan(separator=given).run(file)
    df = eval(str(refusal.value).rpartition(": ")[2], {"pandas": pd})  # noqa: S307
    assert df.to_dict("list") == {"user": ["a", "b"], "at": [1, 2], "amount": [2, 3]}


def test_a_decimal_comma_is_named_with_the_way_to_read_it(tmp_path: Path) -> None:
    file = written(tmp_path, "user;at;amount\na;1;18,22\na;2;9,5\n")
    way = """df['amount'] = df['amount'].str.replace(",", ".").astype(float) makes a number of it"""
    said = f"sum('amount') cannot use column 'amount'; got string, '18,22'; {way}"
    with pytest.raises(UnsupportedData, match=re.escape(said)):
        plan().aggregate(sum=sk.sum("amount")).run(file).table()
    with pytest.raises(InvalidData, match=r"does not match types=; .*'18,22'; df.'column'. = df"):
        plan(types={"amount": "double"}).aggregate(sum=sk.sum("amount")).run(file)
    frame = pd.read_csv(file, sep=";", decimal=",")
    assert plan().aggregate(sum=sk.sum("amount")).run(frame).table()["sum"].tolist() == [27.72]
    with pytest.raises(
        UnsupportedData, match=r"got string, '7'; types=.\"amount\": \"float64\". in group_by_key, or df"
    ):
        plan().aggregate(sum=sk.sum("amount")).run({"user": ["a"], "at": [1], "amount": ["7"]}).table()


def way_of(path: Path) -> str:
    """The line of pandas in the error for a file, and what follows it."""
    with pytest.raises(InvalidData) as error:
        plan("c0").run(path)
    return str(error.value).partition("df = ")[2]


_ZEEK = (
    "#separator \\x09\n#path\trdp\n#fields\tts\tuid\tnote\n#types\ttime\tstring\tstring\n1.25\tC1\ta#b\n2.5\tC2\t-\n"
)


@pytest.mark.parametrize(("text", "names"), [
    (_ZEEK, ["ts", "uid", "note"]),
    (_ZEEK + "#close\t2026-03-02\n", ["ts", "uid", "note"]),
    ("#Software: IIS\n#Version: 1.0\n#Fields: date time note\n2026-03-02 09:00:00 a#b\n2026-03-02 09:01:00 -\n",
     ["date", "time", "note"]),
])  # fmt: skip
@pytest.mark.parametrize("name", ["a.log", "a.log.gz"])
def test_a_log_that_names_its_fields_in_a_comment_is_told_with_the_line_that_reads_it(
    text: str, names: list[str], name: str, tmp_path: Path
) -> None:
    """The log of a network sensor: "Expected 1 column, got 2 …; check that rdp.log.gz is complete"."""
    (path := tmp_path / name).write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    read = eval(way_of(path).partition(", as ")[0], {"pandas": pd})  # noqa: S307
    assert list(read.columns) == names and len(read) == 2
    assert read["note"].iloc[0] == "a#b" and pd.isna(read["note"].iloc[1])


@pytest.mark.parametrize("name", ["a.log", "a.txt.gz"])
@pytest.mark.parametrize("lines", [
    ["7 node-1 1074119817 1 a component failed, twice", "8 node-2 1074119818 1 rebooted", '9 node-1 1074119819 0 "on'],
    ["rust 2026-03-02 [10:19:00] <lp> oh wait, I", "", "rust 2026-03-02 [10:19:43] <lp> yes", "rust 2026-03-02 [11] a"],
])  # fmt: skip
def test_a_log_of_free_text_is_told_with_the_line_that_parts_it(lines: list[str], name: str, tmp_path: Path) -> None:
    """A log of a cluster and a chat: "Expected 17 columns, got 10 …; check that HPC.log is complete"."""
    text = "\n".join([*lines, ""] * 3).encode()
    (path := tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    read = eval(way_of(path).partition(" parts")[0], {"pandas": pd})  # noqa: S307
    words = [line.split(maxsplit=read.shape[1] - 1) for line in lines * 3 if line]
    assert read.values.tolist() == words and read.columns[0] == "c0" and read.shape[1] > 3


def test_bytes_of_no_encoding_are_told_with_a_line_that_reads_them(tmp_path: Path) -> None:
    """Tweets whose letters were broken twice: encoding="cp1252" was advised, which pandas refused."""
    (path := tmp_path / "a.csv").write_bytes(b"c0,at\nM\x9dller,1\nb\xe4,2\n")
    way = way_of(path)
    assert "if it was written on Windows" not in way
    assert len(eval(way.partition(", which")[0], {"pandas": pd})) == 2  # noqa: S307


@pytest.mark.parametrize(("text", "names"), [
    ("% asym positive\n% 3 2 2\n1 2 1 1082008561\n3 4 1 1082123439\n", ["c0", "c1", "c2", "c3"]),
    ("# Directed graph\n# from to at\n1\t2\t1082008561\n3\t4\t1082123439\n", ["c0", "c1", "c2"]),
])  # fmt: skip
def test_comments_above_rows_are_told_with_the_line_that_reads_the_rows(
    text: str, names: list[str], tmp_path: Path
) -> None:
    """A graph of messages: "Expected 3 columns, got 4: % 59835 1899 1899", and a line that kept the comments."""
    path = tmp_path / "a.txt"
    path.write_text(text)
    with pytest.raises(InvalidData) as error:
        plan("c0").run(path)
    assert str(error.value).startswith("the file begins with comments; got ")
    read = str(error.value).partition("df = ")[2].partition(", as")[0]
    rows = eval(read, {"pandas": pd})  # noqa: S307
    assert [*rows.columns] == names and rows.to_numpy().tolist()[1][-1] == 1082123439 and len(rows) == 2


def test_one_line_with_a_mark_is_a_line_of_names(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("#user,at\nada,2026-03-02T09:00:00Z\n")
    assert "ada" in plan("#user").run(path).table().iloc[0].tolist()


class SlowFile(io.BytesIO):
    """A file that tells whether it was closed while somebody read from it."""

    is_read = was_closed_meanwhile = False

    def read(self, size: int | None = -1) -> bytes:
        self.is_read = True
        time.sleep(0.05)
        self.is_read = False
        return super().read(size)

    def close(self) -> None:
        self.was_closed_meanwhile |= self.is_read
        super().close()


@pytest.mark.parametrize("how", ["names", pytest.param("batches", marks=pytest.mark.thorough)])
def test_a_file_is_not_closed_while_arrow_reads_ahead(how: str) -> None:
    """The thread that reads ahead would read from the next file that is opened, whose first block then were missing."""
    opened: list[SlowFile] = []
    rows = b"user,at\n" + (b"k,1\n" * 600_000 + b'"' + b"k" * 2**21 + b'",2\n') * (20 if how == "batches" else 1)

    def open_file() -> SlowFile:
        opened.append(SlowFile(rows))
        return opened[-1]

    content = Content(name="clicks.csv", kind="CSV", open=open_file, separator=",")
    if how == "names":
        assert names_of(content) == ["user", "at"]
    else:
        kinds = {"user": pa.string(), "at": pa.int64()}
        next(csv_batches(content, ["user", "at"], kinds, lambda _, columns: [*columns]))
    assert opened
    assert not any(file.was_closed_meanwhile for file in opened)
