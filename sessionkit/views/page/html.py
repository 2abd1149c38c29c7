"""The page with sliders as HTML: its records as small columns, what it carries in words, its script and style."""

from __future__ import annotations

import base64
import gzip
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sessionkit.aggregations.contract import Aggregation
from sessionkit.base.arrays import Flags, Longs
from sessionkit.base.assets import read_asset, whole_page
from sessionkit.base.decisions import LATE
from sessionkit.base.durations import DAY
from sessionkit.base.moments import SHORT_HISTORY_MS, clock_changes
from sessionkit.base.text import OF_ALL, escape_html, inert_json, key_name, plural
from sessionkit.errors import shorten
from sessionkit.records.keys import code_of_key
from sessionkit.trace.trace import Trace
from sessionkit.views.drawing.palettes import PALETTES
from sessionkit.views.page.sample import MOST_EXACT, Sample, check_can_be_a_page, sample
from sessionkit.views.words import zone_named
from sessionkit.windows.contract import WindowKind

RESULTS = ("count", "sum", "min", "max", "mean")  # what the page computes
_WHOLE = ("u1", "i1", "u2", "i2", "u4", "i4")  # the names that the page has for them, small ones first


def packed(columns: Mapping[str, npt.NDArray[Any]]) -> tuple[list[tuple[str, str, int]], str]:
    """Columns in the smallest types that hold them exactly: (name, type, count) of each, and all as base64 of gzip."""
    small = {name: _smallest(column) for name, column in columns.items()}
    content = b"".join(column.tobytes() for column in small.values())
    layout = [(name, column.dtype.str[1:], len(column)) for name, column in small.items()]
    return layout, base64.b64encode(gzip.compress(content, 9, mtime=0)).decode()


