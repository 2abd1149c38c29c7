"""Event times of a random case, and the lengths of its windows."""

from random import Random
from typing import Any

PROFILES = ("in_order", "slight", "heavy", "bursts", "jumps", "anywhere")
HUGE_RETENTION = 86_400_000
SMALLEST_SEGMENT = 60_000
LARGEST_SPAN = 2**40
LARGEST_OVERLAP = 100
LARGEST_TIME = 2**63 - 1
FAR = (1_700_000_000_000, 2**53 - 50, 2**53, 2**62 - 2**45, 2**62)
# to 64 bits and below 0: bounds of queries
EXTREMES = (-1, -2, -1000, -(2**63), 2**62, LARGEST_TIME - 1, LARGEST_TIME)


def span_of(window: dict[str, Any]) -> int:
    """The gap, the difference or the size."""
    return int(next(window[name] for name in ("gap_ms", "difference_ms", "size_ms") if name in window))


def smallest_retention(window: dict[str, Any]) -> int:
    """The least that Kafka accepts, which is also its default."""
    return span_of(window) * (2 if window["kind"] == "sliding" else 1) + int(window["grace_ms"])


def overlap_of(window: dict[str, Any]) -> int:
    """How many windows a record falls into, at most; of sliding ones it is not known."""
    return -(-int(window["size_ms"]) // int(window["advance_ms"])) if "advance_ms" in window else 1


def draw_window(rng: Random, kind: str) -> dict[str, Any]:
    """Windows of a kind, their grace, and often how long the store keeps them."""
    span = _span(rng)
    window: dict[str, Any] = {"kind": kind}
    if kind == "session":
        span = 0 if rng.random() < 0.07 else span
        window["gap_ms"] = span
    elif kind == "sliding":
        window["difference_ms"] = span
    else:
        window["size_ms"] = span
        if kind == "hopping":
            most = rng.choice((8, 8, 8, LARGEST_OVERLAP))
            window["advance_ms"] = rng.randint(-(-span // most), max(1, span // rng.choice((1, 1, most // 2))))
            window["advance_ms"] = max(window["advance_ms"], -(-span // LARGEST_OVERLAP))
    other = round(2 ** rng.uniform(0, 40)) if rng.random() < 0.3 else 10 * span
    window["grace_ms"] = min(LARGEST_SPAN, rng.choice((0, 0, 0, 1, span // 2, span, span + 1, 3 * span, other)))
    extra = rng.choice((0, 1, 2, span // 3, span, 2 * span + 1, 5 * span, 40 * span, HUGE_RETENTION))
    if rng.random() < 0.6:
        window["retention_ms"] = smallest_retention(window) + extra
    return window


def _span(rng: Random) -> int:
    usual = ((1, 1), (2, 12), (2, 12), (2, 12), (10, 100), (100, 1000), (20_000, 130_000))
    if rng.random() < 0.12:
        return rng.choice((LARGEST_SPAN, round(2 ** rng.uniform(0, 40))))
    return rng.randint(*rng.choice(usual))


class Times:
    """Event times of one case, and the distances at which something changes in it."""

    def __init__(self, rng: Random, window: dict[str, Any], *, walks_segments: bool) -> None:
        self.rng, self.window = rng, window
        self.span, grace = span_of(window), int(window["grace_ms"])
        retention = window.get("retention_ms", smallest_retention(window))
        segment = max(retention // 2, SMALLEST_SEGMENT)
        self.advance = int(window.get("advance_ms", self.span)) if "size_ms" in window else 0
        sums = (self.span, grace, self.span + grace, 2 * self.span, 2 * self.span + grace, retention)
        self.edges = sorted({d for total in (0, *sums) for d in (total - 1, total, total + 1)})
        self.profile = rng.choice(PROFILES)
        unit = max(1, self.span)
        self.step = max(1, rng.choice((unit // 8, unit // 3, unit // 3, unit, 2 * unit)))
        self.is_dense = window["kind"] == "sliding" and self.step * 2 < unit
        self.edge_share = rng.choice((0, 0.1, 0.1, 0.4))
        near_segment = rng.randint(1, 3) * segment - rng.randint(0, 3 * unit)
        base = rng.choice((0, 0, 0, rng.randint(0, 3 * unit), near_segment, 1_000_000_000))
        # a cached RocksDB store visits every segment from time 0 on, at 1.7e12 that takes Kafka half a minute
        if rng.random() < 0.25 and not walks_segments:
            base = rng.choice(FAR) - rng.choice((0, 0, 1, unit, 2 * unit))
        self.base = max(0, base)
        self.clock = self.base
        self.seen: list[int] = []

    def next(self) -> int:
        time = self._by_edge() if self.seen and self.rng.random() < self.edge_share else self._by_profile()
        self.seen.append(min(max(0, time), 2**62 + 2**45))
        self.clock = max(self.clock, time)
        return self.seen[-1]

    def _by_edge(self) -> int:
        rng = self.rng
        if self.advance and rng.random() < 0.3:
            return (self.clock // self.advance + rng.randint(-2, 1)) * self.advance + rng.randint(-1, 1)
        origin = rng.choice((self.clock, self.seen[-1], rng.choice(self.seen)))
        return origin + rng.choice((-1, -1, 1)) * rng.choice(self.edges)

    def _by_profile(self) -> int:
        rng, step, wide = self.rng, self.step, max(2, 4 * self.span)
        if self.profile == "anywhere":
            return self.base + rng.randint(0, 10 * wide)
        if self.profile == "bursts" and rng.random() < 0.8:
            return self.clock + rng.choice((0, 0, 1))
        if self.profile == "jumps" and rng.random() < 0.07:
            return self.clock + rng.randint(1, 20) * rng.choice((wide, wide, SMALLEST_SEGMENT // 2))
        late = {"slight": (0.2, step), "heavy": (0.5, wide), "jumps": (0.2, wide)}.get(self.profile, (0, 0))
        time = self.clock + rng.randint(0, 2 * step) * (5 if self.profile == "bursts" else 1)
        return time - rng.randint(0, late[1] + time - self.clock) if rng.random() < late[0] else time

    def asked(self) -> int:
        rng = self.rng
        if rng.random() < 0.08:
            return rng.choice(EXTREMES)
        if rng.random() < 0.15:
            return rng.choice((0, self.clock + 10 * self.span, 10**15))
        return max(0, rng.choice(self.seen) + rng.choice((-1, 1)) * rng.choice((0, 0, *self.edges)))
