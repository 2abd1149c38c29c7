"""The options that several commands take, each defined once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Annotated, Any

import typer

from sessionkit.base.text import ONE_KEY
from sessionkit.errors import InvalidArgument, problem, shorten

column = partial(typer.Option, metavar="COLUMN")
length = partial(typer.Option, metavar="LENGTH")
File = Annotated[str, typer.Argument(metavar="FILE", help="A file or folder of Parquet, CSV, JSON lines and the like.")]
Key = Annotated[list[str], column("--key", "--by", help="The key column; several: --by carrier --by origin.")]
Timestamp = Annotated[str, column("--timestamp", "--at", help="The column of event times.")]
Gap = Annotated[str, length(help="The inactivity gap, such as 30m.")]
Grace = Annotated[
    str | None,
    length(
        help="How long late records count, such as 5m; 0s for not at all. "
        "Default: the smallest round length that keeps every record.",
    ),
]
WindowOffset = Annotated[
    str | None, length(help="Windows with --size begin so much later, such as 6h: days from 6:00 UTC.")
]
Calendar = Annotated[
    str | None,
    typer.Option(metavar="day|week|month|quarter|year", help="Calendar windows, in the zone of --timezone."),
]
TimeDifference = Annotated[str | None, length(help="Sliding windows: how far apart their records lie at most.")]
Sep = Annotated[str, typer.Option(metavar="TEXT", help="The separator of several key columns.")]
Unit = Annotated[str | None, typer.Option(metavar="UNIT", help="The unit of times that are numbers: s, ms, us or ns.")]
Timezone = Annotated[
    str | None,
    typer.Option(metavar="ZONE", help="The zone of the times and results. Default: that of the column, else UTC."),
]
Partition = Annotated[str | None, column(help="The column of partition numbers.")]
Offset = Annotated[str | None, column(help="The column of offsets within a partition.")]
PartitionColumn = Annotated[str | None, column("--partition-column", help="The column of partition numbers.")]
OffsetColumn = Annotated[str | None, column("--offset-column", help="The column of offsets within a partition.")]
Arrival = Annotated[str | None, column(help="The column that says when each record arrived, with --max-ahead.")]
MaxAhead = Annotated[str | None, length(help="How far after its arrival the time of a record may lie, with --ahead.")]
Ahead = Annotated[str | None, typer.Option(metavar="keep|drop", help="What becomes of records that are further ahead.")]
Sort = Annotated[bool, typer.Option("--sort", help="Sort the rows first: by offset if there is one, else by time.")]
Types = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN=TYPE", help="The type of a column in a text file: user=int64. May be repeated."),
]
BadTimes = Annotated[
    str,
    typer.Option(
        metavar="refuse|drop|partition_time",
        help="What to do with rows without a usable time; the last gives them the greatest time of their partition.",
    ),
]
_WRITTEN: dict[str, Any] = {"metavar": "FORMAT", "help": "How times are written, as in strftime: %d/%m/%Y %H:%M."}
Format = Annotated[str | None, typer.Option("--format", "--time-format", **_WRITTEN)]
TimeFormat = Annotated[str | None, typer.Option("--time-format", **_WRITTEN)]  # where --format is of something else
_CHOICES = "raise|earliest|latest"
Ambiguous = Annotated[
    str,
    typer.Option(metavar=f"{_CHOICES}|infer", help="Which of two hours is meant that clocks show; infer: by order."),
]
Nonexistent = Annotated[str, typer.Option(metavar=_CHOICES, help="What to make of times that clocks skipped.")]
Separator = Annotated[
    str | None, typer.Option(metavar="CHARACTER", help="Between the fields of a text file, such as ; or tab.")
]
NoHeader = Annotated[bool, typer.Option("--no-header", help="A text file without names: columns are c1, c2 and so on.")]
Emit = Annotated[
    str,
    typer.Option(metavar="STRATEGY", help="on_window_update: each change of a result; on_window_close: finals only."),
]
Overwrite = Annotated[
    bool,
    typer.Option("--overwrite", help="Write even into a folder with other files; these stay as they are."),
]
Spark = Annotated[bool, typer.Option("--spark", help="Run on Spark instead of in this process (needs pyspark).")]

_SAME = (
    *("timezone", "unit", "partition", "offset", "on_bad_time", "format", "ambiguous", "nonexistent"),
    *("arrival", "max_ahead", "ahead"),
)
ON_UPDATE = "on_window_update"


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How a file is to be read, as the options have it; `reads_file` gives them to a command."""

    file: File
    key: Key
    timestamp: Timestamp
    sep: Sep = "@"
    unit: Unit = None
    timezone: Timezone = None
    partition: Partition = None
    offset: Offset = None
    arrival: Arrival = None
    max_ahead: MaxAhead = None
    ahead: Ahead = None
    sort: Sort = False
    types: Types = None
    on_bad_time: BadTimes = "refuse"
    format: Format = None
    ambiguous: Ambiguous = "raise"
    nonexistent: Nonexistent = "raise"
    separator: Separator = None
    no_header: NoHeader = False

    def __post_init__(self) -> None:
        """Refuses a part of the guard against clocks in the future."""
        guard = {"--arrival": self.arrival, "--max-ahead": self.max_ahead, "--ahead": self.ahead}
        given = {name: value for name, value in guard.items() if value is not None}
        if given and len(given) < len(guard):
            got = " ".join(f"{name} {shorten(value)}" for name, value in given.items())
            want = "--arrival received --max-ahead 5m --ahead drop; or keep, which counts what is further ahead"
            raise InvalidArgument(problem("--arrival, --max-ahead and --ahead belong together", got, want))

    @cached_property
    def keys(self) -> tuple[str, ...]:
        keys = columns_in(self.key)
        if not keys:
            raise InvalidArgument(problem("a plan groups by one column or more", "none", f"--key user; {ONE_KEY}"))
        return keys

    @cached_property
    def column_types(self) -> dict[str, str]:
        """The types of columns. Raises InvalidArgument as `types_of` does."""
        return types_of(self.types)

    @property
    def text(self) -> dict[str, Any]:
        """How a text file is read."""
        from sessionkit.records.source import text_types

        types = text_types(self.timestamp, self.format, self.column_types)
        return {"types": types, **text_form(self.separator, self.no_header)}

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of the engine's functions for these options that were given, under the same names."""
        return {name: value for name in _SAME if (value := getattr(self, name)) is not None}


