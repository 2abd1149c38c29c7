"""What the page draws, told by its own script in a real browser, and what the charts of the package draw."""

import json
from collections.abc import Iterator
from typing import Any

import sessionkit as sk
from sessionkit.views.page.html import SCRIPTS, Page
from tests.optional import Browser
from tests.optional import Page as Tab
from tests.page.engine import read_asset

DRAWN = """
async function drawn({ data, keys, sort }) {
  const records = recordsOf(await unpack(data), data.told);
  const clock = clockOf(data.clock);
  const done = decide(records, data.lengths);
  const lines = ({ x, y }) => ({ x, y });
  const planes = keys.map(([key, partition]) => {
    const history = historyOf(records, data.lengths, done, key, partition);
    const rows = chooseRows(history);
    const scene = planeScene(history, rows);
    const sizes = sizesOf(done);
    const outlines = ["bodies", "reach", "bars", "away", "lacking", "retained", "streamLine", "closeLine", "feet"];
    return {
      rows,
      ...Object.fromEntries(outlines.filter((name) => scene[name]).map((name) => [name, lines(scene[name])])),
      layers: scene.layers?.map(lines),
      lives: scene.lives.map(({ window, steps, end, how }) => [window, steps, end, how]),
      caps: scene.caps.map((cap) => [cap.window, cap.at, cap.start, cap.end, heldAt(scene, cap, sizes)]),
      marks: ["drops", "merges", "lateButKept", "partlyLate", "reopened", "plain", "others"].map((name) => scene[name]),
      missing: [...scene.missing],
      missedEnds: (scene.missedEnds ?? []).map(({ record, end }) => [record, end]),
      xRange: scene.xRange,
    };
  });
  const everything = allLanes(records);
  const [first, last] = mostEventful(records, data.lengths, done, everything, clock);
  const lanes = ranked(records, done, sort, first, last).slice(0, 40);
  const scene = lanesScene(records, data.lengths, done, lanes, first, last);
  const [low, high] = extentOf(records, done, lanes);
  const { windows } = done;
  const bar = (window) => [windows.start[window], windows.end[window], scene.height.get(windows.slot[window])];
  const explainer = new Explainer(records, data.lengths, done, data.keys, clock, data.zone);
  return {
    planes, first, last, lanes,
    whole: extentOf(records, done, everything),
    open: scene.open.map(bar),
    closed: scene.closed.map(bar),
    former: scene.former?.map(([window, start, end]) => [window, start, end]),
    sublanes: scene.sublane ? [...scene.sublane] : null,
    drops: scene.drops,
    lacked: scene.drops.slice(0, 300).map((i) => lackedBy(scene, i)),
    shown: scene.shown.slice().sort((a, b) => a - b),
    clocks: [scene.closeTime, scene.streamTime],
    range: lanesRange(scene, first > low, last < high),
    explained: data.explain.map((i) => explainer.record(i)),
    chains: data.explain.map((i) => (done.decision[i] > LATE ? null : decisionChain(explainer, i, !data.whole))),
  };
}
"""


def drawing(browser: Browser) -> Iterator[Tab]:
    """An empty page with all of the page's script but its start, as a fixture has it."""
    tab = browser.new_page()
    parts = [read_asset(f"views/page/{name}.js") for name in SCRIPTS]
    tab.add_script_tag(content="\n".join([*parts, DRAWN]))
    yield tab
    tab.close()


def as_drawn(tab: Tab, run: sk.Run, keys: list[tuple[int, int]], sort: str = "drops", explain: Any = ()) -> Any:
    """What the page draws of a run: planes of these keys (numbers on the page) and partitions, and the lanes."""
    page = Page(run, None, max(len(run.trace), 1), hide_keys=False)
    data = json.loads(json.dumps({**page._data(), "explain": list(explain)}))
    return tab.evaluate("drawn", {"data": data, "keys": keys, "sort": sort})
