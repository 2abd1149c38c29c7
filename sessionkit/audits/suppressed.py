"""What differs where suppress makes the final results, and not the operator itself."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Generic

import numpy as np
import numpy.typing as npt

from sessionkit.audits.sides import Sides, windows_in
from sessionkit.audits.verdicts import Compared
from sessionkit.audits.words import LETS_GO
from sessionkit.base.arrays import Longs
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
        found = Counter(self._reasons.tolist())
        return {reason: found[reason] for reason in (SAME, *REASONS)}

    @property
    def is_clean(self) -> bool:
        """True if each result comes once, with the same value."""
        return bool((self._reasons == SAME).all())

    def table(self) -> Frame:
        """One row a window: bounds, reason, how often suppress sent it, its value on close and by suppress."""
        return self._frame(np.arange(len(self._reasons)))

    def differences(self) -> Frame:
        """The rows of `table()` that differ."""
        return self._frame(np.flatnonzero(self._reasons != SAME))

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
    def _compared(self) -> Compared:
        return Compared.of(Sides.of((self._finals,), (self._run,), windows_in(self._finals._table)))

    @cached_property
    def _reasons(self) -> npt.NDArray[np.object_]:
        closed, sent, is_standing = self._compared.expected, self._compared.sent, self._compared.among(0)
        is_same = np.where(sent.times > 1, TWICE, SAME)
        is_sent = np.where(closed.is_there, is_same, np.where(is_standing, EARLY, OUTGROWN))
        return np.where(sent.is_there, is_sent, NULL).astype(object)

    def _frame(self, rows: Longs) -> Frame:
        columns = self._compared.columns(rows, ("reason", self._reasons), "suppress")
        return tables.frame_of(columns, self._finals._outcome.batch)
