// What the lanes show: which keys, in which order, and the bars, marks and lines of each, as board.py, session_scene.py
// and window_scene.py in sessionkit/views/scenes have it.

const SORTS = ["drops", "merges", "activity", "key"];
const MOST_SUBLANES = 8;

// All lanes: a slot for each key in each partition where it has records, those without a usable time included.
function allLanes({ count, key, partition, partitions }) {
  const found = new Set();
  for (let i = 0; i < count; i++) if (key[i] >= 0) found.add(key[i] * partitions + partition[i]);
  return [...found].sort((a, b) => a - b);
}

// The lanes in the order asked for, within a span; what they have equally often goes by records, then by key.
function ranked(records, done, sort, first, last) {
  const lanes = allLanes(records);
  const late = lateForSome(done);
  const bySlot = rowsBySlot(records);
  const counts = new Map();
  for (const slot of lanes) {
    const count = { drops: 0, merges: 0, activity: 0 };
    for (const i of bySlot[slot] ?? []) {
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

// From the first to the last event time of the lanes' windows and records, of those that reach into a span.
function extentOf(records, done, lanes, from = -Infinity, to = Infinity) {
  const isShown = new Set(lanes);
  let [low, high] = [Infinity, -Infinity];
  const take = (slot, start, end) => {
    if (!isShown.has(slot) || end < from || start > to) return;
    [low, high] = [Math.min(low, start), Math.max(high, end)];
  };
  for (let i = 0; i < records.count; i++) take(records.slot[i], records.time[i], records.time[i]);
  const { slot, start, end } = done.windows;
  for (let window = 0; window < slot.length; window++) take(slot[window], start[window], end[window]);
  return low <= high ? [Math.max(low, from), Math.min(high, to)] : [0, 0];
}

// The first and last of the times that do not lie far off all others, and how many do; as usual_span in
// sessionkit/records/time_statistics.py has it.
function usualSpan(records) {
  if (records.usual) return records.usual;
  const times = Float64Array.from(records.time).filter((_, i) => records.slot[i] !== NONE).sort();
  const end = times.length - 1;
  const few = Math.floor(0.01 * times.length);
  let [low, high] = [0, end];
  for (let i = 1; i <= few; i++) {
    const rest = times[end - few] - times[i];
    if (rest > 0 && times[i] - times[i - 1] > 3 * rest) low = i;
  }
  for (let i = end - 1; i >= end - few; i--) {
    const rest = times[i] - times[few];
    if (rest > 0 && times[i + 1] - times[i] > 3 * rest) high = i;
  }
  records.usual = { first: low ? times[low] : 0, last: high < end ? times[high] : Infinity, outside: low + end - high };
  return records.usual;
}

// The lanes (slots, top first) over a span: windows, records, drops, and the two clocks.
function lanesScene(records, lengths, done, lanes, first, last) {
  const height = new Map(lanes.map((slot, n) => [slot, lanes.length - 1 - n]));
  const { windows } = done;
  const scene = { records, lengths, done, lanes, first, last, height, windows: [], records_: [] };
  for (let window = 0; window < windows.slot.length; window++) {
    if (!isStanding(done, window)) continue;
    if (windows.end[window] < first || windows.start[window] > last || !height.has(windows.slot[window])) continue;
    scene.windows.push(window);
  }
  scene.open = scene.windows.filter((window) => !done.isClosed[window]);
  scene.closed = scene.windows.filter((window) => done.isClosed[window]);
  const bySlot = rowsBySlot(records);
  scene.shown = lanes.flatMap((slot) => (bySlot[slot] ?? []).filter((i) => records.time[i] >= first && records.time[i] <= last));
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
  if (!moreAfter && scene.streamTime <= usualSpan(scene.records).last) high = Math.max(high, scene.streamTime ?? high);
  const room = Math.max(floorDiv(high - low, 28), 1);
  return [low - room, high + room];
}

// [window, start, end] of the sessions that those in view were merged from, before their first merge.
function formerOf({ done, windows }) {
  const { merges } = done;
  const firstAt = new Map();
  merges.into.forEach((into, n) => firstAt.has(into) || firstAt.set(into, merges.at[n]));
  const inView = new Set(windows);
  const parts = [...new Set([...merges.absorbed, ...firstAt.keys()])].sort((a, b) => a - b);
  return parts.filter((window) => inView.has(rootOf(done, window))).map((window) => {
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
    const every = Math.ceil(depth(mine.map((window) => start[window]), lengths) / MOST_SUBLANES);
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
  return records.stream[i] - done.lag - (endOf(done.touches.start[first[i + 1] - 1], lengths) - 1);
}

// ---- the part with the most to see

const ROOMY_WINDOWS = 8; // windows a lane that can be told apart
const LENGTHS = 24; // windows that cannot grow, side by side
const SPANS = [
  ...[1, 10, 100],
  ...[1, 5, 15].map((count) => count * SECOND),
  ...[1, 5, 15].map((count) => count * MINUTE),
  ...[1, 3, 6, 12].map((count) => count * HOUR),
  ...[1, 2, 7, 14, 28, 91, 364].map((count) => count * DAY),
];

// The usual extent where it can be read, else the day (or hour, …) with most drops, merges and rescues.
function mostEventful(records, lengths, done, lanes, clock) {
  const usual = usualSpan(records);
  let [first, last] = extentOf(records, done, lanes);
  [first, last] = [Math.max(first, Math.min(usual.first, last)), Math.min(last, Math.max(usual.last, first))];
  const standing = done.windows.start.filter((_, window) => isStanding(done, window)).length;
  const readable = ROOMY_WINDOWS * lanes.length;
  if (standing <= readable) return [first, last];
  const longest = done.kind === "session" ? 0 : lengths.size;
  const wanted = Math.max(floorDiv((last - first) * readable, standing), LENGTHS * longest);
  if (wanted >= last - first) return [first, last];
  const span = SPANS.filter((each) => each <= wanted).at(-1) ?? Math.max(wanted, 1);
  const cellOf = (time) => floorDiv(clock.local(time), span);
  const late = lateForSome(done);
  const counts = new Map(); // of each cell: drops, merges, rescues, kept
  for (let i = 0; i < records.count; i++) {
    if (records.slot[i] === NONE || records.time[i] < first || records.time[i] > last) continue;
    const cell = cellOf(records.time[i]);
    if (!counts.has(cell)) counts.set(cell, [0, 0, 0, 0]);
    const count = counts.get(cell);
    if (late[i]) count[0]++;
    if (done.decision[i] === MERGED) count[1]++;
    if (done.decision[i] < LATE && records.time[i] < records.stream[i] - done.lag) count[2]++;
    if (done.decision[i] < LATE) count[3]++;
  }
  const cells = [...counts.keys()].sort((a, b) => a - b);
  const enough = Math.min(ENOUGH_KEPT, cells.reduce((most, cell) => Math.max(most, counts.get(cell)[3]), 0) / 2);
  const worth = (cell) => {
    const [drops, merges, rescues, kept] = counts.get(cell);
    if (kept < enough) return -Infinity;
    return 2 * Math.sqrt(drops) + 6 * Math.sqrt(merges) + Math.sqrt(rescues) + 0.1 * Math.sqrt(kept) + (drops ? 6 : 0);
  };
  let best = cells[0];
  for (const cell of cells) if (worth(cell) > worth(best)) best = cell;
  return extentOf(records, done, lanes, clock.firstAt(best * span), clock.lastAt((best + 1) * span - 1));
}
