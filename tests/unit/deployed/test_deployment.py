"""The value that says how an application is deployed, and what a life of its task is told of it."""

import dataclasses
import html
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.deployed.deployment import Commits, Life, checked_clock
from sessionkit.deployed.lives import clock_of
from sessionkit.errors import InvalidArgument, InvalidData, MissingColumn, NotBuilt
from sessionkit.records.batch import read_records
from sessionkit.stores.contract import STORE_KINDS
from sessionkit.stores.memory.sessions import MemorySessionStore
from tests.deployments import A_SESSION, CLOCK
from tests.kinds import group_in_ms

PLAN = (
    sk.group_by_key("key", timestamp="at", unit="ms")
    .windowed_by(sk.SessionWindows(inactivity_gap_ms=10, grace_ms=5))
    .count()
)
TABLE = pa.table({"key": ["a", "a", "b"], "at": [0, 4, 90], CLOCK: [7, 8, 9]})


# ---- the value


def test_what_is_not_told_is_as_kafka_has_it() -> None:
    told = {each.name: getattr(sk.Deployment(), each.name) for each in dataclasses.fields(sk.Deployment)}
    assert told == {
        "store": "rocksdb", "retention": None, "caching": "10MB", "commit_interval": "30s", "commit_every": None,
        "emit_interval": "1s", "clock": None, "guarantee": "at_least_once", "restarts": (),
    }  # fmt: skip


ALL: list[dict[str, Any]] = [
    {}, {"store": "memory", "retention": "90 minutes"},
    {"caching": True, "commit_interval": "0s", "emit_interval": "0s"},
    {"caching": " 512 kb ", "commit_every": np.int64(3)},
    {"caching": False, "commit_every": [0, 4, 4], "clock": 'arr"ived'},
    {"restarts": [17, (40, "changelog"), (90, "killed")]}, {"restarts": np.array([3])},
    {"store": "memory", "caching": False, "commit_interval": None, "emit_interval": None, "restarts": (4,)},
]  # fmt: skip


@pytest.mark.parametrize("told", ALL, ids=str)
def test_its_repr_is_the_code_that_makes_it(told: dict[str, Any]) -> None:
    how = sk.Deployment(**told)
    assert eval(repr(how), {"sk": sk}) == how  # noqa: S307 - the code of a value that stands here
    assert hash(how) == hash(dataclasses.replace(how))
    assert how.in_words() in html.unescape(how._repr_html_()) and how.in_words().endswith(".")


def test_one_setting_is_written_in_one_way() -> None:
    assert sk.Deployment(retention="60 s", caching="1024 KB") == sk.Deployment(retention="1 minute", caching="1MB")
    assert repr(sk.Deployment.plain(store="rocksdb", restarts=[(3, "disk")])) == (
        "sk.Deployment(caching=False, commit_interval=None, emit_interval=None, restarts=(3,))"
    )
    assert repr(sk.Deployment.plain()) == "sk.Deployment.plain()"


def test_it_says_in_words_what_it_supposes() -> None:
    assert sk.Deployment().in_words() == (
        "A RocksDB store with the smallest retention allowed, a cache of 10MB, a commit every 30 s and a check for "
        "final results at most every 1 s, by stream time."
    )
    told = sk.Deployment(
        store="memory", retention="2h", caching=False, commit_every=2, clock="arrived", restarts=[1, 2]
    )
    assert told.in_words() == (
        "A store in memory with a retention of 2 h, no cache, a commit after every 2 records and a check for final "
        "results at most every 1 s, by the column 'arrived'; it is started again 2 times."
    )


