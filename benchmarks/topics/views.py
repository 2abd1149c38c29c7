"""Questions to a run."""

from __future__ import annotations

from benchmarks.model import OURS, Case, Side, Topic, of


def topic(records: int) -> Topic:
    def case(words: str, job: str, size: int, shape: str = "zipf-text") -> Case:
        sides = (Side(OURS, f"views.{job}", repeats=1),)
        return Case(f"{words}, {size:,} records", **of(shape, size), sides=sides)

    cases = (
        case("What was emitted for one key", "emissions", records),
        case("A comparison with a shorter gap", "comparison", records // 2, "uniform-text"),
        case("The changelog on update", "changelog", records),
        case("A sweep of 20 gaps by 20 graces", "sweep", records // 10),
    )
    return Topic("views", "Views of a run", "The run is made before; only the question is timed.", cases)
