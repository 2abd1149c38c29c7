"""The page's engine in a real browser, over the columns that the page carries."""

from collections.abc import Iterable, Iterator
from typing import Any

import sessionkit as sk
from sessionkit.base.assets import read_asset
from sessionkit.views.page.html import engine_data
from sessionkit.views.page.sample import Sample, sample
from tests.optional import Browser, Page

# Everything that was decided, as plain lists; times are the numbers themselves.
TOLD = """
async function told(each) {
  const records = recordsOf(await unpack(each), each.told);
  const done = decide(records, each.lengths);
  const plain = (value) => ArrayBuffer.isView(value) ? Array.from(value)
    : value !== null && typeof value === "object" && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, plain(inner)]))
      : Array.isArray(value) ? value.map((inner) => (inner === Infinity ? null : inner)) : value;
  const missing = (each.asked ?? []).map((row) => missingGrace(records, each.lengths, row));
  return {
    ...plain(done),
    records: plain({ time: records.time, stream: records.stream, offset: records.offset, slot: records.slot }),
    counts: countsOf(records, done),
    results: each.results.map(([, what, column]) => plain(resultsOf(done, what, records.values[column]))),
    missing,
  };
}
"""


def engine(browser: Browser) -> Iterator[Page]:
    """An empty page with the engine in it, as a fixture has it."""
    tab = browser.new_page()
    parts = [read_asset(f"views/page/{name}.js") for name in ("engine", "records")]
    tab.add_script_tag(content="\n".join([*parts, TOLD]))
    yield tab
    tab.close()


def as_asked(run: sk.Run, asked: Iterable[int] = (), chosen: Sample | None = None) -> dict[str, Any]:
    """A run as the engine gets it, and late records whose missing grace is asked for."""
    trace, windows = run.trace, run.plan._complete_windows
    chosen = sample(trace, None, len(trace) or 1, None) if chosen is None else chosen
    return {**engine_data(run, trace, windows, chosen), "asked": list(asked)}


def decided(tab: Page, asked: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tab.evaluate("asked => Promise.all(asked.map(told))", asked)
    return found
