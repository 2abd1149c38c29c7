"""Random cases through sessionkit and Kafka Streams 4.4.0: every result, drop, stored window and read is compared."""

from collections import Counter

from tests.conformance.cases import restarts_of
from tests.differential.compare import excuses, fault_of
from tests.differential.draw import MANY, Case, cell_of, draw
from tests.differential.oracle import Oracle, OracleFailed
from tests.differential.run import compare, has_times_of_another_unit, shrunk
from tests.reliability.pieces import Outcome

PIECE = 1_000
GOAL = 1_000_000
MOST_SHRUNK = 3
# what a slice has to have met, so as not to be vacuous
MET = (
    *("limited cache", "several partitions", "restarted", "bytes keys", "int keys", "all built-ins", "large"),
    *("suppress", "cache in bytes", "killed"),
)


def check(seed: int, count: int) -> Outcome:
    wrong: list[str] = []
    noted: Counter[str] = Counter()
    with Oracle() as oracle:
        different = []
        try:
            for case, kafka in oracle.answers(draw(seed, index) for index in range(count)):
                compared = compare(case, kafka)
                noted.update(_met(case))
                noted.update(f"excused: {name}" for name in excuses(case, compared.ours, kafka).elements())
                if fault := fault_of(case, kafka):
                    noted[f"excused: {fault}"] += 1
                if "error" in compared.ours and has_times_of_another_unit(case):
                    noted["excused: times of another unit"] += 1
                elif compared.difference is not None:
                    different.append(compared)
        except OracleFailed as failed:
            return Outcome(count, [f"seed {seed}: {failed}"], dict(noted))
        for place, compared in enumerate(different):
            shown = shrunk(compared, oracle) if place < MOST_SHRUNK else str(compared.difference)
            wrong.append(f"{compared.case['id']}: {shown}")
    return Outcome(count, wrong, dict(noted))


def _met(case: Case) -> list[str]:
    cell = cell_of(case)
    met = {
        "limited cache": cell.caching == "limited", "several partitions": case.get("partitions", 1) > 1,
        "restarted": "restarts" in case, "killed": any(kind == "killed" for _, kind in restarts_of(case)),
        "suppress": "suppress" in case, "cache in bytes": isinstance(case["caching"], dict),
        "all built-ins": case["aggregation"] == "all_built_ins", "large": len(case["records"]) > MANY,
        f"{case.get('keys', 'text')} keys": True, cell.kind: True,
    }  # fmt: skip
    return [name for name, is_met in met.items() if is_met]
