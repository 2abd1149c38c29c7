"""Audits of random deployments beside Kafka Streams 4.4.0: what each says was sent, and each retention that it names.

Kafka is asked for the case as it is, and for the retentions on both sides of what the audit says of them.
"""

import json
import traceback
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import accumulate
from random import Random
from typing import Any, NamedTuple

import sessionkit as sk
from tests.conformance.cases import STRATEGIES, WALL_CLOCK_START_MS, frame_of, key_text, plan_of
from tests.deployments import audit_deployed
from tests.differential.compare import fault_of
from tests.differential.draw_times import smallest_retention
from tests.differential.oracle import Oracle, OracleFailed
from tests.differential.shrink import shrink
from tests.kinds import in_ms
from tests.reliability._deployments_drawn import Case, draw
from tests.reliability.pieces import Outcome

PIECE = 80
GOAL = 2_000
MOST_SHRUNK = 3
SHRINK_S = 20
MOST_INTERVALS = 3
STORES = {"in_memory": "memory", "rocksdb": "rocksdb"}
GOOD = ("as it should be", "sent twice", "late")

Id = tuple[int, str | None, int, int]  # partition, key, bounds


class Sent(NamedTuple):
    """What came for a window: how often, the last value, at which record."""

    times: int
    value: Any
    at: int


class Question(NamedTuple):
    """A deployment and a retention, and what the audit says of it."""

    case: Case
    audit: sk.Audit
    retention_ms: int
    claim: str  # safe, loses, unknown

    def asked(self) -> Case:
        return _asked({**self.case, "window": {**self.case["window"], "retention_ms": self.retention_ms}})


def check(seed: int, count: int) -> Outcome:
    wrong: dict[str, list[str]] = {}
    noted: Counter[str] = Counter()
    cases = {case["id"]: case for case in (draw(seed, index) for index in range(count))}
    with Oracle() as oracle:
        try:
            for id, text in _found(oracle, cases.values(), noted):
                wrong.setdefault(id, []).append(text)
        except OracleFailed as failed:
            return Outcome(count, [f"seed {seed}: {failed}"], dict(noted))
        told = []
        for place, (id, texts) in enumerate(wrong.items()):
            case = cases[id] if place >= MOST_SHRUNK else _shrunk(oracle, cases[id])
            again = texts if place >= MOST_SHRUNK else [text for _, text in _found(oracle, [case], Counter())]
            told.append("\n".join([f"{id}: {json.dumps(case)}", *(again or texts)]))
    return Outcome(count, told, dict(noted))


def _shrunk(oracle: Oracle, case: Case) -> Case:
    def differs(smaller: Case) -> bool:
        return any(True for _ in list(_found(oracle, [smaller], Counter())))

    return shrink(case, differs, SHRINK_S)


def _found(oracle: Oracle, cases: Iterable[Case], noted: Counter[str]) -> Iterator[tuple[str, str]]:
    """(the case, what is wrong with it), one after the other."""
    crashed: list[tuple[str, str]] = []
    asked: list[Question] = []

    def questions() -> Iterator[Case]:
        for case in cases:
            try:
                mine = _questions(case)
            except Exception:
                crashed.append((case["id"], traceback.format_exc()))
                continue
            noted.update(_met(case, mine))
            for question in mine:
                asked.append(question)
                yield question.asked()

    for place, (_, kafka) in enumerate(oracle.answers(questions())):
        question = asked[place]
        if fault := fault_of(question.case, kafka):
            noted[f"excused: {fault}"] += 1
            continue
        try:
            yield from ((question.case["id"], text) for text in _wrong_in(question, kafka, noted))
        except Exception:
            yield question.case["id"], traceback.format_exc()
    yield from crashed


# ---- what is asked


