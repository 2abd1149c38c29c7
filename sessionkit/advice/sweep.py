"""Many settings of a plan's windows beside each other: each an exact run of the same records."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, overload

import numpy as np
import pyarrow as pa

from sessionkit.advice.replay import Counts, Replay, order_advice, replay_of
from sessionkit.base.arrays import Flags
from sessionkit.base.calls import answers_calls, called_as
from sessionkit.base.durations import Duration, length_ms, show_duration
from sessionkit.base.text import percent, plural
from sessionkit.errors import InvalidArgument, problem
from sessionkit.plan import Plan, plan_and_data
from sessionkit.records.frames import ArrowData, Frame, FrameKind, PandasData, PolarsFrame, SparkFrame, to_frame
from sessionkit.records.lateness.order import MANY
from sessionkit.views.drawing.palettes import Figure, Theme
from sessionkit.views.html import picture_bundle

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

Measure = Literal["dropped_share", "windows", "merges", "delay_ms"]
MOST_CELLS = 10_000


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One setting and what it comes to.

    `settings` are by the windows' own names, such as "grace_ms", as `plan.with_windows` takes them. `dropped` counts
    the late records that are in no window; `delay_ms` is how long a result waits to be final. `apart` counts sessions
    that stay apart from another of their key within reach, as that had closed before a late record came.

    Example:
        >>> cell = sk.sweep(waves, flights, grace=["0s", "1h"]).cell(grace="1h")
        >>> cell.dropped, cell.plan.windows.grace_ms
        (564, 3600000)
    """

    plan: Plan
    settings: Mapping[str, int]
    windows: int
    merges: int
    dropped: int
    dropped_share: float
    delay_ms: int
    apart: int


@answers_calls("sweep")
@dataclass(frozen=True, kw_only=True, repr=False)
class Sweep(Generic[Frame]):
    """The cells of a sweep, in the order of the values given.

    Example:
        >>> sweep = sk.sweep(waves, flights, inactivity_gap=["1h", "2h"], grace=[0, "1h"])
        >>> len(sweep.cells), sweep.cell(inactivity_gap="2h", grace="1h").dropped
        (4, 139)
        >>> sweep.table()["dropped"].tolist(), sweep.is_dominated.tolist()
        ([1700, 564, 426, 139], [False, False, False, False])
        >>> figures = sweep.heat_map("merges"), sweep.pareto()
    """

    values: Mapping[str, tuple[int, ...]]
    cells: tuple[Cell, ...]
    frame: FrameKind
    _order: Sequence[str] = ()  # why every setting drops many records

    def cell(self, **settings: Duration | int) -> Cell:
        """The cell of these settings, as `sweep` takes them.

        Raises:
            InvalidArgument: it was not in the sweep.
        """
        wanted = {f"{name}_ms": ms for name, ms in lengths_ms(settings).items()}
        for cell in self.cells:
            if dict(cell.settings) == wanted:
                return cell
        known = ", ".join(f"{name}={[show_duration(ms) for ms in values]}" for name, values in self.values.items())
        raise InvalidArgument(problem("the sweep has no such cell", repr(settings), f"one of {known}"))

    def table(self) -> Frame:
        """A row a cell: the settings (ms), windows, merges, dropped, dropped_share, apart, delay_ms, is_dominated."""
        names, measures = self.cells[0].settings, ("windows", "merges", "dropped", "dropped_share", "apart", "delay_ms")
        columns: dict[str, Any] = {name: [cell.settings[name] for cell in self.cells] for name in names}
        columns |= {name: [getattr(cell, name) for cell in self.cells] for name in measures}
        columns["is_dominated"] = self.is_dominated.tolist()
        return to_frame(pa.table(columns), self.frame)

    @property
    def is_dominated(self) -> Flags:
        """True for each cell that another one beats: it is better in one of three measures, and worse in none.

        It drops no more records, leaves no more sessions apart, and waits no longer.
        """
        costs = np.array([(cell.dropped, cell.apart, cell.delay_ms) for cell in self.cells])
        return np.array([((costs <= cost).all(axis=1) & (costs < cost).any(axis=1)).any() for cost in costs], np.bool_)

    def heat_map(self, measure: Measure = "dropped_share", *, theme: Theme | None = None) -> Figure:
        """The cells as a grid of two settings, coloured by a measure, with its number in each."""
        from sessionkit.advice.figures import heat_map

        return heat_map(self, measure, theme=theme)

    def pareto(self, *, theme: Theme | None = None) -> Figure:
        """What is dropped against how long a result waits; cells that another one beats are grey."""
        from sessionkit.advice.figures import pareto

        return pareto(self, theme=theme)

    def __repr__(self) -> str:
        shapes = " × ".join(f"{len(values)} {name}" for name, values in self.values.items())
        low, high = (pick(cell.dropped_share for cell in self.cells) for pick in (min, max))
        apart = [cell.apart for cell in self.cells]
        stay = f"; {min(apart):,} to {plural(max(apart), 'session')} stay apart from one of their key"
        share = percent(low) if low == high else f"{percent(low)} to {percent(high)}"
        return "\n".join([f"Sweep: {shapes}; dropped as late {share}{stay if any(apart) else ''}", *self._order])

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return picture_bundle(self.heat_map() if len(self.values) == 2 else self.pareto(), repr(self))


