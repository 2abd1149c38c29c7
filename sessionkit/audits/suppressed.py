"""What differs where suppress makes the final results, and not the operator itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Generic

from sessionkit.audits.verdicts import Sent, WindowId, in_order, places_in, result_columns, results_of
from sessionkit.audits.words import LETS_GO
from sessionkit.base.calls import answers_calls
from sessionkit.base.text import escape_html, html_block, plural
from sessionkit.records.frames import Frame
from sessionkit.run import Run
from sessionkit.views import tables

SAME = "as it should"
TWICE, OUTGROWN, EARLY, NULL = "sent twice", "sent before it grew", "sent, not closed", "not sent, null"
REASONS = {
    TWICE: "{they} twice: " + LETS_GO,
    OUTGROWN: "{they} before a record that still counted made it larger; the larger one goes out as well, and nothing "
    "withdraws the first.",
    EARLY: "{they}, though no record has closed it yet.",
    NULL: "{they} with emit-on-close alone: their results are null, which to suppress is a window that was deleted.",
}


@answers_calls("audit")
@dataclass(frozen=True, repr=False)
class SuppressAudit(Generic[Frame]):
    """The final results of suppress beside those of emit-on-close, window by window.

    Example:
        >>> audit = sk.audit(waves.suppress("until_window_closes"), flights, sk.Deployment.plain())
        >>> beside = audit.beside_emit_on_close()
        >>> beside.is_clean, beside.counts()["not sent, null"], len(beside.differences())
        (False, 0, 72)
        >>> len(beside.table()), beside.words()[0]
        (4435, 'With suppress instead of emit-on-close 72 results of 4,435 differ.')
    """

    _finals: Run  # with emit-on-close
    _run: Run  # with suppress

    def counts(self) -> dict[str, int]:
        """Number of windows by what they came to."""
        found = Counter(self._reasons.values())
        return {reason: found[reason] for reason in (SAME, *REASONS)}

    @property
    def is_clean(self) -> bool:
        """True if each result comes once, with the same value."""
        return all(reason == SAME for reason in self._reasons.values())

    def table(self) -> Frame:
        """One row a window: bounds, reason, how often suppress sent it, its value on close and by suppress."""
        return self._frame(list(self._reasons))

    def differences(self) -> Frame:
        """The rows of `table()` that differ."""
        return self._frame([id for id, reason in self._reasons.items() if reason != SAME])

    def words(self) -> list[str]:
        """The findings as sentences."""
        noun, counts = self._finals.plan._complete_windows.noun, self.counts()
        wrong = sum(counts.values()) - counts[SAME]
        if not wrong:
            results = plural(counts[SAME], "result")
            return [f"With suppress instead of emit-on-close nothing differs: {results}, each once."]
        lines = [f"With suppress instead of emit-on-close {plural(wrong, 'result')} of {len(self._reasons):,} differ."]
        for reason, sentence in REASONS.items():
            if count := counts[reason]:
                one = count == 1
                they = f"{plural(count, noun)} {'goes' if one else 'go'} out"
                lines.append(sentence.format(they=they, noun=noun))
        return lines

    def __repr__(self) -> str:
        return "\n".join(self.words())

    def _repr_html_(self) -> str:
        return html_block("".join(f"<p>{escape_html(sentence)}</p>" for sentence in self.words()))

    # ---- how it is found

    @cached_property
    def _closed(self) -> Mapping[WindowId, Sent]:
        return results_of(self._finals)

    @cached_property
    def _sent(self) -> Mapping[WindowId, Sent]:
        return results_of(self._run)

    @cached_property
    def _reasons(self) -> dict[WindowId, str]:
        standing = {*places_in(self._finals._table)}  # the windows that are there at the end
        return {id: self._reason(id, standing) for id in in_order({*self._closed, *self._sent})}

    def _reason(self, id: WindowId, standing: set[WindowId]) -> str:
        closed, sent = self._closed.get(id), self._sent.get(id)
        if sent is None:
            return NULL
        if closed is None:
            return EARLY if id in standing else OUTGROWN
        return TWICE if sent.times > 1 else SAME

    def _frame(self, ids: list[WindowId]) -> Frame:
        names, reasons = list(self._finals._outcome.folds), ("reason", self._reasons)
        columns = result_columns(ids, names, reasons, self._closed, self._sent, "suppress")
        return tables.frame_of(columns, self._finals._outcome.batch)
