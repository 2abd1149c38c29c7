"""Where windows live between records and between runs; what a store of your own extends is handed on from here."""

from sessionkit.base.durations import Duration
from sessionkit.stores.base.row_store import RawKeys, RowStore, SessionRowStore, Times, WindowRowStore
from sessionkit.stores.contract import (
    HOLDS,
    READ_ONLY_KINDS,
    STORE_KINDS,
    FixedColumns,
    PlanStore,
    SessionColumns,
    Snapshot,
    StoredSession,
    StoredWindow,
    store_kind,
)
from sessionkit.stores.registry import open_store, store_class, store_kinds
from sessionkit.stores.typed_bytes import Place, pack_value, unpack_value

__all__ = [
    "HOLDS", "READ_ONLY_KINDS", "STORE_KINDS", "Duration", "FixedColumns", "Place", "PlanStore", "RawKeys", "RowStore",
    "SessionColumns", "SessionRowStore", "Snapshot", "StoredSession", "StoredWindow", "Times", "WindowRowStore",
    "open_store", "pack_value", "store_class", "store_kind", "store_kinds", "unpack_value",
]  # fmt: skip
