"""What an audit found, in words for someone who knows Kafka Streams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sessionkit.durations import show_duration
from sessionkit.text import plural


def audit_words(
    settings: Any,
    counts: Mapping[str, int],
    windows: Any,
    strategy: str,
    cure: tuple[Any, Mapping[str, int]] | None,
) -> list[str]:
    """The findings as sentences, the most important first; `cure`: what helps, and what it counts."""
    store = {"memory": "in-memory", "rocksdb": "RocksDB"}[settings.store]
    default = ", Kafka's default" if settings.is_default_retention else ""
    final = "final result" if strategy == "on_window_close" else "last value"
    restarts = len(settings.starts) - 1
    restarted = "" if restarts == 0 else ", restarted once" if restarts == 1 else f", restarted {restarts:,} times"
    what = f"{store} store, retention {show_duration(settings.retention_ms)}{default}{restarted}"
    expected, good = counts["expected"], counts["as_it_should_be"]
    is_clean = good == expected and not counts["only_in_kafka"]
    if expected == 0 and counts["sent"] == 0:
        words = [f"{what}: no window becomes final on these records."]
    elif is_clean:
        which = f"all {plural(expected, final)} come" if expected > 1 else f"the one {final} comes"
        words = [f"{what}: {which} once, in time, with the right value."]
    elif counts["sent"] == 0:
        which = f"All {plural(expected, final)} are" if expected > 1 else f"The one {final} is"
        words = [f"{what}: nothing comes out. {which} lost."]
    else:
        words = [f"{what}: {good:,} of {plural(expected, final)} come as they should; {_wrong(counts)}."]
    if counts["late_but_counted"]:
        words.append(_why_counted(counts["late_but_counted"]))
    if counts["waiting"]:
        words.append(_why_waiting(settings, counts["waiting"]))
    if counts["lost"] > counts["waiting"]:
        words.append(_why_lost(settings, counts, windows, strategy))
    if counts["only_in_kafka"] or counts["other_value"]:
        words.append(_why_changed(settings, counts))
    if counts["sent_twice"]:
        words.append(_why_twice(counts))
    if counts["late"]:
        words.append(_why_late(settings, strategy, counts["late"]))
    if counts["lost"] or counts["other_value"] or counts["only_in_kafka"] or counts["late"]:
        words += _cure(settings, cure)
    if counts["final_but_kept"]:
        held = counts["final_but_kept"]
        words.append(f"At the end the store still holds {plural(held, 'window')} that {_are(held)} final.")
    return words


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _why_counted(count: int) -> str:
    counts = "counts" if count == 1 else "count"
    return (
        f"{plural(count, 'late record')} {counts} all the same: Kafka Streams does not restore its stream time, so "
        "after a restart records are late only once newer ones have moved it on."
    )


def _why_waiting(settings: Any, count: int) -> str:
    interval, wait = show_duration(settings.emit_interval_ms), "waits" if count == 1 else "wait"
    return (
        f"{count:,} of the lost only {wait}: final results are looked for at most once in {interval} of wall clock, "
        "when a record arrives, and none came in time."
    )


def _why_late(settings: Any, strategy: str, count: int) -> str:
    come, they = ("comes", "it") if count == 1 else ("come", "they")
    what = f"{plural(count, 'result')} {come} later than {they} could"
    if settings.emit_interval_ms and strategy == "on_window_close":
        interval = show_duration(settings.emit_interval_ms)
        why = f"final results are looked for at most once in {interval} of wall clock, and only when a record arrives"
    else:
        why = "the cache holds them back until a commit"
    return f"{what}: {why}."


def _why_twice(counts: Mapping[str, int]) -> str:
    return (
        f"Why sent twice ({counts['sent_twice']:,}): a session that was sent as final is still in the store, a late "
        "record joins it, and the larger session is sent once more; the first is not taken back."
    )


def _wrong(counts: Mapping[str, int]) -> str:
    said = {
        "lost": "lost",
        "sent_twice": "sent more than once",
        "other_value": "with another value",
        "only_in_kafka": "that should not be there",
        "late": "late",
    }
    return ", ".join(f"{counts[name]:,} {word}" for name, word in said.items() if counts[name])


def _why_lost(settings: Any, counts: Mapping[str, int], windows: Any, strategy: str) -> str:
    if strategy == "on_window_update":
        grown = ", or a late record made it larger" if counts["late_but_counted"] else ""
        return (
            "They are lost because the store had expired the window, or refused to keep it, when a record came for it"
            f"{grown}."
        )
    kept = show_duration(settings.retention_ms)
    closes = f"a window closes once stream time is {show_duration(windows.close_lag_ms)} past its end"
    if settings.store == "rocksdb":
        keeps = "RocksDB drops whole segments of time, and what was in them when final results are looked for is gone"
    elif windows.noun == "session":
        keeps = f"the in-memory store forgets a session once the newest end is {kept} past its own"
    else:
        keeps = f"the in-memory store forgets a window once the newest start is {kept} past its own"
    return f"Why lost: {closes}; {keeps}. Final results are read from the store: what is gone by then is never sent."


def _why_changed(settings: Any, counts: Mapping[str, int]) -> str:
    why = "a record met a window that the store had forgotten already, and began it anew"
    if settings.caching:
        why += "; with the cache on, entries stay readable that the store has expired"
    if counts["late_but_counted"]:
        why = f"a late record counted, or {why}"
    how_many = " + ".join(f"{counts[name]:,}" for name in ("other_value", "only_in_kafka") if counts[name])
    return f"Why changed ({how_many}): {why}."


def _cure(settings: Any, cure: tuple[Any, Mapping[str, int]] | None) -> list[str]:
    if cure is None:
        restarts = ", the restarts" if len(settings.starts) > 1 else ""
        return [f"No retention cures it: look at the cache{restarts} and at the emit interval."]
    cure_ms, counts = cure[0].retention_ms, cure[1]
    code = f"Materialized.withRetention(Duration.ofMillis({cure_ms}L))"
    words = [
        f"The smallest retention that loses nothing on these records is {show_duration(cure_ms)}: {code}. "
        "Found by replaying them."
    ]
    if counts["sent_twice"]:
        twice = plural(counts["sent_twice"], "session")
        sent = f"{twice} {_are(counts['sent_twice'])} sent again, larger,"
        words.append(f"With it {sent} when a late record joins one that was final already.")
    return words
