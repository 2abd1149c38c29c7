"""What answers of a store depended on: the retentions with which all of them would be the same."""

from __future__ import annotations

from sessionkit.stores.segments import Segments

FOREVER_MS = 2**62  # as a retention


class Noticed:
    """Retentions with which all answers about one part of the records would be the same.

    `more_than_ms` and `at_most_ms` bound them; `live` and `gone` hold (time, time that the store had observed): with
    these retentions the first one's segment was live then, or had expired; `together` and `apart` hold two times that
    lay in one segment, or in two.
    """

    def __init__(self) -> None:
        self.more_than_ms, self.at_most_ms = -1, FOREVER_MS
        self.live: dict[int, int] = {}  # the later it is, the stronger
        self.gone: dict[int, int] = {}  # the earlier
        self.together: set[tuple[int, int]] = set()
        self.apart: set[tuple[int, int]] = set()

    def add(self, other: Noticed) -> None:
        """Takes over the bounds of another one."""
        self.more_than_ms = max(self.more_than_ms, other.more_than_ms)
        self.at_most_ms = min(self.at_most_ms, other.at_most_ms)

    def within(self, behind_ms: int, *, is_true: bool) -> None:
        if is_true:
            self.more_than_ms = max(self.more_than_ms, behind_ms)
        else:
            self.at_most_ms = min(self.at_most_ms, behind_ms)

    def kept(self, time_ms: int, observed_ms: int, *, is_true: bool) -> None:
        if is_true:
            self.live[time_ms] = max(self.live.get(time_ms, observed_ms), observed_ms)
        else:
            self.gone[time_ms] = min(self.gone.get(time_ms, observed_ms), observed_ms)

    def in_segments(self, time_ms: int, other_ms: int, retention_ms: int, span_ms: int) -> None:
        """A limited cache's order of use depends on whether these two times lie in one segment.

        What it evicts first matters only where the store can forget something that is needed: from a retention of more
        than `span_ms` on it does not.
        """
        if retention_ms > span_ms:
            self.more_than_ms = max(self.more_than_ms, span_ms)
        else:
            segments = Segments.of_ms(retention_ms)
            is_one = segments.id_of(time_ms) == segments.id_of(other_ms)
            (self.together if is_one else self.apart).add((time_ms, other_ms))
