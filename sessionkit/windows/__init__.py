"""Window kinds: for each its parameters, its processor step and its kernel step, behind one contract.

Whoever adds a kind writes one class with the members of `WindowKind`, and registers it by `@window_kind`; one that
holds sessions has those of `SessionKind`, too.
"""

# each kind registers itself
import sessionkit.windows.calendar
import sessionkit.windows.hopping
import sessionkit.windows.sliding.windows  # noqa: F401
from sessionkit.base.compiled import compiled_loop
from sessionkit.base.decisions import ADDED, LATE, MERGED, OPENED
from sessionkit.base.durations import Duration, duration_code, duration_ms, length_ms, retention_ms, show_duration
from sessionkit.stores.contract import SessionStore, Store, StoredSession, StoredWindow, WindowStore
from sessionkit.trace.session_trace import Reopenings
from sessionkit.trace.trace import Merges
from sessionkit.trace.window_trace import Touches
from sessionkit.windows.contract import WINDOW_KINDS, SessionKind, WindowKind, window_kind
from sessionkit.windows.feed import Columns, Decided, DecidedSessions, Feed
from sessionkit.windows.missing_grace import smallest_grace
from sessionkit.windows.processor import Aggregates, EmitSchedule, Processor, WindowTouch, by_start
from sessionkit.windows.session import Touch

__all__ = [
    "ADDED", "LATE", "MERGED", "OPENED", "WINDOW_KINDS", "Aggregates", "Columns", "Decided", "DecidedSessions",
    "Duration", "EmitSchedule", "Feed", "Merges", "Processor", "Reopenings", "SessionKind", "SessionStore", "Store",
    "StoredSession", "StoredWindow", "Touch", "Touches", "WindowKind", "WindowStore", "WindowTouch", "by_start",
    "compiled_loop", "duration_code", "duration_ms", "length_ms", "retention_ms", "show_duration", "smallest_grace",
    "window_kind",
]  # fmt: skip
