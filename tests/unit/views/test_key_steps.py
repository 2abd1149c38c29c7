"""Labels of records, and the windows of a key as their steps."""

import copy
import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.errors import InvalidArgument, MissingColumn, NotKept, UnknownRecord, UnsupportedData
from tests.kinds import EACH_KIND, each_kind

START = sk.group_by_key("user", timestamp="at", unit="s", label="page")
SESSIONS = sk.SessionWindows(inactivity_gap="2m", grace="30s")
VISITS = START.windowed_by(SESSIONS).count()
NINE = 1_704_099_600  # 2024-01-01 09:00 UTC
CLICKS = [
    *(("ada", at, page) for at, page in ((0, "home"), (8, "search"), (49, "cart"), (57, "pay"))),
    *(("ada", at, "search") for at in (1000, 1003, 1006)),
    ("ada", 1100, None),
    ("ada", 3, "late"),
]


def frame(rows: Any, start: int = NINE) -> pd.DataFrame:
    users, times, pages = zip(*rows, strict=True)
    return pd.DataFrame({"user": users, "at": [start + at for at in times], "page": pages})


def lines(run: Any, key: Any = "ada") -> list[str]:
    return str(run.steps(key)).splitlines()


def test_a_session_reads_as_its_steps() -> None:
    assert lines(VISITS.run(frame(CLICKS))) == [
        "Key ada: 8 steps in 2 sessions on 2024-01-01.",
        "09:00:00 home · search · 41 s · cart · pay",
        "09:16:40 search ×3 · 1 min 34 s · –",
        "Times are in UTC.",
    ]


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_the_table_has_a_row_for_each_step_in_the_plans_kind_of_frame(kind: Any) -> None:
    table = VISITS.run(frame(CLICKS), frame=kind).steps("ada").table()
    assert isinstance(table, {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.Table}[kind])
    table = table if kind == "pandas" else table.to_pandas()
    names = ["user", "window_start", "position", "timestamp", "label", "pause_ms", "offset", "partition"]
    assert [*table.columns] == names
    assert table["position"].tolist() == [1, 2, 3, 4, 1, 2, 3, 4]
    assert table["label"].tolist()[:4] == ["home", "search", "cart", "pay"]
    assert table["pause_ms"].isna().tolist() == [True, False, False, False] * 2
    assert table["offset"].tolist() == list(range(8))  # what was dropped is no step