def _smallest(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The column in little-endian bytes."""
    if not len(column):
        return column.astype("<u1")
    if np.issubdtype(column.dtype, np.floating) and not (np.isfinite(column) & (column == np.round(column))).all():
        return column.astype("<f8")
    low, high = column.min(), column.max()
    for name in _WHOLE:
        if np.iinfo(name).min <= low and high <= np.iinfo(name).max and not np.signbit(column[column == 0]).any():
            return column.astype(f"<{name}")
    return column.astype("<f8")


def record_columns(trace: Trace, chosen: Sample) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """The columns of these records, and what it takes to make them whole again.

    `stream` is the stream time at the record's arrival among all records of the run, as its difference from the record
    before it in its partition; `late` is how far its own time lies behind that. Both count in `unit` ms.
    """
    batch, rows = trace.batch, chosen.rows
    partition, stream, offset = batch.partition[rows], trace.stream_time_ms[rows], batch.offset[rows]
    usable = batch.usable[rows] & (batch.key[rows] >= 0)
    late = np.where(usable, stream - batch.timestamp_ms[rows], 0)
    code = np.full(len(trace.keys) + 1, -1, np.int64)
    code[chosen.keys] = np.arange(len(chosen.keys))
    count = max(len(batch.partitions), 1)
    begun = stream >= 0  # there is no stream time before the first usable record
    before = np.bincount(partition[~begun], minlength=count)
    first_stream, rise = _differences(stream, partition, count, begun)
    first_offset, step = _differences(offset, partition, count)
    unit = math.gcd(int(np.gcd.reduce(rise)), int(np.gcd.reduce(late))) or 1 if len(rows) else 1
    columns = {"key": code[batch.key[rows]], "stream": rise // unit, "late": late // unit, "offset": step}
    if count > 1:
        columns["partition"] = partition
    if not usable.all():
        rejected = np.zeros(len(trace), np.uint8) if batch.rejected is None else batch.rejected
        columns["reason"] = np.where(usable, 0, rejected[rows])
    told = {
        "unit": unit,
        "before": before.tolist(),
        "firstStream": first_stream.tolist(),
        "firstOffset": first_offset.tolist(),
        "lastStream": trace.last_stream_time_ms.tolist() or [-1],
        "partitionNumbers": batch.partitions.tolist() or [0],
    }
    return columns, told


def _differences(
    column: Longs, partition: npt.NDArray[np.int32], partitions: int, counts: Flags | bool = True
) -> tuple[Longs, Longs]:
    """(the first number of each partition that counts, each number less the one before it in its partition)."""
    first, step = np.zeros(partitions, np.int64), np.zeros(len(column), np.int64)
    for p in range(partitions):
        mine = np.flatnonzero((partition == p) & counts)
        if len(mine):
            first[p] = column[mine[0]]
            step[mine[1:]] = np.diff(column[mine])
    return first, step


class Results(NamedTuple):
    """What the page computes of each window: (name, what, the number of its column, or None); and what it cannot."""

    named: list[tuple[str, str, int | None]]
    columns: dict[str, npt.NDArray[Any]]
    left_out: list[str]


def result_columns(
    aggregations: tuple[tuple[str, Aggregation], ...], values: Mapping[str, Any], chosen: Sample
) -> Results:
    """The numbers that the page's results are made of, each column once; what is missing is marked in another one."""
    found, place = Results([], {}, []), dict[str, int]()
    for name, aggregation in aggregations:
        what, column = aggregation.built_in, next(iter(aggregation.columns), "")
        if what == "count":
            found.named.append((name, what, None))
            continue
        numbers = _numbers(values[column].take(pa.array(chosen.rows))) if what in RESULTS else None
        if numbers is None:
            found.left_out.append(name)
            continue
        if column not in place:
            place[column] = len(place)
            found.columns[f"value{place[column]}"], missing = numbers
            if missing.any():
                found.columns[f"missing{place[column]}"] = missing.astype(np.uint8)
        found.named.append((name, what, place[column]))
    return found


def _numbers(column: pa.Array) -> tuple[npt.NDArray[Any], Flags] | None:
    """A column of numbers with 0 for what is missing, and what is; None if JavaScript has no such numbers."""
    kind, missing = column.type, np.asarray(column.is_null())
    if pa.types.is_null(kind):
        return np.zeros(len(column), np.uint8), missing
    if pa.types.is_boolean(kind):
        return np.asarray(column.cast(pa.uint8()).fill_null(0)), missing
    if pa.types.is_decimal(kind):
        column = column.cast(pa.float64(), safe=False)
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return None
    numbers = np.asarray(column.fill_null(0))
    low, high = (int(numbers.min()), int(numbers.max())) if pa.types.is_integer(kind) and len(numbers) else (0, 0)
    if low < -MOST_EXACT or high >= MOST_EXACT:
        return None
    return numbers.astype(np.float64) if numbers.dtype.kind == "f" else numbers, missing


def lengths_of(windows: WindowKind, retention_ms: int, times_ms: Longs) -> dict[str, Any]:
    """The lengths of the windows as the page's engine takes them; a retention counts where it exceeds gap + grace.

    Those of a calendar have the bounds of these times.
    """
    parameters = windows.arguments()[1]
    if "inactivity_gap_ms" in parameters:
        gap, grace = parameters["inactivity_gap_ms"], parameters["grace_ms"]
        kept = retention_ms if retention_ms > gap + grace else 0
        return {"kind": "session", "gap": gap, "grace": grace, "retention": kept}
    size, grace = parameters.get("size_ms", windows.reach_ms), parameters["grace_ms"]
    lengths = {"kind": "time", "size": size, "advance": parameters.get("advance_ms", size), "grace": grace}
    bounds_ms = getattr(windows, "bounds_ms", None)
    more = {"offset": parameters.get("offset_ms", 0)} if bounds_ms is None else {"bounds": bounds_ms(times_ms).tolist()}
    return lengths | more


def engine_data(run: Any, trace: Trace, windows: WindowKind, chosen: Sample) -> dict[str, Any]:
    """The records, the lengths, and what is computed of them."""
    columns, told = record_columns(trace, chosen)
    results = result_columns(run.plan._aggregations, run._outcome.batch.values, chosen)
    if trace.batch.labels.column is not None:
        words = [trace.batch.labels.quoted(row) for row in chosen.rows.tolist()]
        names, columns["label"] = np.unique(np.array(words, np.str_), return_inverse=True)
        told["labels"] = names.tolist()
    layout, data = packed({**columns, **results.columns})
    times_ms = trace.batch.timestamp_ms[chosen.rows]
    lengths = lengths_of(windows, getattr(trace, "retention_ms", 0), times_ms[times_ms >= 0])
    records = {"layout": layout, "data": data, "told": told, "lengths": lengths}
    return {**records, "results": results.named, "leftOut": results.left_out}


SCRIPTS = (
    *("engine", "records", "words", "history", "plane_scene", "lanes_scene", "explain", "chain"),
    *("make", "elements", "controls", "minimap", "lanes", "plane", "page"),
)
TITLE_LENGTH = 120
MOST_NAMED = 3  # of the keys that are left out
MOST_TO_SEE = ": the key with most to see, and as many others, drawn at random, as there is room for"
AT_THEIR_TIME = "Each record keeps the stream time at which it arrived among all of them."
_AHEAD_MS = 2 * 366 * DAY  # of what a clock shows behind the newest record


class Page:
    """A run as a page: which records it carries, and its parts. `call` is what the user called, for errors."""

    def __init__(
        self, run: Any, keys: Iterable[object] | None, most_records: int, hide_keys: bool, call: str = "write_html"
    ) -> None:
        windows: WindowKind = run.plan._complete_windows
        check_can_be_a_page(run, windows, call)
        trace: Trace = run.trace
        eventful = run.most_eventful_key() if len(trace.keys) else None
        self._run, self._trace, self._hidden, by_name = run, trace, hide_keys, not hide_keys
        self.sample = sample(trace, keys, most_records, eventful, by_name=by_name, reach_ms=windows.reach_ms)
        self._places = {code: place for place, code in enumerate(self.sample.keys.tolist())}
        self._eventful = -1 if eventful is None else code_of_key(trace.keys, eventful)
        self._engine = engine_data(run, trace, windows, self.sample)
        self.is_as_kafka = windows.not_in_kafka is None and run.plan.source.max_ahead is None

    @property
    def content(self) -> str:
        """The place of the pictures with all that they are made of; `style()` and `script()` bring it to life."""
        nothing = "The sliders and pictures need JavaScript. It comes with this page; the page loads nothing."
        return (
            f'<div class="what-if">{self._partly()}<noscript><p>{nothing}</p></noscript></div>'
            f'<script type="application/json" data-what-if>{inert_json(self._data())}</script>'
        )

    def _data(self) -> dict[str, Any]:
        cut = self.sample.cut
        return {
            **self._engine,
            "results": [[shorten(name), *rest] for name, *rest in self._engine["results"]],
            "leftOut": [shorten(name) for name in self._engine["leftOut"]],
            "keys": [self._label(code) for code in self._places],
            "hasKeys": bool(self._run.plan.source.keys),
            "whole": None if self.sample.is_whole else self._whole_counts(),
            "unusable": self._run.metrics()["records-dropped"] - int((self._trace.decision == LATE).sum()),
            "cut": None if cut is None else {"key": self._places[cut], "words": self._cut_words(cut)},
            "firstKey": self._places.get(self._eventful),
            "zone": zone_named(self._trace),
            "clock": clock_data(self._trace.batch.timezone, int(self._trace.last_stream_time_ms.max(initial=0))),
            "palettes": {theme: {**asdict(each), "reachEdge": each.reach_edge} for theme, each in PALETTES.items()},
        }

    def _label(self, code: int) -> str:
        key = self._trace.keys[code].as_py()
        return key_name(key) if not self._hidden or key == OF_ALL else f"key {self._places.get(code, 0) + 1}"

    def _whole_counts(self) -> dict[str, int]:
        """The numbers of the run, as the page counts those of what it carries."""
        trace, metrics = self._trace, self._run.metrics()
        dropped, late = trace.decision == LATE, trace.late_for_some
        return {
            "windows": metrics["windows"],
            "merges": metrics.get("windows-merged", 0),
            "dropped": int(dropped.sum()),
            "partly": int((late & ~dropped).sum()),
            "kept": int((trace.late_but_kept & ~late).sum()),
        }

    def _cut_words(self, code: int, dropped: str = "") -> str:
        rows, noun = np.flatnonzero(self._trace.batch.key == code), self._run.plan._complete_windows.noun
        low, high = np.flatnonzero(np.isin(rows, self.sample.rows))[[0, -1]] + 1
        lost = ", and a late record that it took in may be dropped here" * ("gap" in self._engine["lengths"])
        return (
            f"of the {len(rows):,} records of “{self._label(code)}”{dropped}, the page carries number {low:,} to "
            f"{high:,} in order of arrival; a {noun} that goes beyond these is cut there{lost}"
        )

    def _share(self) -> str:
        keys, records = plural(self.sample.all_keys, "key"), plural(self.sample.all_records, "record")
        return f"{len(self.sample.keys):,} of {keys} and {len(self.sample.rows):,} of {records}"

    def _partly(self) -> str:
        """What is not in the page although nobody asked to leave it out, in red, with the largest keys by name."""
        some, key = self.sample, self._trace.batch.key
        if some.is_whole or some.was_asked:
            return ""
        masks = (self._trace.is_record & (key >= 0), self._trace.decision == LATE)
        records, drops = (np.bincount(key[mask], minlength=some.all_keys) for mask in masks)

        def weight(codes: list[int]) -> str:
            return f"({plural(int(records[codes].sum()), 'record')}, {drops[codes].sum():,} dropped)"

        left = [code for code in np.argsort(-records, kind="stable").tolist() if code not in self._places]
        named = "a key" if self._hidden else "“{}”"
        parts = [f"{named.format(self._label(code))} {weight([code])}" for code in left[:MOST_NAMED]]
        if rest := left[MOST_NAMED:]:
            parts.append(f"{plural(len(rest), 'more key')} {weight(rest)}")
        if keyless := some.all_records - int(records.sum()):
            parts.append(f"{plural(keyless, 'record')} without a key")
        said = [f"It shows {self._share()}{MOST_TO_SEE * bool(left)}. {AT_THEIR_TIME}"] if self._places else []
        if some.cut is not None:
            words = self._cut_words(some.cut, f", of which the whole run dropped {drops[some.cut]:,}")
            said.append(f"O{words[1:]}.")
        said += [f"Left out: {', '.join(parts)}."] if parts else []
        text = escape_html(" ".join(said))
        return f'<p class="partly"><b>This page carries only a part of the run.</b> {text}</p>'

    def carries(self) -> str:
        """What is in the page, in a sentence, as who passes it on should know."""
        some = self.sample
        what = ["keys"] * (not self._hidden) + ["labels"] * ("labels" in self._engine["told"])
        which = f"{', '.join(what)} and times" if what else "times"
        said = f"This page carries the {which} of {plural(len(some.rows), 'record')} of {plural(len(some.keys), 'key')}"
        return said + (": the keys are only numbered." if self._hidden else ".")

    def left_out(self) -> list[str]:
        """What was not asked for and what the page cannot compute, in sentences."""
        some, said = self.sample, []
        if some.was_asked and not some.is_whole:
            said.append(f"All numbers and pictures are of {self._share()}. {AT_THEIR_TIME}")
        names = [shorten(name) for name in self._engine["leftOut"]]
        if names:
            left = ", ".join(names)
            said.append(f"Left out, as only count, sum, min, max and mean of numbers are computed here: {left}.")
        return said


def clock_data(timezone: str, latest_ms: int) -> dict[str, Any]:
    """What the clocks of a zone show, up to times that the page can come to; lengths where the data counts from 0."""
    is_elapsed = latest_ms < SHORT_HISTORY_MS
    clock = clock_changes("UTC" if is_elapsed else timezone, latest_ms + _AHEAD_MS)
    return {"changes": clock.changes_ms.tolist(), "offsets": clock.offsets_ms.tolist(), "isElapsed": is_elapsed}


def style(scope: str = ".what-if") -> str:
    """What the pictures wear: the colours of sessionkit's charts, in the reader's theme; printed in the light one."""
    light, dark = (
        " ".join(f"--{name.replace('_', '-')}: {value};" for name, value in asdict(PALETTES[theme]).items())
        for theme in ("light", "dark")
    )
    return (
        f"{scope} {{ {light} }}\n@media (prefers-color-scheme: dark) {{ {scope} {{ {dark} }} }}\n"
        f"@media print {{ {scope} {{ {light} }} }}\n{read_asset('views/page/page.css')}"
    )


def script() -> str:
    """What makes them move."""
    parts = [read_asset(f"views/page/{name}.js") for name in SCRIPTS]
    return "\n".join(["(() => {", '"use strict";', *parts, "start();", "})();"])


def page_html(page: Page, title: str, plan: object) -> str:
    """The whole page."""
    said = escape_html(shorten(title, TITLE_LENGTH))
    css, js = f"{style(':root')}{read_asset('views/page/frame.css')}", script()
    notes = "".join(f"<p>{escape_html(sentence)}</p>" for sentence in page.left_out())
    body = (
        f"<p class='carries'>{escape_html(page.carries())}</p>{notes}"
        "<p class='quiet'>Move a slider: every record is decided anew here, in the order in which it arrived"
        f"{', as Kafka Streams would decide it' if page.is_as_kafka else ''}. Nothing is sent or loaded.</p>"
        f"{page.content}<h2>The plan, as it was run</h2><pre tabindex='0'>{escape_html(plan)}</pre>"
    )
    return whole_page(said, css, js, body)
