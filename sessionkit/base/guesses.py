"""Names that people guess: which one exists for what they mean, or why there is none."""

from __future__ import annotations

import difflib
import inspect
from typing import Any

from sessionkit.errors import UnknownName, problem

# The name that exists, and what is tried instead: by pandas, Polars, Spark, Flink and Kafka Streams.
OF_A_RUN = {
    "table": "to_pandas toPandas to_frame df dataframe result results windows sessions collect head to_csv to_parquet "
    "groupby shape columns sort_values count iloc loc write_parquet",
    "plane": "plot show draw figure chart timeline",
    "dropped": "late late_records drops dropped_records",
    "metrics": "stats statistics counts counters",
    "summary": "describe info",
    "changelog": "updates events emitted to_stream toStream",
    "write_html": "to_html html save page",
    "explain": "why",
    "steps": "journey journeys path paths funnel sequence labels",
}
OF_A_PLAN = {
    "aggregate": "agg avg nunique n_unique",
    "windowed_by": "window windows_by windowedBy windowing",
    "with_windows": "with_grace with_gap replace",
    "run": "execute apply start fit transform table",
    "emit": "emit_strategy emitStrategy output_mode",
    "to_ksql": "to_sql to_ksqldb",
    "code": "to_python",
}
OF_A_RESULT = {
    "figure": "plot show draw chart plane lanes",
    "heat_map": "figure plot show draw chart heatmap",
    "table": "to_pandas toPandas to_frame df dataframe result results collect head to_csv",
    "words": "text summary describe explain remarks",
    "code": "save write text to_file write_java",
}
OF_THE_PACKAGE = {
    "TimeWindows": "TumblingWindows HoppingWindows Tumble Hop TimeWindow tumbling hopping tumbling_windows",
    "SessionWindows": "Session Sessions SessionWindow session_window",
    "SlidingWindows": "Sliding SlidingWindow sliding",
    "sessionize": "sessionise session sessions sessionized",
    "group_by_key": "groupby group_by groupByKey GroupBy KStream StreamsBuilder",
    "mean": "avg average",
    "count": "size",
    "count_distinct": "nunique n_unique countDistinct distinct approx_count_distinct",
    "top": "mode value_counts topk most_common most_frequent approx_top_k",
    "quantile": "percentile approx_quantile p95 p99",
    "std": "stddev stdev stddev_samp",
    "latest": "max_by latest_by_offset arg_max argmax",
    "earliest": "min_by earliest_by_offset arg_min argmin",
    "aggregation": "agg var variance",
    "collect": "collect_list collect_set unique nlargest list set",
    "open_store": "Stores MemoryStore RocksDBStore store",
    "load_sample": "load_data sample example",
    "sweep": "grid grid_search",
}
OF_A_STORE = {"to_pandas": "to_polars to_frame table df items keys values", "fetch": "get", "all": "scan rows"}
GUESSED = {"run": OF_A_RUN, "plan": OF_A_PLAN, "sk": OF_THE_PACKAGE, "store": OF_A_STORE}
# Names of parameters and what is tried instead; a name that is like another by its letters alone misleads.
PARAMETERS = {
    "inactivity_gap": "gap timeout",
    "size": "length width duration window",
    "advance": "slide hop every step period",
    "time_difference": "difference range",
    "grace": "lateness allowed_lateness watermark",
    "timestamp": "time ts event_time on",
    "from_offset": "first offset start since",
    "until_offset": "last end until",
    "gap": "timeout inactivity_gap session_gap",
    "at": "time ts timestamp event_time on",
    "by": "key keys user group",
    "max_length": "max_duration duration longest",
    "max_rows": "max_events max_records",
}
OF_RECORDS = ["sort", "partition", "offset", "timezone", "format", "unit", "on_bad_time", "ambiguous", "nonexistent"]
RULES_OF_SESSIONS = ("until", "max_length", "max_rows", "new_when", "starts_when", "ends_when", "new_at")
_AS_OF = "results as of a moment are those of the records that had come by then: plan.run(df[df.received <= then])"
_WHERE = 'sk.sum("won") of a column of truths: df["won"] = df["result"] == "won"'
NEEDLESS = {  # why there is no such one
    **{("plan.run", name): f'{name}= belongs to sk.group_by_key("user", timestamp="at", …)' for name in OF_RECORDS},
    **dict.fromkeys(
        (("plan.run", name) for name in ("gap", "inactivity_gap", "grace", "size", "advance", "time_difference")),
        'plan.with_windows(grace="5m") has other lengths',
    ),
    ("plan.run", "label"): 'label= belongs to sk.group_by_key("user", timestamp="at", label="page")',
    **{
        (
            "sk.SessionWindows",
            name,
        ): f"Kafka has no such rule; sk.sessionize(rows, …, {name}=…) has, also of the rows that "
        "counted in a plan: rows = run.assign(data), those that are not late"
        for name in RULES_OF_SESSIONS
    },
    ("sk.TimeWindows", "timezone"): 'sk.CalendarWindows("day", timezone="Europe/Berlin", …) has days of a zone',
    ("sk.CalendarWindows", "offset"): 'sk.TimeWindows(size="1d", offset="6h", …) has days that begin at 6:00 UTC',
    ("sk.sessionize", "sort"): "without a grace any order of the rows will do",
    ("sk.suggest_grace", "arrival"): 'rows stand in the order in which they arrived: df.sort_values("received")',
    **dict.fromkeys([("run.table", "as_of"), ("plan.run", "until"), ("plan.run", "as_of")], _AS_OF),
    **dict.fromkeys([("run.plane", "start"), ("run.plane", "end")], 'run.lanes(start="2026-01-01") takes times'),
    ("sk.count", "where"): _WHERE,
    ("sk.count", "column"): _WHERE,
    ("plan.run", "parallelism"): "plan.run(df).by_key() distributes the records of a Spark DataFrame by key",
}
_SESSIONS, _TIMES = 'sk.SessionWindows(inactivity_gap="30m", grace="5m")', 'sk.TimeWindows(size="1h", grace="5m")'
_SLIDING = 'sk.SlidingWindows(time_difference="10m", grace="5m")'
_ANEW = 'a plan of other columns begins anew, with sk.group_by_key("user", timestamp="at")'
_DAYS = 'sk.CalendarWindows("day", timezone="Europe/Berlin", grace="1h") has days, weeks, months, quarters and years'
_AGGREGATIONS = "collect count_distinct earliest first last latest max mean median min std sum top"
_OWN = "sk.aggregation(…) and sk.reduce(…) take functions of your own, and dir(sk) lists the names"
WITHOUT_COUNTERPART = {
    "UnlimitedWindows": "a window that never closes is a plain group by, and sessionkit has none",
    "JoinWindows": "sessionkit aggregates one stream, and joins none",
    "join": "sessionkit aggregates one stream, and joins none",
    "cogroup": "put the streams into one frame, and name each aggregation in plan.aggregate(…)",
    "compare": "run.compare(other) compares two runs of the same records",
    **dict.fromkeys(("DayWindows", "CalendarDays", "Days", "WeekWindows", "MonthWindows"), _DAYS),
    "KTable": "plan.run(data).table() has the last value of each window",
    "ofInactivityGapAndGrace": _SESSIONS,
    "ofInactivityGapWithNoGrace": _SESSIONS.replace("5m", "0s"),
    "ofSizeAndGrace": _TIMES,
    "ofSizeWithNoGrace": _TIMES.replace("5m", "0s"),
    **dict.fromkeys(("plot", "explain"), "a run has pictures and explanations: run.plane(), run.explain(offset=17)"),
    "of": f"{_TIMES}, {_SESSIONS}",
    "with_": _SESSIONS,
    "groupByKey": 'sk.group_by_key("user", timestamp="at") begins a plan',
    "filter": "leave rows out before: plan.run(df[df.amount > 0])",
    **dict.fromkeys(
        ("map", "map_values", "mapValues", "peek", "assign"), "change columns before: plan.run(df.assign(…))"
    ),
    **dict.fromkeys(("select_key", "selectKey", "groupby", "group_by"), _ANEW),
    **dict.fromkeys(("at", "as_of"), _AS_OF),
    **dict.fromkeys(("advance_by", "advanceBy"), 'sk.TimeWindows(size="1h", advance="5m", grace="5m")'),
    "ofTimeDifferenceAndGrace": _SLIDING,
    "ofTimeDifferenceWithNoGrace": _SLIDING.replace('grace="5m"', 'grace="0s"'),
    "report": 'run.write_html("clicks.html") writes a page, the command "sessionkit report clicks.csv" one with tables',
    **dict.fromkeys(("read_csv", "read_parquet", "read_json", "read"), 'plan.run("clicks.csv") reads files itself'),
    **dict.fromkeys(("count_where", "count_if", "countIf", "sum_if"), _WHERE),
    **dict.fromkeys(("with_source", "with_timestamp", "with_key", "with_keys"), _ANEW),
    **dict.fromkeys(("Duration", "timedelta"), 'lengths are written as text, such as "30m"'),
}