def _questions(case: Case) -> list[Question]:
    """The retention of the case, and those that the audit says something of."""
    audit = audit_of(case)
    lowest = smallest_retention(case["window"])
    own = case["window"].get("retention_ms", lowest)
    safe, unknown = audit.safe_retentions_ms, audit.unknown_retentions_ms
    wanted = [own, lowest]
    chosen = [*safe[:1], *safe[-1:], *Random(case["id"]).sample(safe, min(MOST_INTERVALS, len(safe)))]
    for first, last in chosen[: MOST_INTERVALS + 1]:
        wanted += [first - 1, first, *(() if last is None else (last, last + 1))]
    if audit.smallest_retention_ms is not None:
        wanted += [audit.smallest_retention_ms - 1, audit.smallest_retention_ms]
    top = audit.recommended_retention_ms or own
    rng = Random(case["id"])
    wanted += [top - 1, top, top + rng.randint(1, max(2, top)), 3 * top + rng.randint(0, 1_000_000)]
    wanted.append(rng.randint(lowest, max(lowest, top)))

    def claim(retention_ms: int) -> str:
        if any(first <= retention_ms and (last is None or retention_ms <= last) for first, last in safe):
            return "safe"
        is_unknown = any(first <= retention_ms and (last is None or retention_ms <= last) for first, last in unknown)
        return "unknown" if is_unknown else "loses"

    return [Question(case, audit, each, claim(each)) for each in dict.fromkeys(wanted) if each >= lowest]


def audit_of(case: Case) -> sk.Audit:
    """The audit of the case as it is."""
    options: dict[str, Any] = {name: case[name] for name in ("caching", "commit_every", "restarts") if name in case}
    if isinstance(options["caching"], dict):
        options["caching"] = f"{options['caching']['bytes']}B"
    interval_ms = case.get("commit_interval_ms")
    options["commit_interval"] = None if interval_ms is None else f"{interval_ms}ms"
    options["emit_interval"] = f"{case.get('emit_interval_ms', 0)}ms"
    if "emit_interval_ms" in case and case.get("clock") != "stream":
        options["wall_clock"] = _clock(case)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "column 'timestamp' read as", UserWarning)
        retention_ms = case["window"].get("retention_ms")
        return audit_deployed(
            plan_of(case), frame_of(case), store=STORES[case["store"]], retention=in_ms(retention_ms), **options
        )


def _clock(case: Case) -> list[int]:
    return [WALL_CLOCK_START_MS + ms for ms in accumulate(r.get("wall_advance_ms", 0) for r in case["records"])]


def _asked(case: Case) -> Case:
    """The case in the oracle's words."""
    every, count = case["commit_every"], len(case["records"])
    commits = _commits_by_clock(case) if every is None else list(range(every - 1, count, every))
    records = case["records"]
    if case.get("clock") == "stream":
        before, records = None, []
        for record, now in zip(case["records"], _stream_times(case), strict=True):
            records.append({**record, "wall_advance_ms": 0 if before is None else now - before})
            before = now
    return {**case, "records": records, "commit_after": sorted({*commits, count - 1})}


def _commits_by_clock(case: Case) -> list[int]:
    """After which records a commit falls due, by the clock of the case."""
    if "commit_interval_ms" not in case:
        return []
    by_wall = "emit_interval_ms" in case and case.get("clock") != "stream"
    clock = _clock(case) if by_wall else list(accumulate(_stream_times(case), max))
    rows: list[int] = []
    started: int | None = None
    for row, now in enumerate(clock):
        is_start = row == 0 or row - 1 in case.get("restarts", ())
        if is_start or started is None or started < 0:  # before the first time there is none
            started = now
        elif now - started > case["commit_interval_ms"]:
            rows.append(row)
            started = now
    return rows


def _stream_times(case: Case) -> list[int]:
    """Stream time of its partition at each record."""
    now: dict[int, int] = {}
    times = []
    for record in case["records"]:
        partition = record.get("partition", 0)
        if is_usable(case, record):
            now[partition] = max(now.get(partition, -1), record["timestamp"])
        times.append(now.get(partition, -1))
    return times


