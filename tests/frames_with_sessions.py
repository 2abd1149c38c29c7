"""Random frames of rows, and the sessions that plain pandas finds in them."""

from typing import Any

import numpy as np
import pandas as pd

GAP_MS, GRACE_MS = 50, 30
COLUMNS = ["session_id", "session_start", "session_end", "session_rows", "position_in_session", "late"]


def drawn(count: int, seed: int = 19) -> pd.DataFrame:
    """Rows of so many frames: frame, offset (within it), key (some missing), at."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 40, count)
    frame = np.repeat(np.arange(count), sizes)
    offset = np.arange(len(frame)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    spread = rng.choice([60, 400, 3_000, 50_000], count)[frame]
    key = np.array(["ada", "bo", "Zoë", "", None], object)[rng.integers(0, 1 + rng.integers(1, 5, count)[frame])]
    about = np.where(rng.random(count)[frame] < 0.5, offset * 20, rng.integers(0, spread))
    at = 1_700_000_000_000 + about + rng.integers(0, 80, len(frame))
    columns = {"frame": frame, "offset": offset, "key": key, "at": pd.to_datetime(at, unit="ms", utc=True)}
    return pd.DataFrame(columns).astype({"at": "datetime64[ms, UTC]"})


def in_plain_pandas(rows: pd.DataFrame) -> pd.DataFrame:
    """The six columns of each row as pandas finds them when all rows are there; ids count from 0 in each frame."""
    known = rows[rows["key"].notna()].sort_values(["frame", "key", "at", "offset"], kind="stable")
    pause = known.groupby(["frame", "key"])["at"].diff()
    begins = pause.isna() | (pause > pd.Timedelta(GAP_MS, "ms"))
    session = begins.cumsum()
    of_frame = known["frame"].map(session.groupby(known["frame"]).min())
    grouped = known["at"].groupby(session)
    found = pd.DataFrame(
        {"session_id": session - of_frame, "session_start": grouped.transform("min"),
         "session_end": grouped.transform("max"), "session_rows": grouped.transform("size"),
         "position_in_session": grouped.cumcount() + 1},
    )  # fmt: skip
    return in_one_form(found.reindex(rows.index).assign(late=False))


def by_the_plan(rows: pd.DataFrame, run: Any) -> pd.DataFrame:
    """The six columns from the trace of a run with a partition a frame: what became of the session of each record."""
    windows = run.trace.windows().to_pandas()
    records = run.trace.records().to_pandas()
    place = {(row.partition, row.window_id): row for row in windows.itertuples()}

    def ended_in(partition: int, window_id: float) -> Any:
        while pd.notna(place[partition, window_id].merged_into):
            window_id = place[partition, window_id].merged_into
        return window_id

    into = [
        ended_in(p, w) if pd.notna(w) else np.nan
        for p, w in zip(records["partition"], records["window_id"], strict=True)
    ]
    bounds = windows.set_index(["partition", "window_id"])[["window_start_ms", "window_end_ms"]]
    found = pd.DataFrame({"partition": records["partition"], "window_id": into, "at": records["timestamp_ms"]})
    found = found.join(bounds, on=["partition", "window_id"])
    kept = found[found["window_id"].notna()].copy()
    kept["key"] = records["key"]
    session = kept[["partition", "key", "window_start_ms", "window_id"]].drop_duplicates()
    session = session.sort_values(list(session))  # of two that start at once the one that was opened first
    session["session_id"] = session.groupby("partition").cumcount()
    ids = session.set_index(["partition", "window_id"])["session_id"]
    kept = kept.join(ids, on=["partition", "window_id"])
    groups = kept.groupby(["partition", "session_id"])
    kept["session_rows"] = groups["at"].transform("size")
    kept["position_in_session"] = (
        kept.sort_values("at", kind="stable").groupby(["partition", "session_id"]).cumcount() + 1
    )
    kept["session_start"] = pd.to_datetime(kept["window_start_ms"], unit="ms", utc=True)
    kept["session_end"] = pd.to_datetime(kept["window_end_ms"], unit="ms", utc=True)
    return in_one_form(
        kept.reindex(range(len(rows)))[COLUMNS[:-1]].assign(late=(records["reason"] == "late").to_numpy())
    )


def in_one_form(frame: pd.DataFrame) -> pd.DataFrame:
    """The six columns, in types that can be compared whatever made them."""
    times = dict.fromkeys(COLUMNS[1:3], "datetime64[ms, UTC]")
    numbers = dict.fromkeys((COLUMNS[0], *COLUMNS[3:5]), "Int64")
    return frame[COLUMNS].astype({**times, **numbers, "late": "bool"}).reset_index(drop=True)