@pytest.mark.parametrize(("given", "telling"), [
    ({"store": "disk"}, "store must be a known choice; got 'disk'; one of 'memory', 'rocksdb'"),
    ({"store": "spark"}, "store must be a known choice; got 'spark'"),
    ({"store": dict}, "store must be a kind of store; got <class 'dict'>; one of 'memory', 'rocksdb'"),
    ({"caching": 10_485_760}, 'a cache needs a unit; got caching=10485760; .*"10485760 B"'),
    ({"caching": "yes"}, "caching is no number of bytes; got 'yes'; a whole number with B, KB, MB or GB"),
    ({"caching": 2.5}, "caching must be True, False or a size; got 2.5"),
    ({"caching": None}, "caching must be True, False or a size; got None"),
    ({"commit_every": 0}, "commit_every must be positive; got 0"),
    ({"commit_every": -3}, "commit_every must be positive; got -3"),
    ({"commit_every": "3"}, "must be positive; got '3'; a number of records, 1 or more, or the rows after which"),
    ({"commit_interval": 5}, "commit_interval"),
    ({"commit_interval": "-1ms"}, "commit_interval must be 0 ms or more; got -1 ms"),
    ({"emit_interval": "soon"}, "emit_interval must be a duration; got 'soon'"),
    ({"retention": -1}, "retention must be 0 ms or more"),
    ({"retention": "long"}, "retention must be a duration; got 'long'"),
    ({"clock": [1, 2]}, r"clock must be a column; got \[1, 2\]; clock=\"arrived\""),
    ({"guarantee": "at_most_once"}, "guarantee must be a known choice; got 'at_most_once'"),
    ({"restarts": [3, 2]}, r"got \[3, 2\]; increasing numbers from 0, each alone or with its kind"),
    ({"cache": True}, "Deployment cannot be called like this; got an unexpected keyword argument 'cache'; "),
])  # fmt: skip
def test_what_cannot_be_is_refused(given: dict[str, Any], telling: str) -> None:
    with pytest.raises(InvalidArgument, match=telling):
        sk.Deployment(**given)


def test_transactions_are_not_modelled() -> None:
    with pytest.raises(NotBuilt, match="transactions are not modelled; got guarantee='exactly_once_v2'"):
        sk.Deployment(guarantee="exactly_once_v2")


@pytest.fixture
def own_kind() -> Iterator[type]:
    @sk.stores.store_kind("mine", of="sessions")
    class Mine(MemorySessionStore):
        pass

    yield Mine
    del STORE_KINDS["mine", "sessions"]


def test_a_store_of_ones_own_is_a_kind(own_kind: type) -> None:
    how = sk.Deployment.plain(store=own_kind)
    assert how == sk.Deployment.plain(store="mine") and 'store="mine"' in repr(how)
    assert type(PLAN.run(TABLE, deployment=how)._store) is own_kind
    assert "# store: mine, a kind of its own" in how.properties() and "store of kind 'mine'" in how.in_words()
    with pytest.raises(InvalidArgument, match="audit knows two kinds of store; got 'mine'"):
        sk.audit(PLAN, TABLE, how)


# ---- Kafka's configuration


def test_the_properties_are_kafkas() -> None:
    assert sk.Deployment().properties().splitlines() == [
        "dsl.store.suppliers.class=org.apache.kafka.streams.state.BuiltInDslStoreSuppliers$RocksDBDslStoreSuppliers",
        "statestore.cache.max.bytes=10485760",
        "commit.interval.ms=30000",
        "__emit.interval.ms.kstreams.windowed.aggregation__=1000",
        "processing.guarantee=at_least_once",
    ]
    told = sk.Deployment(caching=False, retention="1h", commit_every=[3], clock="arrived", restarts=[1])
    assert [line for line in told.properties().splitlines() if line.startswith("#")] == [
        "# caching: Materialized.withCachingDisabled()",
        "# commit_every: (3,), and not by the interval",
        "# clock: column 'arrived'",
        "# restarts after rows: (1,)",
        "# retention: Materialized.withRetention(Duration.ofMillis(3600000L))",
    ]


def test_a_name_in_a_comment_ends_no_line() -> None:
    lines = sk.Deployment(clock="a\ncommit.interval.ms=1").properties().splitlines()
    assert [line for line in lines if line.startswith("commit")] == ["commit.interval.ms=30000"]


@pytest.mark.parametrize(
    "told",
    [{}, {"store": "memory"}, {"caching": True, "commit_interval": None}, {"caching": "0B", "emit_interval": "0s"}],
    ids=str,
)
def test_properties_are_read_back(told: dict[str, Any], tmp_path: Path) -> None:
    how, file = sk.Deployment(**told), tmp_path / "streams.properties"
    file.write_text(how.properties())
    assert sk.Deployment.from_properties(file) == sk.Deployment.from_properties(str(file)) == how