def is_usable(case: Case, record: dict[str, Any]) -> bool:
    """Whether the record reaches a window: sliding ones drop null values."""
    return record["key"] is not None and not (case["window"]["kind"] == "sliding" and record["value"] is None)


# ---- what should have come, and what came


def _wrong_in(question: Question, kafka: dict[str, Any], noted: Counter[str]) -> Iterator[str]:
    if "error" in kafka:
        yield f"retention {question.retention_ms}: Kafka fails: {kafka['error']}"
        return
    case, retention_ms = question.case, question.retention_ms
    expected, again = should_come(case, retention_ms)
    came = _what_came(case, kafka)
    verdicts = {id: verdict(expected.get(id), came.get(id), is_sent_again=id in again) for id in {*expected, *came}}
    bad = {id: each for id, each in verdicts.items() if each not in GOOD}
    waits = _may_wait(case, expected)
    is_decided = bool(bad.keys() - waits) or not bad
    loses = bool(bad)
    noted["undecided as the records end"] += not is_decided
    noted.update(verdicts.values())
    noted[f"{question.claim}, and {'it loses' if loses else 'it does not'}"] += is_decided
    if is_decided and question.claim != "unknown" and loses != (question.claim == "loses"):
        yield f"retention {retention_ms}: the audit says {question.claim}, Kafka: {bad or 'nothing lost or changed'}"
    theirs = {id: (each, came[id].times if id in came else 0) for id, each in verdicts.items()}
    values = {id: sent.value for id, sent in came.items()}
    audit = question.audit if retention_ms == question.audit.settings.retention_ms else None
    audit = question.audit._replay(retention_ms) if audit is None else audit
    said, said_values = _said(audit)
    if said != theirs:
        differing = {id: (said.get(id), theirs.get(id)) for id in {*said, *theirs} if said.get(id) != theirs.get(id)}
        yield f"retention {retention_ms}: window, the audit's verdict, Kafka's: {differing}"
    elif {id: value for id, value in said_values.items() if id in values} != values:
        yield f"retention {retention_ms}: the audit has Kafka's values as {said_values}, they are {values}"
    if is_decided and audit.loses_nothing is loses:
        yield f"retention {retention_ms}: loses_nothing is {audit.loses_nothing}; it {'loses' if loses else 'does not'}"


def _may_wait(case: Case, expected: dict[Id, Sent]) -> set[Id]:
    """Final results that closed so late that there may have been no look for them any more."""
    if case["emit"] != "on_close" or "emit_interval_ms" not in case:
        return set()
    clock = _stream_times(case) if case.get("clock") == "stream" else _clock(case)
    number = [record.get("partition", 0) for record in case["records"]]
    # sliding windows: records that are late or have no value make no look
    looks = [row for row, each in enumerate(case["records"]) if is_usable(case, each)]
    last = {number[row]: clock[row] for row in looks if case["window"]["kind"] != "sliding"}
    interval_ms = case["emit_interval_ms"]
    return {id for id, sent in expected.items() if clock[sent.at] > last.get(id[0], -1) - interval_ms}


def _said(audit: sk.Audit) -> tuple[dict[Id, tuple[str, int]], dict[Id, Any]]:
    rows = audit.table().to_pylist()
    ids = [(r["partition"], key_text(r["key"]), r["window_start_ms"], r["window_end_ms"]) for r in rows]
    said = {id: (row["verdict"], row["sent_count"]) for id, row in zip(ids, rows, strict=True)}
    return said, {id: row["kafka_value"] for id, row in zip(ids, rows, strict=True)}


def verdict(expected: Sent | None, kafka: Sent | None, *, is_sent_again: bool) -> str:
    """How an audit has to call it."""
    if expected is None or kafka is None:
        return "lost" if kafka is None else "only in Kafka"
    if kafka.times > 1 or is_sent_again:
        return "sent twice"
    if kafka.value != expected.value:
        return "other value"
    return "late" if kafka.at > expected.at else "as it should be"


