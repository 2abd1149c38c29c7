"""The page's engine against recorded answers of Kafka Streams 4.3.1: the cases that the kernel is compared with."""

from collections import defaultdict
from typing import Any

import pytest

import sessionkit as sk
from sessionkit.base.decisions import LATE
from sessionkit.errors import InvalidData
from sessionkit.views.page.sample import check_can_be_a_page
from tests.conformance import test_golden as golden
from tests.conformance.cases import frame_of, plan_of, run_case
from tests.kinds import in_ms
from tests.optional import Page
from tests.page.engine import as_asked, decided, engine

pytestmark = [pytest.mark.browser, pytest.mark.kafka]
times_near_2_to_62 = golden.times_near_2_to_62

LEAST = {"session": 37, "tumbling": 40, "hopping": 17}
tab = pytest.fixture(engine, scope="module")


def comparable(kind: str) -> list[dict[str, Any]]:
    """The cases that the kernel's own tests choose: no expiry of a store, no null aggregate, no throttle."""
    if kind == "session":
        plain = [case for case in golden.SESSIONS if "error" not in case["expected"]]
        sessions = [case for case in plain if not golden._meets_a_null_aggregate(case)]
        on_update = [case for case in sessions if case["emit"] == "on_update" and not golden._expiry_matters(case)]
        on_close = [case for case in sessions if case["emit"] == "on_close" and not case.get("emit_interval_ms")]
        found = [*on_update, *filter(golden._emits_all_that_closed, on_close)]
    else:
        found = []
    return found + [case for case in golden.PLAIN if case["window"]["kind"] == kind and _is_free_of_expiry(case)]


def _is_free_of_expiry(case: dict[str, Any]) -> bool:
    on_disk = case["store"] == "rocksdb" and case["emit"] == "on_update"
    if "suppress" in case or "restarts" in case or case["caching"] or case.get("emit_interval_ms"):
        return False
    if case["window"]["kind"] == "session" and not on_disk:
        return False
    if golden._meets_a_null_aggregate(case):
        return False
    return bool(run_case(case)["per_record"] == run_case(case, retention_ms=golden.HUGE_MS)["per_record"])


def run_of(case: dict[str, Any]) -> sk.Run:
    """The case under sessionkit's rules, with the retention nearest to its own."""
    plan = plan_of(case)
    least = plan._complete_windows.retention_ms(None)
    kept = case["window"].get("retention_ms", least)
    run: sk.Run = plan.run(frame_of(case), retention=in_ms(max(least, kept - 1)))
    return run


class Forwarded:
    """What would go downstream, told from the engine's decisions, with the case's own aggregation."""

    def __init__(self, case: dict[str, Any], run: sk.Run, found: dict[str, Any]) -> None:
        self._case, self._found, self._records = case, found, case["records"]
        self._aggregation = run.plan._aggregations[0][1]
        self._values: dict[int, list[tuple[int, Any]]] = defaultdict(list)  # of each window: (record, value)
        self._newest: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self.outputs: list[list[dict[str, Any]]] = [[] for _ in self._records]
        self.dropped = [0] * len(self._records)
        (self._sessions if found["kind"] == "session" else self._windows)()
        for i, code in enumerate(found["decision"]):
            self.dropped[i] += code > LATE or (code == LATE and found["kind"] == "session")
        if case["emit"] == "on_close":
            self.outputs = [[] for _ in self._records]
            self._finals()

    def _shown(self, aggregate: Any) -> Any:
        return self._aggregation.result(aggregate)

    def _out(self, i: int, start: int, end: int, value: Any, timestamp: int) -> None:
        key = self._records[i]["key"]
        out = {"key": key, "window_start": int(start), "window_end": int(end), "value": value}
        self.outputs[i].append({**out, "timestamp": int(timestamp)})

    def _sessions(self) -> None:
        found, a = self._found, self._aggregation
        bounds: dict[int, tuple[int, int]] = {}
        absorbed = defaultdict(list)
        for at, row in zip(found["merges"]["at"], found["merges"]["absorbed"], strict=True):
            absorbed[at].append(row)
        for i, window in enumerate(found["window"]):
            if window < 0:
                continue
            record, met = self._records[i], [*([window] if window in bounds else []), *absorbed[i]]
            after = (int(found["startAfter"][i]), int(found["endAfter"][i]))
            aggregate = a.initializer()
            for row in met:
                aggregate = a.merger(record["key"], aggregate, self._values[row][-1][1])
                if after != (record["timestamp"], record["timestamp"]):
                    self._out(i, *bounds[row], None, bounds[row][1])
            aggregate = a.aggregator(record["key"], record["value"], aggregate)
            bounds[window] = after
            self._values[window].append((i, aggregate))
            self._out(i, *after, self._shown(aggregate), after[1])

    def _windows(self) -> None:
        found, a, touches = self._found, self._aggregation, self._found["touches"]
        for touch in range(touches["count"]):
            i, window, start = (touches[name][touch] for name in ("record", "window", "start"))
            record = self._records[i]
            if window < 0:
                self.dropped[i] += 1
                continue
            before = self._values[window][-1][1] if self._values[window] else a.initializer()
            newest = max([record["timestamp"], *(ms for _, ms in self._newest[window][-1:])])
            aggregate = a.aggregator(record["key"], record["value"], before)
            self._values[window].append((i, aggregate))
            self._newest[window].append((i, newest))
            self._out(i, start, found["windows"]["end"][window], self._shown(aggregate), newest)

    def _finals(self) -> None:
        closes, opened = self._found["closes"], self._found["windows"]["openedAt"]
        for at, window, start, end in zip(*(closes[name] for name in ("at", "window", "start", "end")), strict=True):
            value = [each for i, each in self._values[window] if i <= at][-1]
            newest = [ms for i, ms in self._newest[window] if i <= at]
            key = self._records[opened[window]]["key"]
            out = {"key": key, "window_start": int(start), "window_end": int(end), "value": self._shown(value)}
            self.outputs[at].append({**out, "timestamp": int(newest[-1] if newest else end)})


def in_any_order(case: dict[str, Any], outputs: list[list[dict[str, Any]]]) -> list[list[Any]]:
    """Finals of one record go out in the order of the store; updates in that of the engine."""
    if case["emit"] != "on_close":
        return outputs
    return [sorted(each, key=lambda out: (out["window_end"], out["window_start"], out["key"])) for each in outputs]


@pytest.mark.essential
@pytest.mark.parametrize("kind", LEAST)
def test_the_engine_equals_kafka(tab: Page, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    cases, refused, asked = [], 0, []
    for case in comparable(kind):
        run = run_of(case)
        try:
            check_can_be_a_page(run, run.plan._complete_windows, "a page")
        except InvalidData:
            refused += 1
            continue
        cases.append((case, run))
        asked.append(as_asked(run))
    for (case, run), found in zip(cases, decided(tab, asked), strict=True):
        told, expected = Forwarded(case, run, found), case["expected"]["per_record"]
        outputs = [each["outputs"] for each in expected]
        assert in_any_order(case, told.outputs) == in_any_order(case, outputs), case["id"]
        total, so_far = 0, []
        for more in told.dropped:
            total += more
            so_far.append(total)
        assert so_far == [each["dropped_total"] for each in expected], case["id"]
    with capsys.disabled():
        print(f"\npage = Kafka, {kind}: {len(cases)} cases; {refused} with times beyond 2^53 are refused")
    assert len(cases) >= LEAST[kind]
