"""Cases through both sides: what both the command and the test do."""

import itertools
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pyarrow as pa

from sessionkit.base.result_columns import last_shown_ms
from sessionkit.records.times import typical_time
from tests.conformance.cases import AGGREGATIONS, BUILT_INS, lives_of, per_record, plan_of, run_case, unsupported
from tests.deployments import lives_by_kernels
from tests.differential.compare import Difference, first_difference
from tests.differential.draw import Case, draw, drawn_cell
from tests.differential.oracle import MEMORY, Oracle
from tests.differential.shrink import describe, shrink

NOTHING_SUPPORTED = 2000  # drawn in vain: give up
PLAYED: Counter[str] = Counter()  # cases that kernels played, beside the processor


class Compared(NamedTuple):
    case: Case
    difference: Difference | None
    ours: dict[str, Any]
    kafka: dict[str, Any]


def why_unsupported(case: Case) -> str | None:
    """Why sessionkit cannot answer the case yet; None if it can."""
    if case["aggregation"] not in (*AGGREGATIONS, "all_built_ins"):
        return f"aggregation {case['aggregation']}"
    if has_times_of_another_unit(case):
        return "times after the year 9999 that are times of today in another unit, and refused as such"
    return unsupported(case)


def has_times_of_another_unit(case: Case) -> bool:
    """Whether sessionkit refuses the times on purpose, where Kafka takes any number."""
    times = [record["timestamp"] for record in case["records"] if isinstance(record.get("timestamp"), int)]
    typical, units = typical_time(pa.chunked_array([pa.array(times, pa.int64())]))
    return bool(units) and typical > last_shown_ms("UTC")


@contextmanager
def _temporary_files_in(folder: str | None) -> Iterator[None]:
    before, tempfile.tempdir = tempfile.tempdir, folder or tempfile.tempdir
    try:
        yield
    finally:
        tempfile.tempdir = before


def our_answer(case: Case) -> dict[str, Any]:
    """sessionkit's answer; an unexpected exception is an answer as well, and a wrong one."""
    with _temporary_files_in(MEMORY), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "column 'timestamp' read as", UserWarning)
        try:
            answer = run_case(case)
            return answer if "error" in answer else by_kernels(case, answer)
        except Exception:
            return {"crash": traceback.format_exc().strip()}


def may_be_played_by_kernels(case: Case) -> bool:
    """Whether nothing is plain to see in the case that kernels cannot play."""
    return case["aggregation"] in BUILT_INS and not case.get("caching") and "suppress" not in case


def by_kernels(case: Case, answer: dict[str, Any]) -> dict[str, Any]:
    """The answer of kernels where they can play the deployment, and it is another than the processor's."""
    if not may_be_played_by_kernels(case):
        return answer
    with lives_by_kernels() as compiled:
        if case["store"] == "in_memory":
            played = run_case(case, "deployed")
        else:
            steps = per_record([*lives_of(case, plan_of({**case, "built_in": True}))])
            played = {**answer, "per_record": steps}
    if not compiled:
        return answer
    PLAYED[f"{case['window']['kind']}, {case['store']}"] += 1
    return played


def compare(case: Case, kafka: dict[str, Any]) -> Compared:
    ours = our_answer(case)
    return Compared(case, first_difference(case, ours, kafka), ours, kafka)


# What cases can be asked for that have it.
HAVING: dict[str, Callable[[Case], bool]] = {
    "suppress": lambda case: "suppress" in case,
    "bytes": lambda case: isinstance(case["caching"], dict),
    "restarts": lambda case: "restarts" in case,
    "kernels": may_be_played_by_kernels,
}


def drawn_cases(
    seed: int, kinds: tuple[str, ...], count: int, skipped: dict[str, int], having: str | None = None
) -> Iterator[Case]:
    """The first `count` cases of these kinds that sessionkit supports; `skipped` counts the others by their reasons."""
    found = 0
    for index in itertools.count():
        if found == count or (found == 0 and index == NOTHING_SUPPORTED):
            return
        if drawn_cell(index).kind not in kinds:
            continue
        case = draw(seed, index)
        if having is not None and not HAVING[having](case):
            continue
        reason = why_unsupported(case)
        if reason is None:
            found += 1
            yield case
        else:
            skipped[reason] = skipped.get(reason, 0) + 1


def shrunk(compared: Compared, oracle: Oracle, seconds: float = 60) -> str:
    """The smallest case found that still differs, in words."""

    def differs(case: Case) -> bool:
        found = None if why_unsupported(case) else compare(case, oracle.ask(case))
        is_crash = ["crash" in each.ours for each in (found, compared) if each is not None]
        return found is not None and found.difference is not None and len(set(is_crash)) == 1

    smallest = shrink(compared.case, differs, seconds)
    best = compare(smallest, oracle.ask(smallest))
    if best.difference is None:  # the two answers depend on something outside the case
        return "differed once, and not again:\n" + _described(compared)
    return _described(best)


def _described(compared: Compared) -> str:
    assert compared.difference is not None
    return describe(compared.case, compared.difference, compared.ours, compared.kafka)
