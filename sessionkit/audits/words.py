"""What an audit found, in words for someone who knows Kafka Streams."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, cast

from sessionkit.base.durations import show_duration
from sessionkit.base.text import plural
from sessionkit.deployed.noticed import FOREVER_MS
from sessionkit.deployed.setting_words import DEFAULT, cache_words, commit_words, finals_words
from sessionkit.exports.lengths import java_duration
from sessionkit.windows.contract import WindowKind

if TYPE_CHECKING:
    from sessionkit.audits.retentions import Interval, Safe
    from sessionkit.audits.settings import Settings
    from sessionkit.plan import Plan

MOST_LISTED = 4
LETS_GO = (
    "the buffer lets go of a {noun} when its grace is over by the timestamps of the results, a millisecond before the "
    "operator closes it, and a record that came then still counted."
)
FORGOTTEN_BY = {"sessions": ("session", "end"), "windows": ("window", "start")}  # where the in-memory store lets go


class AuditInWords:
    """What follows from what an audit found, and from the retentions that lose nothing."""

    settings: Settings
    _replay: Callable[[int], Any]  # the same audit with another retention

    @property
    @abstractmethod
    def _plan(self) -> Plan: ...
    @property
    @abstractmethod
    def _counts(self) -> dict[str, int]: ...
    @property
    @abstractmethod
    def _is_sure(self) -> bool:
        """Whether no longer retention loses anything, which is known without a search."""

    @property
    @abstractmethod
    def _remarks(self) -> list[str]:
        """Why many records came too late."""

    @property
    @abstractmethod
    def _safe(self) -> Safe: ...

    def counts(self) -> dict[str, int]:
        """How many results were as they should be, how many were not, and what the store still holds at the end."""
        return dict(self._counts)

    @property
    def is_clean(self) -> bool:
        """True if every result came once, in time and with the right value."""
        counts = self._counts
        return counts["as_it_should_be"] == counts["expected"] and not counts["only_in_kafka"]

    @property
    def loses_nothing(self) -> bool:
        """True if every result came with the right value, or will come with the next check for final results.

        Some may have come late, as the cache and the emit interval hold results back, or once more, larger.
        """
        counts = self._counts
        return counts["lost"] == counts["waiting"] and not counts["other_value"] and not counts["only_in_kafka"]

    @property
    def safe_retentions_ms(self) -> list[Interval]:
        """The retentions that lose and change nothing on these records: (first, last), both included; None: no last.

        Results that come late, or still wait for a check when the records end, are not lost; see `loses_nothing`.
        A longer retention may lose what a shorter one keeps: RocksDB drops segments, which are half of it long, and so
        begin elsewhere. What lies in no interval loses or changes something, unless `unknown_retentions_ms` names it.
        """
        return list(self._safe.intervals)

    @property
    def unknown_retentions_ms(self) -> list[Interval]:
        """Retentions between safe ones for which a bounded search could not find out what they lose."""
        return list(self._safe.unknown)

    @property
    def smallest_retention_ms(self) -> int | None:
        """The smallest retention that is known to lose and change nothing; None if none is."""
        return self._safe.intervals[0][0] if self._safe.intervals else None

    @property
    def recommended_retention_ms(self) -> int | None:
        """The retention from which every longer one also loses and changes nothing; None if there is none."""
        return self._safe.recommended_ms

    @property
    def cure(self) -> Self | None:
        """The audit with the recommended retention; None if no retention helps: it is the cache or a restart."""
        return cast("Self | None", self._cured)

    @cached_property
    def _cured(self) -> object:
        return None if self.recommended_retention_ms is None else self._replay(self.recommended_retention_ms)

    def words(self) -> list[str]:
        """The findings as sentences, the most important first, and at the end why many records came too late."""
        settings, plan, counts, loses = self.settings, self._plan, self._counts, not self.loses_nothing
        strategy, suppression = plan._strategy, plan._suppression
        is_final = strategy == "on_window_close" or (suppression is not None and suppression.is_final)
        headline = _headline(counts, "final result" if is_final else "last value")
        words = [f"{_what(settings)}: {headline}", _supposed(settings, strategy)]
        if counts["late_but_counted"]:
            words.append(_why_counted(settings, counts["late_but_counted"]))
        if counts["waiting"]:
            words.append(_why_waiting(settings, plan, counts["waiting"]))
        if counts["lost"] > counts["waiting"] + counts["lost_in_larger"]:
            words.append(_why_lost(settings, counts, plan._complete_windows, strategy))
        if counts["lost_in_larger"]:
            words.append(_why_joined(counts))
        if counts["only_in_kafka"] > counts["larger"] or counts["other_value"]:
            words.append(_why_changed(settings, counts))
        if counts["sent_twice"]:
            words.append(_why_twice(plan, counts["sent_twice"]))
        if counts["late"]:
            words.append(_why_late(settings, strategy, counts["late"]))
        if loses:
            cure = self.cure if is_final else None  # only final results can be sent twice
            words += _cure(settings, self._safe, cure.counts() if cure else None)
        elif not self._is_sure and settings.retention_ms < (self.recommended_retention_ms or FOREVER_MS):  # it is luck
            words.append(_longer(self._safe))
        if counts["final_but_kept"]:
            held = counts["final_but_kept"]
            holds = "the store and its cache still hold" if settings.is_cached else "the store still holds"
            words.append(f"At the end {holds} {plural(held, 'window')} that {_are(held)} final.")
        return [*words, *self._remarks]

    def __repr__(self) -> str:
        return "\n".join(self.words())


def _what(settings: Settings) -> str:
    defaults = settings.defaults
    store = {"memory": "in-memory store", "rocksdb": "RocksDB store"}[str(settings.deployment.store)]
    retention = f"retention {show_duration(settings.retention_ms)}"
    restarts = len(settings.starts) - 1
    restarted = "" if restarts == 0 else ", restarted once" if restarts == 1 else f", restarted {restarts:,} times"
    if {"store", "retention"} <= defaults:
        return f"{store}, {retention} (both Kafka's defaults){restarted}"
    of_store, of_retention = (DEFAULT if name in defaults else "" for name in ("store", "retention"))
    return f"{store}{of_store}, {retention}{of_retention}{restarted}"


def _headline(counts: Mapping[str, int], final: str) -> str:
    """The verdict on the results, in one sentence."""
    expected, good, late = counts["expected"], counts["as_it_should_be"], counts["late"]
    waiting = counts["waiting"]

    def all_of(many: str, one: str) -> str:
        return f"all {plural(expected, final)} {many}" if expected > 1 else f"the one {final} {one}"

    if expected == 0 and counts["sent"] == 0:
        return f"no {'window becomes final' if final == 'final result' else 'result goes out'} on these records."
    if good == expected and not counts["only_in_kafka"]:
        return f"{all_of('come', 'comes')} once, in time, with the right value."
    if good + late == expected and not counts["only_in_kafka"]:
        some = "" if late == expected else f"{late:,} of them "
        return f"{all_of('come', 'comes')} once, with the right value, {some}late."
    if waiting == expected:
        return f"{all_of('still wait', 'still waits')} when the records end."
    if counts["sent"] == 0:
        which, but = all_of("are", "is"), f", but for {waiting:,} that may still come" if waiting else ""
        return f"nothing comes out. {which[0].upper()}{which[1:]} lost{but}."
    come = f"come with the right value, {late:,} of them later than they could" if late else "come as they should"
    return f"{good + late:,} of {plural(expected, final)} {come}; {_wrong(counts)}."


def _supposed(settings: Settings, strategy: str) -> str:
    """The other assumptions in words, and which of them are Kafka's defaults; without those of no effect here."""
    how, defaults, timed = settings.deployment, settings.defaults, 0
    supposed = [cache_words(how, defaults, is_cached=settings.is_cached)]
    if settings.is_cached:
        supposed.append(commit_words(how, defaults))
        timed += settings.is_by_interval
    if strategy == "on_window_close":
        supposed.append(finals_words(how, defaults))
        timed += how._emit_interval_ms > 0
    by = f", {'both ' if timed == 2 else ''}by {settings.clock}" if timed else ""
    return f"This assumes {', '.join(supposed[:-1])}{' and ' if supposed[1:] else ''}{supposed[-1]}{by}."


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _why_counted(settings: Settings, count: int) -> str:
    counts = "counts" if count == 1 else "count"
    if len(settings.starts) == 1:
        meets = "meets a session that is" if count == 1 else "meet sessions that are"
        why = f"{'it' if count == 1 else 'they'} {meets} still in the cache, which knows no retention."
    else:
        why = (
            "Kafka Streams does not restore its stream time, so after a restart records are late only once newer ones "
            "have moved it on."
        )
    return f"{plural(count, 'late record')} {counts} all the same: {why}"


