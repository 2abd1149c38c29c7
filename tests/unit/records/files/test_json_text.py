"""JSON: keys as they are written, times as texts, and no file that ends the process."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.errors import InvalidData, MissingColumn, SessionkitError
from sessionkit.records.files.tables import read_file


def plan(**options: Any) -> sk.Plan:
    steps = sk.group_by_key("user", timestamp="at", **options)
    return steps.windowed_by(sk.SessionWindows(inactivity_gap="30s", grace="10s")).count()


def written(folder: Path, text: str | bytes) -> Path:
    file = folder / "clicks.json"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


@pytest.mark.parametrize(
    "users",
    [
        ["007", "7"], [7, 8], [7, "7"], [True, None], [10**30, 1], ["2024-07-01", "2024-07-01T00:00:00+02:00"],
        ["true", True, 1],
    ],
)  # fmt: skip
def test_keys_are_text_as_they_are_written(tmp_path: Path, users: list[Any]) -> None:
    lines = [json.dumps({"user": user, "at": at}) for at, user in enumerate(users)]
    expected = {user if isinstance(user, str) else json.dumps(user) for user in users if user is not None}
    for text in ("\n".join(lines), f"[{','.join(lines)}]"):
        assert set(plan(unit="ms").run(written(tmp_path, text)).table()["user"]) == expected


def test_numbers_as_keys_stay_as_they_are_written(tmp_path: Path) -> None:
    numbers = ["1.0", "1", "1e2", "-0.50", "12345678901234567890123"]
    file = written(tmp_path, "".join(f'{{"user": {number}, "at": {at}}}\n' for at, number in enumerate(numbers)))
    assert sorted(plan(unit="ms").run(file).table()["user"]) == sorted(numbers)


def test_types_say_otherwise(tmp_path: Path) -> None:
    file = written(tmp_path, '{"user": "007", "at": 1}\n{"user": 7, "at": 2}\n')
    run = plan(unit="ms", types={"user": "int64"}).run(file)
    assert run.table()["user"].tolist() == [7]
    telling = 'clicks.json is text, and the type of \'at\' (int64) was guessed; types={"at": "string"} in group_by_key'
    assert run.remarks() == [f"{telling} would set one"]
    with pytest.raises(InvalidData, match=r"clicks.json does not match types=; got .*'ada'"):
        plan(unit="ms", types={"user": "int64"}).run(written(tmp_path, '{"user": "ada", "at": 1}\n'))


def test_times_with_mixed_offsets_become_instants(tmp_path: Path) -> None:
    times = ["2024-07-01T10:00:00+02:00", "2024-07-01T08:00:01Z", "2024-07-01 03:00:02.5 -0500", None]
    rows = pd.DataFrame({"user": ["ada"] * 4, "at": times, "seen": times})
    file = tmp_path / "clicks.jsonl"
    rows.to_json(file, orient="records", lines=True)
    steps = plan(on_bad_time="drop").aggregate(seen=sk.collect("seen"))
    run = steps.run(file)
    assert run.trace.batch.timestamp_ms.tolist()[:3] == [1719820800000, 1719820801000, 1719820802500]
    assert list(run.table()["seen"][0]) == times[:3]  # a reader that guesses would drop their zones
    assert len(run.dropped()) == 1


@pytest.mark.parametrize(("text", "telling"), [
    ('{"user": "\\ud800", "at": 1}', "column 'user' of clicks.json is not text; got"),
    ('{"user": "a", "user": "b", "at": 1}', "an object has two values of one name; got 'user'; rename one of them"),
    ('{"user": {"id": 1}, "at": 1}',
     "column 'user' must hold single values; got row 0: {'id': 1}; a field of it, such as"),
    ('[{"user": [1], "at": 1}]', "column 'user' must hold single values; got row 0: [1]"),
    ('{"user": "a", "at": 1}\n{"user": "a", "at": "x"}', 'types={"at": "string"} in group_by_key reads all'),
    ('{"user": {"0": "a"}, "at": {"0": 1}}', 'pandas.read_json("FILE", orient="columns", dtype=False)'),
    ('{"0": {"user": "a", "at": 1}}', 'pandas.read_json("FILE", orient="index", dtype=False)'),
    ('{"columns": ["user"], "index": [0], "data": [["a"]]}', 'read_json("FILE", orient="split", dtype=False)'),
    ("[1, 2]", "clicks.json holds something that is no record; got row 0: '1'"),
    ('{"user": "a", "at": 1}\n"x"', "clicks.json holds something that is no record; got row 1: 'x'"),
    ('{"user": "a", "at": 1}\n{"us', "the file cannot be read; got Unterminated string"),
    ("", "the file cannot be read; got no JSON in it; check that clicks.json is complete"),
    (" \n", "the file cannot be read; got no JSON in it"), ("[]", "column 'user' is not in clicks.json; got []"),
    ('{"at": 1}', "column 'user' is not in clicks.json; got ['at']; name one of these"),
    ("[" * 100_000, "the JSON is nested too deep"),
    ('{"user": ' + "[" * 100_000 + "]" * 100_000 + "}", "the JSON is nested too deep"),
    (b'{"user": "Zo\xeb", "at": 1}', "clicks.json holds text that is not UTF-8"),
    (b'[{"user": "Zo\xeb", "at": 1}]', "clicks.json holds text that is not UTF-8"),
    (b'{"us\xebr": "a", "user": "b", "at": 1}', "clicks.json holds text that is not UTF-8"),
    ('{"user": "a", "at": 1}'.encode("utf-16"), "clicks.json holds text that is not UTF-8"),
])  # fmt: skip
def test_what_cannot_be_read(tmp_path: Path, text: str | bytes, telling: str) -> None:
    with pytest.raises(SessionkitError) as caught:
        plan(unit="ms").run(file := written(tmp_path, text))
    assert telling.replace("FILE", str(file)) in str(caught.value)


def test_what_nobody_reads_may_be_anything(tmp_path: Path) -> None:
    deep = "[" * 700 + "]" * 700
    odd = (
        f'{{"user": "a", "at": 1, "x": {deep}, "y": 1}}\n{{"user": "a", "at": 2, "y": "text", "\\ud800": "\\ud800"}}\n'
    )
    assert plan(unit="ms").run(written(tmp_path, odd)).table()["count"].tolist() == [2]


def test_a_field_of_several_types_is_told_and_does_no_harm(tmp_path: Path) -> None:
    of_m = [{"t": n, "bat": "3,6" if n else 3.70, "l": [{"x": n or "a"}]} for n in range(4)]
    rows = [{"user": f"u{n % 2}", "at": n, "m": m} for n, m in enumerate(of_m)]
    file = written(tmp_path, "\n".join(map(json.dumps, rows)))
    of_t, of_bat = (plan(unit="ms").aggregate(n=sk.last(name)) for name in ("m.t", "m.bat"))
    assert of_t.run(file).table()["n"].tolist() == [2, 3]
    with pytest.raises(InvalidData, match=r"column 'm.bat' of .* several types.*types=\{\"m.bat\": \"string\"\} in"):
        of_bat.run(file)
    of_bat = plan(unit="ms", types={"m.bat": "string"}).aggregate(n=sk.first("m.bat"))
    assert of_bat.run(file).table()["n"].tolist() == ["3.7", "3,6"]
    assert read_file(file).table["m"].to_pylist()[0] == {"t": 0, "bat": "3.7", "l": [{"x": "a"}]}


def test_nested_values_come_through_with_their_times_as_text(tmp_path: Path) -> None:
    row = '{"user": "a", "at": 1, "page": {"seen": ["2024-07-01T00:00:00+02:00"], "n": 1.5}}\n'
    for text in (row, f"[{row}]"):
        run = plan(unit="ms").aggregate(page=sk.first("page")).run(written(tmp_path, text), frame="arrow")
        assert run.table()["page"].to_pylist() == [{"seen": ["2024-07-01T00:00:00+02:00"], "n": 1.5}]


def test_large_numbers_and_a_large_field(tmp_path: Path) -> None:
    field = "x" * 3_000_000
    text = f'{{"user": "{field}", "at": 1}}\n'.replace("user", "note").replace('"at"', '"user": "a", "at"')
    run = plan(unit="ms").aggregate(n=sk.last("note")).run(written(tmp_path, text))
    assert run.table()["n"].tolist() == [field]
    numbers = '[{"user": "a", "at": 1, "v": 1e400}, {"user": "a", "at": 2, "v": 99999999999999999999}]'
    run = plan(unit="ms").aggregate(v=sk.min("v")).run(written(tmp_path, numbers))
    assert run.table()["v"].tolist() == [1e20]


def test_one_column_and_only_nulls(tmp_path: Path) -> None:
    run = plan(unit="ms", on_bad_time="drop").run(written(tmp_path, '{"user": null, "at": null}\n' * 2))
    assert (len(run.table()), len(run.dropped())) == (0, 2)
    with pytest.raises(MissingColumn, match="column 'at' is not in"):
        plan().run(written(tmp_path, '{"user": "a"}\n'))
    assert pa.types.is_null(pa.null())
