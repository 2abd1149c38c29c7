"""Names that people guess: which one exists for what they mean, or why there is none."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from sessionkit.errors import UnknownName, problem

C = TypeVar("C", bound=type)

# The name that exists, and what is tried instead: by pandas, Polars, Spark, Flink and Kafka Streams.
OF_A_RUN = {
    "table": "to_pandas toPandas to_frame df dataframe result results windows sessions collect head to_csv to_parquet",
    "plane": "plot show draw figure chart timeline",
    "dropped": "late late_records drops dropped_records",
    "metrics": "stats statistics counts counters",
    "summary": "describe info",
    "changelog": "updates events emitted to_stream toStream",
    "write_html": "to_html save",
    "explain": "why",
}
OF_A_PLAN = {
    "aggregate": "agg sum min max mean avg first last collect",
    "windowed_by": "window windows_by windowedBy windowing",
    "with_windows": "with_grace with_gap replace",
    "run": "execute apply start fit transform table",
    "emit": "emit_strategy emitStrategy output_mode",
    "to_ksql": "to_sql to_ksqldb",
    "code": "to_python",
}
OF_THE_PACKAGE = {
    "TimeWindows": "TumblingWindows HoppingWindows Tumble Hop TimeWindow tumbling hopping",
    "SessionWindows": "Session Sessions SessionWindow session_window",
    "SlidingWindows": "Sliding SlidingWindow sliding",
    "sessionize": "sessionise session sessions sessionized",
    "group_by_key": "groupby group_by groupByKey GroupBy KStream StreamsBuilder",
    "mean": "avg average",
    "aggregation": "agg std var variance median quantile",
    "collect": "nunique count_distinct n_unique collect_list collect_set unique",
    "open_store": "Stores MemoryStore RocksDBStore store",
    "load_sample": "load_data sample example",
    "sweep": "grid grid_search",
}
WITHOUT_COUNTERPART = {
    "UnlimitedWindows": "a window that never closes is a plain group by, and sessionkit has none",
    "JoinWindows": "sessionkit aggregates one stream, and joins none",
    "join": "sessionkit aggregates one stream, and joins none",
    "cogroup": "put the streams into one frame, and name each aggregation in plan.aggregate(…)",
    "KTable": "plan.run(data).table() has the last value of each window",
    **dict.fromkeys(("read_csv", "read_parquet", "read_json", "read"), 'plan.run("clicks.csv") reads files itself'),
    **dict.fromkeys(("Duration", "timedelta"), 'lengths are written as text, such as "30m"'),
}


def unknown_name(owner: object, shown: str, name: str, guessed: Mapping[str, str]) -> AttributeError:
    """The error for a name that `owner`, which users write as `shown`, does not have.

    Example:
        >>> print(unknown_name(plan, "plan", "windowed", OF_A_PLAN))
        plan has no such name; got windowed; plan.windowed_by: The plan with these windows.
    """
    if name.startswith("_"):  # asked for by Python, copy, IPython and others
        return AttributeError(f"{shown} has no attribute {name!r}")
    offered = [each for each in dir(owner) if not each.startswith("_")]
    near = [each for each, others in guessed.items() if name in others.split() and each in offered]
    near += difflib.get_close_matches(name, offered, 1)
    if name in WITHOUT_COUNTERPART:
        want = WITHOUT_COUNTERPART[name]
    elif near:
        want = f"{shown}.{near[0]}: {_first_line(owner, near[0])}"
    else:
        want = f"dir({shown}) lists the names"
    return UnknownName(problem(f"{shown} has no such name", name, want))


def _first_line(owner: Any, name: str) -> str:
    found = getattr(owner if hasattr(owner, "__path__") else type(owner), name, None)
    return (getattr(found, "__doc__", None) or "").partition("\n")[0]


def answers_guesses(shown: str, guessed: Mapping[str, str]) -> Callable[[C], C]:
    """Makes the objects of a class, which users write as `shown`, answer a name that they lack with the one meant.

    Example:
        >>> try:
        ...     plan.windowing
        ... except AttributeError as error:
        ...     print(error)
        plan has no such name; got windowing; plan.windowed_by: The plan with these windows.
    """

    def decorate(kind: C) -> C:
        def missing(self: object, name: str) -> Any:
            raise unknown_name(self, shown, name, guessed)

        kind.__getattr__ = missing  # type: ignore[attr-defined]  # so that a checker of types still refuses the name
        return kind

    return decorate
