"""`audit`: what a Kafka Streams deployment would lose of the results."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sessionkit.cli import options as of
from sessionkit.cli.opening import open_file, say, with_windows
from sessionkit.cli.progress import silent, steps

if TYPE_CHECKING:
    from sessionkit.audits.audit import Audit
    from sessionkit.deployed.deployment import Deployment

Store = Annotated[str, typer.Option(metavar="rocksdb|memory", help="The kind of store.")]
Retention = Annotated[
    str | None, typer.Option(metavar="LENGTH", help="How long windows are kept. Default: the smallest allowed.")
]
Caching = Annotated[str, typer.Option(metavar="on|off|SIZE", help="The record cache, or what fits into it (10MB).")]
Commit = Annotated[str, typer.Option(metavar="LENGTH", help="The time between commits; none: one at the end.")]
EmitInterval = Annotated[str, typer.Option(metavar="LENGTH", help="The time between checks for final results.")]
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
        store=store,
        retention=retention,
        caching=caching == "on" if caching in ("on", "off") else caching,
        commit_interval=None if commit_interval == "none" else commit_interval,
        emit_interval=emit_interval,
        restarts=restart or (),
    )
    found = _audited(reading, windows, emit, deployment)
    print(json.dumps(_as_object(reading.file, found), indent=2) if as_json else "\n".join(found.words()))
    return int(fail_if_lost and not found.loses_nothing)


def _audited(reading: of.Reading, windows: of.Windows, emit: str, deployment: Deployment) -> Audit:
    from sessionkit.audits.audit import audit as audited

    with steps(3, silent) as step:
        step("reading the records")
        opened = open_file(reading)
        plan, said = with_windows(opened, windows)
        step("replaying the records")
        found = audited(plan.emit(emit).count(), opened.table, deployment)
        step("comparing the results")
        found.words()  # which may look for a retention that loses nothing
    say(*opened.remarks, *said)
    return found


def _as_object(file: str, found: Audit) -> dict[str, Any]:
    return {
        "file": file,
        "plan": repr(found.expected.plan),
        "loses_nothing": found.loses_nothing,
        "counts": found.counts(),
        "smallest_retention_ms": found.smallest_retention_ms,
        "recommended_retention_ms": found.recommended_retention_ms,
        "words": found.words(),
    }
