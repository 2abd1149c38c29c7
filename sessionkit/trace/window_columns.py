"""The windows of a run, sessions among them, as columns: one row a window."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class WindowColumns(NamedTuple):
    """One row a window. Rows up to `loaded_count` came from a store, the rest were opened in this run, in order."""

    key: npt.NDArray[np.int32]
    partition: npt.NDArray[np.int32]
    start_ms: npt.NDArray[np.int64]
    end_ms: npt.NDArray[np.int64]
    opened_by: npt.NDArray[np.int64]  # offset of the record that opened it: with the partition, its id
    merged_into: npt.NDArray[np.int32]  # row of the session that absorbed it, -1
    closed_before: npt.NDArray[np.int64]  # offset of the record that closed it before this run, -1 if not or re-opened
    timestamp_ms: npt.NDArray[np.int64]  # what a result of it carries: a session's end, else the largest record time
    loaded_count: int

    def are_results(self, trailing_only: bool) -> npt.NDArray[np.bool_]:
        """True for each window that is a result: all of them, or (trailing only) those that end with a record."""
        if not trailing_only:
            return np.ones(len(self.key), np.bool_)
        ends_with_record: npt.NDArray[np.bool_] = self.timestamp_ms == self.end_ms
        return ends_with_record


_NONE = np.empty(0, np.int64)
_NO_CODES = np.empty(0, np.int32)
NO_WINDOWS = WindowColumns(_NO_CODES, _NO_CODES, _NONE, _NONE, _NONE, _NO_CODES, _NONE, _NONE, loaded_count=0)
