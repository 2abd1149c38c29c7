"""Frames at random, of every type of Arrow, name and nesting: the right answer, or an error of sessionkit's own.

The answer is held against rows in plain Python, which were drawn before there was a frame, and against the rules of
windows as they are written down. A frame whose columns are all of types that the docs promise must not be refused.
"""

import random
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa

import sessionkit as sk
from sessionkit.errors import SessionkitError
from tests.deployments import run_deployed
from tests.kinds import group_in_ms
from tests.reliability._columns_drawn import INTS, KEYS, MOMENTS, NUMBERS, VALUES, Column, Kind, draw_column, plain
from tests.reliability._windows_told import RESULTS, UNTELLABLE, Record, Told, sessions, tumbling
from tests.reliability.pieces import Outcome

PIECE = 3_000
GOAL = 50_000
MOST_WRONG = 20  # of a piece; the rest is counted
INT64 = 2**63
NAMES = [
    "user", "at", "v", "", " ", "a b", "é", "key", "self", "partition", "<b>$x$</b>", "x" * 3_000, "nul\0x", "nul\0y",
]  # fmt: skip
NO_NAMES = ["\ud800", "a\udfffb"]
SAFE = ("nul\0x", "nul\0y", *NO_NAMES)
NOT_OF_POLARS = ("run_end", "list_view", "union", "decimal256", "month_day", "fixed_size_list")
TIMES = [k for k in MOMENTS if k.family == "timestamp"]


class Foreign:
    """A frame of a library that nobody knows."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(schema)


@dataclass
class Case:
    """A frame, the plan for it, and what it has to come to."""

    rng: Random
    names: dict[str, str] = field(default_factory=dict)  # what a column is for: its name
    columns: dict[str, Column] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    results: dict[str, tuple[str, str | None]] = field(default_factory=dict)  # aggregation and column by result
    windows: tuple[str, int, int] = ("sessions", 0, 0)
    emit: str = "on_window_update"
    frame: str = "arrow"
    doubts: list[str] = field(default_factory=list)  # why it may be refused
    size: int = 0

    def __str__(self) -> str:
        shown = {name[:40]: (str(c.array.type), c.forms, c.rows) for name, c in self.columns.items()}
        names = {what: name[:40] for what, name in self.names.items()}
        return f"{self.frame} {names}\n{self.options} {self.results} {self.windows} {self.emit}\n{shown}\n{self.doubts}"


def check(seed: int, count: int) -> Outcome:
    wrong: list[str] = []
    noted: Counter[str] = Counter()
    for number in range(count):
        text, told = _one(Random(f"{seed}:{number}"))
        noted[told] += 1
        if text:
            wrong.append(f"seed {seed}, case {number}: {text}")
        if len(wrong) >= MOST_WRONG:
            return Outcome(number + 1, wrong, dict(noted))
    return Outcome(count, wrong, dict(noted))


def case(seed: int, number: int) -> Case:
    """A case by itself, to look at."""
    return draw_case(Random(f"{seed}:{number}"))


def _one(rng: Random) -> tuple[str, str]:
    drawn = draw_case(rng)
    try:
        frame = build_frame(drawn)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit | MemoryError):
            raise
        return "", "no such frame"
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        text, told = _held(drawn, frame)
    foreign = [str(each.message) for each in heard if "read as" not in str(each.message)]
    if foreign and not text:
        text = f"a warning: {foreign[0]}"
    return (f"{text}\n{drawn}" if text else ""), told


def _held(drawn: Case, frame: Any) -> tuple[str, str]:
    try:
        plan = _plan(drawn)
        run = plan.run(frame)
        views = [_rows(run.table()), _rows(run.changelog()), _rows(run.dropped())]
        if drawn.rng.random() < 0.1:
            assert run._repr_html_()
            assert len(repr(run)) < 2_000
    except SessionkitError as error:
        return _refused(drawn, error), "refused"
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit | MemoryError):
            raise
        return f"{type(error).__name__}: {''.join(traceback.format_exception(error))[-1500:]}", "another error"
    if drawn.rng.random() < 0.05 and (text := _by_kafka(plan, frame, drawn)):
        return text, "answered"
    return _compared(drawn, *views), "answered"


def _by_kafka(plan: Any, frame: Any, drawn: Case) -> str:
    """Kafka's rules are held against Kafka elsewhere; here they may only not fall over."""
    try:
        run = run_deployed(plan, frame)
        run.table(), run.changelog(), run.dropped(missing_grace=False)
        return "" if run.metrics()["process-total"] == drawn.size else "records are missing under Kafka's rules"
    except SessionkitError:
        return ""
    except Exception as error:
        return f"deployed: {''.join(traceback.format_exception(error))[-1500:]}"


