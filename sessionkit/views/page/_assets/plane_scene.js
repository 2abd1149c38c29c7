// What a plane shows of one key, as lines and polygons in (event time, row): as sessionkit/views/scenes has it.

const MOST_REASONS = 300; // drops whose missing grace is worked out: each costs a replay
const MOST_LAYERS = 6; // of bodies over one another; of more only the foot and the end are drawn
const FAR = 4; // times as wide as the rest: a drop that would make the picture wider stands at its edge
const MANY_TETHERS = 12; // more tethers of drops that follow so closely are drawn as one area
const ROWS_APART = 3;
const MOST_OVER = 40; // windows over one another that a plane draws

// Many lines or polygons, parted by null.
class Outline {
  constructor() {
    this.x = [];
    this.y = [];
  }

  add(x, y) {
    this.x.push(...x, null);
    this.y.push(...y, null);
    return this;
  }
}

// Outline of something that has the bounds [row, start, end] from each step's row on, up to the row `end`.
function growing(steps, end, pad = 0) {
  const [left, right, y] = [[], [], []];
  steps.forEach(([row, from, to], n) => {
    const until = n + 1 < steps.length ? steps[n + 1][0] : end;
    left.push(from - pad, from - pad);
    right.push(to + pad, to + pad);
    y.push(row, until);
  });
  return [[...left, ...right.reverse(), left[0]], [...y, ...y.slice().reverse(), y[0]]];
}

// Corners of a stair that has `values[i]` from row `first + i` on, and the last value up to `end`.
function stair(values, first, end) {
  const line = new Outline();
  if (!values.length) return line;
  line.x.push(values[0]);
  line.y.push(first);
  for (let i = 1; i < values.length; i++) {
    if (values[i] === values[i - 1]) continue;
    line.x.push(values[i - 1], values[i]);
    line.y.push(first + i, first + i);
  }
  line.x.push(values.at(-1));
  line.y.push(end);
  return line;
}

// A place for each window, by its start offset, so that no two in one place overlap.
const placeOf = (start, { size, advance, offset = 0, bounds }) => (bounds ? 0 : ((start - offset) / advance) % Math.ceil(size / advance));

// Positions of every n-th window, by start offset.
const everyNth = (starts, every, { advance, offset = 0 }) => starts.flatMap((start, at) => (every === 1 || ((start - offset) / advance) % every === 0 ? [at] : []));

function planeScene(history, rows) {
  const { records, lengths, done } = history;
  const isShown = new Set(rows);
  const shown = (own) => own.filter((i) => isShown.has(i));
  const y = (i) => searchSorted(rows, i);
  const top = rows.length - 1 + TOP;
  const scene = { history, rows, top, y };
  const stream = rows.map((i) => records.stream[i]);
  const begun = stream.findIndex((time) => time >= 0);
  const since = begun < 0 ? rows.length : begun; // there is no stream time before the first usable record
  scene.streamLine = stair(stream.slice(since), since, top);
  scene.closeLine = stair(stream.slice(since).map((time) => time - done.lag), since, top);
  scene.drops = shown(history.drops);
  scene.merges = shown(history.merges);
  scene.lateButKept = shown(history.lateButKept);
  scene.partlyLate = shown(history.partlyLate);
  scene.reopened = shown(history.reopened);
  scene.plain = shown(history.plain);
  scene.timed = shown(history.timed);
  scene.others = rows.filter((i) => records.key[i] !== history.key && done.decision[i] <= LATE);
  scene.lives = livesOf(history, rows);
  const { closes } = done;
  scene.caps = history.closures
    .filter((row) => rows.length && closes.at[row] >= rows[0] && closes.at[row] <= rows.at(-1))
    .map((row) => ({ window: closes.window[row], at: closes.at[row], start: closes.start[row], end: closes.end[row], until: closes.until[row] }));
  (done.kind === "session" ? addSessions : addWindows)(scene);
  return scene;
}

// From the first to the last of these times, and such a part of that more, or `least`.
function spanOf(times, part, least) {
  const [low, high] = extremes(times);
  const room = Math.max(floorDiv(high - low, part), least, 1);
  return [low - room, high + room];
}

function clockTimes({ history: { records }, rows }) {
  return [Math.max(records.stream[rows[0]], 0), Math.max(records.stream[rows.at(-1)], 0)];
}

