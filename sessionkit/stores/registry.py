"""Which kinds of stores there are, and how one is opened: the parameters of its class are its options."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, overload

from sessionkit.base.calls import called_as
from sessionkit.base.durations import Duration
from sessionkit.base.text import one_of
from sessionkit.errors import InvalidArgument, problem, shorten
from sessionkit.stores.binding import check_store_name
from sessionkit.stores.contract import HOLDS, READ_ONLY_KINDS, STORE_KINDS, PlanStore

if TYPE_CHECKING:
    import os
    from typing import Required, TypedDict, Unpack

    from sessionkit.stores.memory.sessions import MemorySessionStore
    from sessionkit.stores.memory.windows import MemoryWindowStore
    from sessionkit.stores.read_only import ReadOnlyStore
    from sessionkit.stores.rocksdb.sessions import RocksDBSessionStore
    from sessionkit.stores.rocksdb.windows import RocksDBWindowStore

    class _OnDisk(TypedDict, total=False):
        directory: Required[str | os.PathLike[str]]
        retention: Duration | None
        time_ordered: bool
        segment_interval: Duration | None

    class _WindowsOnDisk(_OnDisk, total=False):
        index: bool


# The kinds that come with sessionkit, and the modules that register them when one is asked for: a store on disk brings
# a library of its own, and Spark loads itself. Any other kind is there once its module was imported.
_MODULES: Mapping[str, Mapping[str, str]] = {
    "memory": {"sessions": "sessionkit.stores.memory.sessions", "windows": "sessionkit.stores.memory.windows"},
    "rocksdb": {"sessions": "sessionkit.stores.rocksdb.sessions", "windows": "sessionkit.stores.rocksdb.windows"},
    "spark": dict.fromkeys(HOLDS, "sessionkit.spark.checkpoint"),
}
DEFAULT_KIND = "memory"


@overload
def open_store(
    kind: Literal["memory"], name: str, *, of: Literal["sessions"] = "sessions", retention: Duration | None = None
) -> MemorySessionStore: ...
@overload
def open_store(
    kind: Literal["memory"], name: str, *, of: Literal["windows"], retention: Duration | None = None
) -> MemoryWindowStore: ...
@overload
def open_store(
    kind: Literal["rocksdb"], name: str, *, of: Literal["sessions"] = "sessions", **options: Unpack[_OnDisk]
) -> RocksDBSessionStore: ...
@overload
def open_store(
    kind: Literal["rocksdb"], name: str, *, of: Literal["windows"], **options: Unpack[_WindowsOnDisk]
) -> RocksDBWindowStore: ...
@overload
def open_store(
    kind: Literal["spark"], *, checkpoint: str | os.PathLike[str], batch: int | None = None
) -> ReadOnlyStore: ...


@called_as('sk.open_store("memory", "clicks-store")')
def open_store(
    kind: str, name: str | None = None, *, of: str = "sessions", retention: Duration | None = None, **options: Any
) -> Any:
    """A store of this kind, to be used alone or under a plan.

    Args:
        kind: "memory"; "rocksdb" for one on disk that outlives the process; "spark" for the state that a streaming
            query has in its checkpoint, to read from (Spark reads it, and all of it comes to this process); or one of
            your own, which a type checker knows as `sk.stores.store_class(kind, of)`.
        name: Kafka's rule: 1 to 249 of A-Z, a-z, 0-9, ".", "_", "-", and not "." or "..". "spark" takes no name.
        of: "sessions", or "windows" for tumbling, hopping and sliding windows.
        retention: how long a window is kept by the store itself; without it a plan decides.
        options: those of the kind, which are the parameters of its class. "rocksdb": `directory`, where its folder is
            or will be made; `time_ordered`, KIP-825's form, in which windows of all keys are found by time; and
            `segment_interval`, the length of the segments in which it expires (KIP-94). "spark": `checkpoint`, the
            query's checkpointLocation, which says what it holds; and `batch`, to read the state after
            that micro-batch (the last one if not given; Spark keeps the newest 100).
    Raises:
        InvalidArgument: an unknown kind, a name that breaks the rule, an option that the kind does not have, or one
            that it needs and did not get.
        StoreMismatch: a store on disk was made with other settings. StoreLocked: it is open already. StoreCorrupted.
        StoreUnavailable: a package that the kind needs is not installed.
    Example:
        >>> with sk.open_store("memory", "clicks-store") as store:
        ...     first, second = plan.run(monday, store=store), plan.run(tuesday, store=store)
    """
    one_of("kind of store", kind, tuple(store_kinds()))
    one_of("of", of, HOLDS)
    _load(kind, of)
    make = READ_ONLY_KINDS[kind] if kind in READ_ONLY_KINDS else store_class(kind, of)
    return make(**_checked(kind, inspect.signature(make), {"name": name, "retention": retention, **options}))


def store_kinds() -> list[str]:
    """The kinds that `open_store` takes.

    Example:
        >>> store_kinds()[:3]
        ['memory', 'rocksdb', 'spark']
    """
    return list(dict.fromkeys([*_MODULES, *(kind for kind, _ in STORE_KINDS), *READ_ONLY_KINDS]))


def store_class(kind: str, of: str) -> Callable[..., PlanStore]:
    """The class of stores of this kind that hold sessions, or time and sliding windows.

    Raises:
        InvalidArgument: there is none.
    """
    _load(kind, of)
    if (kind, of) not in STORE_KINDS:
        want = "one of " + ", ".join(repr(other) for other, held in STORE_KINDS if held == of)
        raise InvalidArgument(problem(f"a plan cannot keep {of} in such a store", repr(kind), want))
    return STORE_KINDS[kind, of]


def kind_of(store: object) -> str | None:
    """The kind under which the class of a store is registered; None if it is not."""
    return next((kind for (kind, _), made in STORE_KINDS.items() if made in type(store).__mro__), None)


def such_as(of: str | None = None) -> str:
    """The call of `open_store` that errors give as an example."""
    contents = "" if of is None else f', of="{of}"'
    return f'such as sk.open_store("{DEFAULT_KIND}", "clicks-store"{contents})'


def _load(kind: str, of: str) -> None:
    if kind in _MODULES:
        importlib.import_module(_MODULES[kind][of])


def _checked(kind: str, signature: inspect.Signature, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given, if they are those of the kind; None and False are as if left out."""
    known = signature.parameters
    for option, value in given.items():
        if option not in known and value is not None and value is not False:
            want = f"leave it out, or take another kind; the options of this one are {', '.join(known)}"
            got = f"{option}={shorten(repr(value))}"
            raise InvalidArgument(problem(f"a store of kind {kind!r} has no such option", got, want))
    if "name" in known:
        check_store_name(given["name"])
    taken = {option: value for option, value in given.items() if option in known and value is not None}
    for option, parameter in known.items():
        if parameter.default is parameter.empty and option not in taken:
            want = f"{option}=…; the options of this kind are {', '.join(known)}"
            raise InvalidArgument(problem(f"a store of kind {kind!r} needs an option", f"{option}=None", want))
    return taken
