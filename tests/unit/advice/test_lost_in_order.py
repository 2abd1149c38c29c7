"""Why many records come too late: said where a cause is found, by whatever shows the records, and nowhere else."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sessionkit as sk
from sessionkit.base.text import escape_html
from sessionkit.cli.commands import main
from tests.shapes import CAUSES, HONEST, SHAPES, files, plan_of_shape

MIXED = ("sources_mixed", "servers_mixed")
ODD_CLOCKS = [name for name in CAUSES if "ahead" in name or "behind" in name]
QUIET = sorted({*SHAPES} - {*CAUSES})


def as_file(name: str, folder: Path) -> str:
    path = folder / f"{name}.csv"
    SHAPES[name]().to_csv(path, index=False)
    return str(path)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """All that a command says, which must not fail."""
    assert main([*arguments]) == 0
    shown = capsys.readouterr()
    return shown.out + shown.err


@pytest.mark.parametrize("trace", [True, False])
@pytest.mark.parametrize("name", CAUSES)
def test_a_run_says_why_it_lost_so_many(name: str, trace: bool) -> None:
    run = plan_of_shape().run(SHAPES[name](), trace=trace)
    (said,) = run.remarks()
    assert CAUSES[name] in said
    assert said in repr(run) and escape_html(said) in run._repr_html_()
    assert f"{len(SHAPES[name]()):,} records" in said
    assert not trace or sk.audit(plan_of_shape(), SHAPES[name](), sk.Deployment()).words()[-1] == said


@pytest.mark.thorough
@pytest.mark.parametrize("grace", ["0s", "10m"])
@pytest.mark.parametrize("name", QUIET)
def test_no_cause_is_claimed_of_honest_records(name: str, grace: str) -> None:
    assert plan_of_shape(grace).run(SHAPES[name]()).remarks() == []
    assert sk.suggest_grace(plan_of_shape(), SHAPES[name]()).remarks == ()


def test_the_honest_shapes_lose_records() -> None:
    for name in HONEST:
        assert plan_of_shape().run(SHAPES[name]()).metrics()["dropped-late"] > 100


@pytest.mark.thorough
@pytest.mark.parametrize("name", CAUSES)
def test_a_suggested_grace_comes_with_the_cause_and_the_grace_without_it(name: str) -> None:
    plan, data = plan_of_shape(), SHAPES[name]()
    found = sk.suggest_grace(plan, data)
    assert CAUSES[name] in found.remarks[0] and "are more than 30 min behind stream time" in found.remarks[0]
    assert found.words()[-len(found.remarks) :] == list(found.remarks)
    if name in MIXED:
        assert len(found.remarks) == 1
        assert sk.suggest_grace(plan_of_shape(partition="source"), data).grace_ms == 0
        return
    assert "a grace of 0 s is enough" in found.remarks[1]
    if name in ODD_CLOCKS:
        ahead = dict.fromkeys(("one_clock_ahead", "rare_clock_ahead"), data["user"] == "device 4")
        ahead["one_record_ahead"] = data.index == 1_000
        ahead["few_records_behind"] = data["at"] < "1971"
        days = data["at"].diff().dt.total_seconds() > 80_000
        assert sk.suggest_grace(plan, data[~ahead.get(name, days)]).grace_ms == 0
    else:
        assert sk.suggest_grace(plan_of_shape(sort="timestamp"), data).grace_ms == 0


def test_the_record_that_is_ahead_is_named() -> None:
    (said,) = plan_of_shape().run(SHAPES["one_record_ahead"]()).remarks()
    assert said == (
        "259 of 3,768 records came too late and were dropped, because record 1000 (key user 012) lies 1 d ahead of "
        "those around it, at 2024-07-05 20:15:20.035 (UTC). Leave it out, or correct its time."
    )
    (said,) = plan_of_shape().run(SHAPES["few_records_ahead"]()).remarks()
    assert "because 4 records lie far ahead of those around them: record 2725 (key user 007) by 4,000 d, " in said
    assert said.endswith(" by 2 d, and 1 more. Leave them out, or correct their times.")


def test_a_stretch_in_no_order_is_named_by_its_first_record() -> None:
    data = SHAPES["one_part_shuffled"]()
    last, first, shuffled = (data[row : row + 3_000] for row in (0, 3_000, 6_000))
    for place, parts in enumerate([[shuffled, first, last], [first, shuffled, last], [last, first, shuffled]]):
        (said,) = plan_of_shape().run(pd.concat(parts)).remarks()
        name = f"record {3_000 * place} (key {shuffled['user'].iloc[0]})"
        assert f"because a stretch of rows in no order of time begins at {name}. sort=" in said


@pytest.mark.parametrize("inside", ["in order", "newest first", "shuffled", "sorted by key"])
def test_files_in_order_of_their_names_are_no_sources_and_no_clocks(inside: str) -> None:
    """No cause was found, or that 59 of 60 keys are sources that lie behind the others."""
    for count in (5, 40):
        (said,) = plan_of_shape().run(files(count, inside)).remarks()
        assert any(each in said for each in ("in no order of time", "newest row stands first", "histories stand one"))
        assert 'sort="timestamp" in group_by_key sorts the rows' in said


@pytest.mark.parametrize("gap", ["30m", "1d", "5d"])
def test_many_histories_with_the_newest_first_are_told_under_any_gap(gap: str) -> None:
    """Reviews page by page: less than half of them are behind by a day, and the report proposed 1,460 days."""
    start = pd.Timestamp("2020-01-01", tz="UTC")
    at = [start + pd.Timedelta(hours=5 * (40 - n) + 11 * page) for page in range(150) for n in range(40)]
    data = pd.DataFrame({"user": [f"u{n % 2_999}" for n in range(6_000)], "at": at})
    (said,) = plan_of_shape().with_windows(inactivity_gap=gap, grace="0s").run(data).remarks()[:1]
    assert "because the newest row stands first in each of several stretches" in said


def with_clocks_never_set(rows: Any) -> pd.DataFrame:
    """Two weeks in order, of which these rows are of 1970."""
    data = SHAPES["access_log"]()
    data.loc[rows, "at"] = pd.to_datetime(1_000 * np.arange(len(rows)), unit="ms", utc=True)
    return data


def test_records_of_clocks_never_set_are_named_where_none_is_dropped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = with_clocks_never_set(range(43))
    told = f"43 records lie some 19,905 d before all others: record 0 (key {data['user'][0]}) and 42 more. Leave them "
    assert plan_of_shape().run(data).metrics()["dropped-late"] == 0
    assert plan_of_shape().run(data).remarks()[0].startswith(told)
    assert sk.tune(plan_of_shape(), data).words["refused"][0].startswith(told)
    data.to_csv(tmp_path / "first.csv", index=False)
    assert told in printed(capsys, "info", str(tmp_path / "first.csv"))
    assert repr(sk.suggest_gap(plan_of_shape(), data)) == repr(sk.suggest_gap(plan_of_shape(), data[43:]))


def test_a_history_that_begins_slowly_has_no_such_record() -> None:
    """One project's first records, years before the others and in order, and three clocks that were never set."""
    data = SHAPES["access_log"]()
    for row in range(20):
        data.loc[row, "at"] -= pd.Timedelta(days=3_000 // (row + 1))
    assert plan_of_shape().run(data).remarks() == []
    (said,) = plan_of_shape().run(with_clocks_never_set([70, 80, 5_000])).remarks()
    assert said.startswith("3 of 6,000 records came too late and were dropped, because 3 records lie some 19,905 d bef")


@pytest.mark.parametrize("name", QUIET)
def test_no_cause_is_claimed_of_few_honest_records_or_several_partitions(name: str) -> None:
    data = SHAPES[name]()
    for rows in (10, 100, 1_000):
        assert plan_of_shape().run(data.head(rows)).remarks() == []
    tumbling = plan_of_shape(partition="source").windowed_by(sk.TimeWindows(size="10m", grace=0))
    assert tumbling.run(data.assign(source=data.index % 3)).remarks() == []


def test_of_several_partitions_the_one_that_lost_most_is_looked_at() -> None:
    parts = [SHAPES["late_now_and_then"]().assign(source=0), SHAPES["one_record_ahead"]().assign(source=7)]
    both = pd.concat(parts, ignore_index=True)
    (said,) = plan_of_shape(partition="source").run(both).remarks()
    assert "369 of 7,513 records" in said and "record 1000 (partition 7, key user 012) lies 1 d ahead" in said


def test_of_a_record_ahead_among_late_ones_it_is_said_that_there_are_others() -> None:
    data = SHAPES["late_now_and_then"]()
    data.loc[2_000, "at"] += pd.Timedelta(days=1)
    (said,) = plan_of_shape().run(data).remarks()
    assert "were dropped, many because record 2000 (key " in said and "(UTC). Leave it out" in said


@pytest.mark.parametrize(
    "years", [(2018, 2019, 2017, 2020), (*range(2010, 2020), 2009), (2010, *range(2012, 2020), 2011)]
)
def test_a_year_in_another_place_is_told(years: tuple[int, ...]) -> None:
    """Files of a year each, one behind the other: a tenth or a quarter was dropped, and no cause was named."""
    rng = np.random.default_rng(1)
    at = [np.datetime64(f"{year}-01-01", "s") + np.sort(rng.integers(0, 365 * 86_400, 400)) for year in years]
    user = rng.integers(0, 40, 400 * len(years)).astype(str)
    run = plan_of_shape(timezone="UTC").run(pd.DataFrame({"user": user, "at": np.concatenate(at)}))
    (said,) = run.remarks()
    assert len(run.dropped()) == 400 and f"400 of {400 * len(years):,} records came too late" in said
    assert "histories stand one behind the other: the rows go back in time once, first by " in said


def test_half_of_the_devices_that_were_offline_for_a_day_are_late() -> None:
    rng = np.random.default_rng(1)
    user, at = rng.integers(0, 40, 2_000), np.sort(rng.integers(0, 10 * 86_400, 2_000))
    arrival = np.where((user < 20) & (at // 86_400 == 2), 6 * 86_400, at)
    sent = np.argsort(arrival, kind="stable")
    plan = plan_of_shape(timezone="UTC", unit="s")
    run = plan.run(pd.DataFrame({"user": user[sent].astype(str), "at": at[sent] + 1_700_000_000}))
    assert len(run.dropped()) > 50 and run.remarks() == []


def test_few_drops_and_short_histories_need_no_cause() -> None:
    first = SHAPES["newest_first"]().head(9)
    assert plan_of_shape().run(first).remarks() == []
    assert plan_of_shape().run(SHAPES["sorted_by_key"](), keys=["user 001"]).remarks() == []
    assert plan_of_shape("400d").run(SHAPES["sorted_by_key"]()).remarks() == []


@pytest.mark.parametrize(
    "windows", [sk.TimeWindows(size="40m", grace=0), sk.SlidingWindows(time_difference="1h", grace=0)]
)
@pytest.mark.parametrize("name", CAUSES)
def test_any_kind_of_windows(windows: sk.TimeWindows | sk.SlidingWindows, name: str) -> None:
    run = plan_of_shape().windowed_by(windows).run(SHAPES[name]())
    assert CAUSES[name] in run.remarks()[0]


def test_records_that_a_store_has_read_already_are_told() -> None:
    data, store = SHAPES["access_log"](), sk.open_store("memory", "visits")
    assert plan_of_shape().run(data, store=store).remarks() == []
    again = plan_of_shape().run(data, store=store)
    (said,) = again.remarks()
    dropped, reached = again.metrics()["dropped-late"], data["at"].max().strftime("%Y-%m-%d %H:%M:%S")
    assert said == (
        f"{dropped:,} of 6,000 records came too late and were dropped, because the store had come to {reached} (UTC) "
        "before this run. If it has read these records already, offset= in group_by_key names the column by which it "
        "skips them."
    )


def test_a_day_that_goes_on_over_a_store_needs_no_such_word() -> None:
    data, store = SHAPES["late_now_and_then"](), sk.open_store("memory", "visits")
    half = len(data) // 2
    plan_of_shape().run(data[:half], store=store)
    assert plan_of_shape().run(data[half:], store=store).remarks() == []


def test_records_without_a_key_or_a_time_are_told() -> None:
    data = SHAPES["access_log"]()
    data.loc[:99, "user"], data.loc[50:51, "at"] = None, pd.NaT
    keyless = "98 of 6,000 records have no key ('user') and are in no window."
    timeless = "2 of 6,000 records have no usable time ('at') and are in no window."
    plan = plan_of_shape(on_bad_time="drop")
    assert plan.run(data).remarks() == [keyless, timeless]
    assert sk.suggest_gap(plan, data).words()[-2:] == sk.suggest_grace(plan, data).words()[-2:] == [keyless, timeless]
    with pytest.warns(UserWarning) as warned:
        sk.sessionize(data, by="user", at="at", gap="30m", on_bad_time="drop")
    assert [str(each.message) for each in warned] == [keyless, timeless]


def test_records_without_a_value_are_told_of_sliding_windows_alone() -> None:
    """Sliding windows drop them, as in Kafka, and the only remark named records without a key."""
    data = SHAPES["access_log"]().astype({"amount": "Float64"})
    data.loc[:99, "amount"], data.loc[50:149, "user"] = None, None
    keyless = "100 of 6,000 records have no key ('user') and are in no window."
    valueless = "50 of 6,000 records have no value ('amount') and are in no window."
    sliding = plan_of_shape().windowed_by(sk.SlidingWindows(time_difference="1m", grace="0s"))
    with_amount = sliding.aggregate(n=sk.count(), most=sk.max("amount"))
    assert with_amount.run(data).remarks() == [keyless, valueless]
    assert with_amount.run(data, deployment=sk.Deployment()).remarks() == [keyless, valueless]
    assert with_amount.run(data, keys=[data["user"].iloc[-1]]).remarks() == [keyless, valueless]
    assert sliding.run(data).remarks() == [keyless]
    assert plan_of_shape().aggregate(most=sk.max("amount")).run(data).remarks() == [keyless]


def test_sessionize_with_a_grace_says_why_so_many_rows_are_late() -> None:
    with pytest.warns(UserWarning, match=r"stand one after another.* Without a grace any order of the rows will do\.$"):
        sk.sessionize(SHAPES["sorted_by_key"](), by="user", at="at", gap="30m", grace="5m")
    with pytest.warns(UserWarning, match=r"seem to be mixed .* partition= names the column"):
        sk.sessionize(SHAPES["servers_mixed"](), by="user", at="at", gap="30m", grace="5m")


# ---- the board and the command line


@pytest.mark.parametrize("name", CAUSES)
def test_the_board_says_it_above_the_picture(name: str) -> None:
    board = sk.tune(plan_of_shape(), SHAPES[name](), grace=("0s", "30000d"))
    (said,) = board.words["refused"]
    assert CAUSES[name] in said and said in repr(board)
    board.set(grace="30000d")
    if name == "few_records_behind":  # none is dropped now
        assert (
            "lie some 19,905 d before" in repr(board) and "pictures stretch back to there." in board.words["refused"][0]
        )
    else:
        assert board.words["refused"] == [] and CAUSES[name] not in repr(board)


@pytest.mark.thorough
@pytest.mark.parametrize("name", CAUSES)
def test_info_says_it_and_proposes_to_sort(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = printed(capsys, "info", as_file(name, tmp_path))
    sorts = name not in (*MIXED, *ODD_CLOCKS, "sent_again")
    assert CAUSES[name] in shown and "behind stream time, because " in shown
    assert (" --sort\n" in shown) == sorts
    assert "group_by_key" not in shown


@pytest.mark.parametrize("name", QUIET)
def test_info_claims_nothing_of_honest_records(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = printed(capsys, "info", as_file(name, tmp_path))
    assert "because" not in shown and "--sort" not in shown


@pytest.mark.thorough
@pytest.mark.parametrize("name", CAUSES)
def test_report_and_suggest_say_it(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, columns = as_file(name, tmp_path), ("--key", "user", "--timestamp", "at")
    shown = printed(capsys, "suggest", file, *columns, "--gap", "30m")
    assert CAUSES[name] in shown and "group_by_key" not in shown
    shown = printed(capsys, "report", file, *columns, "--gap", "30m", "--out", str(tmp_path / "out"))
    assert CAUSES[name] in shown and "group_by_key" not in shown
    assert ("a grace of 0 s is enough" in shown) == (name not in MIXED)
    assert CAUSES[name] in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_the_ways_that_are_proposed_are_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns = ("--key", "user", "--timestamp", "at", "--gap", "30m", "--out", str(tmp_path / "out"))
    for name, way in (("sorted_by_key", ["--sort"]), ("sources_mixed", ["--partition", "source"])):
        shown = printed(capsys, "report", as_file(name, tmp_path), *columns, *way)
        assert "The grace is 0 s: with it no record comes too late." in shown and "because" not in shown


@pytest.mark.parametrize("order", ["nights", "again"])
def test_earlier_rows_behind_later_ones_are_told(order: str) -> None:
    """Days of service that end at 2 in the night, and a log that begins anew twice: nothing was said of the order."""
    rng = np.random.default_rng(3)
    minutes = np.sort(rng.integers(0, 60 * 1_440, 9_000))
    if order == "nights":  # rows after midnight bear the day on which the service began
        night = rng.random(60) < 0.5
        moved = minutes - 1_440 * ((minutes % 1_440 < 60) & night[minutes // 1_440])
        minutes = moved[moved >= 0]
    else:
        minutes = np.concatenate([minutes[:6_000], minutes[4_500:6_000], minutes[5_100:]])
    frame = pd.DataFrame(
        {"user": rng.choice(list("abcdefgh"), len(minutes)), "at": 1_767_225_600_000 + minutes * 60_000}
    )
    plan = sk.group_by_key("user", timestamp="at", unit="ms")
    run = plan.windowed_by(sk.SessionWindows(inactivity_gap="30m", grace="0s")).count().run(frame)
    (said,) = [each for each in run.remarks() if "came too late" in each]
    assert 'sort="timestamp" in group_by_key' in said
    assert "earlier rows stand behind later ones in" in said or order == "again"