@dataclass(frozen=True, kw_only=True)
class Windows:
    """The windows that the options of a command name; a second parameter of this kind gives it these options."""

    gap: Annotated[str | None, length(help="Sessions: the inactivity gap, such as 30m.")] = None
    size: Annotated[str | None, length(help="Tumbling windows: how long they are, such as 1h.")] = None
    advance: Annotated[str | None, length(help="Hopping windows, with --size: from one start to the next.")] = None
    window_offset: WindowOffset = None
    time_difference: TimeDifference = None
    calendar: Calendar = None
    grace: Grace = None

    def __post_init__(self) -> None:
        """Refuses a combination of lengths that no kind of windows has."""
        names = ("gap", "size", "advance", "window_offset", "time_difference", "calendar")
        lengths = {name: value for name in names if (value := getattr(self, name)) is not None}
        kinds = ({"gap"}, {"size"}, {"size", "advance"}, {"time_difference"}, {"calendar"})
        if lengths.keys() - ({"window_offset"} if self.size else set()) not in kinds:
            got = ", ".join(f"--{name.replace('_', '-')} {shorten(value)}" for name, value in lengths.items())
            want = (
                "--gap 30m for sessions, --size 1h for tumbling windows, --size 1h --advance 5m for hopping ones, "
                "--time-difference 10m for sliding ones, or --calendar day for the days of a zone"
            )
            raise InvalidArgument(problem("the options name one kind of windows", got or "no length", want))


def reads_file(**columns: object) -> Callable[[Callable[..., int | None]], Callable[..., int | None]]:
    """Gives a command whose first argument is a `Reading` the options that make one, its own between them.

    So it does for `Windows`, where that is the second.

    Args:
        columns: other options for some of these, where the command has one of that name for something else; or None.
    """

    def as_command(command: Callable[..., int | None]) -> Callable[..., int | None]:
        own = [*inspect.signature(command, eval_str=True).parameters.values()][1:]
        of_windows = {**inspect.signature(Windows, eval_str=True).parameters} if own[0].annotation is Windows else {}
        own = own[bool(of_windows) :]
        of_reading = {
            name: option.replace(name=f"{name}_column", annotation=columns[name]) if name in columns else option
            for name, option in inspect.signature(Reading, eval_str=True).parameters.items()
            if columns.get(name, option) is not None
        }

        def run(**values: Any) -> int | None:
            windows = [Windows(**{name: values.pop(name) for name in of_windows})] if of_windows else []
            reading = Reading(**{name: values.pop(option.name) for name, option in of_reading.items()})
            return command(reading, *windows, **values)

        run.__name__, run.__doc__ = command.__name__, command.__doc__
        needed = [option for option in of_reading.values() if option.default is option.empty]
        rest = [option for option in of_reading.values() if option not in needed]
        options = [option.replace(kind=option.KEYWORD_ONLY) for option in [*needed, *of_windows.values(), *own, *rest]]
        run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
        run.__annotations__ = {}  # those of the signature count
        return run

    return as_command


def text_form(separator: str | None, no_header: bool) -> dict[str, Any]:
    """How the lines of a text file are read; a tab is hard to type."""
    from sessionkit.records.source import Source

    separator = "\t" if separator in ("tab", "\\t") else separator
    return Source(keys=("key",), timestamp="time", separator=separator, header=not no_header).text_form


def columns_in(texts: list[str]) -> tuple[str, ...]:
    """The columns that texts name, each one or several separated by commas."""
    return tuple(name.strip() for text in texts for name in text.split(",") if name.strip())


def types_of(given: list[str] | None) -> dict[str, str]:
    """The types of columns, one for each, that were given as COLUMN=TYPE, several of them separated by commas."""
    from sessionkit.records.source import is_type

    found: dict[str, str] = {}
    for each in (part.strip() for text in given or [] for part in text.split(",")):
        name, is_there, kind = each.rpartition("=")
        if not (is_there and name and is_type(kind.strip())):
            want = "--types user=int64, by the names of Arrow: string, int64, float64, bool and others"
            raise InvalidArgument(problem("--types takes a column and its type", repr(each), want))
        name, kind = name.strip(), kind.strip()
        if found.setdefault(name, kind) != kind:
            got = f"{name}={found[name]} and {name}={kind}"
            raise InvalidArgument(problem("--types takes one type a column", got, "give one of them"))
    return found
