"""Sessions of all shapes, of frames, with other values, of large data and over a state."""

from __future__ import annotations

from benchmarks.model import OURS, Case, Side, Topic, of
from benchmarks.shapes import SHAPES

FINALS = Side(OURS, "sessions.finals")
POLARS = Side("Polars", "peers.polars_sessions")
CODED = Side("Polars, keys coded first", "peers.polars_sessions", {"coded": True})
DUCKDB = Side("DuckDB", "peers.duckdb_sessions").slow
PANDAS = Side("pandas", "peers.pandas_sessions").slow
SPARK = Side("Spark", "peers.spark_sessions").slow
WORDS = {
    "zipf-text": "Text keys, few of which have most records",
    "uniform-text": "Text keys, all alike",
    "zipf-integers": "Integer keys, few of which have most records",
    "uniform-integers": "Integer keys, all alike",
    "sparse-integers": "Sparse integer keys: three of four records open a session of their own",
}


def topic(records: int) -> Topic:
    cases = []
    for name in SHAPES:
        sides = [FINALS, POLARS, *([CODED] if name.endswith("text") else []), DUCKDB]
        if name == "zipf-text":
            sides += [PANDAS, SPARK]
        cases.append(Case(WORDS[name], **of(name, records), sides=tuple(sides), same="records"))
    sides = (Side(OURS, "sessions.with_trace"), POLARS)
    cases.append(
        Case(
            "The first of them, with the decision on each record",
            **of("zipf-text", records),
            sides=sides,
            same="records",
        )
    )
    words = (
        "From a Parquet file to the table of final sessions, with count and sum. The peers sort by key and time and "
        "cut where the pause is longer than the gap; they know no arrival order, no grace and no late records. No "
        "record of this data is so late that it would be dropped."
    )
    return Topic("sessions", "Sessions", words, tuple(cases))


def doors_topic(records: int) -> Topic:
    data = of("zipf-text", records)
    frames = {
        "A pyarrow table": "pyarrow",
        "A Polars frame": "polars",
        "A pandas frame, text objects that repeat": "pandas, objects that repeat",
        "A pandas frame, a text object a row": "pandas, an object a row",
    }
    peer = Side("Polars, from its own frame", "peers.polars_sessions", {"in_memory": True})
    cases = [
        Case(words, **data, sides=(Side(OURS, "sessions.from_frame", {"frame": frame}), peer), same="records")
        for words, frame in frames.items()
    ]
    rows = (Side(OURS, "sessions.sessionized"), Side("Polars", "peers.polars_rows"))
    cases.append(Case("Each row of a Polars frame with its session", **data, sides=rows))
    return Topic("frames", "Frames in memory", "Sessions of the first shape, from a frame to the table.", tuple(cases))


def rules_topic(records: int) -> Topic:
    rules = {
        "A changed value": {"new_when": "campaign"},
        "An event that starts a session": {"starts_when": ("event", 1)},
        "An event that ends one": {"ends_when": ("event", 1)},
        "Midnight": {"new_at": "midnight"},
    }
    cases = []
    for words, rule in rules.items():
        peer = Side("Polars", "peers.polars_rows", {"rule": next(iter(rule))})
        sides = (Side(OURS, "sessions.sessionized", rule), peer)
        cases.append(Case(words, **of("uniform-integers", records), sides=sides))
    words = "Each row of a Polars frame with its session, which a rule cuts beside the gap."
    return Topic("rules", "Rules of sessions", words, tuple(cases))


def values_topic(records: int) -> Topic:
    def case(words: str, value: str, size: int) -> Case:
        sides = (Side(OURS, "sessions.finals", {"value": value}), Side(f"{OURS}, a sum", "sessions.finals"))
        return Case(words, **of("zipf-text", size), sides=sides)

    cases = (
        case("All values of a session, in a list", "collect", records),
        case("A function of the user's in Python", "python", records // 10),
    )
    return Topic("values", "Other values", "Beside a built-in sum of the same records.", cases)


def memory_topic(records: int) -> Topic:
    once = Side(OURS, "sessions.finals", repeats=0)
    many = Side(f"{OURS}, 64 threads", "sessions.finals_in_threads", {"threads": 64}, repeats=0)
    words = (
        "In a fresh process, which ends with the result in memory. With 64 threads it takes about as much memory as a "
        "machine with 64 processors does; how long it takes says nothing where there are fewer."
    )
    case = Case(
        f"{WORDS['sparse-integers']}, once", **of("sparse-integers", records), sides=(once, many), same="records"
    )
    return Topic("memory", "Large data", words, (case,))


def states_topic(records: int) -> Topic:
    sides = (
        Side("ten runs over a state in memory", "sessions.state", {"kind": "memory"}, 1),
        Side("one run", "sessions.state", {}, 1),
    )
    case = Case("Ten parts, with a grace of half a day", **of("sparse-integers", records), sides=sides)
    words = "The records in ten parts, each of them a run that goes on where the one before ended, beside one run."
    return Topic("state", "State between runs", words, (case,))
