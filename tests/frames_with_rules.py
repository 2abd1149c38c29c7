"""Random frames of rows, rules for their sessions, and what those are in plain Python."""

import datetime as dt
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

ADDED = ["session_start", "session_end", "session_rows", "position_in_session", "session_ended_by"]
ZONES = ("America/St_Johns", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca", "Asia/Kathmandu", "UTC")
MIDNIGHTS = {  # near which a frame's rows lie, of nights in which clocks are changed
    "America/St_Johns": "2009-11-01T02:31", "Australia/Lord_Howe": "2026-04-04T14:30",
    "Pacific/Apia": "2011-12-30T10:00", "Africa/Casablanca": "2026-02-15T02:00", "Asia/Kathmandu": "2026-01-01T18:15",
    "UTC": "2026-01-01T00:00",
}  # fmt: skip


def drawn(count: int, seed: int = 27) -> pd.DataFrame:
    """Rows of so many frames, in any order of time: frame, offset, key, at, to, event, campaign, place, pause, zone."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 30, count)
    frame = np.repeat(np.arange(count), sizes)
    rows, offset = len(frame), np.arange(len(frame)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    zone = np.array(ZONES, object)[frame % len(ZONES)]
    near = pd.Series(zone).map({zone: pd.Timestamp(at, tz="UTC") for zone, at in MIDNIGHTS.items()})
    minutes = np.where(rng.random(count)[frame] < 0.5, offset * 7, rng.integers(0, 300, rows))
    at = near + pd.to_timedelta(minutes - 120 + rng.integers(0, 5, rows), unit="min")

    def some(*values: Any) -> Any:
        return np.array(values, object)[rng.integers(0, len(values), rows)]

    return pd.DataFrame(
        {"frame": frame, "offset": offset, "key": some("ada", "bo", None), "at": at,
         "to": (at + pd.to_timedelta(rng.integers(0, 40, rows), unit="min")).where(rng.random(rows) < 0.5),
         "event": some("login", "logout", "view", "view", None), "campaign": some("a", "a", "b", None),
         "place": pd.array(some(1, 1, 2, None), "Int64"), "pause": some("5m", "20m", "1h"), "zone": zone},
    ).astype({"at": "datetime64[ms, UTC]", "to": "datetime64[ms, UTC]"})  # fmt: skip


def rules_drawn(number: int) -> dict[str, Any]:
    """The arguments of `sessionize` for the frame of this number: a choice of rules."""
    rng = np.random.default_rng([5, number])
    gap: Any = ["15m", ("column", "pause"), {"ada": "10m", None: "25m"}][rng.integers(0, 3)]
    rules = {
        "until": "to", "max_length": "40m", "max_rows": int(rng.integers(1, 5)),
        "new_when": [["campaign"], ["place", "campaign"]][rng.integers(0, 2)], "starts_when": ("event", "login"),
        "ends_when": ("event", ["logout"]), "new_at": ["midnight", "23:30", "00:10"][rng.integers(0, 3)],
    }  # fmt: skip
    return {"gap": gap} | {name: rule for name, rule in rules.items() if rng.random() < 0.4}


def with_short_minutes(rows: pd.DataFrame, rules: dict[str, Any], unit: str) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The same where a minute lasts no longer than this unit, "us" or "ns"; no rule is left that goes by days."""
    first, short, rows = pd.Timestamp("2009-01-01", tz="UTC"), pd.Timedelta(1, unit), rows.copy()
    for name in ("at", "to"):
        minutes = (rows[name] - first) // pd.Timedelta("1m")
        rows[name] = first + pd.to_timedelta(minutes.to_numpy(), unit=unit).as_unit(unit)
    rows["pause"] = rows["pause"].map({"5m": f"5{unit}", "20m": f"20 {unit}", "1h": f"60{unit}"})

    def shorter(length: Any) -> Any:
        if isinstance(length, dict):
            return {key: shorter(each) for key, each in length.items()}
        return length if isinstance(length, tuple) else int(length[:-1]) * short

    lengths = {name: shorter(rules[name]) for name in ("gap", "max_length") if name in rules}
    return rows, {name: rule for name, rule in rules.items() if name != "new_at"} | lengths


def in_plain_python(rows: pd.DataFrame, rules: dict[str, Any]) -> pd.DataFrame:
    """The columns that are added to the rows of one frame, and the number of the session of each row."""
    found = pd.DataFrame(index=rows.index, columns=["session", *ADDED], dtype=object)
    number = 0
    for key in sorted(rows["key"].dropna().unique()):
        own = rows[rows["key"] == key].sort_values(["at", "offset"], kind="stable")
        for session in _sessions(own.to_dict("records"), own.index.tolist(), rules):
            ends = [_until(row, rules) for _, row in session["rows"]]
            for position, (index, _) in enumerate(session["rows"], 1):
                told = [session["rows"][0][1]["at"], max(ends), len(ends), position, session["ended_by"]]
                found.loc[index] = [number, *told]
            number += 1
    return found


def _until(row: dict[str, Any], rules: dict[str, Any]) -> Any:
    return row["to"] if "until" in rules and pd.notna(row["to"]) else row["at"]


def _sessions(rows: list[dict[str, Any]], names: list[Any], rules: dict[str, Any]) -> list[dict[str, Any]]:
    sessions: list[dict[str, Any]] = []
    reach = None
    for name, row in zip(names, rows, strict=True):
        own_reach = _until(row, rules) + _gap(row, rules)
        cause = _cause(sessions[-1]["rows"], row, reach, rules) if sessions else "gap"
        if cause is not None:
            if sessions:
                sessions[-1]["ended_by"] = sessions[-1]["ended_by"] or cause
            sessions.append({"rows": [], "ended_by": None})
        sessions[-1]["rows"].append((name, row))
        reach = own_reach if cause == "gap" else max(reach, own_reach)
        if "ends_when" in rules and row["event"] == "logout":
            sessions[-1]["ended_by"] = "end"
    return sessions


def _gap(row: dict[str, Any], rules: dict[str, Any]) -> pd.Timedelta:
    gap = rules["gap"]
    if isinstance(gap, dict):
        return pd.Timedelta(gap.get(row["key"], gap[None]))
    return pd.Timedelta(row["pause"] if isinstance(gap, tuple) else gap)


def _cause(session: list[Any], row: dict[str, Any], reach: Any, rules: dict[str, Any]) -> str | None:
    """Why the row starts another session than the one that ends with `session`; None if it goes on."""
    if row["at"] > reach:
        return "gap"
    if "max_length" in rules and row["at"] - session[0][1]["at"] > pd.Timedelta(rules["max_length"]):
        return "length"
    if "max_rows" in rules and len(session) == rules["max_rows"]:
        return "rows"
    for column in rules.get("new_when", ()):
        known = [each[column] for _, each in session if pd.notna(each[column])]
        if known and pd.notna(row[column]) and row[column] != known[-1]:
            return f"value:{column}"
    if "starts_when" in rules and row["event"] == "login":
        return "start"
    if "ends_when" in rules and session[-1][1]["event"] == "logout":
        return "end"
    if "new_at" in rules:
        days = {_day(each["at"], each["zone"], rules["new_at"]) for each in (row, session[0][1])}
        return str(rules["new_at"]) if len(days) > 1 else None
    return None


@cache
def _day(at: pd.Timestamp, name: str, time_of_day: str) -> dt.date:
    """The last day that began up to then: minute by minute, the latest date whose time of day clocks have shown."""
    hour, minute = map(int, time_of_day.replace("midnight", "00:00").split(":"))
    days, zone = [], ZoneInfo(name)
    for minutes in range(-30 * 60, 1, 1 if name == "America/St_Johns" else 5):
        shown = (at.to_pydatetime() + dt.timedelta(minutes=minutes)).astimezone(zone)
        has_begun = (shown.hour, shown.minute) >= (hour, minute)
        days.append(shown.date() if has_begun else shown.date() - dt.timedelta(days=1))
    return max(days)
