"""What only a Python worker of Spark does; the engine that it runs is in `steps/partition_run.py`.

Tasks of a batch are started by `reading/tasks.py` and, for `dropped()`, by `batch_run.py`, those of a stream by
`stream_run.py`; each passes through `task_wrapper.py`. `reading/row_groups.py: read` and `reading/replay_source.py` run
in a worker, too.
"""