def test_files_are_read_as_java_reads_them(tmp_path: Path) -> None:
    file = tmp_path / "streams.properties"
    file.write_text(
        "! a note\ncommit.interval.ms : 1000\n\nprocessing.guarantee at_least_once\ndefault.dsl.store=\\\n  in_memory\n"
    )
    assert sk.Deployment.from_properties(file) == sk.Deployment(store="memory", commit_interval="1s")


def test_threads_share_the_cache() -> None:
    assert sk.Deployment.from_properties({"num.stream.threads": "4"}).caching == "2560KB"
    assert sk.Deployment.from_properties({"cache.max.bytes.buffering": 1000, "num.stream.threads": 3}).caching == "333B"


def test_what_is_not_known_is_told() -> None:
    with pytest.warns(UserWarning, match="these properties change no result here: application.id, comit.interval.ms"):
        found = sk.Deployment.from_properties({"application.id": "clicks", "comit.interval.ms": 5})
    assert found == sk.Deployment()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for given, telling in (
            ({"commit.interval.ms": "often"}, "commit.interval.ms must be a whole number; got 'often'"),
            ({"commit.interval.ms": True}, "commit.interval.ms must be a whole number; got True"),
            ({"default.dsl.store": "clay"}, "a store of a kind that is not known; got clay"),
            ("no/such.properties", "properties cannot be read; got 'no/such.properties'"),
            (5, "Deployment.from_properties takes text or a path or a dict as given; got int 5"),
        ):
            with pytest.raises(InvalidArgument, match=telling):
                sk.Deployment.from_properties(given)  # type: ignore[arg-type]
    with pytest.raises(NotBuilt, match="transactions are not modelled"):
        sk.Deployment.from_properties({"processing.guarantee": "exactly_once_v2"})


# ---- its clock


def test_a_column_is_a_clock() -> None:
    timed = PLAN.emit("on_window_close").run(TABLE, deployment=sk.Deployment(retention="1h", clock=CLOCK))
    assert timed.deployed is not None and timed.deployed.clock_ms == [7, 8, 9]
    by_stream_time = PLAN.emit("on_window_close").run(TABLE, deployment=sk.Deployment(retention="1h"))
    assert by_stream_time.deployed is not None and by_stream_time.deployed.clock_ms is None
    assert "arrived" not in timed.table().column_names
    with pytest.raises(MissingColumn, match="arrived"):
        PLAN.run(TABLE, deployment=sk.Deployment(clock="arrived"))
    with pytest.raises(InvalidData, match="lacks arrivals"):
        PLAN.run(TABLE.set_column(2, CLOCK, pa.array([1, None, 3])), deployment=sk.Deployment(clock=CLOCK))


def test_stream_time_goes_on_where_a_store_was_left() -> None:
    batch = read_records(TABLE, PLAN.source, ())
    assert clock_of(batch, None, PLAN.source, np.array([-1])).tolist() == [0, 4, 90]
    assert clock_of(batch, None, PLAN.source, np.array([50])).tolist() == [50, 50, 90]


@pytest.mark.parametrize("clock", [list(range(3)), pa.array(range(3)), pa.chunked_array([range(3)]), np.arange(3)])
def test_a_clock_may_be_a_time_for_each_record(clock: Any) -> None:
    assert checked_clock(clock, 3) == [0, 1, 2]
    with pytest.raises(InvalidArgument, match="the clock must have one time for each record; got 3 for 4"):
        checked_clock(clock, 4)


@pytest.mark.parametrize(("clock", "got"), [([1.5], "1.5"), ([True], "True"), (5, "5")])
def test_other_clocks_are_refused(clock: Any, got: str) -> None:
    with pytest.raises(InvalidArgument, match=f"the clock .*; got {got}"):
        checked_clock(clock, 1)


