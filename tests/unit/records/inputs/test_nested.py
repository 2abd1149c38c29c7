"""Fields inside a column, by names with dots, and what stands in the index of a pandas frame."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import sessionkit as sk
from sessionkit.errors import InvalidData, MissingColumn, SessionkitError
from sessionkit.records.files.tables import first_rows

ROWS: list[dict[str, Any]] = [
    {"payload": {"who": {"id": "ada"}, "at": "2024-07-01T00:00:00Z", "total": 3}, "n": 1},
    {"payload": {"who": {"id": "bob"}, "at": "2024-07-01T00:00:01Z", "total": None}, "n": 2},
    {"payload": {"who": {"id": "ada"}, "at": "2024-07-01T00:00:05Z", "total": 9007199254740993}, "n": 3},
]
WINDOWS = sk.SessionWindows(inactivity_gap="30s", grace="0s")
PLAN = (
    sk.group_by_key("payload.who.id", timestamp="payload.at")
    .windowed_by(WINDOWS)
    .aggregate(total=sk.sum("payload.total"), n=sk.sum("n"))
)
KCAT = [
    {"topic": "clicks", "partition": 0, "offset": at, "tstype": "create", "ts": 1719792000000 + 1000 * at, "broker": 0,
     "headers": [], "key": row["payload"]["who"]["id"], "payload": json.dumps(row["payload"], indent=1 if at else None)}
    for at, row in enumerate(ROWS)
]  # fmt: skip


def lines(file: Path, rows: list[dict[str, Any]]) -> str:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(file)


def inputs(folder: Path) -> dict[str, Any]:
    table = pa.Table.from_pylist(ROWS)
    pq.write_table(table, folder / "rows.parquet")
    texts = [{**row, "payload": json.dumps(row["payload"])} for row in ROWS]
    pd.DataFrame(texts).to_csv(folder / "texts.csv", index=False)
    return {
        "list": ROWS,
        "pandas": pd.DataFrame(ROWS),
        "text": pd.DataFrame(texts),
        "polars": pl.from_arrow(table),
        "lazy": pl.from_arrow(table).lazy(),  # type: ignore[union-attr]
        "arrow": table,
        "parquet": str(folder / "rows.parquet"),
        "dataset": ds.dataset(folder / "rows.parquet"),
        "json": lines(folder / "rows.jsonl", ROWS),
        "csv": str(folder / "texts.csv"),
    }


@pytest.mark.parametrize(
    "name", ["list", "pandas", "text", "polars", "lazy", "arrow", "parquet", "dataset", "json", "csv"]
)
def test_a_name_with_dots_is_a_field(name: str, tmp_path: Path) -> None:
    found = PLAN.run(inputs(tmp_path)[name], frame="arrow").table()
    assert found["payload.who.id"].to_pylist() == ["ada", "bob"]
    assert found["total"].to_pylist() == [9007199254740996, 0]
    assert found["n"].to_pylist() == [4, 2]


def test_a_column_of_that_very_name_wins() -> None:
    rows = [{**row, "payload.total": 100} for row in ROWS]
    assert PLAN.run(rows).table()["total"].tolist() == [200, 100]


def test_a_dump_of_kcat(tmp_path: Path) -> None:
    file = lines(tmp_path / "dump.json", KCAT)
    plan = sk.group_by_key("key", timestamp="ts", unit="ms", partition="partition", offset="offset")
    run = plan.windowed_by(WINDOWS).aggregate(total=sk.sum("payload.total")).run(file)
    assert run.table()["total"].tolist() == [9007199254740996, 0]
    tombstone = [*KCAT, {**KCAT[0], "offset": 3, "ts": 1719792009000, "payload": None}]
    run = plan.windowed_by(WINDOWS).aggregate(total=sk.sum("payload.total"), n=sk.count()).run(tombstone)
    assert run.table()["n"].tolist() == [3, 1]


def test_text_that_is_no_json_is_told_with_its_row() -> None:
    rows = [{**KCAT[0]}, {**KCAT[1], "payload": "hello"}]
    plan = (
        sk.group_by_key("key", timestamp="ts", unit="ms").windowed_by(WINDOWS).aggregate(total=sk.sum("payload.total"))
    )
    with pytest.raises(InvalidData, match="column 'payload' has a text that is no JSON object; got row 1: 'hello'"):
        plan.run(rows)
    with pytest.raises(InvalidData, match=r"column 'payload' has a text that is no JSON object; got row 0: '{\"a\": '"):
        plan.run([{**KCAT[0], "payload": '{"a": '}])


def test_a_field_that_is_not_there() -> None:
    plan = sk.group_by_key("payload.user", timestamp="payload.at").windowed_by(WINDOWS).count()
    with pytest.raises(
        MissingColumn,
        match=r"column 'payload.user' is not in the data; got 'payload.who', 'payload.at', 'payload.total'",
    ):
        plan.run(ROWS)


def test_the_hint_of_a_large_file_costs_its_first_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = lines(tmp_path / "a.jsonl", [{"at": "2024-07-01T00:00:00Z", "props": {"price": 3}}] * 5)
    with open(file, "a", encoding="utf-8") as more:
        more.write("no JSON\n")
    monkeypatch.setattr("sessionkit.records.files.tables._HEAD", 100)
    assert first_rows(file).to_pylist() == [{"at": "2024-07-01T00:00:00Z", "props": {"price": 3}}]


@pytest.mark.parametrize("form", ["rows", "pandas", "polars", "arrow", "jsonl", "parquet", "text"])
def test_a_name_without_its_object_is_told_with_it(form: str, tmp_path: Path) -> None:
    rows = [{"user": {"id": 31, "tier": "free"}, "at": "2024-07-01T00:00:00Z", "props": {"price": 3}}] * 2
    data: Any = rows
    if form == "text":
        data = pd.DataFrame(
            [{**row, "user": json.dumps(row["user"]), "props": json.dumps(row["props"])} for row in rows]
        )
    elif form == "jsonl":
        data = lines(tmp_path / "a.jsonl", rows)
    elif form == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), data := tmp_path / "a.parquet")
    elif form != "rows":
        data = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.Table.from_pylist}[form](rows)
    start = sk.group_by_key("user.id", timestamp="at", timezone="UTC").windowed_by(WINDOWS)
    with pytest.raises(MissingColumn, match=r"column 'price' is not in .*perhaps \"props.price\""):
        start.aggregate(total=sk.sum("price")).run(data)
    whole = sk.group_by_key("user", timestamp="at", timezone="UTC").windowed_by(WINDOWS).count()
    if form != "text":
        with pytest.raises(SessionkitError, match=r"a field of it, such as \"user.id\""):
            whole.run(data)


def test_keys_of_json_are_text_as_written_in_fields_too(tmp_path: Path) -> None:
    file = lines(tmp_path / "a.jsonl", [{"p": {"id": 7, "at": 1}}, {"p": {"id": 8, "at": 2}}])
    plan = sk.group_by_key("p.id", timestamp="p.at", unit="s").windowed_by(WINDOWS).count()
    assert plan.run(file).table()["p.id"].tolist() == ["7", "8"]
    typed = sk.group_by_key("p.id", timestamp="p.at", unit="s", types={"p.id": "int64"}).windowed_by(WINDOWS).count()
    assert typed.run(file).table()["p.id"].tolist() == [7, 8]


def test_sessionize_takes_fields_and_gives_the_rows_as_they_were() -> None:
    given = pd.DataFrame(ROWS)
    found = sk.sessionize(given, by="payload.who.id", at="payload.at", gap="30s")
    assert found["session_id"].tolist() == [0, 1, 0]
    assert list(found)[:2] == ["payload", "n"]


def frame(name: str | None) -> pd.DataFrame:
    at = pd.to_datetime([0, 1, 60], unit="s", utc=True)
    return pd.DataFrame({"user": ["ada", "bob", "ada"]}, index=pd.DatetimeIndex(at, name=name))


def test_a_time_in_the_index_goes_by_its_name() -> None:
    found = sk.sessionize(frame("at"), by="user", at="at", gap="30s")
    assert found["session_id"].tolist() == [0, 2, 1]
    assert found.index.equals(frame("at").index) and "at" not in found
    several = frame("at").set_index("user", append=True).assign(x=1)
    plan = sk.group_by_key("user", timestamp="at").windowed_by(WINDOWS).aggregate(x=sk.sum("x"))
    assert plan.run(several).table()["x"].tolist() == [1, 1, 1]


def test_a_time_in_an_index_without_a_name() -> None:
    with pytest.raises(
        MissingColumn, match=r"got 'user'; .*, or df.rename_axis\('at'\), which names its index of times"
    ):
        sk.sessionize(frame(None), by="user", at="at", gap="30s")
