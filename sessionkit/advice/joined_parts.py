"""Times of which the parts stand in several columns: the line of pandas that joins them."""

from __future__ import annotations

import calendar

import pyarrow as pa

from sessionkit.advice.file_columns import texts_of
from sessionkit.base.text import literal
from sessionkit.records.inputs.plain_columns import decoded, plain_column
from sessionkit.records.time_text import formats_without_year, is_text_type, with_day


def joined_parts(table: pa.Table, clock: str | None) -> str:
    """The line of pandas that joins columns such as year, month and day, or "Dec", 10 and a time of day; else "".

    `clock` is the column with times of day, if there is one.
    """
    named = {name.lower(): name for name in table.column_names}
    parts = [named[part] for part in ("year", "month", "day", "hour", "minute", "second") if part in named]
    if {"year", "month", "day"} <= named.keys() and all(pa.types.is_integer(table[part].type) for part in parts):
        if clock is None:
            return f"df['at'] = pandas.to_datetime(df[{parts!r}])"
        joined = " + '-' + ".join(f"df[{part!r}].astype(str)" for part in parts[:3])
        return f"df['at'] = pandas.to_datetime({joined} + ' ' + df[{clock!r}].astype(str), format='mixed')"
    columns = {name: plain_column(table[name]) for name in table.column_names if name != clock}
    texts = {name: {*column.unique().to_pylist()} for name, column in columns.items() if is_text_type(column.type)}
    month = next((name for name, found in texts.items() if found and found <= {*calendar.month_abbr[1:]}), None)
    days = [name for name, column in columns.items() if pa.types.is_integer(column.type)]
    days = [name for name in days if {*columns[name].unique().to_pylist()} <= {*range(1, 32)}]
    times = texts_of(decoded(table[clock]))[:1] if clock is not None else []
    for name, found in texts.items():  # days such as "03-17"
        if forms := formats_without_year(*(f"{day} {time}" for day in found for time in times)):
            joined, of = with_day("at", name, clock or ""), " or ".join(map(literal, forms))
            return f"{joined}, which format={of} reads, with the year of the data for 2024"
    if clock is None or month is None or not days:
        return ""
    joined = f"'2024 ' + df[{month!r}] + ' ' + df[{days[0]!r}].astype(str) + ' ' + df[{clock!r}].astype(str)"
    return f"df['at'] = pandas.to_datetime({joined}, format='%Y %b %d %H:%M:%S'), with the year of the data for 2024"
