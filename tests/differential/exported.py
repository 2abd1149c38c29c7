"""Exported Java beside sessionkit: the same records through Kafka's test driver and through the plan."""

import base64
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa

import sessionkit as sk
from sessionkit.exports.export import Export
from sessionkit.records.keys import key_bytes
from tests.deployments import run_by

Row = dict[str, Any]  # a record: its columns by name


class Sent(NamedTuple):
    """One result on the output topic; `values` is None where a window is withdrawn."""

    key: bytes
    window_start_ms: int
    window_end_ms: int
    values: dict[str, Any] | None
    timestamp_ms: int


def job(
    export: Export, rows: Sequence[Row], key: str, class_name: str = "WindowedAggregation", timestamp: str = ""
) -> dict[str, Any]:
    """What the oracle is asked: the class as it is printed, and the records as bytes.

    Args:
        timestamp: the column that is the timestamp of a record itself, and not in its value.
    """
    records = [
        {
            "key": _base64(row[key], is_key=True),
            "value": _base64(_value(row, key, timestamp)),
            "timestamp": row.get(timestamp, 0),
        }
        for row in rows
    ]
    return {"id": 1, "class_name": class_name, "source": str(export), "records": records}


def _value(row: Row, *not_in_it: str) -> str:
    return json.dumps({name: value for name, value in row.items() if name not in not_in_it})


def _base64(value: Any, *, is_key: bool = False) -> str | None:
    if value is None:
        return None
    return base64.b64encode(key_bytes(value) if is_key else value.encode()).decode()


def kafka_sent(answer: dict[str, Any], plan: sk.Plan) -> list[list[Sent]]:
    """What Kafka sent for each record; the bytes of windowed keys are read here."""
    assert answer["compiler"] == "", "it compiles without a warning"
    assert "error" not in answer, answer["error"]
    return [[_sent(result, plan) for result in step] for step in answer["sent"]]


def _sent(result: dict[str, Any], plan: sk.Plan) -> Sent:
    raw = base64.b64decode(result["key"])
    value = None if result["value"] is None else json.loads(base64.b64decode(result["value"]))
    if isinstance(plan.windows, sk.SessionWindows):  # SessionKeySchema: key, end, start
        key, end, start = raw[:-16], raw[-16:-8], raw[-8:]
        return Sent(key, _int(start), _int(end), value, result["timestamp"])
    key, start = raw[:-8], _int(raw[-8:])  # TimeWindowedSerializer: key, start
    return Sent(key, start, plan.windows.ends_ms(start), value, result["timestamp"])


def _int(raw: bytes) -> int:
    return int.from_bytes(raw, "big", signed=True)


def own_sent(plan: sk.Plan, rows: Sequence[Row], schema: pa.Schema, **options: Any) -> list[list[Sent]]:
    """What the plan says that Kafka sends, for each record."""
    table = pa.Table.from_pylist(list(rows), schema=schema)
    steps: list[list[Sent]] = [[] for _ in rows]
    names = [name for name, _ in plan._aggregations]
    can_be_null = all(aggregation.initializer() is None for _, aggregation in plan._aggregations)
    for row in run_by(plan, table, **options).changelog().to_pylist():
        values = {name: row[name] for name in names}
        if row["what"] == "tombstone" or (can_be_null and all(value is None for value in values.values())):
            values = None
        key = key_bytes(row["key"])
        steps[row["offset"]].append(
            Sent(key, row["window_start_ms"], row["window_end_ms"], values, row["timestamp_ms"])
        )
    return steps