def _refused(drawn: Case, error: SessionkitError) -> str:
    said = str(error)
    if not drawn.doubts:
        return f"refused without a cause: {type(error).__name__}: {said}"
    if "\n" in said or len(said) > 3_100 or said.count(";") < 2 or "; got " not in said:
        return f"these are no words: {type(error).__name__}: {said}"
    return ""


# ---- cases


def draw_case(rng: Random) -> Case:
    """A frame, a plan for it, and reasons for which it may be refused."""
    drawn = Case(rng, size=rng.choice([0, 1, 2, 3, 4, 5, 6, 8, 12, 30]))
    drawn.frame = rng.choice(["arrow", "arrow", "batch", "foreign", "pandas", "pandas", "polars", "polars"])
    gap, grace = rng.choice([0, 1, 1000, 10_000]), rng.choice([0, 5, 20_000, 10**12])
    drawn.windows = rng.choice([("sessions", gap, grace), ("tumbling", max(gap, 1), grace)])
    drawn.emit = rng.choice(["on_window_update", "on_window_close"])
    _draw_key(drawn)
    _draw_time(drawn)
    if rng.random() < 0.25:
        _draw_places(drawn)
    _draw_results(drawn)
    _draw_oddities(drawn)
    return drawn


def _name(drawn: Case, what: str) -> str:
    rng = drawn.rng
    free = [name for name in NAMES if name not in drawn.columns]
    name = rng.choice(free) if rng.random() < 0.2 else f"{what}{len(drawn.columns)}"
    if rng.random() < 0.004:
        name = rng.choice(NO_NAMES)
    if name in SAFE:
        drawn.doubts.append("name")
    return name


def _add(drawn: Case, what: str, kind: Kind, **how: Any) -> Column:
    name = _name(drawn, what.rstrip("0123456789"))
    drawn.names[what] = name
    column = drawn.columns[name] = draw_column(drawn.rng, kind, drawn.size, runs=drawn.frame != "polars", **how)
    if name in NO_NAMES:
        drawn.doubts.append("name")
    return column


def _draw_key(drawn: Case) -> None:
    rng = drawn.rng
    count = rng.choice([1, 1, 1, 2, 3])
    for number in range(count):
        known = KEYS if count == 1 or rng.random() < 0.1 else [k for k in KEYS if k.family != "bytes"]
        kind = rng.choice(known) if rng.random() < 0.97 else rng.choice(VALUES)
        column = _add(drawn, f"key{number}", kind)
        if kind.family not in ("text", "int", "bytes") or (count > 1 and kind.family == "bytes"):
            drawn.doubts.append(f"key of {kind.type}")
        if any(isinstance(row, int) and not -INT64 <= row < INT64 for row in column.rows):
            drawn.doubts.append("key beyond 64 bits")
    if count > 1:
        drawn.options["sep"] = rng.choice(["@", "|", "aa", "\0", "\x1f"])
        drawn.doubts += ["separator"] if any(_holds_sep(drawn, f"key{n}") for n in range(count - 1)) else []


def _holds_sep(drawn: Case, what: str) -> bool:
    sep = drawn.options["sep"]
    rows = drawn.columns[drawn.names[what]].rows
    return any(f"{row}{sep}".find(sep) < len(str(row)) for row in rows if row is not None)


def _draw_time(drawn: Case) -> None:
    rng = drawn.rng
    drawn.options["on_bad_time"] = "drop" if rng.random() < 0.85 else "refuse"
    if rng.random() < 0.04:
        column = _add(drawn, "time", rng.choice(VALUES))
        drawn.options["unit"] = rng.choice(["s", "ms", "us", "ns"])
        drawn.doubts.append(f"times of {column.kind.type}")
    elif rng.random() < 0.4:
        drawn.options["unit"] = unit = rng.choice(["s", "ms", "us", "ns"])
        kind = rng.choice([k for k in NUMBERS if k.type in (pa.int32(), pa.int64(), pa.uint64())])
        most = {"s": 90, "ms": 90_000, "us": 9 * 10**7, "ns": 2**31 - 1}[unit]
        _add(drawn, "time", Kind(kind.type, lambda r: r.randint(0, most), family="int"))
    else:
        kind = rng.choice(TIMES)
        _add(drawn, "time", kind)
        if kind.type.tz is None:
            drawn.options["timezone"] = "UTC"
    times = [each for each in _times(drawn) if each is not None]
    if drawn.options["on_bad_time"] == "refuse" and (len(times) < drawn.size or any(each < 0 for each in times)):
        drawn.doubts.append("bad time")
    if any(abs(each) > 2**61 for each in times):
        drawn.doubts.append("large time")