def _why_waiting(settings: Settings, plan: Plan, count: int) -> str:
    interval, wait = show_duration(settings.deployment._emit_interval_ms), "waits" if count == 1 else "wait"
    if plan._suppression is not None:
        it, goes = ("it", "goes") if count == 1 else ("they", "go")
        return (
            f"{plural(count, 'result')} still {wait} in the buffer of suppress when the records end: {it} {goes} out "
            "when a later result moves its clock on."
        )
    return (
        f"{plural(count, 'final result')} still {wait} when the records end: Kafka looks for them at most once in "
        f"{interval} of {settings.clock}, when a record arrives, and no record came in time."
    )


def _why_late(settings: Settings, strategy: str, count: int) -> str:
    come, they = ("comes", "it") if count == 1 else ("come", "they")
    finding = f"{plural(count, 'result')} {come} later than {they} could"
    if settings.deployment._emit_interval_ms and strategy == "on_window_close":
        interval = show_duration(settings.deployment._emit_interval_ms)
        often = f"at most once in {interval} of {settings.clock}"
        why = f"final results are looked for {often}, and only when a record arrives"
    else:
        why = "the cache holds them back until a commit"
    return f"{finding}: {why}."


def _why_twice(plan: Plan, count: int) -> str:
    if plan._suppression is not None:
        return f"Why sent twice ({count:,}): {LETS_GO.format(noun=plan._complete_windows.noun)}"
    return (
        f"Why sent twice ({count:,}): a session that was sent as final is still in the store, a late "
        "record joins it, and the larger session is sent once more; the first is not taken back."
    )


