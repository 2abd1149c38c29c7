"""What a caller of `sessionize` says about sessions, checked before any data is looked at."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

from sessionkit.base.durations import DAY, HOUR, INT64_MAX, MINUTE, Duration, exact_ms
from sessionkit.errors import InvalidArgument, MissingColumn, NotBuilt, attempted, problem, shorten

Gap = Duration | tuple[str, str] | Mapping[Any, Duration]
Event = tuple[str, Any]
NO_LIMIT = INT64_MAX
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")
_A_COLUMN = "gap=('column', 'name of a column of lengths')"


@dataclass(frozen=True, kw_only=True)
class SessionRules:
    """The gap, or where it is to be found, and the rules that cut a session of that gap.

    `gap_of_key` are the gaps of keys, of which None is that of all others; `new_at_ms` is a time of day.
    """

    gap_ms: Fraction = Fraction()
    gap_column: str | None = None
    gap_of_key: tuple[tuple[Any, Fraction], ...] = ()
    until: str | None = None
    max_length_ms: Fraction | int = NO_LIMIT
    max_rows: int = NO_LIMIT
    new_when: tuple[str, ...] = ()
    starts_when: Event | None = None
    ends_when: Event | None = None
    new_at_ms: int | None = None
    new_at: str = ""

    @property
    def cuts(self) -> bool:
        """Whether any rule cuts a session of the gap."""
        return self.goes_by_order or self.max_length_ms < NO_LIMIT or self.new_at_ms is not None

    @property
    def goes_by_order(self) -> bool:
        """Whether the order among rows of equal time decides something."""
        return self.max_rows < NO_LIMIT or bool(self.new_when or self.starts_when or self.ends_when)

    @property
    def is_the_gap(self) -> bool:
        """Whether there is one gap and nothing else, as in Kafka."""
        return not (self.cuts or self.until or self.gap_column or self.gap_of_key)

    @property
    def longest_gap_ms(self) -> int:
        """The longest gap that is known before the data is, in whole milliseconds."""
        return ceil(max([self.gap_ms, *(gap_ms for _, gap_ms in self.gap_of_key)]))

    def columns(self) -> list[str]:
        """The columns that the rules read."""
        events = [event[0] for event in (self.starts_when, self.ends_when) if event]
        named = [name for name in (self.gap_column, self.until) if name]
        return list(dict.fromkeys([*named, *self.new_when, *events]))

    def reasons(self) -> list[str]:
        """What `session_ended_by` can be, as the loop numbers them: those of `new_when` stand at the end."""
        return [
            "gap",
            "length",
            "rows",
            "start",
            "end",
            self.new_at or "midnight",
            *(f"value:{name}" for name in self.new_when),
        ]


def rules_of(
    gap: Any,
    keys: tuple[str, ...],
    *,
    until: Any = None,
    max_length: Duration | None = None,
    max_rows: Any = None,
    new_when: Any = (),
    starts_when: Any = None,
    ends_when: Any = None,
    new_at: Any = None,
) -> SessionRules:
    """The rules as they were given to `sessionize`; `InvalidArgument` for what cannot be one."""
    if until is not None and not isinstance(until, str):
        raise InvalidArgument(problem("until must be the name of a column", shorten(repr(until)), 'until="to"'))
    if max_rows is not None and (isinstance(max_rows, bool) or not isinstance(max_rows, int) or max_rows < 1):
        want = "a number of rows from 1 on, such as max_rows=1000"
        raise InvalidArgument(problem("max_rows must be a number of rows", shorten(repr(max_rows)), want))
    names = [new_when] if isinstance(new_when, str) else new_when
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        want = 'new_when="campaign", or a list of columns'
        raise InvalidArgument(problem("new_when must be columns", shorten(repr(new_when)), want))
    return SessionRules(
        **_gap(gap, keys),
        until=until,
        max_length_ms=NO_LIMIT if max_length is None else exact_ms(max_length, "max_length"),
        max_rows=NO_LIMIT if max_rows is None else max_rows,
        new_when=tuple(names),
        starts_when=_event(starts_when, "starts_when"),
        ends_when=_event(ends_when, "ends_when"),
        new_at_ms=None if new_at is None else _time_of_day(new_at),
        new_at=new_at or "",
    )


@contextmanager
def columns_of_gaps(rules: SessionRules) -> Iterator[None]:
    """Has the error for a column of gaps that is not there say that the text is no length either."""
    try:
        yield
    except MissingColumn as error:
        if rules.gap_column is None or f"column {rules.gap_column!r} " not in str(error):
            raise
        want = f'a length such as "30s" or "2 hours", or the name of a column of lengths ({error})'
        raise InvalidArgument(problem("gap is no length and no column", repr(rules.gap_column), want)) from error


def refuse_with_grace(rules: SessionRules) -> None:
    """Refuses what is no plain gap where rows can be late, with the way."""
    if not rules.is_the_gap:
        want = "leave out grace=; or drop late rows by a plan first: rows = run.assign(data) has a column of them"
        raise NotBuilt(problem("with a grace, sessions are those of Kafka", "a rule beside one gap", want))
    if rules.gap_ms.denominator != 1:
        what = "with a grace, gap must be a whole number of milliseconds, as Kafka's are"
        raise InvalidArgument(problem(what, f"{float(rules.gap_ms)} ms", "round it, or leave out grace="))


def _gap(gap: Any, keys: tuple[str, ...]) -> dict[str, Any]:
    if isinstance(gap, Mapping):
        if len(keys) != 1:
            want = f"a column of gaps: {_A_COLUMN}"
            raise InvalidArgument(problem("gap={…} takes the values of one column of by=", list(keys), want))
        if not gap:
            raise InvalidArgument(problem("gap={…} must name a key", "none", 'gap={"phone": "10m", None: "30m"}'))
        return {"gap_of_key": tuple((key, exact_ms(each, f"gap of {key!r}")) for key, each in gap.items())}
    if isinstance(gap, tuple | list):
        if len(gap) != 2 or gap[0] != "column" or not isinstance(gap[1], str):
            raise InvalidArgument(problem("gap must be a length or a column", shorten(repr(gap)), _A_COLUMN))
        return {"gap_column": gap[1]}
    length = attempted(exact_ms, gap, "gap", but=InvalidArgument)
    if length is None and isinstance(gap, str) and not gap[:1].isdigit() and not gap.startswith(("-", "P")):
        return {"gap_column": gap}
    return {"gap_ms": exact_ms(gap, "gap") if length is None else length}


def _event(given: Any, name: str) -> Event | None:
    if given is None:
        return None
    is_pair = isinstance(given, tuple | list) and len(given) == 2 and isinstance(given[0], str)
    values = (given[1] if isinstance(given[1], list | tuple | set | frozenset) else [given[1]]) if is_pair else []
    if not len(values) or any(value is None for value in values):
        want = f'a column and its value, {name}=("event", "login"), or its values, ("event", ["login", "open"])'
        raise InvalidArgument(problem(f"{name} must be a column and a value", shorten(repr(given)), want))
    return given[0], tuple(values)


def _time_of_day(given: Any) -> int:
    if given == "midnight":
        return 0
    found = _CLOCK.fullmatch(given) if isinstance(given, str) else None
    if found is None:
        want = 'new_at="midnight", or a time of day such as "06:00"'
        raise InvalidArgument(problem("new_at must be a time of day", shorten(repr(given)), want))
    return (int(found[1]) * HOUR + int(found[2]) * MINUTE) % DAY
