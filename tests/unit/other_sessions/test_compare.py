"""Sessions of another tool beside ours: their rules are found, and what differs is what plain Python says."""

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sessionkit as sk
from tests.frames_with_rules import drawn, rules_drawn
from tests.interpreted import fewer

GAP, HOUR = "3h", pd.Timedelta("1h")


def clicks(count: int = 3_000, seed: int = 4) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "user": rng.integers(0, 40, count).astype(str),
            "at": pd.to_datetime("2026-03-20", utc=True) + pd.to_timedelta(rng.integers(0, 1_209_600, count), unit="s"),
            "campaign": rng.choice(np.array(["a", "b", None], object), count),
            "event": rng.choice(["view", "login", "logout", "pay"], count),
            "device": rng.choice(["phone", "desk"], count),
            "amount": rng.random(count),
        }
    ).sort_values("at", ignore_index=True)


def compared(rows: pd.DataFrame, **more: Any) -> Any:
    return sk.compare_sessions(rows, **{"theirs": "visit", "by": "user", "at": "at", "gap": GAP, **more})


@pytest.mark.parametrize(
    ("reason", "way", "rules"),
    [
        ("gap", 'gap="2h"', {"gap": "2h"}),
        ("gap", 'gap="4h"', {"gap": "4h"}),
        ("midnight", 'new_at="midnight"', {"new_at": "midnight"}),
        ("midnight", 'new_at="midnight", timezone="UTC"', {"new_at": "midnight", "zone": "Europe/Berlin"}),
        ("zone", 'new_at="18:30"', {"new_at": "midnight", "timezone": "Asia/Kolkata"}),
        ("value:campaign", 'new_when="campaign"', {"new_when": "campaign"}),
        ("start:event", 'starts_when=("event", "login")', {"starts_when": ("event", "login")}),
        ("end:event", 'ends_when=("event", "logout")', {"ends_when": ("event", "logout")}),
        ("length", 'max_length="5h"', {"max_length": "5h"}),
        ("rows", "max_rows=3", {"max_rows": 3}),
        ("rows", "max_rows=2", {"max_rows": 2}),
        ("key:device", 'by=["user", "device"]', {"by": ["user", "device"]}),
        ("key", "by=None", {"by": None}),
    ],
)
def test_a_rule_of_theirs_is_found(reason: str, way: str, rules: dict[str, Any]) -> None:
    rows, zone = clicks(), rules.get("zone")
    own = {name: rule for name, rule in rules.items() if name != "zone"}
    rows["visit"] = sk.sessionize(rows, **{"by": "user", "at": "at", "gap": GAP, **own})["session_id"]
    found = compared(rows, **({"timezone": zone} if zone else {}))
    table = found.table()
    assert (table["reason"].tolist(), table["way"].tolist()) == ([reason], [way])
    assert found.words()[-1 - (reason == "key:device")] == f"With {way}, none would be left."


def test_several_rules_are_found_together() -> None:
    rows = clicks()
    rows["visit"] = sk.sessionize(rows, "user", "at", "2h", new_when=["campaign"], new_at="midnight")["session_id"]
    found = compared(rows)
    assert sorted(found.reasons) == ["gap", "midnight", "value:campaign"]
    assert found.words()[-1] == 'With new_at="midnight", new_when="campaign", gap="2h", none would be left.'
    assert set(found.table()["they_join"]) == {0}


def test_a_rule_that_is_known_already_stays() -> None:
    rows = clicks()
    rows["visit"] = sk.sessionize(rows, "user", "at", "2h", new_when=["campaign", "device"])["session_id"]
    found = compared(rows, new_when="campaign")
    assert {"gap", "value:device"} <= {*found.reasons}
    assert found.words()[-1] == 'With gap="2h", new_when=["campaign", "device"], none would be left.'


def test_two_columns_that_change_are_one_argument() -> None:
    rows = clicks()
    rows["visit"] = sk.sessionize(rows, "user", "at", GAP, new_when=["campaign", "device"])["session_id"]
    assert compared(rows).words()[-1] == 'With new_when=["device", "campaign"], none would be left.'


