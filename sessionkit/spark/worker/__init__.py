"""What runs in a Python worker of Spark; the engine that it runs is in `steps/partition_run.py`.

Tasks of a batch start as functions inside `reading/tasks.py` and `SparkRun.dropped`, through `task_wrapper.py`; those
of a stream inside `stream_run.py`, and in `partition_processor.py`, which Spark calls. Without either, in the
folders of what they belong to: `read` in `reading/row_groups.py`, `ReplayReader` in `reading/replay_source.py`,
`windows` in `checkpoint.py` and `load` in `report/job.py`. The driver, too, uses a few names of this folder.
"""
