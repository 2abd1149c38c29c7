"""What a record did, in words, whatever the kind of its windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sessionkit.trace.session_trace import SessionTrace
from sessionkit.trace.trace import Trace
from sessionkit.trace.window_trace import WindowTrace
from sessionkit.views.explain.record import Explanation, explain_record
from sessionkit.views.explain.touches import explain_touches

EXPLAINED: dict[type[Trace], Callable[..., Explanation]] = {
    SessionTrace: explain_record,
    WindowTrace: explain_touches,
}


def explain_decision(trace: Any, windows: Any, index: int) -> Explanation:
    """Why record `index` opened, joined, bridged or was dropped."""
    return EXPLAINED[type(trace)](trace, windows, index)
