"""The base of every store: it is bound to one plan, its keys are of one type, it takes runs over, and it closes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from types import TracebackType
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from sessionkit.base.calls import answers_names
from sessionkit.base.durations import show_duration
from sessionkit.base.moments import show_time
from sessionkit.base.text import escape_html, html_block, plural
from sessionkit.errors import InvalidArgument, StoreClosed, problem, shorten
from sessionkit.records.inputs.opened import frame_of_columns
from sessionkit.records.keys import key_bytes
from sessionkit.stores.binding import check_bound, check_results, check_settings
from sessionkit.stores.contract import PlanStore, Snapshot, Stored, StoredColumns
from sessionkit.stores.locking import SharedStore
from sessionkit.stores.read_only import ReadOnlyStore
from sessionkit.stores.rows import KEY_TYPES, as_columns, as_stored, time_of, while_open
from sessionkit.stores.typed_bytes import kind_of_key, pack_value

S = TypeVar("S", bound="BaseStore")
SHOWN_ROWS = 20
COUNTED_ROWS = 100_000  # counting more takes longer than what a store shows of itself should
CODEC = "typed 1"


class Noted(NamedTuple):
    """Notes of a store on its plan, each None until it is known."""

    key_kind: str | None = None  # of the first key: as bytes, 1 and "\\0\\0\\0\\0\\0\\0\\0\\1" are one
    names: list[str] | None = None  # of the results that a plan committed, sorted
    windows: dict[str, Any] | None = None  # the plan's windows, keys and results


@answers_names("store")
class BaseStore(SharedStore, PlanStore):
    """Base of the stores of every kind: binds them to a plan, takes runs over, shows their rows, closes them."""

    noun: ClassVar[str]
    holds: ClassVar[str]  # "sessions" or "windows"
    kept_by: ClassVar[str]  # "ends" or "starts": which bound of a window decides when it expires
    columns: ClassVar[tuple[str, ...]]

    # What the record cache in front of a store asks. Kafka says of a store in memory that each ms is a segment; ranges
    # come by time, key and falling start. Those of a persistent one come by segment, key, time and rising start.
    is_persistent: ClassVar[bool] = False
    time_ordered: bool = False
    has_index: bool = False
    segment_interval_ms: int = 1
    longest_key: ClassVar[int] = 2**63  # in bytes

    def __init__(self, name: str, retention_ms: int | None) -> None:
        super().__init__(name)
        self.retention_ms = retention_ms
        self._noted = Noted()
        self._open = True

    # ---- bound to a plan

    def check_names(self, names: Iterable[str]) -> None:
        """Refuses a plan whose results have other names than those in the store.

        Raises:
            InvalidData: with the names in it and those in the plan.
        """
        self._check_open()
        check_results(self.name, self._noted.names, names)

    def check_windows(self, windows: Mapping[str, Any]) -> None:
        """Refuses a plan whose windows, keys or results are not those that the store is bound to.

        Raises:
            StoreMismatch: with what differs.
        """
        self._check_open()
        check_bound(self.name, self._noted.windows, dict(windows))

    def bind(self, windows: Mapping[str, Any]) -> None:
        """Notes what the windows in it are; a plan with others is refused from then on.

        Raises:
            StoreMismatch: it is bound to others already.
        """
        self.check_windows(windows)
        if self._noted.windows is None:
            self._note(windows=dict(windows))

    def _note(self, **changes: Any) -> None:
        self._noted = self._noted._replace(**changes)

    def _note_kind(self, key: Any) -> None:
        if self._noted.key_kind is None:
            self._note(key_kind=kind_of_key(key))

    def _note_names(self, names: Collection[str]) -> None:
        if names and self._noted.names != sorted(names):
            self._note(names=sorted(names))

    # ---- runs

    def load(self, keys: pa.Array, before_ms: Mapping[int, int], names: tuple[str, ...]) -> Any:
        """Windows of these keys, and of any key those whose end (sessions) or start lies before the time given."""
        self.check_names(names)
        wanted = {key_bytes(key) for key in keys.to_pylist()}
        found = [
            (partition, each)
            for partition, until_ms in before_ms.items()
            for each in self.all(partition=partition)
            if time_of(each) < until_ms or key_bytes(each.key) in wanted
        ]
        return self._as_columns(found, keys.type, names)

    def commit(self, removes: Any, puts: Any, snapshots: Mapping[int, Snapshot]) -> None:
        """Takes a run over, all or nothing: what it loaded and so removed, what it wrote, and how far it came."""
        self._check_open()
        with self.all_or_nothing():
            for partition, each in as_stored(removes):
                self.write(each._replace(aggregate=None), partition=partition)
            self._write_all(puts)
            self.commit_snapshots(snapshots, puts.aggregates.keys())

    @abstractmethod
    def write(self, stored: Any, /, *, partition: int = 0, keep_null: bool = False) -> bool:
        """Writes a window; False if it is expired and was refused. A null aggregate deletes, unless `keep_null`."""

    def _write_all(self, puts: StoredColumns) -> None:
        for partition, each in as_stored(puts):
            self.write(each, partition=partition, keep_null=True)

    def _as_columns(
        self, found: list[tuple[int, Stored]], key_type: pa.DataType, names: tuple[str, ...]
    ) -> StoredColumns:
        """A store's windows as columns; keys are of the type that the store noted, or else of `key_type`."""
        kind = self._noted.key_kind if found else None
        return as_columns(self.holds, found, key_type if kind is None else KEY_TYPES[kind], names)

    # ---- open and closed

    @abstractmethod
    def close(self) -> None:
        """Closes the store; every later call raises."""

    def __enter__(self: S) -> S:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def _is_open(self) -> bool:
        return self._open

    def _check_open(self) -> None:
        if not self._open:
            raise StoreClosed(problem(f"store {self.name!r} is closed", "a call", "open it again"))

    def _while_open(self, found: Iterable[Any]) -> Iterator[Any]:
        """The windows found, one by one; an iterator that is not finished raises once the store is closed."""
        return while_open(self._check_open, found)

    # ---- keys and partitions

    def _raw(self, key: Any) -> bytes:
        """The bytes of a key, which is of the type of all keys in it."""
        self._check_open()
        raw, kind = key_bytes(key), self._noted.key_kind
        if kind is not None and kind != kind_of_key(key):
            want = f"its keys are {kind}: use keys of one type in a store"
            raise InvalidArgument(problem(f"store {self.name!r} holds keys of another type", shorten(repr(key)), want))
        if len(raw) > self.longest_key:
            got = f"{len(raw):,} bytes, {shorten(key)}"
            raise InvalidArgument(problem("a key is too long", got, f"at most {self.longest_key:,} bytes"))
        return raw

    def _key_range(self, *keys: Any) -> tuple[bytes | None, bytes | None]:
        """The bytes of the first and the last of the keys; of several an end that is None is open."""
        self._check_open()
        bounds = [None if key is None and len(keys) > 1 else self._raw(key) for key in keys]
        return bounds[0], bounds[-1]

    def _number(self, partition: int) -> int:
        self._check_open()
        number: Any = partition
        if not isinstance(number, int | np.integer) or isinstance(number, bool) or not 0 <= number < 2**32:
            got = shorten(repr(partition))
            raise InvalidArgument(problem("a partition must be a number", got, "0 to 4,294,967,295"))
        return int(partition)

    # ---- to look at

    def read_only(self) -> ReadOnlyStore:
        """The store without its writes, as for queries from outside of Kafka Streams' processors."""
        return ReadOnlyStore(self)

    def _table(self) -> Iterator[tuple[Any, ...]]:
        self._check_open()
        return ((p, each.key, *each[:3]) for p in self.partitions for each in self.all(partition=p))

    def __len__(self) -> int:
        return self._count(None)

    def to_pandas(self) -> Any:
        """Everything in it as a pandas frame, by partition and then in the store's own order."""
        rows, names = list(self._table()), ("partition", *self.columns)
        return frame_of_columns({name: [row[place] for row in rows] for place, name in enumerate(names)})

    def rows(self) -> Iterator[dict[str, Any]]:
        """Everything in it, window by window as the rows of `to_pandas`."""
        for row in self._table():
            yield dict(zip(("partition", *self.columns), row, strict=True))

    def facts(self) -> list[str]:
        """Facts about the store in words: the oldest and the newest window, and what expires next."""
        return list(self._facts()) if self._is_open else []

    def __repr__(self) -> str:
        kind = type(self).__name__
        if not self._is_open:
            return f"{kind}({self.name!r}): closed"
        kept = "as long as a plan says" if self.retention_ms is None else f"for {show_duration(self.retention_ms)}"
        count = self._count(COUNTED_ROWS + 1)
        shown = plural(count, self.noun) if count <= COUNTED_ROWS else f"more than {plural(COUNTED_ROWS, self.noun)}"
        return f"{kind}({self.name!r}): {shown}, kept {kept}"

    def _repr_html_(self) -> str:
        head = f"<p>{escape_html(repr(self))}</p>"
        if not self._is_open:
            return html_block(head)
        titles = "".join(f"<th>{title.replace('_', ' ')}</th>" for title in ("partition", *self.columns))
        rows = [[escape_html(shorten(value)) for value in row] for row in self._first(SHOWN_ROWS)]
        body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
        table = f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"
        facts = "".join(f"<li>{escape_html(fact)}</li>" for fact in self.facts())
        return html_block(f"{head}<ul>{facts}</ul>{table}" if facts else f"{head}{table}")

    def _facts_of_times(
        self, oldest: list[tuple[int, int]], newest: list[int], *, at_boundary: bool = False
    ) -> Iterator[str]:
        """Oldest and newest, from one (time, partition) of each partition, and what expires next."""
        if not oldest:
            return
        word = f"a {self.noun} that {self.kept_by} at"
        time_ms, partition = min(oldest)
        yield f"oldest: {word} {show_time(time_ms)}; newest: {word} {show_time(max(newest))} (UTC)"
        if self.retention_ms is not None:
            then = show_time(time_ms + self.retention_ms + at_boundary)
            yield f"the oldest expires when {word} {then} is put into partition {partition}"

    @abstractmethod
    def _count(self, limit: int | None) -> int:
        """How many windows there are; `limit`, if there are as many or more."""

    def _first(self, most: int) -> Iterator[tuple[Any, ...]]:
        """The first `most` rows of `to_pandas`."""
        return islice(self._table(), most)

    @abstractmethod
    def _facts(self) -> Iterator[str]:
        """Facts about the store in words, one by one."""


