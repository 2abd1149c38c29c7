// What the lanes show: which keys, in which order, and the bars, marks and lines of each, as board.py, session_scene.py
// and window_scene.py in sessionkit/views/charts/scenes have it.

const SORTS = ["drops", "merges", "activity", "key"];
const MOST_SUBLANES = 8;

// All lanes: a slot for each key in each partition where it has records.
function allLanes(records) {
  return Object.keys(rowsBySlot(records)).map(Number);
}

// The lanes in the order asked for, within a span; what they have equally often goes by records, then by key.
function ranked(records, done, sort, first, last) {
  const lanes = allLanes(records);
  const late = lateForSome(done);
  const bySlot = rowsBySlot(records);
  const counts = new Map();
  for (const slot of lanes) {
    const count = { drops: 0, merges: 0, activity: 0 };
    for (const i of bySlot[slot]) {
      if (records.time[i] < first || records.time[i] > last) continue;
      count.activity++;
      if (late[i]) count.drops++;
      if (done.decision[i] === MERGED) count.merges++;
    }
    counts.set(slot, count);
  }
  const order = { drops: ["drops", "merges", "activity"], merges: ["merges", "drops", "activity"], activity: ["activity"], key: [] }[sort];
  return lanes.sort((a, b) => {
    for (const name of order) {
      const more = counts.get(b)[name] - counts.get(a)[name];
      if (more) return more;
    }
    return a - b;
  });
}

// From the first to the last event time of the lanes' windows and records.
function extentOf(records, done, lanes) {
  const isShown = new Set(lanes);
  let low = Infinity;
  let high = -Infinity;
  for (let i = 0; i < records.count; i++) {
    if (!isShown.has(records.slot[i])) continue;
    low = Math.min(low, records.time[i]);
    high = Math.max(high, records.time[i]);
  }
  const { slot, start, end } = done.windows;
  for (let window = 0; window < slot.length; window++) {
    if (!isShown.has(slot[window])) continue;
    low = Math.min(low, start[window]);
    high = Math.max(high, end[window]);
  }
  return low <= high ? [low, high] : [0, 0];
}

// The lanes (slots, top first) over a span: windows, records, drops, and the two clocks.
function lanesScene(records, lengths, done, lanes, first, last) {
  const height = new Map(lanes.map((slot, n) => [slot, lanes.length - 1 - n]));
  const { windows } = done;
  const scene = { records, lengths, done, lanes, first, last, height, windows: [], records_: [] };
  for (let window = 0; window < windows.slot.length; window++) {
    if (windows.mergedInto && windows.mergedInto[window] !== NONE) continue;
    if (windows.end[window] < first || windows.start[window] > last || !height.has(windows.slot[window])) continue;
    scene.windows.push(window);
  }
  scene.open = scene.windows.filter((window) => !done.isClosed[window]);
  scene.closed = scene.windows.filter((window) => done.isClosed[window]);
  const bySlot = rowsBySlot(records);
  scene.shown = lanes.flatMap((slot) => bySlot[slot].filter((i) => records.time[i] >= first && records.time[i] <= last));
  scene.drops = scene.shown.filter((i) => done.decision[i] === LATE).sort((a, b) => a - b);
  const partitions = new Set(lanes.map((slot) => slot % records.partitions));
  const now = partitions.size === 1 ? records.lastStream[[...partitions][0]] : NONE;
  scene.streamTime = now < 0 ? null : now;
  scene.closeTime = now < 0 ? null : now - done.lag;
  if (done.kind === "session") scene.former = formerOf(scene);
  else addSublanes(scene);
  return scene;
}

// A little more than the span; where it ends at the data's ends, with the reach of open sessions and stream time.
function lanesRange(scene, moreBefore, moreAfter) {
  const { lengths, done, open } = scene;
  let { first: low, last: high } = scene;
  if (done.kind === "session") {
    for (const window of open) {
      if (!moreBefore) low = Math.min(low, done.windows.start[window] - lengths.gap);
      if (!moreAfter) high = Math.max(high, done.windows.end[window] + lengths.gap);
    }
  }
  if (!moreAfter) high = Math.max(high, scene.streamTime ?? high);
  const room = Math.max(floorDiv(high - low, 28), 1);
  return [low - room, high + room];
}

// [window, start, end] of the sessions that those in view were merged from, before their first merge.
function formerOf({ done, windows }) {
  const { merges } = done;
  const firstAt = new Map();
  merges.into.forEach((into, n) => firstAt.has(into) || firstAt.set(into, merges.at[n]));
  const rootOf = (window) => {
    while (done.windows.mergedInto[window] !== NONE) window = done.windows.mergedInto[window];
    return window;
  };
  const inView = new Set(windows);
  const parts = [...new Set([...merges.absorbed, ...firstAt.keys()])].sort((a, b) => a - b);
  return parts.filter((window) => inView.has(rootOf(window))).map((window) => {
    if (!firstAt.has(window)) return [window, done.windows.start[window], done.windows.end[window]];
    const rows = recordsByWindow(done)[window];
    const last = rows[searchSorted(rows, firstAt.get(window)) - 1];
    return [window, done.startAfter[last], done.endAfter[last]];
  });
}

// Windows that lie over one another, each in a sub-lane of its lane, from the top; of too many every n-th.
function addSublanes(scene) {
  const { lanes, lengths, done } = scene;
  const { start, slot } = done.windows;
  scene.sublane = new Map();
  scene.sublanes = new Map(); // how many each lane has
  for (const lane of lanes) {
    let mine = scene.windows.filter((window) => slot[window] === lane).sort((a, b) => start[a] - start[b] || a - b);
    const every = Math.ceil(depth(mine.map((window) => start[window]), lengths.size) / MOST_SUBLANES);
    mine = everyNth(mine.map((window) => start[window]), every, lengths).map((at) => mine[at]);
    const places = mine.map((window) => placeOf(start[window], lengths));
    const used = [...new Set(places)].sort((a, b) => a - b);
    mine.forEach((window, n) => scene.sublane.set(window, used.indexOf(places[n])));
    scene.sublanes.set(lane, Math.max(used.length, 1));
  }
}

// How much more grace would have kept a late record that is drawn.
function lackedBy(scene, i) {
  if (scene.done.kind === "session") return missingGrace(scene.records, scene.lengths, i);
  const { records, lengths, done } = scene;
  const first = touchesByRecord(records, done);
  return records.stream[i] - done.lag - (done.touches.start[first[i + 1] - 1] + lengths.size - 1);
}
