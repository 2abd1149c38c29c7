"""`explain`, `suggest` and `audit`: questions about the records of a file, and what a deployment would lose of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from sessionkit.cli import options as of
from sessionkit.cli.opening import open_file, open_to_pick, with_windows
from sessionkit.cli.saying import say, steps, with_options
from sessionkit.errors import InvalidArgument, TooLarge, problem

if TYPE_CHECKING:
    from sessionkit.audits.audit import Audit
    from sessionkit.deployed.deployment import Deployment

OffsetNumber = Annotated[
    int | None,
    typer.Option(
        "--offset",
        metavar="NUMBER",
        help="The row to explain, counted from 0 (with --sort in order of time), or its offset.",
    ),
]
WindowKey = Annotated[str | None, typer.Option(metavar="VALUE", help="The key of the window to explain.")]
Start = Annotated[str | None, typer.Option(metavar="TIME", help="Its start, such as '2024-07-01 00:10'.")]
PartitionNumber = Annotated[int | None, typer.Option("--partition", metavar="NUMBER", help="The partition it is in.")]
OptionalGap = Annotated[str | None, of.length(help="A gap to suggest the grace for.")]
Keep = Annotated[float, typer.Option(metavar="SHARE", help="The share of records that the grace should keep.")]


@of.reads_file(partition=of.PartitionColumn, offset=of.OffsetColumn)
def explain(
    reading: of.Reading,
    windows: of.Windows,
    offset: OffsetNumber = None,
    window_key: WindowKey = None,
    window_start: Start = None,
    partition: PartitionNumber = None,
) -> None:
    """Say why a record did what it did, or how a window grew.

    \b
    Examples:
      sessionkit explain clicks.csv --by user --at at --gap 30m --offset 2
      sessionkit explain clicks.csv --by user --at at --gap 30m \\
        --window-key ada --window-start "2024-07-01 00:10"
    """
    if (window_key is None) == (offset is None) or (window_key is None) != (window_start is None):
        got = f"--offset {offset}, --window-key {window_key}, --window-start {window_start}"
        want = "--offset 17 for a record, or --window-key ada --window-start '2024-07-01 00:10' for a window"
        raise InvalidArgument(problem("explain takes a record or a window", got, want))
    try:
        opened = open_file(reading)
        plan, remarks = with_windows(opened, windows)
        run = plan.count().run(opened.table)
        remarks += run._late_remarks
    except TooLarge:
        if windows.grace is None or reading.sort:  # which take all records
            raise
        from sessionkit.steps.chosen import key_at

        opened = open_to_pick(reading)
        plan, remarks = with_windows(opened, windows)
        records = plan.count()._reading(reading.file, plan.source)
        kind = records.none.keys.type
        key = _typed(str(window_key), kind) if offset is None else key_at(records, offset, partition)
        run = plan.count().run(reading.file, keys=[key])
    say(*opened.remarks, *remarks)
    if offset is not None:
        found = run.explain(offset=offset, partition=partition)
    else:
        key = _typed(str(window_key), run.trace.keys.type)
        found = run.explain(key=key, window_start=window_start, partition=partition)
    print(with_options(str(found)))


def _typed(key: str, kind: Any) -> str | int | bytes:
    import pyarrow as pa

    if pa.types.is_integer(kind) and key.lstrip("-").isdecimal():
        return int(key)
    return key.encode() if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) else key


@of.reads_file()
def suggest(reading: of.Reading, gap: OptionalGap = None, keep: Keep = 0.999) -> None:
    """Suggest a gap, from the pauses between records, and a grace.

    \b
    Example:
      sessionkit suggest clicks.csv --key user --timestamp at --keep 0.99
    """
    from sessionkit.advice.replay import Replay, order_advice
    from sessionkit.advice.suggest import suggest_gap, suggest_grace
    from sessionkit.base.durations import duration_code
    from sessionkit.windows.session import SessionWindows

    opened = open_file(reading)
    say(*opened.remarks)
    suggested = suggest_gap(opened.plan, opened.table)
    print(*map(with_options, suggested.words()), sep="\n")
    found_ms = suggested.gap_ms or suggested.beat_gap_ms
    chosen = gap or (None if found_ms is None else duration_code(found_ms))
    if chosen is None:
        causes = order_advice(opened.plan, Replay.of(opened.plan, opened.table))
        print(
            "--gap with a length, such as that which info prints, would also suggest a grace.",
            *map(with_options, causes),
            sep="\n",
        )
        return
    plan = opened.plan.windowed_by(SessionWindows(inactivity_gap=chosen, grace="0s")).count()
    said = suggest_grace(plan, opened.table, keep=keep).words()
    print(*(with_options(each) for each in said if each not in suggested.remarks), sep="\n")


# ---- a deployment

Store = Annotated[str, typer.Option(metavar="rocksdb|memory", help="The kind of store.")]
Retention = Annotated[str | None, of.length(help="How long windows are kept. Default: the smallest allowed.")]
Caching = Annotated[str, typer.Option(metavar="on|off|SIZE", help="The record cache, or what fits into it (10MB).")]
Commit = Annotated[str, of.length(help="The time between commits; none: one at the end.")]
EmitInterval = Annotated[str, of.length(help="The time between checks for final results.")]
Restart = Annotated[list[int] | None, typer.Option(metavar="ROW", help="Restart after this row. May be repeated.")]
Fail = Annotated[bool, typer.Option("--fail-if-lost", help="End with status 1 if results would be lost or changed.")]
Json = Annotated[bool, typer.Option("--json", help="Print the findings as a JSON object.")]


@of.reads_file()
def audit(
    reading: of.Reading,
    windows: of.Windows,
    emit: of.Emit = of.ON_UPDATE,
    store: Store = "rocksdb",
    retention: Retention = None,
    caching: Caching = "10MB",
    commit_interval: Commit = "30s",
    emit_interval: EmitInterval = "1s",
    restart: Restart = None,
    fail_if_lost: Fail = False,
    as_json: Json = False,
) -> int:
    """Say what a Kafka Streams deployment would lose.

    \b
    Example:
      sessionkit audit clicks.csv --key user --timestamp at \\
        --gap 30m --grace 5m --fail-if-lost

    With --json the object has the fields file, plan, loses_nothing,
    counts, smallest_retention_ms, recommended_retention_ms and words.
    """
    from sessionkit.deployed.deployment import Deployment

    deployment = Deployment(
        store=cast("Any", store),
        retention=retention,
        caching=caching == "on" if caching in ("on", "off") else caching,
        commit_interval=None if commit_interval == "none" else commit_interval,
        emit_interval=emit_interval,
        restarts=restart or (),
    )
    found = _audited(reading, windows, emit, deployment)
    if as_json:
        counts = ("smallest_retention_ms", "recommended_retention_ms")
        told = {"file": reading.file, "plan": repr(found.expected.plan), "loses_nothing": found.loses_nothing}
        told |= {"counts": found.counts(), **{name: getattr(found, name) for name in counts}, "words": found.words()}
        print(json.dumps(told, indent=2))
    else:
        print(*map(with_options, found.words()), sep="\n")
    return int(fail_if_lost and not found.loses_nothing)


def _audited(reading: of.Reading, windows: of.Windows, emit: Any, deployment: Deployment) -> Audit:
    from sessionkit.audits.audit import audit as audited

    with steps(3) as step:
        step("reading the records")
        opened = open_file(reading)
        plan, remarks = with_windows(opened, windows)
        step("replaying the records")
        found = audited(plan.emit(emit).count(), opened.table, deployment)
        step("comparing the results")
        found.words()  # which may look for a retention that loses nothing
    say(*opened.remarks, *remarks)
    return found
