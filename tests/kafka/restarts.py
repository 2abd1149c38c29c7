"""An application on a real broker that is stopped, killed, or loses its folder, and what it should send."""

import itertools
import json
import shutil
from pathlib import Path
from random import Random
from typing import Any

from confluent_kafka.admin import AdminClient

from examples.kafka.topics import create_topics, producer, read_all
from sessionkit.records.keys import key_bytes
from tests.conformance.cases import key_of
from tests.differential.compare import MAY_BE_NULL
from tests.differential.draw import Case, draw
from tests.differential.live import live_app, state_folder
from tests.differential.run import our_answer
from tests.kafka.common import read_up_to

EARLIEST_MS, LATEST_MS = 1, 10**12  # the client takes 0 for now, and a broker refuses records of the future
STEP_TIMEOUT_S = 90


def restarted_cases(seed: int, kind: str, count: int) -> list[Case]:
    """Cases with one restart of this kind that changes what is sent; their stores take turns."""
    found: list[Case] = []
    for index in itertools.count():
        store = ("rocksdb", "in_memory")[len(found) % 2]
        case = draw(seed, index)
        fits = case["store"] == store and _fits(case)
        if fits and (restarted := _with_restart(case, kind, Random(f"{seed}/{index}"))) is not None:
            found.append(restarted)
        if len(found) == count:
            return found
    raise AssertionError


def _fits(case: Case) -> bool:
    """Whether a broker can have such a case, and Kafka Streams itself does not fail at it."""
    is_cached, window = case["caching"], case["window"]
    fails = window.get("gap_ms", 0) >= 60_000 or (window["kind"] == "sliding" and case["aggregation"] in MAY_BE_NULL)
    return (
        isinstance(is_cached, bool)
        and not (is_cached and fails)
        and not {"partitions", "suppress", "emit_interval_ms", "negative_timestamps"} & case.keys()
        and 4 <= len(case["records"]) <= 40
        and all(EARLIEST_MS <= record["timestamp"] <= LATEST_MS for record in case["records"])
    )


def _with_restart(case: Case, kind: str, rng: Random) -> Case | None:
    """The case with a restart somewhere, before it a commit; None if nothing else would be sent than without it."""
    last = len(case["records"]) - 1
    row = rng.randint(1, last - 1)
    commits = [rng.randint(0, row), last] if rng.random() < 0.8 else [last]
    plain = {name: value for name, value in case.items() if name not in ("queries", "restarts")}
    told: Case = {**plain, "commit_after": commits, "restarts": [[row, kind]]}
    without = {name: value for name, value in told.items() if name != "restarts"}
    return told if expected(told) != expected(without) else None


def expected(case: Case) -> list[dict[str, Any]]:
    """What sessionkit sends for the case, in order."""
    steps = our_answer(case)["per_record"]
    return [sent for step in steps for sent in (*step["outputs"], *step.get("flushed", ()))]


def sent_by_kafka(address: str, case: Case, name: str) -> list[dict[str, Any]]:
    """What the application has sent in both of its lives; `name` is its own among all that use the broker."""
    ((row, kind),) = case["restarts"]
    input, output, last = f"{name}-in", f"{name}-out", len(case["records"]) - 1
    create_topics(address, input, output, partitions=1)
    spec = {**case, "records": None, "bootstrap": address, "application": name, "input": input, "output": output}
    committed = next((each for each in case["commit_after"] if each <= row), -1)
    with state_folder() as folder:
        with AdminClient({"bootstrap.servers": address}) as admin, live_app(spec, folder, "RestartedApp") as app:
            if committed >= 0:
                _produce(address, input, case, 0, committed + 1)
                app.wait_until(lambda: read_up_to(admin, name, input) == committed + 1, seconds=STEP_TIMEOUT_S)
            _produce(address, input, case, committed + 1, row + 1)
            app.wait_until(lambda: _is_idle(folder, row), seconds=STEP_TIMEOUT_S)
            if kind == "killed":
                app.process.kill()
        if kind == "changelog":
            shutil.rmtree(folder / "state", ignore_errors=case["store"] == "in_memory")  # which has none
        _produce(address, input, case, row + 1, last + 1)
        with live_app(spec, folder, "RestartedApp") as app:
            app.wait_until(lambda: _is_idle(folder, last), seconds=STEP_TIMEOUT_S)
    found = read_all(address, output)
    return [{**json.loads(each.value or b""), "timestamp": each.timestamp_ms} for each in found]


def _is_idle(folder: Path, record: int) -> bool:
    return f"idle {record}" in (folder / "stdout").read_text().splitlines()


def _produce(address: str, topic: str, case: Case, start: int, stop: int) -> None:
    with producer(address) as writer:
        for record in case["records"][start:stop]:
            key, value = key_of(case, record["key"]), record["value"]
            raw = None if value is None else value.to_bytes(8, signed=True)
            sent_key = None if key is None else key_bytes(key)
            writer.produce(topic, key=sent_key, value=raw, timestamp=record["timestamp"], partition=0)
        assert writer.flush(30) == 0