// What late records need: those whose tethers are many and close are crowds, each drawn as one area (`bands`); drops far
// back stand at the edge; `at` is where a record stands.
function addLate(scene, late, reached, least) {
  const { history, rows, y } = scene;
  const { records, done } = history;
  const parts = [];
  late.forEach((i, n) => (n && y(i) - y(late[n - 1]) <= ROWS_APART ? parts.at(-1).push(i) : parts.push([i])));
  scene.crowds = parts.filter((part) => part.length > MANY_TETHERS);
  const crowded = new Set(scene.crowds.flat());
  scene.isAlone = (i) => !crowded.has(i);
  const isDrop = new Set(scene.drops);
  const kept = scene.timed.filter((i) => !isDrop.has(i)).map((i) => records.time[i]);
  const rest = [...clockTimes(scene), ...kept, ...reached];
  const [low, high] = extremes(rest);
  const limit = kept.length || scene.lives.length ? low - FAR * (high - low) : -1;
  scene.far = new Set(scene.drops.filter((i) => records.time[i] < limit));
  const near = scene.drops.filter((i) => !scene.far.has(i)).map((i) => records.time[i]);
  scene.xRange = spanOf([low, high, ...near], 30, least);
  const edge = scene.xRange[0] + floorDiv(extremes([low, ...near])[0] - scene.xRange[0], 2);
  scene.at = (i) => (scene.far.has(i) ? edge : records.time[i]);
  scene.bands = new Outline();
  for (const crowd of scene.crowds) {
    const [heights, close] = [crowd.map(y), crowd.map((i) => records.stream[i] - done.lag)];
    scene.bands.add([...crowd.map(scene.at), ...close.reverse()], [...heights, ...heights.slice().reverse()]);
  }
}

function addSessions(scene) {
  const { history, rows, y } = scene;
  const { records, lengths, done } = history;
  scene.bodies = new Outline();
  scene.reach = new Outline();
  for (const { steps, end } of scene.lives) {
    scene.bodies.add(...growing(steps, end));
    scene.reach.add(...growing(steps, end, lengths.gap));
  }
  scene.bars = new Outline();
  for (const i of scene.merges) scene.bars.add([done.startAfter[i], done.endAfter[i]], [y(i), y(i)]);
  scene.missing = new Map(scene.drops.slice(0, MOST_REASONS).map((i) => [i, missingGrace(records, lengths, i)]));
  const reached = scene.lives.flatMap(({ steps }) => steps.flatMap(([, start, end]) => [start - lengths.gap, end + lengths.gap]));
  addLate(scene, scene.drops, reached, 1);
  scene.away = new Outline();
  scene.lacking = new Outline();
  for (const [i, missing] of scene.missing) {
    if (!scene.isAlone(i)) continue;
    const line = records.stream[i] - done.lag;
    scene.away.add([records.time[i], line - missing], [y(i), y(i)]);
    scene.lacking.add([line - missing, line], [y(i), y(i)]);
  }
  scene.retained = new Outline(); // from a cap to the record that re-opened its session, if one did
  for (const cap of scene.caps) {
    if (cap.until === Infinity || cap.until < rows[0]) continue;
    const [low, high] = [y(Math.max(cap.at, rows[0])), Math.min(y(cap.until), scene.top)];
    for (const edge of [cap.start, cap.end]) scene.retained.add([edge, edge], [low, high]);
  }
}

function addWindows(scene) {
  const { history, y } = scene;
  const { records, lengths, done } = history;
  const all = scene.lives;
  const starts = all.map(({ steps }) => steps[0][1]);
  scene.every = Math.ceil(depth(starts, lengths) / MOST_OVER);
  scene.allLives = all.length;
  scene.lives = everyNth(starts, scene.every, lengths).map((at) => all[at]).sort((a, b) => a.steps[0][1] - b.steps[0][1]);
  const drawn = new Set(scene.lives.map(({ window }) => window));
  scene.caps = scene.caps.filter(({ window }) => drawn.has(window));
  const kept = scene.lives.map(({ steps }) => steps[0][1]);
  scene.deep = depth(kept, lengths);
  const places = kept.map((start) => placeOf(start, lengths));
  scene.layers = Array.from({ length: Math.max(0, ...places) + 1 }, () => new Outline());
  scene.feet = new Outline();
  scene.lives.forEach(({ steps, end }, n) => {
    scene.layers[places[n]].add(...growing(steps, end));
    const [row, start, stop] = steps[0];
    scene.feet.add([start, stop, stop], [row, row, end]);
  });
  const late = [...scene.drops, ...scene.partlyLate].sort((a, b) => a - b);
  const reached = scene.lives.flatMap(({ steps: [[, start, end]] }) => [start, end]);
  addLate(scene, late, reached, floorDiv(lengths.size, 30));
  scene.away = new Outline();
  scene.lacking = new Outline();
  scene.missing = new Map(); // of each late record: the least and the most grace that it lacked
  scene.missedEnds = [];
  for (const i of scene.timed) {
    const missed = missedStarts(records, done, i).map((start) => endOf(start, lengths) - 1);
    if (!missed.length) continue;
    const close = records.stream[i] - done.lag;
    scene.missing.set(i, [close - missed.at(-1), close - missed[0]]);
    scene.missedEnds.push(...missed.map((end) => ({ record: i, end })));
    if (!scene.isAlone(i)) continue;
    scene.away.add([records.time[i], missed[0]], [y(i), y(i)]);
    scene.lacking.add([missed[0], close], [y(i), y(i)]);
  }
}

// How many records a window held when it was closed.
function heldAt({ history: { done } }, cap, sizes) {
  if (cap.until === Infinity || done.kind === "time") return sizes[cap.window];
  const own = recordsByWindow(done)[cap.window].filter((i) => i < cap.at).length;
  const { merges } = done;
  return merges.into.reduce((sum, into, n) => sum + (into === cap.window && merges.at[n] < cap.at ? sizes[merges.absorbed[n]] : 0), own);
}
