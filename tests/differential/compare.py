"""Where two answers to one case differ first."""

from __future__ import annotations

from typing import Any, NamedTuple


class Difference(NamedTuple):
    """The first field that differs, in the order in which things happen."""

    where: str
    ours: Any
    kafka: Any
    record: int | None = None


# Failures that are nothing but faults of Kafka 4.3.1; sessionkit may fail at the same record or go on.
FAULTS = (
    # a cached RocksDB store looks into a segment before time 0, as sessions do where time - gap <= -60000
    ("IllegalStateException", "segment interval has changed"),
    # a cached store under sliding windows meets a window that an aggregator's null has deleted since the last commit
    ("NullPointerException", '"next.value" is null'),
)


def fault_of(kafka: dict[str, Any]) -> str | None:
    """The fault of its own by which Kafka failed; None if it did not, or rightly."""
    error = kafka.get("error", {"class": "", "message": ""})
    is_known = any(error["class"] == name and words in error["message"] for name, words in FAULTS)
    return f"{error['class']}: {error['message']}" if is_known else None


def is_faulty_read(case: dict[str, Any], query: dict[str, Any], mine: Any, theirs: Any) -> bool:
    """True if the reads differ only by the record cache over RocksDB, which takes wrong segments for some time ranges.

    Reading sessions backwards it also takes the latest start for the latest end, and so misses cached sessions.
    """
    if not (case["caching"] and case["store"] == "rocksdb"):
        return False
    if isinstance(theirs, dict):
        is_backward = query["op"] in ("backward_fetch", "backward_find_sessions")
        return theirs.get("error") == "IllegalStateException" or (
            theirs.get("error") == "IllegalArgumentException" and case["window"]["kind"] == "session" and is_backward
        )
    if query["op"] != "backward_find_sessions" or not isinstance(mine, list):
        return False
    missed = [session for session in mine if session not in theirs]
    return [s for s in mine if s in theirs] == theirs and all(s["window_end"] > query["to"] for s in missed)


def faulty_reads(case: dict[str, Any], ours: dict[str, Any], kafka: dict[str, Any]) -> int:
    """How many reads differ, but only by Kafka's faults."""
    answers = zip(case.get("queries", []), ours.get("query_results", []), kafka.get("query_results", []), strict=False)
    return sum(mine != theirs and is_faulty_read(case, query, mine, theirs) for query, mine, theirs in answers)


def first_difference(case: dict[str, Any], ours: dict[str, Any], kafka: dict[str, Any]) -> Difference | None:
    """The first difference; None if there is none.

    Errors are equal when both fail at the same record: class and words are each one's own. What comes after a fault of
    Kafka's own (see FAULTS) is not compared.
    """
    if "crash" in ours:
        return Difference("sessionkit raised", ours["crash"], kafka.get("error", "an answer"))
    ours, kafka = ({**answer, "per_record": _steps(case, answer["per_record"])} for answer in (ours, kafka))
    for i, (mine, theirs) in enumerate(zip(ours["per_record"], kafka["per_record"], strict=False)):
        for field, absent in (("outputs", []), ("flushed", []), ("dropped_total", 0)):
            if mine.get(field, absent) != theirs.get(field, absent):
                where = f"per_record[{i}].{field}"
                return Difference(where, mine.get(field, absent), theirs.get(field, absent), i)
    counts = [len(answer["per_record"]) for answer in (ours, kafka)]
    if fault_of(kafka) and counts[0] >= counts[1]:
        return None
    failed = [answer["error"]["after_record"] if "error" in answer else None for answer in (ours, kafka)]
    if failed[0] != failed[1]:
        return Difference("error", ours.get("error"), kafka.get("error"))
    if counts[0] != counts[1]:
        return Difference("number of records answered", *counts)
    return None if "error" in kafka else _at_the_end(case, ours, kafka)


def _steps(case: dict[str, Any], steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Kafka's oracle cannot tell apart what an eviction and what a commit sent: both come out together."""
    if case["caching"] is True or not case["caching"]:
        return steps
    return [{**step, "outputs": [*step["outputs"], *step.get("flushed", [])], "flushed": []} for step in steps]


def _at_the_end(case: dict[str, Any], ours: dict[str, Any], kafka: dict[str, Any]) -> Difference | None:
    if ours["final_store"] != kafka["final_store"]:
        return Difference("final_store", ours["final_store"], kafka["final_store"])
    answers = [answer.get("query_results", []) for answer in (ours, kafka)]
    if len(answers[0]) != len(answers[1]):
        return Difference("number of query_results", len(answers[0]), len(answers[1]))
    for i, (mine, theirs) in enumerate(zip(*answers, strict=True)):
        if mine != theirs and not is_faulty_read(case, case["queries"][i], mine, theirs):
            return Difference(f"query_results[{i}]", mine, theirs)
    for name, total in ours["metrics"].items():
        if total != kafka["metrics"].get(name):
            return Difference(f"metrics {name}", total, kafka["metrics"].get(name))
    return None