def test_a_clock_may_be_a_function_whose_answers_are_checked() -> None:
    clock = checked_clock(iter([7, "late"]).__next__, 2)
    assert callable(clock)
    assert clock() == 7
    with pytest.raises(InvalidArgument, match="the clock must give whole milliseconds; got 'late'"):
        clock()


# ---- a life of its task


def life(clock: Any = None, *, is_stream_time: bool = False, **told: Any) -> Life:
    how = sk.Deployment.plain(**told)
    return how._life("on_window_update", 100, clock, 10, is_stream_time=is_stream_time)


@pytest.mark.parametrize(
    ("every", "rows"), [(None, None), (1, range(10)), (3, (2, 5, 8)), (10, (9,)), (11, ()), ([0, 4, 4], (0, 4))]
)
def test_a_task_commits_after_every_so_many_records(every: Any, rows: Any) -> None:
    assert life(commit_every=every).commits == (None if rows is None else frozenset(rows))


def test_a_life_has_its_part_of_the_clock_and_of_the_commits() -> None:
    whole = life(list(range(100, 110)), commit_every=[0, 3, 4, 6, 7], caching="7B")
    part = whole.part(3, 7, "killed")
    assert part.commits == {0, 1, 3}  # rows 3, 4 and 6; row 7 is the next life's
    assert part.clock == [103, 104, 105, 106]
    assert (part.caching, part.retention_ms, part.restart, part.newest_ms) == (whole.caching, 100, "killed", 102)
    assert life().part(3, 7) == life()


def test_a_clock_that_is_a_function_goes_on_in_the_next_life() -> None:
    times = iter(range(5))
    part = life(lambda: next(times)).part(1, 2)
    assert callable(part.clock)
    assert [part.clock(), part.clock()] == [0, 1]


def commits(clock: list[int], interval: str, *, is_stream_time: bool = False) -> list[int]:
    whole = life(clock, commit_interval=interval, is_stream_time=is_stream_time)
    task = Commits(whole)
    return [row for row, now_ms in enumerate(clock) if task.is_due(row, now_ms)]


def test_a_task_commits_when_more_than_the_interval_has_passed() -> None:
    """The clock of a life starts with its first record, and each commit starts the interval anew."""
    clock = [5, 15, 16, 26, 27, 20, 99, 99]
    assert commits(clock, "10ms") == [2, 4, 6]
    assert commits(clock[2:], "10ms") == [2, 4]
    assert commits(clock, "0s") == [1, 2, 3, 4, 6]
    assert commits([-50, -45, -39], "10ms") == [2]  # a clock may stand before 1970
    assert commits([-1, 50, 61], "10ms", is_stream_time=True) == [2]  # stream time begins with the first that has one
    assert commits([0, 9, 3, 11], "10ms", is_stream_time=True) == [3]  # of all partitions together


def test_a_cache_has_room_to_the_byte() -> None:
    rows = pa.table({"key": ["a", "a"], "at": [0, 50]})
    for size, offsets in ((A_SESSION, [1, 1]), (A_SESSION - 1, [0, 1])):
        run = PLAN.run(rows, deployment=sk.Deployment.plain(retention="1h", caching=f"{size}B"))
        assert run.changelog()["offset"].to_pylist() == offsets


@pytest.mark.parametrize("clock", [None, "arrival"])
def test_sliding_windows_drop_a_null_value_though_a_clock_stands_beside_it(clock: str | None) -> None:
    """The column of the clock counted as a value, so that a deployment by a wall clock counted such records."""
    minute = 1_767_225_600_000 + 60_000 * np.arange(3)
    data = pa.table({"key": ["a"] * 3, "time": minute, "value": [1, None, 2], "arrival": minute})
    plan = group_in_ms("key", timestamp="time").windowed_by(sk.SlidingWindows(time_difference_ms=1, grace_ms=0))
    plan = plan.aggregate(total=sk.sum("value"))
    done = sk.Deployment(store="memory", caching=False, clock=clock)
    dropped = plan.run(data).dropped().column("reason").to_pylist()
    assert plan.run(data, deployment=done).dropped().column("reason").to_pylist() == dropped == ["null_value"]
    assert sk.audit(plan, data, done).counts()["expected"] == 2
