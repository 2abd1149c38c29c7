"""Code that runs in a Python worker of Spark, around the engine in `steps/partition_run.py`.

A few tasks lie where they belong: `read` in `reading/row_groups.py`, `ReplayReader` in `reading/replay_source.py`,
`windows` in `checkpoint.py` and `load` in `report/job.py`. The driver, too, uses a few names of this folder.
"""
