"""Every chart by its name: from a shape of data to a figure."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import sessionkit as sk
from tests.pictures.shapes import SHAPES, Shape


class Drawn:
    """A shape with what its charts are made of, each made once."""

    def __init__(self, shape: Shape) -> None:
        self.shape, self.run = shape, shape.plan.run(shape.table)

    @property
    def key(self) -> Any:
        """The key with the most to see."""
        return self.run.most_eventful_key()

    @property
    def lost(self) -> int:
        """The offset of the first record that came too late."""
        return int(self.run.trace.batch.offset[self.run.trace.late_for_some.argmax()])

    def lineage(self) -> Any:
        """The session with the most merges, or the first."""
        merges = self.run.merges()
        if not len(merges):
            row = self.run.table().slice(0, 1).to_pylist()[0]
            return self.run.lineage(row["who"], row["window_start"])
        row = merges.slice(0, 1).to_pylist()[0]
        return self.run.lineage(row["who"], row["window_start"])

    @property
    def lengths(self) -> tuple[list[int], list[int]]:
        """Gaps and graces to sweep over, around those of the plan."""
        windows: Any = self.shape.plan.windows
        gaps = [windows.inactivity_gap_ms * step // 4 for step in (1, 2, 4, 8, 16)]
        return gaps, [windows.grace_ms * step // 4 for step in (0, 1, 4, 16, 64)]

    @property
    def some(self) -> Any:
        """No more records than a sweep or an audit takes at once."""
        return self.shape.table.slice(0, 8_000)


@cache
def drawn(name: str) -> Drawn:
    return Drawn(SHAPES[name]())


@cache
def swept(name: str) -> Any:
    each = drawn(name)
    gaps, graces = each.lengths
    return sk.sweep(each.shape.plan, each.some, inactivity_gap_ms=gaps, grace_ms=graces)


@cache
def compared(name: str) -> Any:
    each = drawn(name)
    return each.shape.plan.run(each.some).compare(each.shape.other.run(each.some))


@cache
def beside(name: str) -> Any:
    return sk.kinds(drawn(name).shape.table, "who", "at")


@cache
def audited(name: str) -> Any:
    each = drawn(name)
    return sk.audit(each.shape.plan, each.some.slice(0, 2_000))  # played record by record


@cache
def sessions_compared(name: str) -> Any:
    """With sessions that another gap and a number of rows cut."""
    each = drawn(name)
    windows: Any = each.shape.plan.windows
    options = {"by": "who", "at": "at", "unit": "ms"}
    gap_ms = windows.inactivity_gap_ms
    theirs = sk.sessionize(each.some, gap=f"{2 * gap_ms}ms", max_rows=7, **options)["session_id"]
    rows = each.some.append_column("visit", theirs)
    return sk.compare_sessions(rows, theirs="visit", gap=f"{gap_ms}ms", **options)


CHARTS: Mapping[str, Callable[[str, Any], Any]] = {
    "plane": lambda name, theme: drawn(name).run.plane(drawn(name).key, theme=theme),
    "arrivals": lambda name, theme: drawn(name).run.plane(drawn(name).key, theme=theme, playback=True),
    "lanes": lambda name, theme: drawn(name).run.lanes(theme=theme),
    "lineage": lambda name, theme: drawn(name).lineage().figure(theme=theme),
    "emissions": lambda name, theme: drawn(name).run.emissions(drawn(name).key).figure(theme=theme),
    "latency": lambda name, theme: drawn(name).run.latency().figure(theme=theme),
    "open windows": lambda name, theme: drawn(name).run.open_windows().figure(theme=theme),
    "drop calendar": lambda name, theme: drawn(name).run.drop_calendar().figure(theme=theme),
    "clock": lambda name, theme: drawn(name).run.clock().figure(theme=theme),
    "chain": lambda name, theme: drawn(name).run.explain(offset=drawn(name).lost).figure(theme=theme),
    "kinds": lambda name, theme: beside(name).figure(theme=theme),
    "comparison": lambda name, theme: compared(name).figure(theme=theme),
    "compared sessions": lambda name, theme: sessions_compared(name).figure(theme=theme),
    "audit": lambda name, theme: audited(name).figure(theme=theme),
    "gap": lambda name, theme: sk.suggest_gap(drawn(name).shape.plan, drawn(name).shape.table).figure(theme=theme),
    "grace": lambda name, theme: sk.suggest_grace(drawn(name).shape.plan, drawn(name).some, keep=0.99).figure(
        theme=theme
    ),
    "heat map": lambda name, theme: swept(name).heat_map(theme=theme),
    "pareto": lambda name, theme: swept(name).pareto(theme=theme),
}
