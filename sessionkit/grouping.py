"""`group_by_key`: the start of a plan; and what a function takes that asks for a plan and its records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from sessionkit.base.calls import called_as
from sessionkit.base.durations import Duration
from sessionkit.errors import InvalidArgument, problem
from sessionkit.plan import Plan
from sessionkit.records.source import Source, idle_code, pairs


@called_as('sk.group_by_key("user", timestamp="at")')
def group_by_key(
    *keys: str,
    timestamp: str,
    sep: str | None = None,
    unit: str | None = None,
    timezone: str | None = None,
    ambiguous: str = "raise",
    nonexistent: str = "raise",
    partition: str | None = None,
    offset: str | None = None,
    partitions: int | None = None,
    on_bad_time: str = "refuse",
    sort: bool | Literal["timestamp"] = False,
    types: Mapping[str, str] | None = None,
    times: str = "timestamp",
    arrival: str | None = None,
    idle_after: Duration | None = None,
    format: str | None = None,
    separator: str | None = None,
    header: bool = True,
) -> Plan:
    """The start of a plan: which columns are the key and the event time, and how records lie in partitions.

    Args:
        keys: the key column; several are joined into one text with `sep`.
        timestamp: the event time: a column of timestamps, dates or ISO 8601 text, or integers with `unit`.
        unit: the unit of times that are plain numbers: "s", "ms", "us" or "ns".
        timezone: the zone of times without one, such as "UTC"; `ambiguous` and `nonexistent` ("earliest", "latest")
            say what to do with times that occur twice or not at all when clocks change; of the former "infer" takes
            the second from the row on at which time steps back.
        partition, offset: columns that say where a record stands; each partition has its own stream time. Without
            them there is one partition and the order of rows is the order of arrival. Spark needs both.
        partitions: treat the records as a topic with this many partitions; Kafka's partitioner places the keys.
        on_bad_time: "refuse" raises on null and negative times, "drop" counts them as dropped, and "partition_time"
            gives them the greatest time so far in their partition, as Kafka's `UsePartitionTimeOnInvalidTimestamp`.
        sort: True sorts by `offset` first; "timestamp" sorts by event time, so that offsets count the sorted rows.
        types: types of columns in CSV and JSON, by Arrow's names, such as {"user": "int64"}. Without it keys are
            text as written, an empty field is a missing key, and `run.remarks()` tells what was guessed.
        times: "timestamp" shows times as timestamps in the zone of the records, and keys as their own columns; "ms"
            shows times as integers, in columns that end in `_ms`, and the key, joined, in the column `key`.
        arrival: the wall clock of `idle_after`: a column that says when each record arrived, written as `timestamp` is.
        idle_after: sessionkit's own rule, not Kafka's: a partition without a record for so long, by `arrival`, is idle.
            Its stream time moves to the smallest one of the partitions that are not, and never back.
        format: how texts write times, as `strftime` has it: "%d/%m/%Y %H:%M"; with the year of texts that have none in
            front: "2024 %b %d %H:%M:%S". Without it ISO 8601 is read, and what means one time only, with a remark.
        separator, header: the character between the fields of text files, where their first lines do not show it; False
            if they have no line of names: their columns are then called c1, c2, ….
    Raises:
        InvalidArgument: a choice contradicts another.
    Example:
        >>> sk.group_by_key("user", timestamp="at")
        sk.group_by_key("user", timestamp="at")
        >>> sk.group_by_key("user", timestamp="at", partition="shard", arrival="received", idle_after="10 minutes")
        sk.group_by_key("user", timestamp="at", partition="shard", arrival="received", idle_after="10m")
    """
    given: dict[str, Any] = locals() | {"idle_after": idle_code(idle_after), "types": pairs(types)}
    if len(keys) > 1 and not sep and all(isinstance(key, str) for key in keys):  # else Source says what is none
        want = 'sep="@" (or any text that is in none of the values) joins them into one key'
        raise InvalidArgument(problem("several key columns need a separator", list(keys), want))
    return Plan(Source(**given))


def plan_and_data(plan: Any, data: Any, call: str) -> tuple[Plan, Any]:
    """The two that `sk.<call>(plan, data)` takes, also where they were given the other way round.

    Raises:
        InvalidArgument: neither is a plan, or both are.
    """
    if isinstance(data, Plan) and not isinstance(plan, Plan):
        plan, data = data, plan
    if not isinstance(plan, Plan) or isinstance(data, Plan):
        got = f"{type(plan).__name__} and {type(data).__name__}"
        raise InvalidArgument(problem(f"sk.{call} takes a plan and its records", got, f"sk.{call}(plan, data)"))
    return plan, data
