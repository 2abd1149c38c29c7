"""`make bench`: makes its own data, runs each pair side by side in turn, and prints the table.

Read the ratios: both sides of a pair run right after each other, and the machine's mood is in both. A benchmark never
fails a test.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
from typing import Any

from benchmarks import soak, stream, widgets
from benchmarks.data import kept_apart, one_busy_key, shuffled, steady, visits
from benchmarks.jobs import run

ROUNDS = 3
WHAT = [
    "finals",
    "trace",
    "rows",
    "busy-key",
    "windows",
    "sliding",
    "state",
    "sweep",
    "widgets",
    "spark",
    "stream",
    "start",
]


def _pair(one: str, other: str, path: str, rounds: int, repeats: int) -> list[dict[str, Any]]:
    """Both jobs in turn, `rounds` times, each in fresh processes."""
    sides: list[list[dict[str, Any]]] = [[], []]
    for _ in range(rounds):
        for side, name in enumerate((one, other)):
            sides[side].append(run(name, path, repeats))
    return [
        {
            "name": name,
            "seconds": [min(result["seconds"]) for result in results],
            "peak_mib": max(result["peak_mib"] for result in results),
            "rows": results[0]["rows"],
        }
        for name, results in zip((one, other), sides, strict=True)
    ]


def _show(title: str, sides: list[dict[str, Any]], memory: bool = True) -> None:
    print(f"\n{title}")
    for side in sides:
        spread = f"{min(side['seconds']):.2f}-{max(side['seconds']):.2f}"
        peak = f", peak {side['peak_mib']:,.0f} MiB" if memory else ""
        print(f"  {side['name']:<24} {statistics.median(side['seconds']):6.2f} s  ({spread}){peak}")
    ratios = [b / a for a, b in zip(sides[0]["seconds"], sides[1]["seconds"], strict=True)]
    print(
        f"  ratio, pair by pair      {statistics.median(ratios):6.1f}    ({min(ratios):.1f}-{max(ratios):.1f})",
        flush=True,
    )


def _sliding(records: int) -> None:
    path, names = str(steady(records)), ("sliding_over_4", "sliding_over_100", "sliding_over_1800")
    print(f"\nSliding final results (count, sum of whole numbers), {records:,} records, 1 % of them partly late")
    best: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(2):
        for name in names:
            best[name].append(min(run(name, path, 1)["seconds"]))
    for name, seconds in best.items():
        cost = [each / records * 1e9 for each in seconds]
        print(f"  {name:<24} {min(cost):6.0f} ns a record ({min(cost):.0f}-{max(cost):.0f})")
    print(f"  from the first to the last {min(best[names[-1]]) / min(best[names[0]]):.2f} times the cost", flush=True)


def _state(path: str) -> None:
    print("\nLoading and committing 100,000 sessions, beside one run over a million records from an Arrow table")
    seconds = {name: min(run(name, path, 5)["seconds"]) for name in ("one_run", "state_in_memory", "state_on_rocksdb")}
    for name, each in seconds.items():
        print(f"  {name:<24} {each * 1e3:6.0f} ms, {each / seconds['one_run']:.1f} of a run", flush=True)


SPARK_STAGES = {
    "any input": ["scan", "scan_arrow", "shuffle", "shuffle_order"],
    "a row group a partition": ["read"],
}


def _spark(records: int) -> None:
    """Both layouts beside Spark's own windows; then what the way of the records costs up to each stage of it."""
    layouts = {"any input": shuffled(records), "a row group a partition": kept_apart(records)}
    for layout, folder in layouts.items():
        sides = _pair("spark_sessionkit", "spark_session_window", str(folder), 2, 2)
        _show(f"Spark, local[2], {layout}: exact sessions, against Spark's own session_window", sides, memory=False)
        print(f"\nSpark, {layout}: where the time goes, up to each stage; and other ways to run")
        stages = [f"stage_{stage}" for stage in SPARK_STAGES[layout]]
        for stage in (*stages, "spark_sessionkit", "spark_sessionkit_trace", "spark_sessionkit_by_key"):
            print(f"  {stage:<24} {min(run(stage, str(folder), 2)['seconds']):6.2f} s", flush=True)


def main() -> None:
    """Runs what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("what", nargs="*", choices=[*WHAT, "soak", []], default=[])
    parser.add_argument("--records", type=int, default=10_000_000)
    options = parser.parse_args()
    what = options.what or WHAT
    print(f"Python {platform.python_version()}, {os.cpu_count()} processors, {options.records:,} records")
    path = str(visits(options.records))
    if "finals" in what:
        sides = _pair("sessionkit_finals", "polars_sessions", path, ROUNDS, 3)
        _show("Parquet to final sessions (count, sum), without keeping the trace", sides)
    if "trace" in what:
        sides = _pair("sessionkit_trace", "polars_sessions", path, ROUNDS, 3)
        _show("Parquet to final sessions, with every record's decision kept", sides)
    if "rows" in what:
        for idiom in ("polars_rows_over", "polars_rows_taken"):
            sides = _pair("sessionize_rows", idiom, path, ROUNDS, 3)
            _show("Each row of a polars frame with its session (six columns more)", sides)
    if "busy-key" in what:
        count = options.records // 10
        sides = _pair("sessionkit_finals", "sessionkit_never_late", str(visits(count)), 1, 3)
        busy = run("sessionkit_never_late", str(one_busy_key(count)), 3)
        ordinary, worst = min(sides[0]["seconds"]) / count * 1e9, min(busy["seconds"]) / count * 1e9
        print(f"\nOne key with {busy['rows']:,} open sessions, arriving in no order, end to end")
        print(
            f"  ordinary record {ordinary:.0f} ns, such a record {worst:.0f} ns: {worst / ordinary:.1f} times as much",
            flush=True,
        )
    if "windows" in what:
        for kind, words in (("tumbling", "Tumbling, 5 min"), ("hopping", "Hopping, 5 min every minute")):
            for other in ("polars", "duckdb"):
                sides = _pair(f"sessionkit_{kind}", f"{other}_{kind}", path, ROUNDS, 2)
                _show(f"{words}: Parquet to table (count, sum), beside {other} without lateness", sides)
    if "sliding" in what:
        _sliding(options.records)
    if "state" in what:
        _state(str(visits(1_000_000)))
    if "sweep" in what:
        print("\nA sweep of 20 gaps by 20 graces: 400 exact runs of the same records")
        for name, records in (("sweep_flights", 28_491), ("sweep_million", 1_000_000)):
            seconds = min(run(name, str(visits(1_000_000)), 2)["seconds"])
            print(f"  {records:,} records: {seconds:.1f} s, {seconds / 400 * 1e3:.1f} ms a run", flush=True)
    if "widgets" in what:
        widgets.measure()
    if "stream" in what:
        stream.measure(2)
    if "soak" in what:
        soak.measure()
    if "spark" in what:
        _spark(options.records)
    if "start" in what:
        seconds = run("first_table", path, 5)["seconds"]
        print(
            f"\nFresh process, import to first table of the flights: {statistics.median(seconds):.2f} s "
            f"({min(seconds):.2f}-{max(seconds):.2f})"
        )


if __name__ == "__main__":
    main()
