"""Code with mistakes: a checker finds fault with each marked line, or says that the mark is not needed."""

import pandas as pd

import sessionkit as sk

clicks = pd.DataFrame()
sessions = sk.SessionWindows(inactivity_gap="30m", grace="10m")
plan = sk.group_by_key("user", timestamp="at").windowed_by(sessions).count()
run = plan.run(clicks)

run.tabel()  # type: ignore
run.metrics().table()  # type: ignore
run.explain(ofset=5)  # type: ignore
run.lanes(sort="drop")  # type: ignore
run.plane("ada", theme="drak")  # type: ignore
run.kafka_metrics(level="debgu")  # type: ignore
run.by_key()  # type: ignore
run.trace.recrods()  # type: ignore
plan.emit("on_window_clsoe")  # type: ignore
plan.suppress("until_windows_close")  # type: ignore
plan.windowed_by("30m")  # type: ignore
plan.run(3)  # type: ignore
plan.run(clicks, frame="panda")  # type: ignore
plan.run(clicks, rules="kafka")  # type: ignore
plan.run(clicks, store="rocksdb")  # type: ignore
sk.SessionWindows(inactivity_gap=30, grace="10m")  # type: ignore
sk.SessionWindows(pause="30m", grace="10m")  # type: ignore
sk.group_by_key("user", timestamp="at", on_bad_time="skip")  # type: ignore
sk.group_by_key("user", timestamp="at", times="ms")  # type: ignore
sk.group_by_key("user", timestamp="at", timezone=3)  # type: ignore
sk.sessionize(clicks, by="user", at="at", gap=30)  # type: ignore
sk.sessionize(clicks, by="user", time="at", gap="30m")  # type: ignore
sk.open_store("rocksbd", "clicks", directory="state")  # type: ignore
sk.open_store("rocksdb", "clicks")  # type: ignore
sk.open_store("memory", "clicks").find_sesions("ada", 0, 10)  # type: ignore
sk.Deployment(store="rocksbd")  # type: ignore
sk.Deployment(restarts=[(40, "kiled")])  # type: ignore
sk.Deployment.plain(retnetion="2h")  # type: ignore
sk.Deployment.plain(caching=10)  # type: ignore
sk.audit(plan, clicks, store="memory")  # type: ignore
sk.audit(plan, clicks).table().haed()  # type: ignore
sk.audit(plan, 3)  # type: ignore
sk.sweep(plan, clicks, grace=["1h"]).heat_map("merge")  # type: ignore
sk.sweep(plan, clicks, grace=["1h"]).table().haed()  # type: ignore
run.compare(run).table().haed()  # type: ignore
sk.tune(plan, clicks, grace="6h")  # type: ignore
sk.load_sample("flight")  # type: ignore
plan.to_java(store="disk")  # type: ignore
