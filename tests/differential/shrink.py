"""Makes a differing case smaller, as long as it still differs."""

import json
import time
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

from tests.differential.compare import Difference
from tests.differential.draw import Case, with_last_commit
from tests.differential.draw_times import smallest_retention

Differs = Callable[[Case], bool]

SIMPLER: dict[str, tuple[Any, ...]] = {  # the simplest first
    "caching": (False,),
    "store": ("in_memory",),
    "emit": ("on_update",),
    "aggregation": ("count", "sum", "collect"),
}
OPTIONAL = ("queries", "commit_after", "emit_interval_ms", "negative_timestamps", "restarts", "built_in", "suppress")
SIMPLE_KEYS = {"text": "a", "int": "1", "bytes": "YQ=="}


def is_valid(case: Case) -> bool:
    """True if Kafka accepts the parameters."""
    window = case["window"]
    if window.get("gap_ms", 0) < 0 or window.get("difference_ms", 1) < 1 or window.get("size_ms", 1) < 1:
        return False
    if not 1 <= window.get("advance_ms", 1) <= window.get("size_ms", 1) or window["grace_ms"] < 0:
        return False
    if with_last_commit(case) != case:
        return False
    if any(_record_of(each) >= len(case["records"]) - 1 for each in case.get("restarts", ())):
        return False
    smallest = smallest_retention(window)
    return bool(case["records"]) and window.get("retention_ms", smallest) >= smallest


def shrink(case: Case, differs: Differs, seconds: float = 60) -> Case:
    """A smaller case that still differs: greedy, until no step helps or the time is up."""
    deadline, best, is_smaller = time.monotonic() + seconds, case, True
    while is_smaller:
        is_smaller = False
        for candidates in (_fewer_records, _fewer_queries, _simpler_parameters, _simpler_records):
            # the candidates are made from the best so far: begin anew after every success
            found: Case | None = best
            while found is not None:
                found = _first(candidates(best), differs, deadline)
                if found is not None:
                    best, is_smaller = found, True
        if time.monotonic() > deadline:
            break
    return best


def _first(candidates: Iterator[Case], differs: Differs, deadline: float) -> Case | None:
    for candidate in candidates:
        if time.monotonic() > deadline:
            return None
        if is_valid(candidate) and differs(candidate):
            return candidate
    return None


def _without(case: Case, start: int, stop: int) -> Case:
    """The case without some records; commits keep to their records."""
    kept = [i for i in range(len(case["records"])) if not start <= i < stop]
    smaller = {**case, "records": [case["records"][i] for i in kept]}
    for name in ("commit_after", "restarts"):
        if name in case:
            told = {_record_of(each): each for each in case[name]}
            smaller[name] = [_at_record(told[old], new) for new, old in enumerate(kept) if old in told]
    return with_last_commit(smaller)


def _record_of(each: Any) -> int:
    """The record after which there is a commit, or a restart of some kind."""
    return each if isinstance(each, int) else each[0]


def _at_record(each: Any, record: int) -> Any:
    return record if isinstance(each, int) else [record, each[1]]


def records_read(case: Case) -> list[int]:
    """The records in the order in which the task reads them: after a kill those since the last commit again."""
    read: list[int] = []
    kills = [each[0] for each in case.get("restarts", ()) if not isinstance(each, int) and each[1] == "killed"]
    stops = [_record_of(each) for each in case.get("restarts", ())]
    commits = {*case.get("commit_after", range(len(case["records"]))), *(stop for stop in stops if stop not in kills)}
    record = committed = -1
    while record < len(case["records"]) - 1:
        record += 1
        read.append(record)
        committed = record if record in commits else committed
        if record in kills:
            kills.remove(record)
            record = committed
    return read


def _pieces(count: int) -> Iterator[tuple[int, int]]:
    size = count // 2
    while size >= 1:
        for start in range(0, count, size):
            yield start, min(start + size, count)
        size //= 2


def _fewer_records(case: Case) -> Iterator[Case]:
    for start, stop in _pieces(len(case["records"])):
        yield _without(case, start, stop)


def _fewer_queries(case: Case) -> Iterator[Case]:
    queries = case.get("queries", [])
    for start, stop in _pieces(len(queries)):
        yield {**case, "queries": queries[:start] + queries[stop:]}