def test_a_part_of_the_key_that_they_leave_out() -> None:
    rows = clicks()
    rows["visit"] = sk.sessionize(rows, "user", "at", GAP)["session_id"]
    found = compared(rows, by=["user", "device"])
    assert found.table()["way"].tolist() == ['by=["user"]']
    assert found.words()[-1] == 'With by=["user"], none would be left.'


def test_rows_read_as_they_stand() -> None:
    rows = clicks().sample(frac=1, random_state=2, ignore_index=True)
    cut = rows.groupby("user")["at"].diff() > 3 * HOUR
    found = compared(rows.assign(visit=cut.groupby(rows["user"]).cumsum()))
    assert found.reasons == ["order"]
    assert found.table()["way"].tolist() == [None]


def test_a_pause_of_just_the_gap() -> None:
    rows = clicks()
    rows["at"] = rows["at"].dt.floor("1h")
    cut = rows.groupby("user")["at"].diff() >= 3 * HOUR
    found = compared(rows.assign(visit=cut.groupby(rows["user"]).cumsum()))
    assert found.reasons == ["equal"]
    assert found.words()[-1] == 'With gap="2h59m59s999ms", none would be left.'


def test_rows_that_they_left_out() -> None:
    rows = clicks()
    rows["at"] = rows["at"].dt.floor("1h")
    once = rows.drop_duplicates(["user", "at"])
    rows["visit"] = sk.sessionize(once, "user", "at", GAP)["session_id"]
    rows.loc[len(rows)] = [None, rows["at"][0], "a", "view", "desk", 0.5, 7]
    lost = len(rows) - 1 - len(once)
    with pytest.warns(UserWarning, match="1 of 3,001 records has no key"):
        words = compared(rows).words()
    assert words[0].startswith("None of ")
    assert words[1:] == [
        "1 row of their sessions has no key or no time, and is in none of ours.",
        f"{lost} rows of our sessions have no value in 'visit', of which {lost} repeat the time of another row.",
    ]


def test_what_no_rule_explains_is_said_by_its_pause() -> None:
    minutes = [0, 10, 20, 20, 80, 90]
    rows = pd.DataFrame(
        {"user": "ada", "at": pd.to_datetime("2026-03-01", utc=True) + pd.to_timedelta(minutes, unit="min")}
    )
    found = compared(rows.assign(visit=[1, 2, 2, 3, 3, 3]), gap="30m")
    names = dict(zip(found.reasons, found.table()[["they_cut", "they_join"]].to_numpy().tolist(), strict=True))
    assert sum(map(sum, names.values())) == 3
    assert {"a repeated row", "a short pause"} & set(names)


def test_a_column_that_is_made_from_their_sessions_is_no_rule() -> None:
    """The start of their own sessions was proposed as `new_when`, before the rule that it comes from."""
    rows = clicks()
    found = sk.sessionize(rows, "user", "at", GAP, new_at="midnight")
    rows[["visit", "began"]] = found[["session_id", "session_start"]]
    assert compared(rows).table()["way"].tolist() == ['new_at="midnight"']
    found = sk.sessionize(rows, "user", "at", "2h", new_at="midnight")
    rows[["visit", "began"]] = found[["session_id", "session_start"]]
    said = " ".join(compared(rows).words())
    assert "changes, as it does at each of their sessions: it may be made from them, then leave it out." in said


def test_no_rule_is_found_in_chance() -> None:
    rows = clicks()
    rows["visit"] = np.random.default_rng(0).integers(0, 3, len(rows))
    found = compared(rows)
    assert set(found.reasons) <= {"a short pause", "a long pause", "a repeated row"}
    assert not any(line.startswith("With ") for line in found.words())


