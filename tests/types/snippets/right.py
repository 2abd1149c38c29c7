"""Code as users write it: no checker finds fault with it, and each call gives what is said here."""

import datetime as dt
import io
from pathlib import Path
from typing import assert_type

import pandas as pd

import sessionkit as sk
from sessionkit.audits.audit import Audit
from sessionkit.run import Run
from sessionkit.stores.memory.sessions import MemorySessionStore
from sessionkit.stores.rocksdb.windows import RocksDBWindowStore
from sessionkit.trace.trace import Trace
from sessionkit.views.comparison.comparison import Comparison
from sessionkit.views.explain.record import Explanation

clicks = pd.DataFrame({"user": ["ada"], "at": pd.to_datetime(["2026-03-02 09:00"]), "amount": [5.0]})
grouped = sk.group_by_key("user", timestamp="at", timezone=dt.UTC, on_bad_time="drop", ambiguous="earliest")
plan = (
    grouped.windowed_by(sk.SessionWindows(inactivity_gap="30m", grace=dt.timedelta(minutes=10)))
    .emit("on_window_close")
    .aggregate(visits=sk.count(), spent=sk.sum("amount"))
)
tumbling = grouped.windowed_by(sk.TimeWindows(size="5m", grace="1m")).count()
hopping = grouped.windowed_by(sk.TimeWindows(size="5m", advance="1m", grace="1m")).count()
moved = grouped.windowed_by(sk.TimeWindows(size="1d", offset="6h", grace="1m")).count()
months = grouped.windowed_by(sk.CalendarWindows("month", timezone="Europe/Berlin", grace="1m")).count()
sliding = grouped.windowed_by(sk.SlidingWindows(time_difference="5m", grace=0)).count()
capped = plan.emit("on_window_update").suppress("until_time_limit", "10s", max_records=5, when_full="shut_down")

run = plan.run(clicks)
assert_type(run, Run[pd.DataFrame])
assert_type(run.table(), pd.DataFrame)
assert_type(run.changelog(old_values=True), pd.DataFrame)
assert_type(run.dropped(), pd.DataFrame)
assert_type(run.merges(), pd.DataFrame)
assert_type(run.losses(10), pd.DataFrame)
assert_type(run.assign(clicks), pd.DataFrame)
assert_type(plan.write("clicks.csv", records="records").trace.records("ada", partition=0), pd.DataFrame)
assert_type(sk.open_trace("records").counts(), dict[str, int])
assert_type(sk.open_trace(Path("records")).losses(10), pd.DataFrame)
assert_type(run.kafka_metrics(level="debug"), pd.DataFrame)
assert_type(run.metrics(), dict[str, int])
assert_type(run.trace, Trace)
assert_type(run.explain(offset=5), Explanation)
assert_type(run.explain(key="ada", window_start="2026-03-02 09:00"), Explanation)
compared = run.compare(plan.with_windows(grace="1h").run(clicks))
assert_type(compared, Comparison[pd.DataFrame])
assert_type(compared.table(), pd.DataFrame)
assert_type(compared.records(), pd.DataFrame)
assert_type(run.emissions("ada").table(), pd.DataFrame)
assert_type(run.lineage("ada", "2026-03-02 09:00").records(), pd.DataFrame)
assert_type(run.latency().table(), pd.DataFrame)
assert_type(run.open_windows().table(), pd.DataFrame)
assert_type(run.drop_calendar().table(), pd.DataFrame)
assert_type(run.clock().table(), pd.DataFrame)
assert_type(run.partition_times().table(), pd.DataFrame)
assert_type(capped.run(clicks).suppress_buffer().table(), pd.DataFrame)
assert_type(sk.kinds(clicks, "user", "at", size="10m").words(), list[str])
assert_type(run.write_html("clicks.html"), Path)
run.plane("ada", theme="dark").show()
run.lanes(sort="merges", start="2026-03-02").show()

assert_type(plan.run("clicks.csv"), Run[pd.DataFrame])
assert_type(plan.run([Path("clicks.csv"), "more.csv"]), Run[pd.DataFrame])
assert_type(plan.run([{"user": "ada", "at": 3}]), Run[pd.DataFrame])
assert_type(plan.run({"user": ["ada"], "at": [3]}), Run[pd.DataFrame])
assert_type(plan.run(io.BytesIO(), trace=False), Run[pd.DataFrame])
assert_type(tumbling.run(clicks, keys=["ada"]).table(), pd.DataFrame)
assert_type(hopping.run(clicks, frame="pandas").trace, Trace)
hopping.run(clicks, frame="arrow").trace.touched()

assert_type(sk.sessionize(clicks, by="user", at="at", gap="30 minutes"), pd.DataFrame)
assert_type(sk.sessionize(clicks, None, "at", {"ada": "5m", None: "1h"}, new_when=["page"], ids="key"), pd.DataFrame)
assert_type(sk.sessionize(clicks, "user", "at", ("column", "pause"), ends_when=("page", "bye")), pd.DataFrame)
assert_type(run.assign(clicks, ids="hash"), pd.DataFrame)
assert_type(sk.sessionize("clicks.csv", ["user", "page"], "at", "30m", "5m", prefix="visit_"), pd.DataFrame)

with sk.open_store("memory", "clicks", retention="1h") as store:
    assert_type(store, MemorySessionStore)
    assert_type(plan.run(clicks, store=store), Run[pd.DataFrame])
    found = [session.window_end_ms for session in store.find_sessions("ada", 0, 10)]
with sk.open_store("rocksdb", "clicks", of="windows", directory="state", time_ordered=True, index=True) as on_disk:
    assert_type(on_disk, RocksDBWindowStore)
    sliding.run(clicks, store=on_disk)
own_store = sk.stores.store_class("sqlite", "sessions")(name="clicks", path="clicks.db")

deployment = sk.Deployment(store="memory", retention="2h", caching=False, restarts=[17, (40, "changelog")])
audit = sk.audit(plan, clicks, deployment)
assert_type(audit, Audit[pd.DataFrame])
assert_type(audit.table(), pd.DataFrame)
assert_type(audit.cure, Audit[pd.DataFrame] | None)
assert_type(sk.audit(plan, "clicks.csv").differences(), pd.DataFrame)
assert_type(audit.beside_emit_on_close().table(), pd.DataFrame)
assert_type(sk.Deployment.plain(store="memory", retention="2h", clock="at"), sk.Deployment)
assert_type(audit.words(), list[str])
assert_type(plan.run(clicks, deployment=deployment), Run[pd.DataFrame])

sweep = sk.sweep(plan, clicks, inactivity_gap=["30m", "1h"], grace=[0, "1h"])
assert_type(sweep.table(), pd.DataFrame)
sweep.heat_map("merges", theme="light").show()
board = sk.tune(plan, clicks, grace=("0s", "6h"))
print(board.plan, sk.suggest_gap(plan, clicks), plan.to_java(store="memory", key_type="bigint").code)
assert_type(sk.load_sample("flights"), pd.DataFrame)