class State(NamedTuple):
    """One partition: the largest time that was put, the first segment that was not dropped, how far it was read."""

    observed_time_ms: int = -1
    first_segment: int = 0
    snapshot: Snapshot = Snapshot()


class WrittenStore(BaseStore):
    """Base of the stores that write rows of bytes: their settings, their partitions and their transactions."""

    def __init__(self, name: str, retention_ms: int | None, **settings: Any) -> None:
        super().__init__(name, retention_ms)
        self._settings = {"holds": self.holds, "codec": CODEC, "retention_ms": retention_ms, **settings}
        self._states: dict[int, State] = {}
        self._depth = 0

    @property
    def read_partitions(self) -> list[int]:
        """The numbers of the partitions of which it knows how far they were read, rising."""
        self._check_open()
        return sorted(self._states)

    def snapshot(self, partition: int) -> Snapshot:
        return self._state(partition).snapshot

    def commit_snapshots(self, snapshots: Mapping[int, Snapshot], names: Collection[str] = ()) -> None:
        """Takes over how far a run came, together with all that it wrote.

        The time that each of these partitions has observed is stored with it. (Kafka's store starts at -1 again when
        it is reopened, as one on disk does here for a partition that no plan has committed; but a plan that goes on
        where it stopped must find what it would have found had it never stopped.)
        """
        with self.all_or_nothing():
            self._note_run(snapshots, names)

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        with self.lock:
            self._check_open()
            before = dict(self._states), self._noted
            self._depth += 1
            try:
                with self._transaction():
                    yield
            except BaseException:
                self._states, self._noted = before
                raise
            finally:
                self._depth -= 1

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[Any]:
        """Keeps the rows and notes written inside the block only if nothing raises; one may lie in another."""

    @abstractmethod
    def _keep(self, partition: int, state: State) -> None:
        """Takes over the state of a partition, and notes it beside the rows."""

    def _state(self, partition: int) -> State:
        return self._states.get(self._number(partition), State())

    def _note_run(self, snapshots: Mapping[int, Snapshot], names: Collection[str]) -> None:
        self._note_names(names)
        for partition, snapshot in snapshots.items():
            state = self._state(partition)._replace(snapshot=Snapshot(*map(int, snapshot)))
            self._keep(int(partition), state)

    def _packed_header(self, at: bytes) -> bytes:
        return pack_value({**self._settings, **self._noted._asdict()}, at)

    def _read_header(self, header: Any) -> None:
        check_settings(self.name, header, self._settings)
        self._noted = Noted(*(header.get(field) for field in Noted._fields))