def _simpler_parameters(case: Case) -> Iterator[Case]:
    for name in OPTIONAL:
        if name in case:
            yield {key: value for key, value in case.items() if key != name}
    for name, values in SIMPLER.items():
        current = case[name]
        for value in values[: values.index(current)] if current in values else values:
            yield {**case, name: value}
    window = case["window"]
    if "retention_ms" in window:
        yield {**case, "window": {k: v for k, v in window.items() if k != "retention_ms"}}
    for name, value in window.items():
        if name != "kind":
            for smaller in _smaller(value):
                yield {**case, "window": {**window, name: smaller}}
    for name in ("commit_after", "restarts"):
        for start in case.get(name, []):
            yield {**case, name: [i for i in case[name] if i != start]}
    if case.get("partitions", 1) > 1:
        yield {**_without_partitions(case), "queries": []}
    for name, value in case.get("suppress", {}).items():
        if name != "wait_ms":
            yield {**case, "suppress": {key: each for key, each in case["suppress"].items() if key != name}}
        if isinstance(value, int):
            yield from ({**case, "suppress": {**case["suppress"], name: smaller}} for smaller in _smaller(value))
    if isinstance(case["caching"], dict):
        yield from ({**case, "caching": {"bytes": size}} for size in _smaller(case["caching"]["bytes"]))
    for divisor in (10, 3, 2):
        yield _scaled(case, divisor)


def _without_partitions(case: Case) -> Case:
    records = [{name: value for name, value in r.items() if name != "partition"} for r in case["records"]]
    return {**{name: value for name, value in case.items() if name != "partitions"}, "records": records}


def _smaller(number: int) -> list[int]:
    return sorted({each for each in (0, 1, 10, number // 2, number - 1) if 0 <= each < number})


def _scaled(case: Case, divisor: int) -> Case:
    smaller = deepcopy(case)
    for name in smaller["window"].keys() - {"kind"}:
        smaller["window"][name] //= divisor
    for record in smaller["records"]:
        record["timestamp"] //= divisor
    return smaller if smaller != case else {**case, "records": []}


def _simpler_records(case: Case) -> Iterator[Case]:
    records = case["records"]
    for change in ({"wall_advance_ms": None}, {"key": SIMPLE_KEYS[case.get("keys", "text")]}, {"value": 1}):
        yield from _changed(case, [{**r, **change} for r in records])
    names = {key: "abcdefgh"[i] for i, key in enumerate(sorted({r["key"] for r in records if r["key"] is not None}))}
    if not case.get("queries") and len(names) <= 8:
        text = {name: value for name, value in case.items() if name != "keys"}
        yield from _changed(text, [{**r, "key": names.get(r["key"])} for r in records])
    lowest = min(r["timestamp"] for r in records)
    for less in (lowest, lowest - lowest % 60_000, lowest // 2):
        yield from _changed(case, [{**r, "timestamp": r["timestamp"] - less} for r in records])
    for i, record in enumerate(records):
        for key, value in (("key", SIMPLE_KEYS[case.get("keys", "text")]), ("value", 1), ("wall_advance_ms", None)):
            yield from _changed(case, [*records[:i], {**record, key: value}, *records[i + 1 :]])
        before = records[i - 1]["timestamp"] if i else 0
        for time_ms in sorted({before, 0, record["timestamp"] // 2, record["timestamp"] - 1}):
            if 0 <= time_ms < record["timestamp"]:
                yield from _changed(case, [*records[:i], {**record, "timestamp": time_ms}, *records[i + 1 :]])


def _changed(case: Case, records: list[dict[str, Any]]) -> Iterator[Case]:
    """The case with these records, if that is a change."""
    records = [{k: v for k, v in r.items() if (k, v) != ("wall_advance_ms", None)} for r in records]
    if records != case["records"]:
        yield {**case, "records": records}


def describe(case: Case, difference: Difference, ours: dict[str, Any], kafka: dict[str, Any]) -> str:
    """The case as a line of JSON, and both answers around the first difference."""
    lines = ["case:", json.dumps(case, ensure_ascii=False), f"differs first in {difference.where}"]
    if difference.record is not None:
        for i in range(max(0, difference.record - 1), difference.record + 1):
            record = records_read(case)[i]
            lines.append(f"record {record}: {json.dumps(case['records'][record], ensure_ascii=False)}")
            for name, answer in (("sessionkit", ours), ("kafka", kafka)):
                lines.append(f"  {name:10} {json.dumps(answer['per_record'][i], ensure_ascii=False)}")
    else:
        for name, part in (("sessionkit", difference.ours), ("kafka", difference.kafka)):
            lines.append(f"  {name:10} {part if isinstance(part, str) else json.dumps(part, ensure_ascii=False)}")
    return "\n".join(lines)
