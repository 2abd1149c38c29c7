"""A fresh process: what it takes to import the package, and to the first table of the sample."""

from __future__ import annotations

from typing import Any

from benchmarks.jobs.sessions import Job


def imported(path: str) -> Job:
    def call() -> int:
        import sessionkit

        return len(sessionkit.__all__)

    return call


def flights(path: str) -> Job:
    def call() -> Any:
        import sessionkit as sk

        keyed = sk.group_by_key("carrier", "origin", sep="@", timestamp="scheduled", timezone="UTC")
        plan = keyed.windowed_by(sk.SessionWindows(inactivity_gap="1h", grace="30m")).count()
        return len(plan.run(sk.load_sample("flights")).table())

    return call
