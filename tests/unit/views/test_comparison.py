"""Two runs beside each other: what became of each record and window, in counts that add up."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.errors import InvalidArgument
from sessionkit.views.comparison.comparison import are_equal, equal_results
from sessionkit.views.comparison.groups import CHANGES
from tests.interpreted import fewer
from tests.kinds import EACH_KIND, group_in_ms
from tests.property.streams import draw


def plan(gap: int = 5, grace: int = 0) -> sk.Plan:
    windows = sk.SessionWindows(inactivity_gap_ms=gap, grace_ms=grace)
    return group_in_ms("key").windowed_by(windows).aggregate(n=sk.count(), s=sk.sum("v"))


def data(*rows: tuple[str, int]) -> pd.DataFrame:
    keys, at = zip(*rows, strict=True)
    return pd.DataFrame({"key": list(keys), "at": list(at), "v": range(len(keys))})


def what(before: Any, after: Any) -> dict[str, int]:
    return {name: count for name, count in before.compare(after).counts().items() if count and name in CHANGES}


def test_each_change_by_hand() -> None:
    one = data(("a", 0), ("a", 8), ("b", 3), ("c", 0), ("c", 4))
    small, wide = plan(5, 50).run(one), plan(9, 50).run(one)
    assert what(small, wide) == {"same": 2, "joined": 1}
    assert what(wide, small) == {"same": 2, "split": 1}
    late = data(("a", 0), ("b", 40), ("a", 2), ("a", 20))
    strict, patient = plan(5, 0).run(late), plan(5, 60).run(late)
    assert what(strict, patient) == {"same": 1, "changed": 1, "gained": 1}
    assert what(patient, strict) == {"same": 1, "changed": 1, "lost": 1}


def test_a_group_that_is_several_on_both_sides() -> None:
    """Before [0, 4] [10, 14]; after the late 7 is kept and 0 is not: no windows do that, so it is told by records."""
    rows = data(("a", 0), ("a", 4), ("a", 10), ("a", 14), ("b", 30), ("a", 7), ("a", 19))
    before, after = plan(6, 0).run(rows), plan(4, 40).run(rows)
    counts = before.compare(after).counts()
    assert counts["regrouped"] + counts["split"] + counts["changed"] >= 1


def test_records_that_one_run_drops() -> None:
    rows = data(("a", 0), ("b", 40), ("a", 2), ("a", 20))
    found = plan(5, 0).run(rows).compare(plan(5, 60).run(rows))
    assert found.records().to_dict("list") == {
        "what": ["gained", "gained"], "partition": [0, 0], "offset": [2, 3], "key": ["a", "a"], "timestamp_ms": [2, 20],
        "reason": ["late", "late"],
    }  # fmt: skip
    assert "2 records gained, 0 lost" in repr(found)


def test_the_table_has_bounds_before_and_after() -> None:
    rows = data(("a", 0), ("a", 8))
    (row,) = plan(5).run(rows).compare(plan(9).run(rows)).table().to_dict("records")
    assert (row["what"], row["key"], row["start_ms"], row["end_ms"]) == ("joined", "a", 0, 8)
    assert [list(each) for each in row["before_bounds_ms"]] == [[0, 0], [8, 8]]
    assert [list(each) for each in row["after_bounds_ms"]] == [[0, 8]]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_counts_add_up(seed: int) -> None:
    stream = draw(seed)
    times = {"timestamp": "time", "unit": "ms", "partition": "partition", "offset": "offset", "on_bad_time": "drop"}
    keyed = group_in_ms("key", **times)
    rng = np.random.default_rng(seed)
    kinds: list[Any] = [
        sk.SessionWindows(inactivity_gap_ms=int(rng.integers(0, 30)), grace_ms=int(rng.integers(0, 50))),
        sk.SessionWindows(inactivity_gap_ms=int(rng.integers(0, 30)), grace_ms=int(rng.integers(0, 50))),
    ]
    if seed % 3 == 0:
        size = int(rng.integers(1, 20))
        kinds = [sk.TimeWindows(size_ms=size, grace_ms=int(grace)) for grace in rng.integers(0, 50, 2)]
    before, after = (keyed.windowed_by(windows).aggregate(s=sk.sum("value")).run(stream.table) for windows in kinds)
    found = before.compare(after)
    counts = found.counts()
    assert sum(n for name, n in counts.items() if name.startswith("records_")) == len(stream.table)
    assert sum(n for name, n in counts.items() if name.endswith("_before")) == before.metrics()["windows"]
    assert sum(n for name, n in counts.items() if name.endswith("_after")) == after.metrics()["windows"]
    assert counts["records_gained"] - counts["records_lost"] == int(after.trace.accepted.sum()) - int(
        before.trace.accepted.sum()
    )
    assert what(before, before) == ({"same": before.metrics()["windows"]} if before.metrics()["windows"] else {})
    back = after.compare(before).counts()
    mirrored = {"split": "joined", "joined": "split", "lost": "gained", "gained": "lost"}
    assert all(counts[name] == back[mirrored.get(name, name)] for name in CHANGES)
    assert len(found.table()) == sum(counts[name] for name in CHANGES)


def _groups_one_by_one(before: Any, after: Any) -> list[tuple[str, set[Any], set[Any]]]:
    """The groups as sets of rows, found by joining what shares a record, or else a place, until nothing changes."""
    traces = (before.trace, after.trace)
    rows: list[list[Any]] = [[], []]
    if hasattr(traces[0], "survivor"):
        both = traces[0].accepted & traces[1].accepted
        rows = [sorted(set(trace.survivor[trace.accepted].tolist())) for trace in traces]
        ties = set(zip(*(trace.survivor[both].tolist() for trace in traces), strict=True))
        differing = [set(trace.survivor[trace.accepted & ~both].tolist()) for trace in traces]
    else:
        columns = [run._outcome.window_columns for run in (before, after)]
        named = [run._outcome.batch.partitions for run in (before, after)]
        places = []
        for each, names in zip(columns, named, strict=True):
            place = (names[each.partition], each.key, each.start_ms, each.end_ms)
            places.append(list(zip(*(column.tolist() for column in place), strict=True)))
        rows = [list(range(len(each))) for each in places]
        ties = {(one, other) for one in rows[0] for other in rows[1] if places[0][one] == places[1][other]}
        differing = [set(), set()]
    groups = [({row}, set()) for row in rows[0]] + [(set(), {row}) for row in rows[1]]
    for one, other in ties:
        (here,) = (group for group in groups if one in group[0])
        (there,) = (group for group in groups if other in group[1])
        if here is not there:
            groups.remove(there)
            here[0].update(there[0])
            here[1].update(there[1])
    return [(_one_what(before, after, *group, differing), *group) for group in groups]


def _one_what(before: Any, after: Any, one: set[int], other: set[int], differing: list[set[int]]) -> str:
    if not one or not other:
        return "lost" if one else "gained"
    if len(one) > 1 or len(other) > 1:
        return "split" if len(one) == 1 else "joined" if len(other) == 1 else "regrouped"
    shown = []
    for run, (row,) in ((before, one), (after, other)):
        columns, chosen = run._outcome.window_columns, np.array([row])
        results = [fold.results(chosen).tolist() for _, fold in sorted(run._outcome.folds.items())]
        shown.append([columns.start_ms[row], columns.end_ms[row], results])
    return "same" if are_equal(*shown) and not (one & differing[0] or other & differing[1]) else "changed"


@pytest.mark.thorough
@pytest.mark.parametrize("kind", EACH_KIND)
def test_groups_are_those_of_joining_one_by_one(kind: str) -> None:
    seen: set[str] = set()
    cases = fewer(300)
    for seed in range(cases):
        stream, rng = draw(seed), np.random.default_rng([seed, 5])
        times = {"timestamp": "time", "unit": "ms", "partition": "partition", "offset": "offset", "on_bad_time": "drop"}
        keyed = group_in_ms("key", **times)
        pair = []
        for _ in range(2):
            a, b = (int(each) for each in rng.integers(1, 30, 2))
            windows = {
                "session": sk.SessionWindows(inactivity_gap_ms=a, grace_ms=b),
                "tumbling": sk.TimeWindows(size_ms=1 + a % 3 * 5, grace_ms=b),
                "hopping": sk.TimeWindows(size_ms=10 + a % 2, advance_ms=4, grace_ms=b),
                "sliding": sk.SlidingWindows(time_difference_ms=1 + a % 3 * 5, grace_ms=b),
            }[kind]
            aggregated = {"s": sk.sum("value"), "x": sk.mean("real"), "l": sk.last("value"), "c": sk.collect("value")}
            pair.append(keyed.windowed_by(windows).aggregate(**aggregated).run(stream.table))
        groups = pair[0].compare(pair[1])._groups
        found = (
            [
                (CHANGES[groups.what[number]], *(set(rows.tolist()) for rows in each))
                for number, each in enumerate(
                    zip(*(np.split(side.rows, side.first[1:-1]) for side in (groups.before, groups.after)), strict=True)
                )
            ]
            if len(groups)
            else []
        )
        expected = _groups_one_by_one(*pair)
        shown = [sorted((w, sorted(b), sorted(a)) for w, b, a in each) for each in (found, expected)]
        assert shown[0] == shown[1], seed
        seen |= {each[0] for each in found}
    wanted = {"same", "changed", "lost", "gained"} | ({"split", "joined"} if kind == "session" else set())
    assert len(seen) > 1
    assert cases < 300 or wanted <= seen


def test_results_are_equal_as_each_of_them_is() -> None:
    nan = float("nan")
    columns = [
        (np.array([1.0, nan, nan, -0.0]), np.array([1.0, nan, 2.0, 0.0])),
        (np.array([1, 2]), np.array([1.0, 2.5])),
        (pa.array([1.5, nan, None, None, nan]), pa.array([1.5, nan, None, 1.0, None])),
        (pa.array([1, None, None, 4]), pa.array([1, None, 3, 5])),
        (pa.array(["a", None, "c"]), pa.array(["a", None, "d"])),
        (pa.array([[1], [None], None]), pa.array([[1], [2], None])),
        (pa.array([1, 2]), pa.array([1.0, 3.0])),
        (pa.array([], pa.int64()), pa.array([], pa.int64())),
    ]
    for one, other in columns:
        each = [are_equal(*row) for row in zip(one.tolist(), other.tolist(), strict=True)]
        assert equal_results(one, other).tolist() == each


def test_only_the_same_records_can_be_compared() -> None:
    one, other = plan().run(data(("a", 0), ("a", 8))), plan().run(data(("a", 0), ("a", 9)))
    with pytest.raises(InvalidArgument, match="only runs of the same records can be compared"):
        one.compare(other)
    hopping = plan().windowed_by(sk.TimeWindows(size_ms=5, grace=0)).run(data(("a", 0), ("a", 8)))
    with pytest.raises(InvalidArgument, match="only windows of one kind can be compared"):
        one.compare(hopping)


@pytest.mark.parametrize(("other", "told"), [
    ({"key": ["a", "b", "b"]}, "got 1 of 3 records with another key;"),
    ({"key": ["a", "b", None]}, "got 1 of 3 records with another key;"),
    ({"at": [0, 9, 3]}, "got 1 of 3 records with another time;"),
    ({"p": [0, 0, 2]}, "got the records in 1 partition and in 2;"),
    ({"p": [1, 1, 1]}, "got 3 of 3 records in another partition;"),
    ({"key": ["a"], "at": [0], "p": [0]}, "got 3 records and 1;"),
])  # fmt: skip
def test_what_differs_between_the_records_is_named(other: dict[str, Any], told: str) -> None:
    """Of the same records over four partitions it said "got 28,491 records and 28,491"."""
    same = {"key": ["a", "b", "a"], "at": [0, 8, 3], "p": [0, 0, 0]}
    keyed = group_in_ms("key", partition="p")
    found = keyed.windowed_by(sk.SessionWindows(inactivity_gap_ms=5, grace=0)).count()
    before, after = found.run(pd.DataFrame(same)), found.run(pd.DataFrame(same | other))
    with pytest.raises(InvalidArgument, match=told):
        before.compare(after)
    assert before.compare(found.run(pd.DataFrame(same))).counts()["records_kept_by_both"] == 3


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_picture_has_a_bar_for_each_window_of_its_keys(theme: Any) -> None:
    rows = data(("a", 0), ("a", 8), ("<b>x", 3), ("<b>x", 11), ("c", 0))
    found = plan(5).run(rows).compare(plan(9).run(rows))
    figure = found.figure(theme=theme)
    assert sorted(trace.name for trace in figure.data) == ["joined"]
    assert len(figure.data[0].x) == 6  # two before and one after, of the two keys that change
    assert "<b>x" not in "".join(figure.data[0].y)
    assert len(found.figure(most=1).data[0].x) == 3
    assert len(plan(5).run(rows).compare(plan(5).run(rows)).figure().data) == 0
