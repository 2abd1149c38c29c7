"""`sessionize`: which session each row belongs to, in one line."""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from sessionkit.base.calls import called_as, level_of_user
from sessionkit.base.durations import Duration, duration_ms
from sessionkit.base.guesses import RULES_OF_SESSIONS
from sessionkit.base.text import is_text, one_of
from sessionkit.errors import InvalidArgument, NotBuilt, problem, shorten
from sessionkit.plan import Plan
from sessionkit.records.batch import batch_of, is_spark_frame
from sessionkit.records.frames import ArrowData, PandasData, PolarsFrame, SparkFrame
from sessionkit.records.inputs.opened import Opened, is_files, open_whole
from sessionkit.records.lateness.causes import SORT, TIES, WITHOUT_OFFSET
from sessionkit.records.source import Ambiguous, Nonexistent, OnBadTime, Source, TimeUnit, pairs
from sessionkit.records.time_text import WITH_AN_OFFSET
from sessionkit.session_rules.cut import Unmet, cut_by_rules, days_remarks, words_of
from sessionkit.session_rules.rules import (
    Event,
    Gap,
    SessionRules,
    columns_of_gaps,
    refuse_with_grace,
    rules_of,
)
from sessionkit.steps.written import Written
from sessionkit.views.assignment import assigned, beside, with_timestamps
from sessionkit.views.stable_ids import IDS, Ids, with_ids
from sessionkit.views.words import unit_remarks
from sessionkit.windows.session import SessionWindows

if TYPE_CHECKING:
    import datetime as dt
    from typing import TypedDict, Unpack

    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from pyspark.sql import DataFrame

    class _More(TypedDict, total=False):
        timezone: str | dt.tzinfo | None
        unit: TimeUnit | None
        partition: str | None
        offset: str | None
        on_bad_time: OnBadTime
        ambiguous: Ambiguous
        nonexistent: Nonexistent
        types: Mapping[str, str] | None
        format: str | None
        separator: str | None
        header: bool
        prefix: str
        ids: Ids
        until: str | None
        max_length: Duration | None
        max_rows: int | None
        new_when: str | Sequence[str]
        starts_when: Event | None
        ends_when: Event | None
        new_at: str | None

    Columns = str | Sequence[str]

_OPTIONS = ("partition", "timezone", "unit", "on_bad_time", "ambiguous", "nonexistent", "format", "separator", "header")


@overload
def sessionize(
    data: PandasData, by: Columns | None, at: str, gap: Gap, grace: Duration | None = None, **more: Unpack[_More]
) -> pd.DataFrame: ...
@overload
def sessionize(
    data: SparkFrame, by: Columns | None, at: str, gap: Gap, grace: Duration | None = None, **more: Unpack[_More]
) -> DataFrame: ...
@overload
def sessionize(
    data: PolarsFrame, by: Columns | None, at: str, gap: Gap, grace: Duration | None = None, **more: Unpack[_More]
) -> pl.DataFrame: ...
@overload
def sessionize(
    data: ArrowData, by: Columns | None, at: str, gap: Gap, grace: Duration | None = None, **more: Unpack[_More]
) -> pa.Table: ...


@overload
def sessionize(
    data: str | PathLike[str] | Sequence[str | PathLike[str]], by: Columns | None, at: str, gap: Gap,
    grace: Duration | None = None, *, out: str | PathLike[str], overwrite: bool = False, **more: Unpack[_More],
) -> Written: ...  # fmt: skip


