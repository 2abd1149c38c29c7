"""Window kinds: for each its parameters, its processor step and its kernel step, behind one contract.

Whoever adds a kind writes one class with the members of `WindowKind`, and registers it by `@window_kind`.
"""

# each kind registers itself
import sessionkit.windows.hopping
import sessionkit.windows.session
import sessionkit.windows.sliding.windows  # noqa: F401
from sessionkit.base.compiled import compiled_loop
from sessionkit.base.decisions import ADDED, LATE, OPENED
from sessionkit.base.durations import Duration, duration_code, duration_ms, length_ms, retention_ms, show_duration
from sessionkit.stores.contract import Store, StoredWindow, WindowStore
from sessionkit.trace.window_trace import Touches
from sessionkit.windows.contract import WINDOW_KINDS, WindowKind, window_kind
from sessionkit.windows.feed import Columns, Decided, Feed
from sessionkit.windows.processor import Aggregates, EmitSchedule, Processor, WindowTouch, by_start

__all__ = [
    "ADDED",
    "LATE",
    "OPENED",
    "WINDOW_KINDS",
    "Aggregates",
    "Columns",
    "Decided",
    "Duration",
    "EmitSchedule",
    "Feed",
    "Processor",
    "Store",
    "StoredWindow",
    "Touches",
    "WindowKind",
    "WindowStore",
    "WindowTouch",
    "by_start",
    "compiled_loop",
    "duration_code",
    "duration_ms",
    "length_ms",
    "retention_ms",
    "show_duration",
    "window_kind",
]
