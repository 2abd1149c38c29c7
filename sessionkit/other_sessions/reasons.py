"""Which rules of theirs would explain where they cut: each is tried on all pairs, and the best ones are taken."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sessionkit.base.arrays import Codes, Flags, Longs, order_by
from sessionkit.base.durations import DAY, HOUR, MINUTE, SECOND, duration_code, show_duration
from sessionkit.base.moments import clock_changes
from sessionkit.base.text import literal, plural
from sessionkit.other_sessions.pairs import Coded, Pairs

MOST_REASONS, WRONG_FOR_RIGHT, FEW_VALUES = 6, 0.1, 100
_STEPS = (DAY, HOUR, *(n * MINUTE for n in (30, 15, 10, 5, 1)), *(n * SECOND for n in (30, 10, 5, 1)), 100, 10)


@dataclass(frozen=True)
class Reason:
    """A rule that they may have: a name, a sentence, arguments of `sessionize` that say the same, and where it cuts.

    A rule that `replaces` says of every pair whether it is cut; the others cut some more.
    """

    name: str
    words: str
    way: Mapping[str, Any]
    cuts: Flags
    replaces: bool = False
    may_be_theirs: bool = False  # made of a column that changes at each of their sessions, and nowhere else


@dataclass(frozen=True)
class Found:
    """The rules that were taken, behind them what is said of the rest; which each pair has; -1 where alike."""

    reasons: list[Reason]
    of_pair: Codes


@dataclass(frozen=True, kw_only=True)
class Known:
    """What the rules may be made of."""

    pairs: Pairs
    columns: Mapping[str, Coded]
    keys: Mapping[str, Codes]  # the columns of the key, where there are several
    by: tuple[str, ...]
    zone: str
    has_zone: bool  # times are sure without `timezone=`, which then only says where days begin
    gap_ms: int | None  # None where the gap is not one length, or pauses count from ends


def found_reasons(known: Known) -> Found:
    """The rules, and which explains each pair: the first one that has it as they do."""
    pairs, taken = known.pairs, _chosen(known)
    cut, of_pair = pairs.ours, np.full(len(pairs.ours), -1, np.int32)
    for number in range(len(taken)):
        cut = _with(known, taken[: number + 1])
        of_pair[pairs.differ & (of_pair < 0) & (cut == pairs.theirs)] = number
    of_pair[cut != pairs.theirs] = -1
    for rest in _unexplained(pairs, known.gap_ms):
        here = pairs.differ & (of_pair < 0) & rest.cuts
        if here.any():
            of_pair[here] = len(taken)
            taken.append(rest)
    return Found(taken, of_pair)


def _chosen(known: Known) -> list[Reason]:
    """The rule that explains most of what differs, then the best one for the rest, as long as there is one.

    A rule may be wrong about a tenth of the pairs that it explains.
    """
    pairs, taken, cut, fixed = known.pairs, list[Reason](), known.pairs.ours, list[Reason]()
    while (unlike := cut != pairs.theirs).any() and len(taken) < MOST_REASONS:
        best, gain = None, 0
        fixed = fixed or [*_other_orders(known), *_midnights(known), *_changes(known)]  # whatever was taken
        tried = (*fixed, *_measured(known, unlike, taken))
        for reason in sorted(tried, key=lambda each: each.may_be_theirs):  # of two that explain as much, the first
            if reason.replaces and any(each.replaces for each in taken):
                continue
            now = _with(known, [*taken, reason])
            right, wrong = int((unlike & (now == pairs.theirs)).sum()), int((~unlike & (now != pairs.theirs)).sum())
            if right - wrong > gain and wrong <= WRONG_FOR_RIGHT * right:
                best, gain = reason, right - wrong
        if best is None:
            break
        taken.append(best)
        cut = _with(known, taken)
    for number, reason in enumerate(taken):
        if reason.name in ("gap", "equal"):  # the others were not known when it was measured
            taken[number] = next(_gap(known, _added(known, taken)))
    return taken


def _added(known: Known, reasons: Sequence[Reason]) -> Flags:
    """Where a rule cuts that does not replace what is cut: one of these, or one of ours beside the gap."""
    pairs = known.pairs
    by_rules = pairs.ours & (pairs.pause_ms <= (-1 if known.gap_ms is None else known.gap_ms))
    return np.logical_or.reduce([by_rules, *(each.cuts for each in reasons if not each.replaces)])


def _with(known: Known, reasons: Sequence[Reason]) -> Flags:
    """Where they would cut by these rules."""
    base = next((each.cuts for each in reasons if each.replaces), known.pairs.ours)
    return base | _added(known, reasons)


def _unexplained(pairs: Pairs, gap_ms: int | None) -> Iterator[Reason]:
    """What is to be said of pairs that no rule explains; the first that fits."""
    words = "They cut between rows of the same time."
    yield Reason("a repeated row", words, {}, (pairs.pause_ms == 0) & pairs.theirs)
    if gap_ms is not None:
        is_short = pairs.pause_ms <= gap_ms
        yield Reason("a short pause", "They cut at a pause that the gap allows.", {}, is_short & pairs.theirs)
        words = "They do not cut at a pause that is longer than the gap."
        yield Reason("a long pause", words, {}, ~is_short & pairs.ours)
    words = "No rule that was tried explains it."
    yield Reason("another rule", words, {}, np.ones(len(pairs.pause_ms), np.bool_))


def _measured(known: Known, unlike: Flags, taken: Sequence[Reason]) -> Iterator[Reason]:
    """The rules whose lengths and values are those of the pairs that no other rule cuts."""
    pairs, more = known.pairs, _added(known, taken)
    is_replaced, theirs_more = any(each.replaces for each in taken), unlike & pairs.theirs
    if known.gap_ms is not None and not is_replaced:
        yield from _gap(known, more)
    if theirs_more.any():
        yield from _events(known, theirs_more)
        yield from _times_of_day(known, theirs_more)
        yield from _limits(pairs, unlike ^ pairs.theirs)


def _other_orders(known: Known) -> Iterator[Reason]:
    """Sessions of the gap with more or less of a key, or of rows as they stand."""
    pairs, gap_ms = known.pairs, known.gap_ms
    if gap_ms is None:
        return
    rows, none = pairs.rows, np.zeros(len(pairs.rows), np.int64)
    if pairs.return_later:
        for name, (codes, values) in known.columns.items():
            if len(values) > 1:
                own = codes[rows].astype(np.int64) + pairs.key * (len(values) + 1)
                words = f"They cut the rows of each value of {literal(name)} by themselves."
                yield Reason(f"key:{name}", words, {"by": [*known.by, name]}, _chain(pairs, own, gap_ms), True)
    for name in known.keys:
        rest = [each[rows] for other, each in known.keys.items() if other != name]
        own = np.unique(np.stack(rest), axis=1, return_inverse=True)[1].ravel()
        by = [each for each in known.by if each != name]
        words = f"They do not look at {literal(name)}, a part of the key."
        yield Reason("key", words, {"by": by}, _chain(pairs, own, gap_ms), True)
    words = "They count the pauses between rows of any key."
    yield Reason("key", words, {"by": None}, _chain(pairs, none, gap_ms), True)
    words = "They read the rows as they stand, not in order of time."
    yield Reason("order", words, {}, _chain(pairs, pairs.key, gap_ms, by_row=True), True)


def _chain(pairs: Pairs, own: Longs, gap_ms: int, *, by_row: bool = False) -> Flags:
    """Whether pairs are cut where rows of the same number, one after the other, are further apart than the gap."""
    order = order_by(own, pairs.rows if by_row else pairs.time_ms)
    new = np.ones(len(order), np.bool_)
    new[1:] = (np.diff(pairs.time_ms[order]) > gap_ms) | (np.diff(own[order]) != 0)
    session = np.empty(len(order), np.int64)
    session[order] = np.cumsum(new)
    return session[pairs.after] != session[pairs.before]


def _midnights(known: Known) -> Iterator[Reason]:
    pairs, zone, way = known.pairs, known.zone, {"new_at": "midnight"}
    yield Reason("midnight", f"They cut at midnight in {zone}.", way, _other_day(_local(pairs, zone), 0))
    if zone != "UTC":
        way = {**way, "timezone": "UTC"} if known.has_zone else {}
        yield Reason("midnight", "They cut at midnight in UTC.", way, _other_day(_local(pairs, "UTC"), 0))


def _times_of_day(known: Known, wanted: Flags) -> Iterator[Reason]:
    """Half hours at which days may begin: the three that most of these pairs lie around."""
    local, zone = _local(known.pairs, known.zone), known.zone
    few = local[:, wanted]
    met = [int(_other_day(few, half * HOUR // 2).sum()) for half in range(48)]
    for half in np.argsort(met[1:], kind="stable")[::-1][:3] + 1:
        at = f"{half // 2:02}:{half % 2 * 30:02}"
        words = f"They cut at {at} in {zone}; in another zone that may be midnight."
        yield Reason("zone", words, {"new_at": at}, _other_day(local, int(half) * HOUR // 2))


def _local(pairs: Pairs, zone: str) -> Longs:
    """What clocks show at the earlier and at the later row of each pair."""
    low, high = int(pairs.time_ms.min()), int(pairs.time_ms.max())
    local = clock_changes(zone, high + 7 * DAY, min(0, low - 7 * DAY)).local(pairs.time_ms)
    return local[np.stack([pairs.before, pairs.after])]


def _other_day(local: Longs, start_ms: int) -> Flags:
    days = (local - start_ms) // DAY
    return np.asarray(days[0] != days[1], np.bool_)


def _changes(known: Known) -> Iterator[Reason]:
    pairs, sessions = known.pairs, int(known.pairs.their_id.max(initial=-1)) + 1
    for name, (codes, values) in known.columns.items():
        codes = codes[pairs.rows]
        now, last = codes[pairs.after], _last_known(pairs, codes)
        is_theirs = np.array_equal(now != codes[pairs.before], pairs.theirs)
        if len(values) > 1 and not (is_theirs and len(values) >= sessions):
            has_changed = (now >= 0) & (last >= 0) & (now != last)
            # at a pause of ours as well, where a rule of theirs changes now and then
            is_made = is_theirs and bool((pairs.theirs & pairs.ours).any())
            more = ", as it does at each of their sessions: it may be made from them, then leave it out"
            words = f"They cut where {literal(name)} changes{more * is_made}."
            yield Reason(f"value:{name}", words, {"new_when": name}, has_changed, may_be_theirs=is_made)


def _events(known: Known, wanted: Flags) -> Iterator[Reason]:
    """The value of each column of a few that most of these pairs begin with, and the one that they end with."""
    pairs = known.pairs
    for name, (codes, values) in known.columns.items():
        if not 1 < len(values) <= FEW_VALUES or pa.types.is_floating(values.type):
            continue
        for rule, word, places in (("starts_when", "before", pairs.after), ("ends_when", "after", pairs.before)):
            value = codes[pairs.rows[places]]
            seen = np.bincount(value[wanted] + 1, minlength=2)[1:]
            most = int(seen.argmax())
            if seen[most]:
                event = values[most].as_py()
                words = f"They cut {word} a row with {literal(event)} in {literal(name)}."
                yield Reason(f"{rule.split('s_')[0]}:{name}", words, {rule: (name, event)}, value == most)


def _last_known(pairs: Pairs, codes: Codes) -> Codes:
    """The last known value before the later row of each pair, in their session; -1 for none."""
    known = np.maximum.accumulate(np.where(codes >= 0, np.arange(len(codes)), -1))[pairs.before]
    return np.where(known >= pairs.begin, codes[np.maximum(known, 0)], -1)


def _gap(known: Known, more: Flags) -> Iterator[Reason]:
    pairs, gap_ms = known.pairs, known.gap_ms
    assert gap_ms is not None
    low, high = _threshold(pairs.pause_ms, pairs.orders[0], more, pairs.theirs, 0)
    if high == gap_ms:
        words = f"They cut at a pause of exactly {show_duration(gap_ms)}; we do where it is longer."
        way = {"gap": duration_code(gap_ms - 1)}
        yield Reason("equal", words, way, pairs.pause_ms >= gap_ms, True)
        return
    other = _round_length(low, high)
    kind = "shorter" if other < gap_ms else "longer"
    below = f" and below {show_duration(high)}" if high is not None else ""
    words = f"Their gap is {kind}: at least {show_duration(low)}{below}."
    yield Reason("gap", words, {"gap": duration_code(other)}, pairs.pause_ms > other, True)


def _limits(pairs: Pairs, cut: Flags) -> Iterator[Reason]:
    (since_ms, rows), (_, by_time, by_rows) = pairs.sizes, pairs.orders
    most_ms, longer_ms = _threshold(since_ms, by_time, cut, pairs.theirs, 0)
    if longer_ms is not None:
        most_ms = _round_length(most_ms, longer_ms)
        words = f"No session of theirs is longer than {show_duration(most_ms)}."
        yield Reason("length", words, {"max_length": duration_code(most_ms)}, since_ms > most_ms)
    most, more = _threshold(rows, by_rows, cut, pairs.theirs, 1)
    if more is not None:
        words = f"No session of theirs has more than {plural(most, 'row')}."
        yield Reason("rows", words, {"max_rows": most}, rows > most)


def _threshold(values: Longs, order: Longs, others: Flags, cut: Flags, least: int) -> tuple[int, int | None]:
    """(largest value that is not cut, smallest that is) by the limit that is wrong about the fewest; `least` is not.

    Args:
        order: by these values.
        others: the pairs that are cut for another reason.
    """
    order = order[~others[order]]
    values, cut = np.append(least, values[order]), np.append(False, cut[order])
    ends = np.flatnonzero(np.append(np.diff(values) != 0, True))
    wrong = np.cumsum(cut)[ends] + np.cumsum(~cut)[-1] - np.cumsum(~cut)[ends]
    best = int(wrong.argmin())
    return int(values[ends[best]]), int(values[ends[best + 1]]) if best + 1 < len(ends) else None


def _round_length(low: int, high: int | None) -> int:
    """The roundest length that is not below `low`, and is below `high`."""
    for step in _STEPS:
        length = -(-low // step) * step or step
        if length < (high if high is not None else low + max(low // 4, 2)):
            return length
    return low