@called_as('sk.sessionize(df, by="user", at="time", gap="30 minutes")')
def sessionize(
    data: Any,
    by: str | Sequence[str] | None,
    at: str,
    gap: Gap,
    grace: Duration | None = None,
    *,
    timezone: str | dt.tzinfo | None = None,
    unit: TimeUnit | None = None,
    partition: str | None = None,
    offset: str | None = None,
    on_bad_time: OnBadTime = "refuse",
    ambiguous: Ambiguous = "raise",
    nonexistent: Nonexistent = "raise",
    types: Mapping[str, str] | None = None,
    format: str | None = None,
    separator: str | None = None,
    header: bool = True,
    prefix: str = "",
    ids: Ids = "number",
    until: str | None = None,
    max_length: Duration | None = None,
    max_rows: int | None = None,
    new_when: str | Sequence[str] = (),
    starts_when: Event | None = None,
    ends_when: Event | None = None,
    new_at: str | None = None,
    out: str | PathLike[str] | None = None,
    overwrite: bool = False,
) -> pd.DataFrame | pl.DataFrame | pa.Table | DataFrame | Written:
    """The rows of `data` with the session that each belongs to: the same rows, order, index and columns, and six more.

    `session_id` (unique; from 0 by the bytes of the key, then by start), `session_start` and `session_end` (of its
    first and last row), `session_rows`, `position_in_session` (from 1, by time, then by row) and `late`. A row joins
    a session if the pause between them is at most `gap`. The first five are null for a row with a null key, without
    a time (`on_bad_time="drop"`), or that was late; a warning says how many have no key or time.

    Args:
        data: pandas, polars, pyarrow, the path of a file, or a Spark DataFrame.
        by: the column whose values have sessions of their own, such as a user; or a list of columns; None if all rows
            are of one.
        at: the column of times. Without a grace those before 1970 count, and those finer than a millisecond count as
            they are: start and end are then as fine.
        gap: the longest pause within a session, such as "30 minutes" or "500us"; of each key, `{"phone": "10m", None:
            "30m"}`; or the name of a column with the pause that may follow each row, for certain as `("column",
            "pause")`.
        grace: None takes the rows as they are, in any order, and nothing is late. With a grace rows arrive in the order
            in which they stand, and one that comes later than gap and grace allow is late, as in `plan.run`.
        timezone, unit, on_bad_time, ambiguous, nonexistent, types, format, separator, header: as in `sk.group_by_key`.
        partition, offset: sessions do not cross partitions, and offsets are the order of arrival in one. A Spark
            DataFrame needs both with a grace; without, they only order rows of equal time, and ids have gaps.
        prefix: stands before the names of the columns, for data that has a column of such a name already.
        ids: "number" counts sessions; "key" is text of the key and the start, which stays when rows are added behind,
            and is the same on Spark and in `run.assign`; "hash" an int64 of that text.
        until: the column of times at which what began `at` a time ended; null for what took none. The pause counts
            from the latest end so far, and `session_end` is the latest one.
        max_length, max_rows: a session is cut before a row that is further from its start, or one more than so many.
        new_when: columns of which another value than the last known one starts a session; a missing one does not.
        starts_when, ends_when: a column and its value, or values, of rows that start a session, or are its last:
            `("event", "login")`.
        new_at: "midnight", or another time of day such as "06:00", at which a session ends in the zone of `timezone`,
            else that of the column, else UTC.
        out: a folder for files of any length: the rows are written there as Parquet, in steps of bounded memory, and
            a `Written` tells of them. `overwrite` replaces what was written there before.
    These rules, which Kafka does not have, cut the sessions of the gap, without a grace, as rows follow by time, and of
    equal time by `offset` or as they stand. They add `session_ended_by`: "gap", "length", "rows", "value:" and the
    column, "start", "end", "midnight" (or the time of day); null for the last session of a key, if no row ended it.
    That is "end" wherever the last row is of `ends_when`, else the first of these that applies to the next row.

    Raises:
        InvalidArgument, MissingColumn, UnsupportedData, InvalidData: as `plan.run`, or a column has such a name, a row
            ends before it begins, or has no gap.
        NotBuilt: a rule beside a grace.
    Source:
        KIP-94, KIP-633; KStreamSessionWindowAggregate.
    Example:
        >>> sk.sessionize(monday, by="user", at="at", gap="30s")["session_id"].tolist()
        [0, 0, 1]
        >>> sk.sessionize(monday, by="user", at="at", gap="30s", max_rows=1)["session_ended_by"].tolist()
        ['rows', nan, nan]
    """
    given: dict[str, Any] = locals().copy()
    _check_names(by, at)
    keys, order = (by,) if isinstance(by, str) else tuple(by or ()), None if grace is None else offset
    options = {name: given[name] for name in _OPTIONS} | {"types": pairs(types)}
    source = Source(keys=keys, timestamp=at, offset=order, before_1970=grace is None, **options)
    grace_ms = 0 if grace is None else duration_ms(grace, "grace")
    rules = rules_of(gap, keys, **{name: given[name] for name in RULES_OF_SESSIONS})
    plan = Plan(source, SessionWindows(inactivity_gap_ms=rules.longest_gap_ms, grace_ms=grace_ms))
    if grace is not None:
        refuse_with_grace(rules)
    if not isinstance(given["prefix"], str) or not is_text(prefix):
        raise InvalidArgument(problem("prefix must be text", shorten(repr(prefix)), 'such as prefix="visit_"'))
    one_of("ids", ids, IDS)
    if out is not None:
        return _written(plan, rules, **{name: given[name] for name in _WRITTEN})
    if is_spark_frame(data):
        from sessionkit.spark.sessionized import sessionized

        return sessionized(plan, data, offset, rules, in_order=grace is not None, prefix=prefix, ids=ids)
    opened, added, zone = _cut(plan, data, rules, offset) if grace is None else _in_plan(plan, data)
    added = with_timestamps(with_ids(added, opened.table, source.own_columns(), ids), zone)
    return beside(opened, added.rename_columns([prefix + name for name in added.column_names]), "prefix=")