@pytest.mark.parametrize("kind", [*EACH_KIND, "trailing"])
@pytest.mark.parametrize("seed", range(4))
def test_a_record_is_a_step_of_each_window_that_holds_it(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    windows = each_kind(1000).get(kind, sk.SlidingWindows(time_difference="10s", grace="5s", trailing_only=True))
    plan = sk.group_by_key("user", timestamp="at", unit="s", label="page", partition="p").windowed_by(windows)
    plan = plan.emit("on_window_close") if kind == "trailing" else plan
    data = frame((rng.choice(["ada", "bob"]), int(i + rng.integers(-12, 12) + 20), f"p{i}") for i in range(120))
    data["p"] = rng.integers(0, 2, 120)
    run = plan.aggregate(pages=sk.collect("page")).run(data)
    table = run.table()
    for key in ("ada", "bob"):
        mine, steps = table[table["user"] == key], run.steps(key).table()
        held = {(row.partition, row.window_start): sorted(row.pages) for row in mine.itertuples()}
        told = steps.groupby(["partition", "window_start"])["label"].apply(sorted).to_dict()
        assert told == held
        for _, each in steps.groupby(["partition", "window_start"]):
            assert each["position"].tolist() == list(range(1, len(each) + 1))
            assert each["timestamp"].is_monotonic_increasing


def test_only_long_pauses_are_said() -> None:
    beats = [("m", 30 * i, "beat") for i in (*range(10), *range(11, 20))]
    steps = START.windowed_by(SESSIONS).count().run(frame(beats)).steps("m")
    assert str(steps).splitlines()[1] == "09:00 beat ×10 · 1 min · beat ×9"


def test_pauses_of_records_of_one_moment_are_not_said() -> None:
    run = VISITS.run(frame([("m", 0, "a"), ("m", 0, "b"), ("m", 0, "a"), ("m", 5, "c")]))
    assert lines(run, "m")[1] == "09:00 a · b · a · 5 s · c"


def test_labels_that_are_cut_alike_are_told_apart() -> None:
    long = [f"https://shop.example/{product}/more-than-can-be-shown-of-it" for product in "ab"]
    run = VISITS.run(frame([("m", 0, long[0]), ("m", 1, long[1]), ("m", 2, ""), ("m", 3, None), ("m", 4, None)]))
    cut = lines(run, "m")[1].split(" · ")[0].removeprefix("09:00 ")
    assert len(cut) == 24 and lines(run, "m")[1] == f"09:00 {cut} · {cut} · (empty) · – ×2"


def test_a_long_session_and_many_sessions_are_cut() -> None:
    busy = frame([("m", i, f"p{i}") for i in range(500)])
    assert lines(VISITS.run(busy), "m")[1].endswith("p19 · … 480 more steps")
    many = frame([("m", 1_000 * i, "p") for i in range(50)])
    told = lines(VISITS.run(many), "m")
    assert len(told) == 43 and told[41] == "… and 10 more sessions; table() has all."


def test_years_are_said_and_data_that_counts_from_zero_has_no_day() -> None:
    history = frame([("m", 0, "fix"), ("m", 86_400 * 700, "add")])
    assert lines(VISITS.run(history), "m")[1:3] == ["2024-01-01 09:00 fix", "2025-12-01 09:00 add"]
    assert lines(VISITS.run(frame([("m", 3, "a"), ("m", 9, "b")], 0)), "m") == [
        "Key m: 2 steps in 1 session.",
        "3 s a · b",
    ]


def test_the_night_in_which_clocks_change_keeps_the_order_of_times() -> None:
    plan = sk.group_by_key("user", timestamp="at", unit="s", label="page", timezone="Europe/Berlin")
    night = frame([("m", 0, "a"), ("m", 3600, "b")], 1_729_987_200)  # 02:00 twice
    told = lines(plan.windowed_by(SESSIONS).count().run(night), "m")
    assert [each[-1] for each in told[1:3]] == ["a", "b"] and told[1][:-1] != told[2][:-1]


@pytest.mark.parametrize("windows", EACH_KIND.values(), ids=EACH_KIND)
def test_steps_without_a_label_are_refused(windows: Any) -> None:
    plan = sk.group_by_key("user", timestamp="at", unit="s").windowed_by(windows).count()
    with pytest.raises(InvalidArgument, match=r'group_by_key\(.*label="page"'):
        plan.run(frame(CLICKS)).steps("ada")


def test_steps_of_what_is_not_there_are_refused() -> None:
    run = VISITS.run(frame(CLICKS))
    with pytest.raises(UnknownRecord):
        run.steps("zed")
    with pytest.raises(NotKept):
        VISITS.run(frame(CLICKS), trace=False).steps("ada")
    with pytest.raises(MissingColumn, match="page"):
        VISITS.run(frame(CLICKS).drop(columns="page"))
    with pytest.raises(InvalidArgument, match="label must be text"):
        sk.group_by_key("user", timestamp="at", label=3)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="label= belongs to sk"):
        VISITS.run(frame(CLICKS), label="page")  # type: ignore[call-overload]


def test_a_key_of_a_run_of_some_keys_and_a_key_without_sessions_have_steps() -> None:
    data = frame([*CLICKS, ("bob", 2, "home")])
    assert str(VISITS.run(data, keys=["ada"]).steps("ada")) == str(VISITS.run(data).steps("ada"))
    assert lines(VISITS.run(data), "bob") == ["Key bob: 0 steps in 0 sessions.", "Times are in UTC."]
    assert not len(VISITS.run(data).steps("bob").table())


@pytest.mark.parametrize("windows", EACH_KIND.values(), ids=EACH_KIND)
def test_a_label_changes_no_result(windows: Any) -> None:
    """Sliding windows drop a record without a value; a label is none."""
    data = frame(CLICKS, 0).assign(value=[1, None, 3, None, 5, 6, None, 8, 9])
    named = {"count": sk.count(), "sum": sk.sum("value")}
    with_label, without = (
        sk.group_by_key("user", timestamp="at", unit="s", **label).windowed_by(windows).aggregate(**named).run(data)
        for label in ({"label": "page"}, {})
    )
    pd.testing.assert_frame_equal(with_label.table(), without.table())
    pd.testing.assert_frame_equal(with_label.changelog(), without.changelog())
    assert with_label.metrics() == without.metrics()


def test_a_plan_with_a_label_is_a_value_and_exports_as_one_without() -> None:
    without = sk.group_by_key("user", timestamp="at", unit="s").windowed_by(SESSIONS).count()
    assert eval(repr(VISITS), {"sk": sk}) == VISITS  # noqa: S307
    assert VISITS == pickle.loads(pickle.dumps(VISITS)) == copy.deepcopy(VISITS)
    assert without != VISITS and 'label="page"' in repr(VISITS)
    for export in ("to_java", "to_ksql", "to_flink_sql", "to_spark"):
        ours, theirs = (getattr(plan, export)() for plan in (VISITS, without))
        assert ours.code.replace(', label="page"', "") == theirs.code