@overload
def sweep(plan: Plan, data: SparkFrame | PandasData, **values: Iterable[Duration | int]) -> Sweep[pd.DataFrame]: ...
@overload
def sweep(plan: Plan, data: PolarsFrame, **values: Iterable[Duration | int]) -> Sweep[pl.DataFrame]: ...
@overload
def sweep(plan: Plan, data: ArrowData, **values: Iterable[Duration | int]) -> Sweep[pa.Table]: ...


@called_as('sk.sweep(plan, data, grace=["0s", "1h"])')
def sweep(plan: Plan, data: Any, **values: Iterable[Duration | int]) -> Sweep:
    """Runs the records under every combination of these values of the windows' parameters.

    Args:
        plan: with windows; its aggregations are not computed.
        data: what `plan.run` takes. Of a Spark DataFrame each task reads its partition once, and holds it meanwhile.
        values: parameters of the windows, such as `inactivity_gap=["30m", "1h"], grace=[0, "1h"]`; as numbers,
            `grace_ms=[0, 3_600_000]`.
    Raises:
        InvalidArgument: no values, no such parameter, more than 10,000 cells, or a streaming DataFrame.
    Example:
        >>> sk.sweep(waves, flights, grace=[0, "30m", "1h"])
        Sweep: 3 grace; dropped as late 1.98% to 5.97%; 200 to 749 sessions stay apart from one of their key
    """
    plan, data = plan_and_data(plan, data, "sweep")
    windows = {"inactivity_gap" if name == "gap" else name: _several(name, each) for name, each in values.items()}
    if not windows or not all(windows.values()):
        want = 'such as inactivity_gap=["30m", "1h"], grace=[0, "1h"]'
        raise InvalidArgument(problem("a sweep needs values", repr(values), want))
    count = math.prod(map(len, windows.values()))
    if count > MOST_CELLS:
        raise InvalidArgument(problem("the sweep has too many cells", f"{count:,}", f"at most {MOST_CELLS:,}"))
    with replay_of(plan, data, "a sweep") as replay:
        found = sweep_replay(plan, replay, windows)
        is_many = min(cell.dropped_share for cell in found.cells) >= MANY
        return dataclasses.replace(found, _order=order_advice(plan, replay)) if is_many else found


def _several(name: str, values: Any) -> list[Any]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        want = f"{name}=[{values!r}, …]"
        raise InvalidArgument(problem(f"a sweep takes several values of {name}", repr(values), want))
    return [*values]


def sweep_replay(plan: Plan, replay: Replay, values: Mapping[str, Sequence[Duration | int]]) -> Sweep:
    """What `sweep` gives, of records that were read already."""
    combinations = itertools.product(*values.values())
    plans = [plan.with_windows(**dict(zip(values, each, strict=True))) for each in combinations]
    counted = replay.counts_of([each._complete_windows for each in plans])
    names = [name.removesuffix("_ms") for name in values]
    cells = tuple(_cell(each, names, counts) for each, counts in zip(plans, counted, strict=True))
    tried = zip(*(cell.settings.values() for cell in cells), strict=True)
    kept = {name: tuple(dict.fromkeys(values)) for name, values in zip(names, tried, strict=True)}
    return Sweep(values=kept, cells=cells, frame=replay.frame)


def lengths_ms(given: Mapping[str, Any]) -> dict[str, int]:
    """Lengths by name in milliseconds, of which each was given as `name` or, a number, as `name`_ms."""
    names = dict.fromkeys(name.removesuffix("_ms") for name in given)
    return {name: length_ms(given.get(name), given.get(f"{name}_ms"), name) for name in names}


def _cell(plan: Plan, names: list[str], counts: Counts) -> Cell:
    windows = plan._complete_windows
    said = windows.arguments()[1]
    parameters = [f"{name}_ms" if hasattr(windows, f"{name}_ms") else name for name in names]
    return Cell(
        plan=plan,
        settings={name: said.get(name, getattr(windows, name, 0)) for name in parameters},
        windows=counts.windows,
        merges=counts.merges,
        dropped=counts.late,
        dropped_share=counts.late / counts.records if counts.records else 0.0,
        delay_ms=windows.close_lag_ms,
        apart=counts.apart,
    )
