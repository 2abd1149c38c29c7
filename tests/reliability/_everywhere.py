"""A little of all that runs without Spark, for `environment.py`: prints its answers, which no place may change."""

import hashlib
import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

import sessionkit as sk
from sessionkit.base.result_folders import Results
from sessionkit.report.page import Findings, page
from tests.deployments import run_deployed

KINDS: dict[str, Any] = {
    "session": sk.SessionWindows(inactivity_gap="20s", grace="10s"),
    "tumbling": sk.TimeWindows(size="30s", grace="10s"),
    "hopping": sk.TimeWindows(size="30s", advance="10s", grace="10s"),
    "sliding": sk.SlidingWindows(time_difference="15s", grace="10s"),
}
MARK = "é" if sys.getfilesystemencoding() == "utf-8" else "e"  # else no file can be named so
BEGAN = datetime(2024, 3, 31, 0, 30, tzinfo=UTC)  # the clocks of half of the world change on this day


def digest(value: object) -> str:
    return hashlib.sha256(repr(value).encode("utf-8", "backslashreplace")).hexdigest()[:16]


def answers(seed: int, kinds: list[str]) -> dict[str, str]:
    random = np.random.default_rng(seed)
    seconds = np.arange(240) * 2 - random.integers(0, 60, 240) * (random.random(240) < 0.3)
    records = pd.DataFrame(
        {
            "user": random.choice(["ada", "é", "zoë ☃", "<b>", "", "\u202eevil"], 240),
            "at": [BEGAN + timedelta(seconds=int(second) + 60) for second in seconds],
            "amount": random.integers(-5, 50, 240) / 4,
        }
    )
    file = Path(f"clicks {MARK}.csv")
    local = records.assign(at=records["at"].dt.tz_localize(None).astype(str))
    local.to_csv(file, index=False, encoding="utf-8")
    found: dict[str, str] = {}
    for kind in kinds:
        source = sk.group_by_key("user", timestamp="at").windowed_by(KINDS[kind])
        for emit in ("on_window_update", "on_window_close"):
            plan = source.emit(emit).aggregate(count=sk.count(), total=sk.sum("amount"), top=sk.max("amount"))
            run = plan.run(records)
            name = f"{kind} {emit}"
            for view in ("table", "changelog", "dropped"):
                found[f"{name} {view}"] = digest(pa.Table.from_pandas(getattr(run, view)()).to_pydict())
            found[f"{name} metrics"] = json.dumps(run.metrics())
            found[f"{name} shown"] = digest((run._repr_html_(), repr(run), repr(plan)))
            found[f"{name} explained"] = digest([str(run.explain(offset=offset)) for offset in range(0, 240, 40)])
        found[f"{kind} as Java"] = digest(plan.to_java().code)
        found[f"{kind} drawn"] = digest((run.plane().to_json(), run.lanes(theme="dark").to_json()))
        kafka = run_deployed(plan, records)
        found[f"{kind} as Kafka"] = digest(pa.Table.from_pandas(kafka.changelog()).to_pydict())
        found[f"{kind} stored"] = digest([stored(plan, records, kind, store) for store in ("memory", "rocksdb")])
    of_file = sk.group_by_key("user", timestamp="at", timezone="Asia/Kathmandu").windowed_by(KINDS["session"]).count()
    run = of_file.run(file)
    found["a file"] = digest(run.table().to_pydict() if isinstance(run.table(), pa.Table) else run.table().to_dict())
    text = page(Findings(title="é ☃", plan=of_file, counts=run.metrics(), local=run))
    with Results(Path(f"out {MARK}"), ["report.html"]) as results:
        results.write("report.html", lambda path: path.write_text(text, encoding="utf-8"))
        results.place()
    found["the report"] = hashlib.sha256(Path(f"out {MARK}/report.html").read_bytes()).hexdigest()[:16]
    return found


def stored(plan: Any, records: pd.DataFrame, kind: str, store: str) -> list[Any]:
    """What a store on which the plan ran twice holds, after it was opened anew where that can be."""
    of = "sessions" if kind == "session" else "windows"
    place = {} if store == "memory" else {"directory": Path(f"state {MARK}")}
    opened = sk.open_store(store, f"of-{kind}", of=of, **place)
    tables = [pa.Table.from_pandas(plan.run(part, store=opened).table()) for part in (records[:150], records[150:])]
    rows = opened.to_pandas().to_dict("list")
    if store == "rocksdb":
        opened.close()
        opened = sk.open_store(store, f"of-{kind}", of=of, **place)
        assert repr(opened.to_pandas().to_dict("list")) == repr(rows)
    opened.close()
    return [*(table.to_pydict() for table in tables), rows]


if __name__ == "__main__":
    print(json.dumps(answers(int(sys.argv[1]), sys.argv[2].split(","))))
