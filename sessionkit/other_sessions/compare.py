"""`compare_sessions`: where the sessions of another tool and ours differ, and why."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic

import numpy as np
import pyarrow as pa

from sessionkit.base.arrays import Longs, arrow_array, distinct, numpy_array
from sessionkit.base.calls import answers_calls, called_as
from sessionkit.base.durations import duration_ms, show_duration
from sessionkit.base.moments import SHORT_HISTORY_MS, show_time
from sessionkit.base.text import key_name, literal, one_of, plural
from sessionkit.errors import InvalidArgument, MissingColumn, NotBuilt, UnsupportedData, attempted, problem, shorten
from sessionkit.other_sessions.pairs import Pairs, columns_of, pairs_of
from sessionkit.other_sessions.reasons import Found, Known, Reason, found_reasons
from sessionkit.records.batch import RecordBatch, batch_of, is_spark_frame
from sessionkit.records.frames import Frame, to_frame
from sessionkit.records.inputs.opened import Opened, open_table
from sessionkit.records.inputs.plain_columns import plain_table
from sessionkit.records.source import Source
from sessionkit.session_rules.cut import coded
from sessionkit.session_rules.rules import Gap
from sessionkit.sessionize import sessionize
from sessionkit.views.assignment import beside, taken, with_timestamps
from sessionkit.views.drawing.palettes import Figure, Theme
from sessionkit.views.html import Pictured

MOST_ROWS = 12  # of an example
_OF_SOURCE = ("timezone", "unit", "partition", "on_bad_time", "ambiguous", "nonexistent", "format")
_OF_FILES = ("separator", "header")
_MARK = "sessionkit's "  # before the names of columns that only this file sees


@answers_calls("compared")
@dataclass(frozen=True, repr=False)
class SessionComparison(Pictured, Generic[Frame]):
    """Where sessions of another tool and ours differ, grouped by the reason.

    Two rows of a key that follow each other in time are in one session or not; a difference is such a pair that only
    one of the two keeps together. What explains most of them comes first.

    Example:
        >>> theirs = monday.assign(visit=sk.sessionize(monday, "user", "at", "10s")["session_id"])
        >>> compared = sk.compare_sessions(theirs, theirs="visit", by="user", at="at", gap="30s")
        >>> compared.reasons, compared.table()["they_cut"].tolist()
        (['gap'], [1])
        >>> print(compared.words()[-1])
        With gap="10s", none would be left.
        >>> len(compared.example("gap")), compared.rows()["our_session_id"].tolist()
        (2, [0, 0, 1])
        >>> figure = compared.figure(theme="dark")
    """

    _pairs: Pairs
    _found: Found
    _batch: RecordBatch
    _opened: Opened
    _ours: Longs
    _theirs: Longs
    _by: tuple[str, ...]
    _way: Mapping[str, Any]  # the rules that were found as arguments of `sessionize`
    _left: int | None  # how many pairs differ with them; None where there are none
    _names: tuple[str, str]  # of the column of theirs, and of the one of ours

    def table(self) -> Frame:
        """One row for each reason: in how many pairs they cut and we do not, and the other way round; of how many keys;
        the argument of `sessionize` that would do as they do, null where there is none; and the smallest example, by
        its key and the times of its two rows.
        """
        pairs, rows = self._pairs, []
        for number, reason in enumerate(self._found.reasons):
            here, places = np.flatnonzero(self._found.of_pair == number), self._smallest[number]
            counts = [int(cut[here].sum()) for cut in (pairs.theirs, pairs.ours)]
            keys, way = len(distinct(pairs.key[pairs.before[here]])), _code(reason.way) or None
            shown = [str(self._key(number)), *pairs.time_ms[places].tolist()]
            rows.append([reason.name, *counts, keys, way, *shown])
        cells = zip(*rows, strict=True) if rows else [()] * len(_COLUMNS)
        table = pa.table({name: pa.array(each, _COLUMNS[name]) for name, each in zip(_COLUMNS, cells, strict=True)})
        table = with_timestamps(table, self._batch.timezone)
        result: Frame = to_frame(table, self._opened.frame)
        return result

    @property
    def reasons(self) -> list[str]:
        """The reasons, as `table` has them: those that are a rule first. Of what no rule explains they are "a repeated
        row" (one more of the same time), "a short pause" and "a long pause" (beside the gap), and "another rule".
        """
        return [reason.name for reason in self._found.reasons]

    def words(self) -> list[str]:
        """What differs, each reason with an example, what their rules would leave, and rows that one of both lacks."""
        pairs, differ = self._pairs, int(self._pairs.differ.sum())
        ours, theirs = (int(cut.sum()) + len(pairs.rows) - len(pairs.before) for cut in (pairs.ours, pairs.theirs))
        of = f"of {plural(len(pairs.before), 'pair')} of rows that follow each other differ{'s' * (differ < 2)}"
        sessions = f"{plural(theirs, 'session')} of theirs, {ours:,} of ours"
        said = [f"{differ:,} {of}: {sessions}." if differ else f"None {of}: {plural(ours, 'session')} of both."]
        said += [" For example ".join(self._told(number)) for number in range(len(self.reasons))]
        if self._left is not None:
            left = f"{plural(self._left, 'difference')} would be left" if self._left else "none would be left"
            said.append(f"With {_code(self._way)}, {left}.")
        if (again := pairs.return_later) and differ:
            said.append(f"{plural(again, 'session')} of theirs {'goes' if again == 1 else 'go'} on after another one.")
        return [*said, *self._lacking()]

    def example(self, reason: str | None = None) -> Frame:
        """The rows of the smallest example of a reason, without one of the first: at most twelve, in order of time,
        with the session of ours in a column behind theirs.

        Raises:
            InvalidArgument: there is no such reason, or nothing differs.
        """
        if not self.reasons:
            raise InvalidArgument(problem("there is no example", "nothing differs", "compared.words() says so"))
        number = self.reasons.index(one_of("reason", reason or self.reasons[0], (*self.reasons,)))
        rows, whole = self._pairs.rows[self._example_places(number)], self._opened.original
        if self._opened.frame == "pandas":
            few = whole.iloc[rows]
        else:
            few = whole[rows.tolist()] if self._opened.frame == "polars" else whole.take(pa.array(rows))
        result: Frame = beside(dataclasses.replace(self._opened, original=few), self._added().take(pa.array(rows)))
        return result

    def rows(self) -> Any:
        """All rows as they were given, with the session of ours and, for the later row of a pair that differs, why."""
        return beside(self._opened, self._added())

    def _added(self) -> pa.Table:
        place, reasons = np.full(len(self._ours), -1, np.int32), pa.array(self.reasons, pa.string())
        place[self._pairs.rows[self._pairs.after]] = self._found.of_pair
        why = reasons.take(arrow_array(place, place < 0))
        return pa.table([arrow_array(self._ours, self._ours < 0), why], names=[self._names[1], "difference"])

    def figure(self, *, theme: Theme | None = None) -> Figure:
        """For each reason its smallest example: their sessions above ours, and the rows between them."""
        from sessionkit.other_sessions.figure import lanes_of_both

        return lanes_of_both(self, theme=theme)

    @cached_property
    def _smallest(self) -> list[list[int]]:
        """For each reason the places of its two rows whose sessions, of ours and of theirs, have the fewest rows."""
        pairs, size, found = self._pairs, np.zeros(len(self._pairs.before), np.int64), []
        for session in (pairs.our_id, pairs.their_id):
            count = np.bincount(session)
            before, after = session[pairs.before], session[pairs.after]
            size += count[before] + np.where(before == after, 0, count[after])
        for number in range(len(self.reasons)):
            here = np.flatnonzero(self._found.of_pair == number)
            first = int(pairs.before[here[size[here].argmin()]])
            found.append([first, first + 1])
        return found

    def _key(self, number: int) -> Any:
        return self._batch.key_at(int(self._pairs.rows[self._smallest[number][0]]))

    def _example_places(self, number: int) -> Longs:
        """The places among the rows of the pairs that an example shows."""
        pairs, both = self._pairs, self._smallest[number]
        before = both[0]
        near = slice(max(0, before - MOST_ROWS), before + MOST_ROWS)
        seen = np.isin(pairs.our_id[near], pairs.our_id[both]) | np.isin(pairs.their_id[near], pairs.their_id[both])
        places = near.start + np.flatnonzero(seen & (pairs.key[near] == pairs.key[before]))
        far = np.abs(places - before - 0.5)
        return np.sort(places[np.argsort(far, kind="stable")[:MOST_ROWS]])

    def _told(self, number: int) -> tuple[str, str]:
        """(a reason, its smallest example), each in a sentence."""
        reason = self._found.reasons[number]
        count = plural(int((self._found.of_pair == number).sum()), "difference")
        before, after = map(self._clock, self._pairs.time_ms[self._smallest[number]].tolist())
        key = f"key {key_name(self._key(number))}, " if self._by else ""
        return f"{reason.name}: {count}. {reason.words}", f"{key}{before}, then {after}."

    def _clock(self, ms: int) -> str:
        is_short = self._pairs.time_ms.max() < SHORT_HISTORY_MS
        return show_duration(ms) if is_short else show_time(ms, self._batch.timezone)

    def _lacking(self) -> list[str]:
        """On rows that only one of both has in a session."""
        said, ours, theirs = [], self._ours >= 0, self._theirs >= 0
        if many := int((theirs & ~ours).sum()):
            verbs = "has no key or no time, and is" if many == 1 else "have no key or no time, and are"
            said.append(f"{plural(many, 'row')} of their sessions {verbs} in none of ours.")
        lacks = np.flatnonzero(ours & ~theirs)
        if not len(lacks):
            return said
        times, time = np.unique(self._batch.timestamp_ms, return_inverse=True)
        place = self._batch.key * np.int64(len(times)) + time
        repeated = int(np.isin(place[lacks], place[ours & theirs]).sum())
        word = f", of which {repeated:,} repeat the time of another row" if repeated else ""
        verb = "has" if len(lacks) == 1 else "have"
        return [*said, f"{plural(len(lacks), 'row')} of our sessions {verb} no value in {self._names[0]!r}{word}."]


_COLUMNS = {
    "reason": pa.string(), "they_cut": pa.int64(), "they_join": pa.int64(), "keys": pa.int64(), "way": pa.string(),
    "key": pa.string(), "before_ms": pa.int64(), "after_ms": pa.int64(),
}  # fmt: skip


@called_as('sk.compare_sessions(df, theirs="session_id", by="user", at="time", gap="30m")')
def compare_sessions(
    data: Any,
    theirs: str,
    by: str | Sequence[str] | None,
    at: str,
    gap: Gap,
    *,
    ours: str = "our_session_id",
    **rules: Any,
) -> SessionComparison[Any]:
    """Where the sessions of another tool differ from ours, and which of its rules would explain that.

    Tried are another gap, one that is reached and not passed, midnight in the zone and in others, a value that
    changes, one that starts or ends a session, a longest session, another key, and the order of the rows.

    Args:
        data: what `sessionize` takes, except Spark DataFrames.
        theirs: the column of their sessions. A number that starts again for each key will do.
        by, at, gap: as in `sessionize`.
        ours: the name of the column of our sessions in `rows` and `example`.
        rules: more arguments of `sessionize`, such as `timezone=`, or a rule that is known already.
    Raises:
        InvalidArgument, MissingColumn, UnsupportedData, InvalidData: as `sessionize`.
        NotBuilt: the data is a Spark DataFrame, or there is a grace.
    Example:
        >>> theirs = monday.assign(visit=sk.sessionize(monday, "user", "at", "10s")["session_id"])
        >>> print(sk.compare_sessions(theirs, theirs="visit", by="user", at="at", gap="30s").words()[0])
        1 of 1 pair of rows that follow each other differs: 3 sessions of theirs, 2 of ours.
    """
    _refuse(data, rules)
    keys = (by,) if isinstance(by, str) else tuple(by or ())
    files = {name: rules.pop(name) for name in _OF_FILES if name in rules}
    options = {name: rules[name] for name in _OF_SOURCE if name in rules}
    source = Source(keys=keys, timestamp=at, before_1970=True, **options, **files)
    opened = open_table(data, None, source)
    whole = to_frame(opened.original, opened.frame) if isinstance(opened.original, pa.Table) else opened.original
    if ours in opened.table.column_names:
        raise taken(ours)
    their_id = _their_ids(opened, theirs)
    our_id = _our_ids(whole, source, {"by": by, "at": at, "gap": gap, **rules})
    batch = batch_of(opened, source)
    pairs = pairs_of(batch, our_id, their_id)
    gap_ms = None if rules.get("until") else attempted(duration_ms, gap, "gap", but=InvalidArgument)
    found, left = found_reasons(_known(opened, batch, pairs, source, theirs, gap_ms)), None
    way = _joined(found.reasons, rules)
    if way:
        with warnings.catch_warnings(action="ignore"):
            with_rules = _our_ids(whole, source, {"by": by, "at": at, "gap": gap, **rules, **way})
        left = int(pairs_of(batch, with_rules, their_id).differ.sum())
    return SessionComparison(
        _pairs=pairs, _found=found, _batch=batch, _opened=dataclasses.replace(opened, original=whole), _ours=our_id,
        _theirs=their_id, _by=keys, _way=way, _left=left, _names=(theirs, ours),
    )  # fmt: skip


def _our_ids(whole: Any, source: Source, asked: Mapping[str, Any]) -> Longs:
    found = open_table(sessionize(whole, **asked, prefix=_MARK), [f"{_MARK}session_id"], source)
    return numpy_array(found.table[0], absent=-1).astype(np.int64)


def _their_ids(opened: Opened, theirs: str) -> Longs:
    if theirs not in opened.table.column_names:
        want = f"one of {shorten(', '.join(map(repr, opened.table.column_names)))}"
        raise MissingColumn(problem("there is no column of their sessions", repr(theirs), want))
    column = plain_table(opened.table.select([theirs]))[0]
    codes, values = coded(column, theirs)
    if theirs in opened.objects or (len(column) and not len(values)):
        want = "a column of numbers or text with the session of each row"
        raise UnsupportedData(problem(f"column {theirs!r} has no sessions", column.type, want))
    return codes.astype(np.int64)


def _known(opened: Opened, batch: RecordBatch, pairs: Pairs, source: Source, theirs: str, gap_ms: int | None) -> Known:
    keys, at = source.keys, source.timestamp
    of_keys = columns_of(opened, keys) if len(keys) > 1 else {}
    others = [name for name in opened.table.column_names if name not in (*keys, at, theirs)]
    return Known(
        pairs=pairs,
        columns=columns_of(opened, others),
        keys={name: codes for name, (codes, _) in of_keys.items()},
        by=keys,
        zone=batch.timezone,
        has_zone=getattr(opened.table[at].type, "tz", None) is not None,
        gap_ms=gap_ms,
    )


def _joined(reasons: Sequence[Reason], rules: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that say all of these rules; the columns of `new_when`, and those given, are one list."""
    joined = {name: value for reason in reversed(reasons) for name, value in reason.way.items()}
    given = rules.get("new_when", ())
    names = [given] if isinstance(given, str) else [*given]
    names += [reason.way["new_when"] for reason in reasons if "new_when" in reason.way]
    return joined | ({"new_when": names if len(names) > 1 else names[0]} if "new_when" in joined else {})


def _code(way: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={literal(value)}" for name, value in way.items())


def _refuse(data: Any, rules: Mapping[str, Any]) -> None:
    if is_spark_frame(data):
        want = "compare the rows of some keys: df.where(…).toPandas()"
        raise NotBuilt(problem("sessions are compared on one machine", "a Spark DataFrame", want))
    if rules.get("grace") is not None:
        want = "leave out grace=; a row that was late is in no session"
        raise NotBuilt(problem("sessions are compared without a grace", f"grace={rules['grace']!r}", want))
    for name in ("prefix", "ids"):
        if name in rules:
            got = f"{name}={shorten(repr(rules[name]))}"
            raise InvalidArgument(
                problem(f"{name} has no use in compare_sessions", got, "ours= names the column of ours")
            )
