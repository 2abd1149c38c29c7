"""KIP-94's segments: rows of neighbouring times expire together."""

from __future__ import annotations

from dataclasses import dataclass

from sessionkit.base.durations import MINUTE, Duration, duration_ms
from sessionkit.errors import InvalidArgument, problem

SEGMENT_COUNT = 3  # Kafka's default: two of them span the retention, the third is being filled
MIN_INTERVAL_MS = MINUTE


@dataclass(frozen=True)
class Segments:
    """Which segment a time belongs to, and which of them have expired.

    `retention_ms` None: none ever expires.

    Source:
        KIP-94; AbstractSegments.
    Example:
        >>> segments = Segments.of(retention="1h")
        >>> segments.interval_ms, segments.id_of(5_400_000), segments.oldest_live(9_000_000)
        (1800000, 3, 3)
    """

    retention_ms: int | None
    interval_ms: int

    @classmethod
    def of(cls, retention: Duration | None = None, segment_interval: Duration | None = None) -> Segments:
        """Segments for a retention; half of it long and at least a minute, unless `segment_interval` says otherwise."""
        retention_ms = None if retention is None else duration_ms(retention, "retention")
        if segment_interval is None:
            return cls.of_ms(retention_ms)
        interval_ms = duration_ms(segment_interval, "segment_interval")
        if interval_ms == 0:
            raise InvalidArgument(problem("segment_interval must be 1 ms or more", "0 ms", 'such as "1min"'))
        return cls(retention_ms, interval_ms)

    @classmethod
    def of_ms(cls, retention_ms: int | None) -> Segments:
        """Segments of Kafka's own length for a retention."""
        return cls(retention_ms, max((retention_ms or 0) // (SEGMENT_COUNT - 1), MIN_INTERVAL_MS))

    def id_of(self, time_ms: int) -> int:
        """The segment of this time. As in Java, a negative time is rounded towards zero."""
        quotient = abs(time_ms) // self.interval_ms
        return quotient if time_ms >= 0 else -quotient

    def span_ms(self, segment: int) -> tuple[int, int]:
        """First and last time of a segment."""
        return segment * self.interval_ms, (segment + 1) * self.interval_ms - 1

    def oldest_live(self, observed_time_ms: int) -> int:
        """The first segment that has not expired; 0 or less while none has. Those before it are dropped as a whole."""
        return 0 if self.retention_ms is None else self.id_of(observed_time_ms - self.retention_ms)

    def is_live(self, time_ms: int, observed_time_ms: int) -> bool:
        """Whether the segment of a time has not expired."""
        return self.id_of(time_ms) >= self.oldest_live(observed_time_ms)

    def first_visible_ms(self, observed_time_ms: int, *, at_boundary: bool = False) -> int:
        """The first time that reads see; `at_boundary` keeps the one just `retention` behind.

        Source:
            AbstractDualSchemaRocksDBSegmentedBytesStore.getActualFrom.
        """
        if self.retention_ms is None:
            return 0
        return max(0, observed_time_ms - self.retention_ms + (0 if at_boundary else 1))
