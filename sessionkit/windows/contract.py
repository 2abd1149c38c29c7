"""What a kind of window is: all that the engine, the stores, the views and Spark ask of one.

A kind is one class in one file, registered by `@window_kind`. What it `holds` picks the store, the cache and the
recorder; `is_late` is its one late rule, which its processor and its kernel ask and nothing else does.
"""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, TypeVar

from sessionkit.base.arrays import Longs, Rows
from sessionkit.base.durations import Duration
from sessionkit.errors import InvalidArgument, problem
from sessionkit.stores.contract import Store, StoredWindow
from sessionkit.windows.feed import Decided, DecidedSessions, Feed
from sessionkit.windows.processor import Aggregates, EmitSchedule, Processor

if TYPE_CHECKING:
    from sessionkit.trace.window_trace import Touches

Times = TypeVar("Times", int, Longs)
Bounds: TypeAlias = tuple[Longs, Longs]
K = TypeVar("K", bound="type[WindowKind]")

WINDOW_KINDS: list[type[WindowKind]] = []


class WindowKind(Protocol):
    """Windows of one kind, with their parameters.

    All lengths and times are in milliseconds. `holds` is "windows" where each window is known by its key and start for
    good, so that it can be a `StoredWindow`; "sessions" grow and merge, and a kind of them is a `SessionKind`.
    """

    @property
    def noun(self) -> str:
        """The usual word for one of these windows."""

    @property
    def holds(self) -> str:
        """The contents of a store of these windows: "sessions" or "windows"."""

    @property
    def grace_ms(self) -> int:
        """How long after its end a window still takes late records."""

    @property
    def close_lag_ms(self) -> int:
        """Time that is subtracted from stream time to get the close time."""

    @property
    def reach_ms(self) -> int:
        """How far after its time a record's windows can end."""

    @property
    def reach_name(self) -> str:
        """The name of the parameter that `reach_ms` comes from."""

    @property
    def advance_ms(self) -> int | None:
        """Time from one start to the next, if windows start at its multiples, or so much after them; else None."""

    @property
    def inclusive_end(self) -> bool:
        """True if the end belongs to the window."""

    @property
    def takes_null_values(self) -> bool:
        """True if a record without a value counts."""

    @property
    def is_ever_closed(self) -> bool:
        """True if stream time makes windows final."""

    @property
    def trailing_only(self) -> bool:
        """True if only windows that end with a record are results."""

    @property
    def caches_on_close(self) -> bool:
        """True if Kafka leaves the record cache on where only final results go out."""

    @property
    def not_in_kafka(self) -> tuple[str, str] | None:
        """Where Kafka Streams 4.4.0 has no such windows: (what it lacks, what to do instead); else None."""

    @staticmethod
    def is_late(end_ms: int, close_time_ms: int) -> bool:
        """THE late rule: a window that ends then takes no record in any more. Compiled, for the kernel's sake."""

    def retention_ms(self, retention: Duration | None) -> int:
        """How long a window can be found: `retention`, or the smallest allowed.

        Raises:
            InvalidArgument: shorter than that.
        """

    def windows_for(self, timestamp_ms: int) -> list[tuple[int, int]]:
        """(start, end) of the windows that a record of this time is in, or makes, oldest first."""

    def ends_ms(self, starts_ms: Times) -> Times:
        """The ends of windows that start at these times; sessions, whose ends are their own, do not say."""

    def last_instant_ms(self, stored: Any, /) -> int:
        """The last time that lies in a stored window or session."""

    def last_instants_ms(self, timestamps_ms: Longs) -> Longs:
        """The last instants of all windows that records of these times can be in, each once, rising; perhaps more."""

    def oldest_kept_end_ms(self, stream_time_ms: Times, retention_ms: int) -> Times:
        """Windows that end before this are met by no later record, and nothing is built on them."""

    def forgets_in_words(self) -> str:
        """When a window can no longer be found, where none is ever closed."""

    def processor(
        self,
        aggregates: Aggregates,
        store: Store,
        partition: int,
        *,
        kafka: bool,
        retention_ms: int,
        stream_time_ms: int,
        schedule: EmitSchedule,
    ) -> Processor[Any]:
        """The record-at-a-time processor of one partition: the reference that the kernel is held against."""

    def run(self, feed: Feed, folds: Mapping[str, Any], retention_ms: int) -> Decided | DecidedSessions:
        """The compiled pass over columns: decides every record of the feed and folds it into its windows."""

    def touches(self, feed: Feed) -> Touches:
        """Every window that a record met, in Kafka's order; the windows are numbered as in `run`."""

    def missed(self, feed: Feed) -> Touches | None:
        """The touches of windows that were closed, where they can be told without all the others; else None."""

    def arguments(self) -> tuple[Callable[..., Any], dict[str, Any]]:
        """(callable, keyword arguments) that make these windows again."""

    def in_words(self) -> str:
        """The parameters as a person says them."""

    def code(self) -> str:
        """The Python expression that makes them, as a plan shows it."""