def _wrong(counts: Mapping[str, int]) -> str:
    names = {
        "waiting": "still waiting",
        "lost": "lost",
        "sent_twice": "sent more than once",
        "other_value": "with another value",
        "only_in_kafka": "that should not be there",
    }
    in_larger, larger = counts["lost_in_larger"], counts["larger"]
    counted = {**counts, "lost": counts["lost"] - counts["waiting"] - in_larger}
    counted["only_in_kafka"] -= larger
    joined = [f"{in_larger:,} joined into {plural(larger, 'larger session')}"] * bool(in_larger)
    return ", ".join([*(f"{counted[name]:,} {word}" for name, word in names.items() if counted[name]), *joined])


def _why_joined(counts: Mapping[str, int]) -> str:
    counted = ", or late records counted that are dropped otherwise" if counts["late_but_counted"] else ""
    return (
        f"Why joined ({counts['lost_in_larger']:,}): the store, or its cache, still held sessions that by the "
        f"retention are gone, and late records joined them{counted}. "
        "How many results are expected depends on the retention: a longer one joins more."
    )


def _why_lost(settings: Settings, counts: Mapping[str, int], windows: WindowKind, strategy: str) -> str:
    if strategy == "on_window_update":
        grown = ", or a late record made it larger" if counts["late_but_counted"] else ""
        return (
            "They are lost because the store had expired the window, or refused to keep it, when a record came for it"
            f"{grown}."
        )
    kept = show_duration(settings.retention_ms)
    closes = f"a window closes once stream time is {show_duration(windows.close_lag_ms)} past its end"
    if settings.deployment.store == "rocksdb":
        keeps = (
            "RocksDB drops whole segments of time, and the windows in them are gone when Kafka checks for final results"
        )
    else:
        one, bound = FORGOTTEN_BY[windows.holds]
        keeps = f"the in-memory store forgets a {one} once the newest {bound} is {kept} past its own"
    return f"Why lost: {closes}; {keeps}. Final results are read from the store: what is gone by then is never sent."


