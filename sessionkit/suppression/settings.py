"""What a plan says about results that wait: for what, and what happens when too many do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from sessionkit.base.durations import INT64_MAX, Duration, duration_code, duration_ms
from sessionkit.base.text import literal, one_of
from sessionkit.errors import InvalidArgument, problem, shorten
from sessionkit.windows.contract import WindowKind

Until = Literal["until_window_closes", "until_time_limit"]
WhenFull = Literal["emit_early", "shut_down"]
UNTIL = get_args(Until)
WHEN_FULL = get_args(WhenFull)


@dataclass(frozen=True, kw_only=True)
class Suppression:
    """Kafka's suppress: results wait in a buffer, where a later one takes the place of an earlier one of its window.

    `wait_ms` is the time limit, None where a result waits until its window closes. `most_records` and `most_bytes` are
    what fits into the buffer, None for any number.

    Source:
        KIP-328; Suppressed, KTableSuppressProcessorSupplier.
    """

    wait_ms: int | None
    most_records: int | None
    most_bytes: int | None
    shuts_down: bool  # a buffer that is full stops the application; else its oldest results go out early

    @property
    def is_final(self) -> bool:
        """True if one result a window goes out, and none that was withdrawn."""
        return self.wait_ms is None

    @property
    def can_fail(self) -> bool:
        """True if a full buffer ends the run."""
        return self.shuts_down and self.is_limited

    @property
    def is_limited(self) -> bool:
        """True if the room of the buffer is limited."""
        return self.most_records is not None or self.most_bytes is not None

    @property
    def counts_bytes(self) -> bool:
        """True if the bytes of results count."""
        return self.most_bytes is not None

    def waits_ms(self, windows: WindowKind) -> int:
        """How far its clock has to be past a result's place: the time limit, or as long as a window takes records."""
        return windows.close_lag_ms if self.wait_ms is None else self.wait_ms

    def kept_as(self) -> str:
        """What may not change while results are kept, unlike the time limit and how much may wait."""
        return UNTIL[0 if self.is_final else 1] + (", by bytes" if self.counts_bytes else "")

    def is_over(self, records: int, size: int) -> bool:
        """True if this is more than fits into the buffer."""
        most_records = INT64_MAX if self.most_records is None else self.most_records
        return records > most_records or size > (INT64_MAX if self.most_bytes is None else self.most_bytes)

    def code(self) -> str:
        """The call of `suppress` with these settings."""
        options = {"max_records": self.most_records, "max_bytes": self.most_bytes}
        if not self.is_final and self.shuts_down:
            options["when_full"] = "shut_down"  # type: ignore[assignment]
        arguments = [literal(UNTIL[0] if self.wait_ms is None else UNTIL[1])]
        if self.wait_ms is not None:
            arguments.append(literal(duration_code(self.wait_ms)))
        arguments += [f"{name}={literal(value)}" for name, value in options.items() if value is not None]
        return f".suppress({', '.join(arguments)})"


def suppression(
    until: Until | None,
    wait: Duration | None,
    max_records: int | None,
    max_bytes: int | None,
    when_full: WhenFull | None,
) -> Suppression | None:
    """The arguments of `Plan.suppress`, checked."""
    if until is None:
        given = {"wait": wait, "max_records": max_records, "max_bytes": max_bytes, "when_full": when_full}
        if named := ", ".join(f"{name}={value!r}" for name, value in given.items() if value is not None):
            raise InvalidArgument(problem("no buffer has no settings", named, "plan.suppress(None)"))
        return None
    one_of("suppress", until, UNTIL)
    is_final = until == UNTIL[0]
    if (wait is None) != is_final:
        want = 'suppress("until_time_limit", "10s"), or suppress("until_window_closes"), which waits for the grace'
        raise InvalidArgument(problem(f'suppress("{until}") has {"no" if is_final else "a"} time', repr(wait), want))
    if is_final and when_full not in (None, "shut_down"):
        want = 'leave it out, or "shut_down": what is not final cannot go out; or suppress("until_time_limit", …)'
        raise InvalidArgument(problem("until_window_closes shuts down when it is full", repr(when_full), want))
    sizes: dict[str, Any] = {"max_records": max_records, "max_bytes": max_bytes}
    for name, size in sizes.items():
        if size is not None and (not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= INT64_MAX):
            want = "a whole number from 0 on, or leave it out for any number"
            raise InvalidArgument(problem(f"{name} is no size", shorten(repr(size)), want))
    return Suppression(
        wait_ms=None if wait is None else duration_ms(wait, "wait"),
        most_records=max_records,
        most_bytes=max_bytes,
        shuts_down=is_final or one_of("when_full", when_full or WHEN_FULL[0], WHEN_FULL) == "shut_down",
    )
