"""The idioms of docs/from_pandas_and_sql.md, as they stand there: equal to `sessionize` where the page says so."""

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import sessionkit as sk
from tests.docs.pages import IDIOM, NOT_RUN, ROOT, Block, Page
from tests.optional import SparkSession

PAGE = Page(ROOT / "docs" / "from_pandas_and_sql.md")
IDIOMS = {block.note: block for block in PAGE.blocks if block.mark == IDIOM}
GAP = pd.Timedelta("30min")
NAMES = ("ada", "bob", "cy", "d\u00f6rte")


def sessions_of(idiom: Block, clicks: pd.DataFrame) -> list[Any]:
    """The number of the session of each row, as the idiom finds it."""
    if idiom.language == "sql":
        found = duckdb.connect().register("clicks", clicks.rename_axis("number").reset_index()).sql(idiom.code)
        return found.df()["session"].astype(int).tolist()
    names: dict[str, Any] = {"pd": pd, "pl": pl, "clicks": clicks}
    exec(idiom.code, names)  # noqa: S102 - our own page
    return list(names["result"].to_list())


def drawn(seed: int) -> pd.DataFrame:
    """Clicks whose pauses are often exactly the gap, and whose times are often the same; in any order."""
    random = np.random.default_rng(seed)
    count = int(random.integers(1, 60))
    minutes = random.choice([0, 1, 15, 30, 30, 31, 60], count).cumsum()
    at = pd.Timestamp("2026-03-02", tz="UTC") + pd.to_timedelta(random.permutation(minutes), unit="min")
    return pd.DataFrame({"user": random.choice(NAMES[: random.integers(1, 5)], count), "at": at})


@pytest.mark.parametrize("name", ["pandas", "polars", "sql"])
def test_it_gives_the_sessions_of_the_one_line(name: str) -> None:
    for seed in range(25):
        clicks = drawn(seed)
        expected = sk.sessionize(clicks, by="user", at="at", gap="30 minutes")["session_id"].tolist()
        assert sessions_of(IDIOMS[name], clicks) == expected, f"seed {seed}"


def clicks_of(*rows: tuple[str | None, str | None]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=["user", "at"])
    return frame.assign(at=pd.to_datetime("2026-03-02 " + frame["at"], utc=True))


def test_what_they_do_with_a_null_key() -> None:
    clicks = clicks_of(("ada", "09:00"), (None, "09:01"), (None, "15:00"))
    counted = {name: len(set(sessions_of(idiom, clicks))) for name, idiom in IDIOMS.items()}
    # to pandas 3 no missing text is equal to another one
    assert counted == {"pandas": 2 if pd.__version__ < "3" else 3, "polars": 3, "sql": 3}
    found = sk.sessionize(clicks, by="user", at="at", gap="30m")
    assert found["session_id"].isna().tolist() == [False, True, True]


def test_what_they_do_with_a_null_time() -> None:
    clicks = clicks_of(("ada", "09:00"), ("ada", None), ("ada", "09:01"))
    assert sessions_of(IDIOMS["pandas"], clicks) == [0, 0, 0]  # in the session before it
    assert sessions_of(IDIOMS["sql"], clicks) == [0, 1, 0]  # a session of its own
    assert sessions_of(IDIOMS["polars"], clicks)[1] == 0  # the first one, and the next row starts another
    with pytest.raises(sk.errors.InvalidData, match="missing"):
        sk.sessionize(clicks, by="user", at="at", gap="30m")
    found = sk.sessionize(clicks, by="user", at="at", gap="30m", on_bad_time="drop")
    assert found["session_id"].fillna(-1).tolist() == [0, -1, 0]


def test_a_late_row_changes_the_numbers_of_all_later_ones() -> None:
    before = clicks_of(("ada", "09:00"), ("ada", "09:40"), ("bob", "12:00"))
    after = pd.concat([before, clicks_of(("ada", "09:20"))], ignore_index=True)
    assert sessions_of(IDIOMS["pandas"], before) == [0, 1, 2]
    assert sessions_of(IDIOMS["pandas"], after) == [0, 0, 1, 0]


def test_bigquery_counts_whole_minutes() -> None:
    """DuckDB's date_sub counts as BigQuery's TIMESTAMP_DIFF does."""
    pause = duckdb.sql("SELECT date_sub('minute', TIMESTAMP '2026-03-02 09:00', TIMESTAMP '2026-03-02 09:30:59')")
    assert pause.fetchall() == [(30,)]


@pytest.mark.spark
def test_sparks_own_sessions_join_at_the_gap_and_end_a_gap_later(spark: SparkSession) -> None:
    block = next(block for block in PAGE.blocks if block.mark == NOT_RUN)
    clicks = clicks_of(("ada", "09:00"), ("ada", "09:30"), ("bob", "09:00"), ("bob", "10:31"))
    names: dict[str, Any] = {"clicks": clicks}
    exec(block.code, names)  # noqa: S102 - our own page
    found = sorted((row["user"], row["count"]) for row in names["result"].collect())
    assert found == [("ada", 2), ("bob", 1), ("bob", 1)]
    rows = sk.sessionize(names["rows"], by="user", at="at", gap="30 minutes")
    assert rows.select("user", "session_start").distinct().count() == len(found)
    last = max(row["session_window"]["end"] for row in names["result"].where("user = 'ada'").collect())
    assert pd.Timestamp(last).minute == 0