def _why_changed(settings: Settings, counts: Mapping[str, int]) -> str:
    why = "a record met a window that the store had forgotten already, and started it again"
    if settings.is_cached:
        why += "; with the cache on, entries stay readable that the store has expired"
    if counts["late_but_counted"]:
        why = f"a late record counted, or {why}"
    changed = counts["other_value"], counts["only_in_kafka"] - counts["larger"]
    how_many = " + ".join(f"{count:,}" for count in changed if count)
    return f"Why changed ({how_many}): {why}."


def _cure(settings: Settings, safe: Safe, cured: Mapping[str, int] | None) -> list[str]:
    if not safe.intervals and not safe.unknown:
        others = ["the cache"] * settings.is_cached + ["the restarts"] * (len(settings.starts) > 1)
        return [f"No retention prevents this{': look at ' if others else ''}{' and at '.join(others)}."]
    words = _safe(safe)
    if cured is not None and cured["sent_twice"]:
        twice = plural(cured["sent_twice"], "session")
        sent = f"{twice} {_are(cured['sent_twice'])} sent again, larger,"
        words.append(f"With this retention {sent} because a late record joins one that was already final.")
    return words


def _longer(safe: Safe) -> str:
    """What a longer retention can do where this one loses nothing by luck."""
    enough_ms = safe.recommended_ms
    rest = "" if enough_ms is None else f"; from {show_duration(enough_ms)} on none does"
    if safe.unknown:
        return f"Whether a somewhat longer retention loses results here was not found out{rest}."
    return f"A somewhat longer retention can lose results here, where segments expire at other times{rest}."


def _safe(safe: Safe) -> list[str]:
    """Which retentions lose nothing on the records, which one is recommended, and of which it is not known."""
    intervals, unknown, recommended = safe.intervals, safe.unknown, safe.recommended_ms
    unsure = "".join(
        f" Whether one from {_span(each)} loses nothing is not known: RocksDB's segments can be placed in too many "
        "ways, or the records are too many to replay them more often."
        for each in unknown
    )
    if recommended is None:
        those = f"Only these lose nothing on these records: {_listed(intervals)}." if intervals else "None was found."
        return [f"No retention can be recommended: none is known above which nothing is ever lost. {those}{unsure}"]
    code = f"Materialized.withRetention({java_duration(recommended)})"
    if len(intervals) == 1 and not unknown:
        smallest = f"The smallest retention that loses nothing on these records is {show_duration(recommended)}"
        return [f"{smallest}: {code}. Found by replaying them."]
    sentence = f"With a retention of {show_duration(recommended)} or more nothing is lost on these records: {code}."
    if len(intervals) > 1:
        sentence += f" Of the shorter ones, only these lose nothing: {_listed(intervals[:-1])}; "
        sentence += "between them segments expire too early."
    return [f"{sentence}{unsure} Found by replaying them."]


def _listed(intervals: Sequence[Interval]) -> str:
    listed = ", ".join(map(_span, intervals[:MOST_LISTED]))
    return listed if len(intervals) <= MOST_LISTED else f"{listed} and {len(intervals) - MOST_LISTED:,} more ranges"


def _span(interval: Interval) -> str:
    first, last = interval
    if last is None:
        return f"{show_duration(first)} and longer"
    return show_duration(first) if first == last else f"{show_duration(first)} to {show_duration(last)}"