def _times(drawn: Case) -> list[int | None]:
    """Milliseconds, rounded down."""
    per = {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}.get(drawn.options.get("unit", "ns"), 1)
    rows = drawn.columns[drawn.names["time"]].rows
    found: list[int | None] = []
    for row in rows:
        if isinstance(row, tuple) and row and row[0] == "t":
            found.append(row[1] // 10**6)
        else:
            found.append(row * per // 10**6 if isinstance(row, int) else None)
    return found


def _draw_places(drawn: Case) -> None:
    rng, kinds = drawn.rng, [k for k in NUMBERS if k.type in INTS]
    draws = {
        "partition": lambda r: r.randint(0, 3),
        "offset": _rising() if rng.random() < 0.9 else lambda r: r.randint(0, 9),
    }
    for what, draw in draws.items():
        if what == "offset" and rng.random() < 0.5:
            continue
        kind = rng.choice(kinds) if rng.random() < 0.95 else rng.choice(VALUES)
        is_number = kind.family == "int"
        column = _add(
            drawn, what, Kind(kind.type, draw, family="int") if is_number else kind, missing=0 if is_number else None
        )
        if not is_number:
            drawn.doubts.append(f"{what} of {kind.type}")
        elif what == "offset":
            drawn.doubts += [] if _rises(drawn, column) else ["offsets"]


def _rising() -> Callable[[Random], int]:
    last = [0]

    def draw(rng: Random) -> int:
        last[0] += rng.randint(1, 3)
        return last[0]

    return draw


def _rises(drawn: Case, column: Column) -> bool:
    last: dict[Any, int] = {}
    for row, offset in enumerate(column.rows):
        partition = drawn.columns[drawn.names["partition"]].rows[row] if "partition" in drawn.names else 0
        if offset <= last.get(partition, -1):
            return False
        last[partition] = offset
    return True


def _draw_results(drawn: Case) -> None:
    rng = drawn.rng
    for number in range(rng.choice([1, 1, 2, 3])):
        name = rng.choice(["self", "old_r0", "status", "a b", "r\0"]) if rng.random() < 0.05 else f"r{number}"
        if name in ("status", "r\0") or any(name == its for what, its in drawn.names.items() if what.startswith("key")):
            drawn.doubts.append("name of a result")
        word = rng.choice(list(RESULTS))
        if word == "count":
            drawn.results[name] = ("count", None)
            continue
        ordered = [*NUMBERS[:11], *MOMENTS]
        kinds = {"sum": NUMBERS, "mean": NUMBERS, "min": ordered, "max": ordered}.get(word, VALUES)
        kind = rng.choice(kinds if rng.random() < 0.95 else VALUES)
        column = _add(drawn, f"value{number}", kind)
        drawn.results[name] = (word, drawn.names[f"value{number}"])
        if kind not in kinds or kind.family in ("extension", "other"):
            drawn.doubts.append(f"{word} of {kind.type}")
        if word in ("sum", "mean", "min", "max") and any(isinstance(v, int) and abs(v) > 2**61 for v in column.rows):
            drawn.doubts.append("numbers beyond 64 bits")


def _draw_oddities(drawn: Case) -> None:
    if drawn.rng.random() < 0.02:
        drawn.doubts.append("a column is not there")
        drawn.columns.pop(drawn.rng.choice([*drawn.names.values()]), None)
    elif drawn.rng.random() < 0.02:
        drawn.doubts.append("a column is there twice")


# ---- plans and frames


def _plan(drawn: Case) -> Any:
    names = dict(drawn.names)
    keys = [name for what, name in names.items() if what.startswith("key")]
    places = {what: names[what] for what in ("partition", "offset") if what in names}
    source = group_in_ms(*keys, timestamp=names["time"], **places, **{"unit": None} | drawn.options)
    kind, length, grace = drawn.windows
    windows: Any
    if kind == "sessions":
        windows = sk.SessionWindows(inactivity_gap=f"{length}ms", grace=f"{grace}ms")
    else:
        windows = sk.TimeWindows(size=f"{length}ms", grace=f"{grace}ms")
    aggregations = {
        name: sk.count() if column is None else getattr(sk, word)(column)
        for name, (word, column) in drawn.results.items()
    }
    return source.windowed_by(windows).emit(drawn.emit).aggregate(**aggregations)


def build_frame(drawn: Case) -> Any:
    """The frame, in which other columns may stand, too."""
    rng = drawn.rng
    arrays = {name: column.array for name, column in drawn.columns.items()}
    if "a column is there twice" in drawn.doubts and drawn.frame in ("arrow", "pandas"):
        name = rng.choice(list(arrays))
        pairs = [*arrays.items(), (name, arrays[name])]
        if drawn.frame == "arrow":
            return pa.Table.from_arrays([each for _, each in pairs], [name for name, _ in pairs])
        return pd.concat([pd.Series(each.to_pylist(), name=name, dtype=object) for name, each in pairs], axis=1)
    if rng.random() < 0.2:
        arrays = {**arrays, "nobody reads this": draw_column(rng, rng.choice(VALUES), drawn.size).array}
    if drawn.frame == "pandas":
        return _pandas(drawn, arrays)
    table = pa.table({name: array for name, array in arrays.items() if name not in NO_NAMES})
    if drawn.frame == "polars" and any(word in str(kind) for kind in table.schema.types for word in NOT_OF_POLARS):
        drawn.frame = "arrow"
    if drawn.frame in ("polars", "foreign"):  # both through Arrow's C interface, where a NUL ends a name
        for column in drawn.columns.values():
            column.rows = [_cut_names(row) for row in column.rows]
    if drawn.frame == "batch":
        if any("dictionary<values=halffloat" in str(kind) for kind in table.schema.types):
            return table  # where Arrow joins dictionaries of these it makes numbers of their bits
        batches = table.combine_chunks().to_batches()
        return batches[0] if len(batches) == 1 else table
    if drawn.frame == "polars":
        return _polars(drawn, table)
    return Foreign(table) if drawn.frame == "foreign" else table


def _cut_names(value: Any) -> Any:
    return tuple(map(_cut_names, value)) if isinstance(value, tuple) else "z" if value == "z\0" else value


def _polars(drawn: Case, table: pa.Table) -> Any:
    """What polars cannot take in is no frame; a name with NUL is a frame, until somebody takes it out."""
    names = {f"c{i}": name for i, name in enumerate(table.column_names)}
    if any("z\0" in str(kind) for kind in table.schema.types):
        drawn.doubts.append("a field with NUL")
    if any("time32" in str(kind) or "null" in str(kind) for kind in table.schema.types):
        drawn.doubts.append("a type that polars changes")
    columns = [pl.from_arrow(pa.table({short: table[name]})) for short, name in names.items()]
    drawn.doubts += ["categories of polars"] if any(pl.Categorical in frame.dtypes for frame in columns) else []
    return pl.concat(columns, how="horizontal").rename(names)


def _pandas(drawn: Case, arrays: dict[str, Any]) -> pd.DataFrame:
    made = {}
    for name, array in arrays.items():
        column = drawn.columns.get(name)
        way = drawn.rng.choice(["arrow", "arrow", "objects", "pandas"])
        if column is not None and way != "arrow":
            drawn.doubts.append(f"{way} of pandas")  # its columns may hold other types and other missing values
        if column is not None:
            column.forms.append(way)
        try:
            made[name] = _series(array, way)
        except (ValueError, TypeError, OverflowError, pa.ArrowException):  # Python or pandas have no such values
            made[name] = _series(array, "arrow")
    return pd.DataFrame(made)


def _series(array: Any, way: str) -> pd.Series:
    odd = any(word in str(array.type) for word in ("view", "dictionary<values="))
    if way == "pandas" and (odd or (pa.types.is_integer(array.type) and array.null_count)):
        way = "arrow"  # pandas makes a category of NaN, floats of integers, and Arrow aborts at views without rows
    if way == "objects":
        return pd.Series(array.to_pylist(), dtype=object)
    return array.to_pandas() if way == "pandas" else pd.Series(pd.arrays.ArrowExtensionArray(array))


# ---- the truth


def _rows(frame: Any) -> list[dict[str, Any]]:
    if isinstance(frame, pa.Table):
        return list(frame.to_pylist())
    if isinstance(frame, pd.DataFrame):
        columns = {name: list(frame[name]) for name in frame.columns}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return list(frame.to_dicts())


def records_of(drawn: Case) -> list[Record]:
    """The records as the plan reads them."""
    keys = [_keys(drawn.columns[name]) for what, name in drawn.names.items() if what.startswith("key")]
    times, following, records = _times(drawn), Counter[int](), []
    for row in range(drawn.size):
        parts = [rows[row] for rows in keys]
        key = parts[0] if len(parts) == 1 else drawn.options["sep"].join(map(str, parts))
        key = None if None in parts else key
        partition = drawn.columns[drawn.names["partition"]].rows[row] if "partition" in drawn.names else 0
        offset = following[partition]
        if "offset" in drawn.names:
            offset = drawn.columns[drawn.names["offset"]].rows[row]
        following[partition] += 1
        time_ms = times[row]
        reason = "null_key" if key is None else None
        if time_ms is None or time_ms < 0:
            reason = "bad_time" if time_ms is None else "negative_time"
        records.append(Record(partition, offset, key, -1 if time_ms is None else time_ms, reason))
    return records


def _keys(column: Column) -> list[Any]:
    """Booleans, dates, decimals and UUIDs are the keys that they look like as text."""
    if not any(word in str(column.array.type) for word in ("bool", "date", "decimal", "uuid")):
        return column.rows
    return [None if value is None else str(value).lower() for value in column.array.to_pylist()]


def _compared(drawn: Case, table: list[Any], changelog: list[Any], dropped: list[Any]) -> str:
    """Words for the first difference, "" if there is none."""
    kind, length, grace = drawn.windows
    told: Told = (sessions if kind == "sessions" else tumbling)(records_of(drawn), length, grace)
    pairs = sorted(
        zip(told.windows, told.closed, strict=True),
        key=lambda pair: (pair[0].partition, _bytes(pair[0].key), pair[0].start),
    )
    if len(pairs) != len(table):
        return f"{len(table)} windows, where {len(pairs)} are right: {table}"
    for (window, closed), row in zip(pairs, table, strict=True):
        expected = (window.partition, window.key, window.start, window.end, "closed" if closed else "open")
        got = (row["partition"], plain(row["key"]), row["window_start_ms"], row["window_end_ms"], row["status"])
        if expected != got:
            return f"window {got}, where {expected} is right"
        for name, (word, column) in drawn.results.items():
            values = [1] * drawn.size if column is None else drawn.columns[column].rows
            mine = [values[i] for i in window.rows]
            if drawn.frame == "pandas" and word in ("first", "last") and "nan" in mine:
                continue  # NaN is a value in some columns of pandas, a missing one in others
            right = RESULTS[word](mine)
            if not _is_equal(row[name], right, drawn):
                return f"{word} of {column} in {expected} is {row[name]!r}, where {right!r} is right"
    lost = sorted((row["partition"], row["offset"], row["reason"]) for row in dropped)
    if lost != sorted(told.dropped):
        return f"dropped {lost}, where {sorted(told.dropped)} is right"
    if drawn.emit == "on_window_close":
        right_count = sum(told.closed)
        return "" if len(changelog) == right_count else f"{len(changelog)} finals, where {right_count} are right"
    names = ("what", "partition", "offset", "key", "window_start_ms", "window_end_ms")
    sent = [tuple(plain(row[name]) for name in names) for row in changelog]
    return "" if sent == told.updates else f"sent {sent}, where {told.updates} is right"


def _bytes(key: Any) -> bytes:
    if isinstance(key, int):
        return (key % 2**64).to_bytes(8, "big")
    return key.encode() if isinstance(key, str) else bytes(key)


def _is_equal(got: Any, right: Any, drawn: Case) -> bool:
    if right is UNTELLABLE:
        return True
    got = plain(got)
    if isinstance(right, float) and got != right:  # a mean; both may be infinite
        return got is not None and abs(float(got) - right) <= 1e-9 * max(1, abs(right))
    if drawn.frame == "pandas":  # where NaN and a missing value are one
        return bool(_without_nan(got) == _without_nan(right))
    return bool(got == right)


def _without_nan(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_without_nan(part) for part in value)
    return None if value == "nan" else value


if __name__ == "__main__":
    print(check(random.randrange(2**31), 100))
