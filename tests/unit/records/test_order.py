"""Rows that step back in time: a remark, and `sort="timestamp"`."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import sessionkit as sk
from sessionkit.errors import InvalidArgument, InvalidData

START = 1_719_820_800
REMARK = (
    "199 of 200 records came too late and were dropped, because the newest row stands first. "
    'sort="timestamp" in group_by_key sorts the rows by time.'
)


def plan(**options: Any) -> sk.Plan:
    steps = sk.group_by_key("user", timestamp="at", unit="s", **options)
    return steps.windowed_by(sk.SessionWindows(inactivity_gap="30m", grace="0s")).aggregate(
        n=sk.count(), pages=sk.collect("page")
    )


def newest_first(rows: int = 200) -> pd.DataFrame:
    at = START + np.arange(rows)[::-1] * 3600
    return pd.DataFrame({"user": ["ada"] * rows, "at": at, "page": np.arange(rows)})


def test_newest_first_rows_get_a_remark() -> None:
    run = plan().run(newest_first())
    assert len(run.dropped()) == 199
    assert run.remarks()[0] == REMARK
    assert REMARK in repr(run)
    assert "because the newest row stands first" in run._repr_html_()
    assert plan().run(newest_first(), trace=False).remarks() == [REMARK]


def test_newest_first_rows_are_sorted_by_timestamp() -> None:
    run = plan(sort="timestamp").run(newest_first())
    assert (len(run.dropped()), len(run.table()), run.remarks()) == (0, 200, [])
    assert [list(pages) for pages in run.table()["pages"]] == [[page] for page in range(199, -1, -1)]
    assert plan(sort="timestamp").run(newest_first()[::-1]).remarks() == []


def test_newest_first_rows_of_one_time_are_turned_round_before_they_are_sorted() -> None:
    frame = newest_first()
    frame["at"] -= frame["at"] % 7_200
    (said,) = plan().run(frame).remarks()
    turn = "Rows of one time stay newest first, unless all rows are turned round before, as by df[::-1] in pandas."
    assert said == f"{REMARK} {turn}".replace("199", "198")
    pages = plan(sort="timestamp").run(frame[::-1]).table()["pages"]
    assert np.concatenate(pages.tolist()).tolist() == [*range(199, -1, -1)]


def test_a_record_of_rows_sorted_by_time_is_named_by_its_place_in_time_and_its_row() -> None:
    frame = newest_first(5_000)
    run = plan(sort="timestamp").run(frame)
    words = str(run.explain(offset=3_999))
    assert words.startswith("Record 3,999 in order of time (row 1,000 of the data, key ada), event time ")
    assert run.trace.batch.timestamp_ms[3_999] == frame["at"].iloc[1_000] * 1_000
    some = plan(sort="timestamp").run(frame.assign(user=["bob", *["ada"] * 4_999]), keys=["bob"])
    assert str(some.explain(offset=4_999)).startswith("Record 4,999 in order of time (row 0 of the data, key bob)")
    assert str(plan().run(frame).explain(offset=3_999)).startswith("Record 3999 (key ada)")


def test_rows_of_one_time_stay_in_their_order_with_all_that_belongs_to_them() -> None:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"user": rng.choice(["a", "b", None], 500), "at": START + rng.integers(0, 40, 500) * 60})
    frame["page"] = [{row} for row in range(500)]  # objects that Arrow does not know
    frame["p"] = rng.integers(0, 3, 500)
    frame.loc[7, "at"] = -1
    first = plan(sort="timestamp", partition="p", on_bad_time="drop").aggregate(
        pages=sk.reduce(lambda a, b: a | b, "page")
    )
    run = first.run(frame)
    batch = run.trace.batch
    expected = frame.sort_values("at", kind="stable")
    assert batch.timestamp_ms.tolist() == (expected["at"] * 1000).tolist()
    assert batch.partition.tolist() == expected["p"].tolist()
    assert [None if code < 0 else batch.keys[int(code)].as_py() for code in batch.key] == [
        None if pd.isna(user) else user for user in expected["user"]
    ]
    assert batch.values["page"].to_pylist() == expected["page"].tolist()


def test_sort_is_part_of_the_code_of_a_plan_and_goes_on_beside_a_store() -> None:
    steps = plan(sort="timestamp")
    assert 'sort="timestamp"' in repr(steps)
    store = sk.open_store("memory", "clicks", retention="1h")
    rows = newest_first(4)
    assert len(steps.run(rows[2:], store=store).dropped()) == 0
    assert len(steps.run(rows[:2], store=store).dropped()) == 0


def test_sort_is_refused_beside_offsets() -> None:
    with pytest.raises(InvalidArgument) as caught:
        plan(sort="timestamp", offset="o")
    want = 'sort=True for the order of offsets, or sort="timestamp" without offset='
    assert str(caught.value) == f"sort=\"timestamp\" makes an order of its own; got offset='o'; {want}"


def test_the_remark_is_about_each_partition_and_not_about_rows_without_a_time() -> None:
    at = START + np.arange(100) * 3600
    frame = pd.DataFrame({"user": "a", "at": np.where(np.arange(100) % 2, at, at[::-1]), "page": 0})
    frame["p"] = np.arange(100) % 2
    (said,) = plan(partition="p").run(frame).remarks()
    assert said.startswith("49 of 100 records came too late and were dropped, because the newest row stands first.")
    assert plan(partition="p").run(frame[frame["p"] == 1]).remarks() == []
    bad = frame.assign(at=np.where(np.arange(100) % 2, at, -1))
    assert plan(on_bad_time="drop").run(bad).remarks() == []


def test_with_offsets_the_remark_says_that_they_rule() -> None:
    frame = newest_first().assign(o=np.arange(200))
    told = 'sort="timestamp" in group_by_key, without offset=, sorts the rows by time.'
    assert plan(offset="o").run(frame).remarks()[0].endswith(told)


def test_a_bad_row_keeps_its_number_where_rows_are_sorted() -> None:
    """With sort=True an error named the row's place after the sort, where the user's own row is another one."""
    rows = pd.DataFrame({"user": ["a", "b", "c"], "at": [START, None, START], "offset": [2, 1, 0], "page": 0})
    rows["at"] = pd.to_datetime(rows["at"], unit="s", utc=True)
    rows = rows.iloc[[1, 0, 2]]
    steps = sk.group_by_key("user", timestamp="at", offset="offset", sort=True)
    sorted_plan = steps.windowed_by(sk.SessionWindows(inactivity_gap="30m", grace="0s")).count()
    with pytest.raises(InvalidData, match=r"has missing timestamps; got 1 \(row 0\); drop them"):
        sorted_plan.run(rows)


def test_long_pieces_of_names_that_come_again_are_told_as_keys_one_after_another() -> None:
    """A table of storms, one after another, as names are given again: 24% were dropped, and nothing was said."""
    names = [f"storm {n % 12}" for n in range(30)]
    rows = [(name, START + n * 5 * 86_400 + hour * 3_600 * 6) for n, name in enumerate(names) for hour in range(40)]
    (remark,) = plan().run(pd.DataFrame(rows, columns=["user", "at"]).assign(page=0)).remarks()
    assert "because the 12 keys stand one after another" in remark and 'sort="timestamp"' in remark