_WRITTEN = ("data", "grace", "offset", "prefix", "ids", "out", "overwrite")


def _written(
    plan: Plan, rules: SessionRules, data: Any, grace: object, out: Any, overwrite: bool, **given: Any
) -> Written:
    from sessionkit.steps.sessionized import SessionsJob, write_sessions

    if not is_files(data):
        want = "sessionize(…) without out=, whose rows can be written as they are wanted"
        raise InvalidArgument(problem("out= takes the paths of files", type(data).__name__, want))
    if grace is not None:
        want = "sessionize without grace=; or plan.write(…, records=…), which has what was decided on each record"
        raise NotBuilt(problem("rows are written without a grace", f"grace={grace!r}", want))
    path = Path(os.path.expanduser(out))
    source, windows = plan.source, plan._complete_windows
    job = SessionsJob(data=data, source=source, windows=windows, rules=rules, path=path, overwrite=overwrite, **given)
    written = write_sessions(job)
    return dataclasses.replace(written, _remarks=[*dict.fromkeys(map(_of_rows, written.remarks()))])


def _check_names(by: Any, at: Any) -> None:
    if by is not None and (not isinstance(by, str | Sequence) or not by):
        want = 'by="user", or by=None if all rows are of one person or device'
        raise InvalidArgument(problem("by must be a column or a list of columns", shorten(repr(by)), want))
    if not isinstance(at, str):
        want = 'at="time", also for a level of the index of this name: df.rename_axis("time") names an index'
        raise InvalidArgument(problem("at must be the name of a column", shorten(repr(at)), want))


def _in_plan(plan: Plan, data: Any) -> tuple[Opened, pa.Table, str]:
    opened = open_whole(data, plan.source)
    batch = batch_of(opened, plan.source)
    run = plan._run_batch(batch)
    late = run._late_remarks or unit_remarks(plan._complete_windows, batch)
    for remark in map(_of_rows, [*batch.remarks[len(opened.remarks) :], *late]):
        warnings.warn(remark, stacklevel=level_of_user())
    return opened, assigned(run.trace, plan._complete_windows), run.timezone


def _cut(plan: Plan, data: Any, rules: SessionRules, offset: str | None) -> tuple[Opened, pa.Table, str]:
    source = plan.source
    with columns_of_gaps(rules):
        opened = open_whole(data, source, [*rules.columns(), *([offset] if offset else [])])
    batch = batch_of(opened, source)
    read, unmet = [said for said in opened.remarks if said.startswith(WITH_AN_OFFSET)], Unmet()
    added = cut_by_rules(opened, batch, rules, source, zone=batch.timezone, offset=offset, unmet=unmet)
    of_days = days_remarks(rules, plan._complete_windows, batch, added)
    for remark in [*read, *batch.remarks[len(opened.remarks) :], *of_days, *words_of(unmet)]:
        warnings.warn(_of_rows(remark), stacklevel=level_of_user())
    return opened, added, batch.timezone


def _of_rows(remark: str) -> str:
    """A remark on the order of records, with the way that is the nearest here."""
    for sort in (SORT.format(""), SORT.format(WITHOUT_OFFSET)):
        remark = remark.replace(sort, "Without a grace any order of the rows will do.")
    return remark.removesuffix(TIES).replace(" in group_by_key", "")