def unknown_name(owner: Any, shown: str, name: str, elsewhere: tuple[type, str] | None = None) -> AttributeError:
    """The error for a name that `owner`, which users write as `shown`, does not have.

    Args:
        elsewhere: a class whose objects may have it, and how one is written.
    Example:
        >>> print(unknown_name(plan, "plan", "windowed"))
        plan has no such name; got windowed; plan.windowed_by: The plan with these windows.
    """
    if name.startswith("_"):  # asked for by Python, copy, IPython and others
        return AttributeError(f"{shown} has no attribute {name!r}")
    offered = [each for each in dir(owner) if not each.startswith("_")]
    guessed = GUESSED.get(shown, OF_A_RESULT)
    meant = [each for each, others in guessed.items() if name in others.split() and each in offered]
    near = meant or difflib.get_close_matches(name, offered, 1)
    if shown == "plan" and name in _AGGREGATIONS.split():
        want = f'plan.aggregate({name}=sk.{name}("amount"))'
    elif elsewhere is not None and name in dir(elsewhere[0]):
        want = f"{elsewhere[1]}.{name}{_first_line(elsewhere[0], name)}"
    elif name in WITHOUT_COUNTERPART and not meant:
        want = WITHOUT_COUNTERPART[name]
    elif near:
        kind = owner if hasattr(owner, "__path__") else type(owner)
        want = f"{shown}.{near[0]}{_first_line(kind, near[0])}"
    else:
        want = _OWN if shown == "sk" else f"dir({shown}) lists the names"
    return UnknownName(problem(f"{shown} has no such name", name, want))


def _first_line(kind: object, name: str) -> str:
    line = (inspect.getdoc(getattr(kind, name, None)) or "").partition("\n")[0]
    return f": {line}" if line else ""
