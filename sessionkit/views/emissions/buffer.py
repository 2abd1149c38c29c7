"""What waits in the buffers of suppress."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from sessionkit.base.calls import answers_calls
from sessionkit.base.text import escape_html, html_block, plural
from sessionkit.views import tables

if TYPE_CHECKING:
    from sessionkit.suppression.stage import Suppressor


class Suppressed(NamedTuple):
    """What suppress let go, and its buffers."""

    sent: Mapping[str, tables.Column]
    stage: Suppressor


@answers_calls("buffer")
@dataclass(frozen=True, repr=False)
class SuppressBuffer:
    """What waits in the buffers of suppress at the end of a run.

    `most_records` is the most that a partition's buffer held at once: what `max_records` would have to allow.

    Example:
        >>> buffer = waves.suppress("until_window_closes").run(flights).suppress_buffer()
        >>> buffer.most_records, len(buffer.table())
        (90, 14)
    """

    most_records: int
    _columns: Mapping[str, tables.Column]
    _run: Any

    @cached_property
    def most_bytes(self) -> int:
        """The most bytes that a partition's buffer held at once: what `max_bytes` would have to allow.

        An entry weighs its windowed key, its value, the ones that it replaces, as Kafka's serializers write them
        (several results as JSON), and 33 bytes. They are counted result by result, so that this takes a while.
        """
        from sessionkit.deployed.deployment import Life

        run = self._run
        if run.deployed is None:
            how = Life(retention_ms=run._outcome.retention_ms, emit=run.plan._strategy, kafka=False)
            run = run.plan._run_life(run._outcome.batch, None, how)
        return max((buffer.most_size for buffer in run.deployed.buffers), default=0)

    def table(self) -> Any:
        """The results that wait, as rows of `run.changelog()`: by partition, in the order in which they would go out.

        `offset` is that of the record which each came with.
        """
        return tables.frame_of(self._columns, self._run._outcome.batch)

    def __repr__(self) -> str:
        waiting = len(self._columns["offset"])
        verb = "waits" if waiting == 1 else "wait"
        most = f"no partition held more than {self.most_records:,} at once"
        return f"buffer of suppress: {plural(waiting, 'result')} {verb}; {most}"

    def _repr_html_(self) -> str:
        return html_block(f"<p>{escape_html(self)}; <code>.table()</code> has them.</p>")
