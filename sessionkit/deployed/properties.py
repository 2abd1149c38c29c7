"""A deployment as Kafka's configuration, there and back."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sessionkit.base.calls import level_of_user
from sessionkit.base.durations import MAX_DURATION_MS, duration_code, duration_ms
from sessionkit.errors import InvalidArgument, problem, shorten
from sessionkit.stores.sizes import byte_count, byte_text

if TYPE_CHECKING:
    from sessionkit.deployed.deployment import Deployment

LONG_MAX = 2**63 - 1
STORE, CACHE, COMMITS = "dsl.store.suppliers.class", "statestore.cache.max.bytes", "commit.interval.ms"
FINALS, GUARANTEE = "__emit.interval.ms.kstreams.windowed.aggregation__", "processing.guarantee"
THREADS = "num.stream.threads"
_SUPPLIERS = "org.apache.kafka.streams.state.BuiltInDslStoreSuppliers$"
_KINDS = {"rocksdb": f"{_SUPPLIERS}RocksDBDslStoreSuppliers", "memory": f"{_SUPPLIERS}InMemoryDslStoreSuppliers"}
_OLDER = {"default.dsl.store": STORE, "cache.max.bytes.buffering": CACHE}  # names until KIP-954 and KIP-770
_STORE_NAMES = {**{name: kind for kind, name in _KINDS.items()}, "rocksDB": "rocksdb", "in_memory": "memory"}


def properties_of(how: Deployment) -> str:
    """The lines of a properties file; what has no property is a comment."""
    values = {
        STORE: _KINDS.get(str(how.store)),
        CACHE: LONG_MAX if how.caching is True else byte_count(how.caching, "caching") if how.caching else None,
        COMMITS: LONG_MAX if how.commit_interval is None else duration_ms(how.commit_interval, "commit_interval"),
        FINALS: how._emit_interval_ms,
        GUARANTEE: how.guarantee,
    }
    lines = [f"{name}={value}" for name, value in values.items() if value is not None]
    if values[STORE] is None:
        lines.append(f"# store: {how.store}, a kind of its own")
    if how.caching is False:
        lines.append("# caching: Materialized.withCachingDisabled()")
    if how.commit_every is not None:
        lines.append(f"# commit_every: {how.commit_every}, and not by the interval")
    if how.clock is not None:
        lines.append(f"# clock: column {how.clock!r}")
    if how.restarts:
        lines.append(f"# restarts after rows: {how.restarts}")
    if how.retention is not None:
        ms = duration_ms(how.retention, "retention")
        lines.append(f"# retention: Materialized.withRetention(Duration.ofMillis({ms}L))")
    return "\n".join(lines) + "\n"


def settings_in(given: str | Path | Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a deployment in Kafka's configuration, by their names; refuses values that cannot be."""
    values = {_OLDER.get(str(name), str(name)): value for name, value in _pairs(given).items()}
    threads = max(1, _number(values.pop(THREADS, 1), THREADS))
    reads: dict[str, tuple[str, Callable[[Any], Any]]] = {
        STORE: ("store", _store),
        CACHE: ("caching", lambda given: _cache(_number(given, CACHE), threads)),
        COMMITS: ("commit_interval", lambda given: _length(given, COMMITS)),
        FINALS: ("emit_interval", lambda given: _length(given, FINALS)),
        GUARANTEE: ("guarantee", lambda given: str(given).strip()),
    }
    if unknown := [name for name in values if name not in reads]:
        words = "these properties change no result here" if len(unknown) > 1 else "this property changes no result here"
        warnings.warn(f"{words}: {shorten(', '.join(unknown), 200)}", UserWarning, stacklevel=level_of_user())
    if threads > 1:
        values.setdefault(CACHE, byte_count("10MB", CACHE))
    return {reads[name][0]: reads[name][1](value) for name, value in values.items() if name in reads}


def _pairs(given: str | Path | Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(given, Mapping):
        return given
    try:
        text = Path(given).read_text(encoding="utf-8")
    except (OSError, TypeError, ValueError) as error:
        want = "the path of a properties file, or a dict of properties"
        raise InvalidArgument(problem("properties cannot be read", shorten(repr(given)), want)) from error
    joined = re.sub(r"\\\r?\n\s*", "", text)  # a line that goes on
    lines = [line.strip() for line in joined.splitlines()]
    parts = [re.split(r"\s*[=:]\s*|\s+", line, maxsplit=1) for line in lines if line and line[0] not in "#!"]
    return {name.replace("\\", ""): "".join(value).replace("\\", "") for name, *value in parts}


def _number(given: Any, name: str) -> int:
    if isinstance(given, int) and not isinstance(given, bool):
        return given
    if isinstance(given, str) and re.fullmatch(r"\s*\d{1,19}\s*", given):
        return int(given)
    raise InvalidArgument(problem(f"{name} must be a whole number", shorten(repr(given)), f"{name}=10000"))


def _length(given: Any, name: str) -> str | None:
    ms = _number(given, name)
    return None if ms > MAX_DURATION_MS else duration_code(ms)


def _cache(size: int, threads: int) -> bool | str:
    return True if size >= LONG_MAX else byte_text(size // threads)


def _store(given: Any) -> str:
    name = str(given).strip()
    if name not in _STORE_NAMES:
        raise InvalidArgument(problem("a store of a kind that is not known", shorten(name), " or ".join(_STORE_NAMES)))
    return _STORE_NAMES[name]