def test_a_store_and_deployments_take_a_plan_with_a_label() -> None:
    store, data = sk.open_store("memory", "clicks"), frame(CLICKS)
    VISITS.run(data.iloc[:2], store=store)
    assert lines(VISITS.run(data.iloc[2:], store=store))[1] == "09:00:00 cart · pay"
    assert "home" in lines(VISITS.run(data, deployment=sk.Deployment()))[1]


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        ([404, 200], "404 · 200"),
        (pd.Categorical(["a", None]), "a · –"),
        ([1.5, None], "1.5 · –"),
        ([True, False], "True · False"),
        (pd.to_datetime(["2024-01-01", None]), "2024-01-01 00:00:00 · –"),
        ([b"\xff", None], "b'\\xff' · –"),
    ],
    ids=["integers", "categories", "floats", "flags", "times", "bytes"],
)
def test_labels_of_every_type(labels: Any, told: str) -> None:
    data = frame([("m", 0, ""), ("m", 1, "")]).assign(page=labels)
    run = VISITS.run(data)
    assert lines(run, "m")[1] == f"09:00 {told}"
    assert len(run.steps("m").table()) == 2


def test_labels_of_several_types_are_refused() -> None:
    with pytest.raises(UnsupportedData, match="column 'page' cannot be read"):
        VISITS.run(frame([("m", 0, "a"), ("m", 1, {"b"})]))


def test_a_key_column_called_label_keeps_its_values() -> None:
    data = frame([("m", 0, "a")]).rename(columns={"user": "label"})
    plan = sk.group_by_key("label", timestamp="at", unit="s", label="page").windowed_by(SESSIONS).count()
    table = plan.run(data).steps("m").table()
    assert table["key_label"].tolist() == ["m"] and table["label"].tolist() == ["a"]


def test_explanations_and_hovers_name_a_record_by_its_label() -> None:
    run = VISITS.run(frame(CLICKS))
    assert str(run.explain(offset=2)).startswith("Record 2 (“cart”, key ada), event time")
    assert str(run.explain(offset=7)).startswith("Record 7 (key ada), event time")  # its label is missing
    for windows in EACH_KIND.values():
        done = START.windowed_by(windows).count().run(frame(CLICKS))
        assert "“cart”" in str(done.explain(offset=2))
        for figure in (done.plane("ada"), done.lanes()):
            assert any("“cart”" in text for trace in figure.data for text in trace.hovertext or ())


def texts(figure: Any) -> list[str]:
    hovers = [text for trace in figure.data for text in (*(trace.hovertext or ()), *(trace.text or ()))]
    return [*(note.text for note in figure.layout.annotations), *hovers]


def test_labels_are_drawn_where_there_is_room_and_not_without_them() -> None:
    run = VISITS.run(frame(CLICKS))
    notes = [note.text for note in run.plane("ada").layout.annotations]
    assert {"home", "search", "cart", "pay"} <= {*notes} and notes.count("search") == 4
    lanes = START.windowed_by(sk.TimeWindows(size="5m", grace="30s")).count().run(frame(CLICKS)).lanes(width=1000)
    assert "home · search · cart · pay" in texts(lanes)
    for figure in (run.plane("ada", label=False), run.lanes(label=False)):
        assert not any(page in text for text in texts(figure) for page in ("cart", "search"))


def test_a_plane_of_many_records_names_none() -> None:
    run = VISITS.run(frame([("m", i, "p") for i in range(60)]))
    assert "p" not in [note.text for note in run.plane("m").layout.annotations]


def test_a_page_has_labels_unless_it_hides_the_keys(tmp_path: Any) -> None:
    run = VISITS.run(frame(CLICKS))
    shown, hidden, asked = (
        run.write_html(tmp_path / f"{n}.html", **options).read_text("utf-8")
        for n, options in enumerate(({}, {"hide_keys": True}, {"label": False}))
    )
    cart = "\\u201ccart\\u201d"  # as JSON has it
    assert cart in shown and "keys, labels and times of 9 records" in shown
    assert "cart" not in hidden and "carries the times of" in hidden
    assert cart not in asked and "keys and times of" in asked


def test_boards_leave_labels_out_if_they_are_asked_to() -> None:
    pytest.importorskip("anywidget")
    board = sk.tune(VISITS, frame(CLICKS), label=False)
    assert board.plan.source.label is None and "“cart”" not in str(board.run.explain(offset=2))
    assert "“cart”" in str(sk.tune(VISITS, frame(CLICKS)).run.explain(offset=2))
    assert "cart" not in str(sk.play(VISITS.run(frame(CLICKS)), "ada", label=False).figure().to_json())
