"""The class that Spark calls for each source partition of a stream.

As a query starts, Spark starts one more Python, which asks for the names of the state and ends. So this module loads
nothing but pyspark: the engine comes with the first records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.serializers import CloudPickleSerializer
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

if TYPE_CHECKING:
    import pandas as pd

    from sessionkit.steps.job import Job

# How far a partition came: what its state begins with, and what each micro-batch tells of it. `counts` are the counters
# of `Run.metrics()` since the first record, as JSON.
PROGRESS = "partition long, position long, stream_time_ms long, last_close_time_ms long, windows long, counts string"
HEAD = f"{PROGRESS}, token string, holds string, bound string"
# What its tasks took, in microseconds: to unpack what came through the shuffle, to read the state, to play the records.
SPENT = ("unpack_us", "state_us", "engine_us")
CHUNK_NUMBER, CHUNK = "number long", "rows binary, gone binary"
RESULT = f"data binary, {PROGRESS}, {' long, '.join(SPENT)} long"
PROGRESS_COLUMNS = [*(field.split()[0] for field in PROGRESS.split(", ")), *SPENT]

PACKING: Any = CloudPickleSerializer()  # type: ignore[no-untyped-call]


class PartitionProcessor(StatefulProcessor):
    """One source partition: its records by offset, through the engine, over the state of the micro-batch before.

    What Spark keeps is `head` (how far it came) and `chunks` (the windows), and of the buffer of suppress the same.
    """

    def __init__(self, job: Job, bound: Mapping[str, str], run: str) -> None:
        # packed as Spark packs all of this, and unpacked only where it is worked on
        self._job, self._bound, self._run = PACKING.dumps(job), dict(bound), run
        self._has_buffer = job.suppression is not None

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Opens the state variables of the partition by their names."""
        self._states = [
            (handle.getValueState(f"{name}head", HEAD), handle.getMapState(f"{name}chunks", CHUNK_NUMBER, CHUNK))
            for name in ("", *(["buffer_"] if self._has_buffer else []))
        ]

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:
        import pandas as pd

        from sessionkit.spark.worker.shared_files import SharedFiles
        from sessionkit.spark.worker.spent import Spent
        from sessionkit.spark.worker.stream_partition import KeptState, micro_batch
        from sessionkit.spark.worker.task_wrapper import without_stack

        job: Job = PACKING.loads(self._job)
        files = SharedFiles(self._run, len(self._states))
        kept, *buffer = (KeptState(*state, self._bound, files) for state in self._states)
        spent = Spent()
        for step in without_stack(micro_batch(job, rows, spent, kept, *buffer)):
            told = (*step, *(spent[part] for part in SPENT))
            yield pd.DataFrame([told], columns=["data", *PROGRESS_COLUMNS])

    def close(self) -> None:
        from sessionkit.spark.worker.task_wrapper import settle

        settle()
