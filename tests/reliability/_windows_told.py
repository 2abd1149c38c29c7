"""Windows of a few records by the rules as they are written down, in plain Python, one record after the other."""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any


@dataclass
class Window:
    """A window: its records in the order in which it took them, of merged sessions the older one's first."""

    partition: int
    key: Any
    start: int
    end: int
    rows: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Record:
    """A record as the plan reads it; `reason` says why it enters no window at all."""

    partition: int
    offset: int
    key: Any
    time_ms: int
    reason: str | None = None


@dataclass
class Told:
    """What comes out."""

    windows: list[Window] = field(default_factory=list)
    closed: list[bool] = field(default_factory=list)
    updates: list[tuple[Any, ...]] = field(default_factory=list)  # (what, partition, offset, key, start, end)
    dropped: list[tuple[int, int, str]] = field(default_factory=list)  # (partition, offset, reason)


def sessions(records: list[Record], gap: int, grace: int) -> Told:
    """Sessions, of which a closed one meets no record any more."""
    told, alive, clock = Told(), [], {}
    for row, r in enumerate(records):
        if _is_out(r, told):
            continue
        clock[r.partition] = now = max(clock.get(r.partition, -1), r.time_ms)
        close = now - gap - grace
        met = [w for w in alive if (w.partition, w.key) == (r.partition, r.key)]
        met = [w for w in met if w.end >= max(r.time_ms - gap, close) and w.start <= r.time_ms + gap]
        met.sort(key=lambda w: w.start)
        start, end = min([r.time_ms, *(w.start for w in met)]), max([r.time_ms, *(w.end for w in met)])
        if end < close:
            told.dropped.append((r.partition, r.offset, "late"))
            continue
        where = (r.partition, r.offset, r.key)
        if (start, end) != (r.time_ms, r.time_ms):
            told.updates += [("tombstone", *where, w.start, w.end) for w in met]
        told.updates.append(("update", *where, start, end))
        alive = [w for w in alive if not any(w is each for each in met)]
        alive.append(Window(r.partition, r.key, start, end, [*(i for w in met for i in w.rows), row]))
    told.windows = alive
    told.closed = [w.end < clock[w.partition] - gap - grace for w in alive]
    return told


def tumbling(records: list[Record], size: int, grace: int) -> Told:
    """Windows side by side."""
    told, clock = Told(), {}
    held: dict[tuple[int, Any, int], Window] = {}
    for row, r in enumerate(records):
        if _is_out(r, told):
            continue
        clock[r.partition] = now = max(clock.get(r.partition, -1), r.time_ms)
        start = r.time_ms // size * size
        if start + size <= now - grace:
            told.dropped.append((r.partition, r.offset, "late"))
            continue
        window = held.setdefault((r.partition, r.key, start), Window(r.partition, r.key, start, start + size))
        window.rows.append(row)
        told.updates.append(("update", r.partition, r.offset, r.key, start, start + size))
    told.windows = list(held.values())
    told.closed = [w.end <= clock[w.partition] - grace for w in told.windows]
    return told


def _is_out(record: Record, told: Told) -> bool:
    if record.reason is not None:
        told.dropped.append((record.partition, record.offset, record.reason))
    return record.reason is not None


UNTELLABLE = object()  # NaN has no order, and a sum beyond 64 bits is refused


def _numbers(values: list[Any]) -> list[Any]:
    return [value for value in values if value is not None]


def _sum(values: list[Any]) -> Any:
    numbers = _numbers(values)
    if any(isinstance(each, float | str) for each in numbers):
        return UNTELLABLE
    total = sum(numbers)
    return total if abs(total) < 2**63 else UNTELLABLE


def _mean(values: list[Any]) -> Any:
    numbers, total = _numbers(values), _sum(values)
    return None if not numbers else total if total is UNTELLABLE else float(Fraction(total) / len(numbers))


def _extreme(choose: Callable[..., Any]) -> Callable[[list[Any]], Any]:
    def told(values: list[Any]) -> Any:
        numbers = _numbers(values)
        return UNTELLABLE if "nan" in numbers else choose(numbers, default=None)

    return told


RESULTS: dict[str, Callable[[list[Any]], Any]] = {
    "count": len, "sum": _sum, "mean": _mean, "min": _extreme(min), "max": _extreme(max),
    "first": lambda values: next(iter(_numbers(values)), None),
    "last": lambda values: next(iter(_numbers(values)[::-1]), None), "collect": tuple,
}  # fmt: skip