def differing(rows: pd.DataFrame, ours: Any) -> int:
    """In plain Python: pairs of neighbours in time that one of the two keeps together and the other does not."""
    rows, count = rows.assign(ours=ours).dropna(subset=["ours", "visit", "key"]), 0
    for _, own in rows.sort_values("at", kind="stable").groupby("key"):
        for (_, one), (_, other) in pairwise(own.iterrows()):
            count += (one["ours"] == other["ours"]) != (one["visit"] == other["visit"])
    return count


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_differs_is_what_plain_python_says() -> None:
    """And what is said to be left is what the arguments that are named leave."""
    frames = fewer(400)
    rows = drawn(frames, seed=12)
    for number in range(frames):
        own = rows[rows["frame"] == number].reset_index(drop=True)
        if not len(own):
            continue
        gap, theirs = ("15m", rules_drawn(number))
        own["visit"] = sk.sessionize(own, "key", "at", **{**theirs})["session_id"]
        if own["visit"].isna().all():
            continue
        ours = sk.sessionize(own, "key", "at", gap)["session_id"]
        kind = (lambda frame: frame, pl.from_pandas, pa.Table.from_pandas)[number % 3]
        found = sk.compare_sessions(kind(own), theirs="visit", by="key", at="at", gap=gap)
        table = found.table() if number % 3 == 0 else found.table().to_pandas()
        assert table[["they_cut", "they_join"]].to_numpy(int).sum() == differing(own, ours)
        if len(table):
            example = found.example(table["reason"][0])
            assert len(example if number % 3 == 0 else example.to_pandas()) >= 2


def test_an_example_and_the_rows_tell_why() -> None:
    rows = clicks()
    rows["visit"] = sk.sessionize(rows, "user", "at", "2h", new_when="campaign")["session_id"]
    found = compared(rows, ours="mine")
    for reason in found.reasons:
        example = found.example(reason)
        assert example["user"].nunique() == 1 and 2 <= len(example) <= 12 and reason in set(example["difference"])
    told = found.rows()
    assert told.columns.tolist() == [*rows.columns, "mine", "difference"]
    assert told["difference"].value_counts().to_dict() == {
        row["reason"]: row["they_cut"] + row["they_join"] for _, row in found.table().iterrows()
    }
    assert len(found.figure().data) == 3
    with pytest.raises(sk.errors.InvalidArgument, match="reason must be a known choice"):
        found.example("nothing")


def test_equal_sessions_have_no_example() -> None:
    rows = clicks(50)
    found = compared(rows.assign(visit=sk.sessionize(rows, "user", "at", GAP)["session_id"]))
    pairs, sessions = 50 - rows["user"].nunique(), sk.sessionize(rows, "user", "at", GAP)["session_id"].nunique()
    said = f"None of {pairs} pairs of rows that follow each other differs: {sessions} sessions of both."
    assert found.words() == [said]
    assert len(found.table()) == 0 and found.figure().layout.title.text.count("None of 17 pairs") == 1
    with pytest.raises(sk.errors.InvalidArgument, match="there is no example"):
        found.example()


def test_a_file_and_no_rows(tmp_path: Any) -> None:
    rows = clicks(100)
    rows["visit"] = sk.sessionize(rows, "user", "at", "1h")["session_id"]
    rows.to_parquet(tmp_path / "visits.parquet")
    assert compared(tmp_path / "visits.parquet").words() == compared(rows).words()
    assert compared(rows[:0]).words()[0].endswith("differs: 0 sessions of both.")


@pytest.mark.parametrize(
    ("more", "error", "message"),
    [
        ({"theirs": "nothing"}, sk.errors.MissingColumn, "there is no column of their sessions; got 'nothing'; one of"),
        ({"grace": "5m"}, sk.errors.NotBuilt, "without a grace"),
        ({"ids": "key"}, sk.errors.InvalidArgument, "ids has no use in compare_sessions"),
        ({"rule": 3}, sk.errors.InvalidArgument, "sessionize cannot be called like this"),
        ({"gap": "pause"}, sk.errors.InvalidArgument, "gap is no length and no column"),
        ({"ours": "event"}, sk.errors.InvalidArgument, "the data has a column of this name already"),
    ],
)
def test_what_is_refused(more: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        compared(clicks(50).assign(visit=1), **more)


def test_their_sessions_must_be_values() -> None:
    with pytest.raises(sk.errors.UnsupportedData, match="column 'visit' has no sessions"):
        compared(clicks(3).assign(visit=None))