def should_come(case: Case, retention_ms: int) -> tuple[dict[Id, Sent], set[Id]]:
    """The results where no store forgets anything; of sessions those that were final and grew again."""
    kept_ms = max(smallest_retention(case["window"]), retention_ms - 1)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "column 'timestamp' read as", UserWarning)
        rows = plan_of(case).run(frame_of(case), retention=f"{kept_ms}ms").changelog().to_pylist()
    found: dict[Id, Sent] = {}
    for row in rows:
        id = (row["partition"], key_text(row["key"]), row["window_start_ms"], row["window_end_ms"])
        _take(found, id, None if row["what"] == "tombstone" else row["value"], row["offset"], row["what"] == "final")
    if case["window"]["kind"] != "session" or STRATEGIES[case["emit"]] == "on_window_update":
        return found, set()
    finals, again = sessions_by_hand(case, kept_ms)
    if finals != {id: (sent.times, sent.at) for id, sent in found.items()}:
        raise AssertionError(f"a run sends {found}, by hand it is {finals}")
    return found, again


def _what_came(case: Case, kafka: dict[str, Any]) -> dict[Id, Sent]:
    found: dict[Id, Sent] = {}
    for at, (record, step) in enumerate(zip(case["records"], kafka["per_record"], strict=True)):
        for each in [*step["outputs"], *step.get("flushed", [])]:
            id = (record.get("partition", 0), each["key"], each["window_start"], each["window_end"])
            _take(found, id, each["value"], at, case["emit"] == "on_close")
    return found


def _take(found: dict[Id, Sent], id: Id, value: Any, at: int, is_final: bool) -> None:
    if value is None:
        found.pop(id, None)
        return
    times = found[id].times + 1 if is_final and id in found else 1
    found[id] = Sent(times, value, at)


def sessions_by_hand(case: Case, kept_ms: int) -> tuple[dict[Id, tuple[int, int]], set[Id]]:
    """({final: (how often, its last record)}, those that grew after they had been final)."""
    gap_ms, close_lag_ms = case["window"]["gap_ms"], case["window"]["gap_ms"] + case["window"]["grace_ms"]
    held: set[Id] = set()
    sent: set[Id] = set()
    finals: dict[Id, tuple[int, int]] = {}
    again: set[Id] = set()
    for at, (record, now) in enumerate(zip(case["records"], _stream_times(case), strict=True)):
        if not is_usable(case, record):
            continue
        partition, time_ms = record.get("partition", 0), record["timestamp"]
        mine = [id for id in held if id[:2] == (partition, record["key"]) and id[3] >= now - kept_ms]
        met = {id for id in mine if id[2] <= time_ms + gap_ms and id[3] >= time_ms - gap_ms}
        start_ms, end_ms = min([time_ms, *(id[2] for id in met)]), max([time_ms, *(id[3] for id in met)])
        if end_ms >= now - close_lag_ms:
            again |= met & sent
            held, sent = held - met, sent - met
            held.add((partition, record["key"], start_ms, end_ms))
        closed = {id for id in held - sent if id[0] == partition and id[3] < now - close_lag_ms}
        for id in closed:
            finals[id] = (finals.get(id, (0, 0))[0] + 1, at)
        sent |= closed
    return finals, again


def _met(case: Case, questions: list[Question]) -> Iterator[str]:
    caching = "limited" if not isinstance(case["caching"], bool) else "cached" if case["caching"] else "no cache"
    yield from (case["window"]["kind"], case["emit"], case["store"], caching)
    yield from (name for name in ("restarts", "partitions", "emit_interval_ms") if name in case)
    audit = questions[0].audit
    if len(audit.safe_retentions_ms) > 1:
        yield "several intervals"
    if not audit.safe_retentions_ms:
        yield "no cure"
    if audit.unknown_retentions_ms:
        yield "some unknown"