class OfOneLength:
    """What is the same for every kind whose windows are known by their start, as long as all have one length."""

    noun = "window"
    holds = "windows"
    is_ever_closed = True
    inclusive_end: ClassVar[bool]
    grace_ms: int

    @property
    @abstractmethod
    def reach_ms(self) -> int:
        """How far after its time a record's windows can end."""

    @property
    def close_lag_ms(self) -> int:
        """Time that is subtracted from stream time to get the close time."""
        return self.grace_ms

    def ends_ms(self, starts_ms: Times) -> Times:
        """The ends of windows that start at these times."""
        return starts_ms + (self.reach_ms - self.inclusive_end)

    def last_instant_ms(self, stored: StoredWindow, /) -> int:
        """The last time that lies in a stored window."""
        return self.ends_ms(stored.window_start_ms) - (not self.inclusive_end)

    def forgets_in_words(self) -> str:
        """Words for when a window is forgotten: after it was closed."""
        return "a window is closed before it is forgotten"

    def code(self) -> str:
        """The Python expression that makes them."""
        return f"sk.{self!r}"


class SessionKind(WindowKind, Protocol):
    """A kind of windows that holds "sessions": what views and engine ask of it beside the calls of `WindowKind`."""

    @property
    def close_lag_parts(self) -> Mapping[str, int]:
        """Parts of which `close_lag_ms` is the sum, by name, the reach first: {"gap": 30_000, "grace": 10_000}."""

    def reach_of_ms(self, start_ms: Times, end_ms: Times) -> tuple[Times, Times]:
        """(first, last) time at which a record joins a session with these bounds."""

    def near_in_words(self) -> str:
        """How near to a session a record has to be, such as "within the gap of 30 s"."""

    def missing_grace_ms(
        self, times_ms: Longs, stream_times_ms: Longs, late: Rows, retention_ms: int, loaded: Bounds
    ) -> Longs:
        """How much more grace would have kept late records of one key in one partition: 1 ms less would not.

        Args:
            times_ms, stream_times_ms: of all its records, in order of arrival.
            late: places of the late ones that are asked about.
            loaded: start and end of each session that was there before them, by time.
        """


def window_kind(kind: K) -> K:
    """Registers a class of windows, so that a plan takes them.

    Raises:
        InvalidArgument: it lacks what `WindowKind` or, for one that holds "sessions", `SessionKind` names.
    """
    members = {*vars(WindowKind), *(vars(SessionKind) if getattr(kind, "holds", "") == "sessions" else ())}
    lacking = sorted(members - {*dir(kind), *getattr(kind, "__dataclass_fields__", ())})
    if lacking := [name for name in lacking if name[0] != "_"]:
        got = f"a class without {', '.join(lacking)}"
        raise InvalidArgument(problem(f"{kind.__name__} is no kind of window", got, "all that its contract names"))
    WINDOW_KINDS.append(kind)
    return kind


def do_overlap(windows: WindowKind) -> bool:
    """Whether a record can be in several of these windows."""
    if windows.holds != "windows":
        return False
    return len(windows.windows_for(0)) > 1 if windows.advance_ms is None else windows.advance_ms < windows.reach_ms


def changed_windows(windows: WindowKind, changed: Mapping[str, Any]) -> WindowKind:
    """Windows like these, with some parameters changed; a length is changed by either of its names."""
    make, values = windows.arguments()
    known = list(inspect.signature(make).parameters)
    for name in changed:
        if name not in known:
            what = f"{type(windows).__name__} has no such parameter"
            raise InvalidArgument(problem(what, repr(name), f"one of {known}"))
    names = {twin for name in changed for twin in (name, f"{name}_ms", name.removesuffix("_ms"))}
    names |= {"inactivity_gap", "inactivity_gap_ms"} if "gap" in changed else set()
    kept = {name: value for name, value in values.items() if name not in names}
    return make(**kept, **changed)


def has_cache(windows: WindowKind, strategy: str, caching: object) -> bool:
    """Whether Kafka puts the record cache before the store: emit-on-close turns it off for some kinds of windows."""
    return caching is not False and (strategy == "on_window_update" or windows.caches_on_close)
