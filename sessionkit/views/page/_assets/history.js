// The records and windows of one key in one partition, and which rows a plane shows of them: as key_rows.py,
// session_history.py and window_history.py in sessionkit/views/scenes have it.

const MOST_ROWS = 120;
const MOST_HELD = 160; // of a stretch that stays while settings change what is telling in it
const BOTTOM = -2; // bodies that go on are drawn to here, in rows beyond the first and the last
const TOP = 0.9;
const FEWEST_ROWS = 40;
const STEPS_OF_THE_LINE = 30;
const MARGIN_ROWS = 3;
const WORTH = {
  drops: [14, 4],
  merges: [8, 4],
  reopened: [8, 4],
  partlyLate: [8, 4],
  lateButKept: [4, 4],
  farDrops: [12, 4],
  opened: [4, 4],
  closes: [7, 4],
  kept: [8, 40],
};
const NEAR = 8; // waits behind the close line up to which a drop can be drawn beside sessions
const ENOUGH_KEPT = 40; // records that a stretch shows, if any has so many
const WALL_COST = 36; // of nothing but drops
const CUT_WINDOW_COST = 5;
const LONG_SILENCE = 1.5;
const SILENCE_COST = 6;

const floorDiv = (a, b) => Math.floor(a / b);

// The least and the greatest of these numbers; (Infinity, -Infinity) if there are none.
const extremes = (numbers) => numbers.reduce(([low, high], each) => [Math.min(low, each), Math.max(high, each)], [Infinity, -Infinity]);

// The starts of the windows that a record came too late for.
function missedStarts(records, done, i) {
  const first = touchesByRecord(records, done);
  return [...done.touches.start.subarray(first[i], first[i + 1])].filter((_, n) => done.touches.window[first[i] + n] === NONE);
}

// How many of these windows lie over one another at most; 1 if there are none.
function depth(starts, lengths) {
  const sorted = Float64Array.from(starts).sort();
  let most = 1;
  sorted.forEach((start, at) => (most = Math.max(most, searchSorted(sorted, endOf(start, lengths)) - at)));
  return most;
}

// The records of each session, before and after it took in others.
function recordsByWindow(done) {
  if (done.byWindow) return done.byWindow;
  const found = (done.byWindow = done.windows.start.map(() => []));
  for (let i = 0; i < done.window.length; i++) if (done.window[i] !== NONE) found[done.window[i]].push(i);
  return found;
}

// The touches of each record: from `first[i]` up to `first[i + 1]`.
function touchesByRecord(records, done) {
  if (done.firstTouch) return done.firstTouch;
  const first = (done.firstTouch = new Int32Array(records.count + 1));
  for (let touch = 0; touch < done.touches.count; touch++) first[done.touches.record[touch] + 1]++;
  for (let i = 0; i < records.count; i++) first[i + 1] += first[i];
  return first;
}

function historyOf(records, lengths, done, key, partition) {
  const slot = key * records.partitions + partition;
  const { windows, closes, decision } = done;
  const ofPartition = stairs(records)[partition].rows;
  const own = ofPartition.filter((i) => records.key[i] === key);
  const timed = own.filter((i) => decision[i] <= LATE);
  const mine = [];
  for (let window = 0; window < windows.slot.length; window++) if (windows.slot[window] === slot) mine.push(window);
  const isMine = new Set(mine);
  const closed = []; // rows of `closes`, oldest first
  for (let row = 0; row < closes.at.length; row++) if (isMine.has(closes.window[row])) closed.push(row);
  closed.sort((a, b) => closes.at[a] - closes.at[b] || closes.end[a] - closes.end[b] || closes.start[a] - closes.start[b]);
  const closures = closed.filter((row) => closes.at[row] < records.count); // by a record of the page
  const late = lateForSome(done);
  const isLateButKept = (i) => decision[i] < LATE && records.time[i] < records.stream[i] - done.lag;
  const history = { records, lengths, done, key, partition, ofPartition, own, timed, windows: mine, closed, closures };
  history.drops = own.filter((i) => decision[i] === LATE);
  if (done.kind === "session") {
    const reopenings = done.reopenings;
    history.merges = own.filter((i) => decision[i] === MERGED);
    history.lateButKept = own.filter((i) => isLateButKept(i) && decision[i] !== MERGED);
    history.plain = own.filter((i) => (decision[i] === OPENED || decision[i] === ADDED) && !isLateButKept(i));
    history.reopened = [...new Set(reopenings.at.filter((_, n) => isMine.has(reopenings.window[n])))].sort((a, b) => a - b);
    history.partlyLate = [];
    const { merges, reopened, lateButKept } = history;
    history.events = { merges, reopened, lateButKept };
    history.wait = done.lag;
    history.overlap = 1;
  } else {
    history.merges = history.reopened = [];
    history.partlyLate = own.filter((i) => late[i] && decision[i] < LATE);
    history.lateButKept = own.filter((i) => isLateButKept(i) && !late[i]);
    history.plain = own.filter((i) => decision[i] < LATE && !late[i] && !isLateButKept(i));
    const { partlyLate, lateButKept } = history;
    history.events = { partlyLate, lateButKept };
    history.wait = lengths.size + done.lag;
    history.overlap = depth(mine.map((window) => windows.start[window]), lengths);
  }
  history.spans = spansOf(history);
  return history;
}

// The lives of each window: [first record, record that ended it, how].
function spansOf({ records, done, windows, closed }) {
  const { closes, merges } = done;
  const spans = new Map(windows.map((window) => [window, []]));
  const begin = new Map(windows.map((window) => [window, done.windows.openedAt[window]]));
  for (const row of closed) {
    const window = closes.window[row];
    spans.get(window).push([begin.get(window), closes.at[row], "closed"]);
    begin.set(window, closes.until[row]);
  }
  const mergedAt = new Map(merges.absorbed.map((window, n) => [window, merges.at[n]]));
  for (const window of windows) {
    const since = begin.get(window);
    if (mergedAt.has(window)) {
      if (since < mergedAt.get(window)) spans.get(window).push([since, mergedAt.get(window), "merged"]);
    } else if (since !== Infinity) {
      spans.get(window).push([since, records.count, "open"]);
    }
  }
  return spans;
}

// ---- which rows

// The records to show: all that fit, or the stretch with most to see; or those between two records, `held`.
function chooseRows(history, held = null) {
  const all = history.ofPartition;
  if (all.length <= MOST_ROWS) return all;
  if (held) {
    const rows = all.slice(searchSorted(all, held[0]), searchSorted(all, held[1], true));
    return rows.length <= MOST_ROWS ? rows : telling(history, rows).slice(0, MOST_HELD);
  }
  const rows = telling(history, all);
  return rows.length <= MOST_ROWS ? rows : mostToSee(history, rows);
}

// So many telling records before (-) or behind (+) those that are shown: the first and the last of them.
function turned(history, rows, step) {
  const all = telling(history, history.ofPartition);
  const at = Math.min(Math.max(searchSorted(all, rows[0]) + step, 0), Math.max(all.length - MOST_ROWS, 0));
  return [all[at], all[Math.min(at + MOST_ROWS, all.length) - 1]];
}

// `rows` without the records of other keys that moved little or nothing.
function telling(history, rows) {
  history.isTelling ??= tellingOf(history);
  return rows.filter((i) => history.isTelling[i]);
}

// 1 for the key's records and the closures of its windows, with as many movers of stream time as it takes to see it
// move: the first of each small step, and the one that had moved it for each record of the key.
function tellingOf({ records, done, own, closures, ofPartition, wait }) {
  const step = Math.max(floorDiv(wait, STEPS_OF_THE_LINE), 1);
  const isTelling = new Uint8Array(records.count);
  const moverOf = new Int32Array(records.count); // the newest mover when a record had come
  let [mover, before, stepBefore] = [NONE, NONE, -Infinity];
  for (const i of ofPartition) {
    if (records.stream[i] > before) {
      const stepNow = floorDiv(records.stream[i], step);
      if (stepNow > stepBefore) isTelling[i] = 1;
      [mover, before, stepBefore] = [i, records.stream[i], stepNow];
    }
    moverOf[i] = mover;
  }
  const tell = (i) => {
    isTelling[i] = 1;
    if (moverOf[i] >= 0) isTelling[moverOf[i]] = 1;
  };
  own.forEach(tell);
  for (const row of closures) tell(done.closes.at[row]);
  return isTelling;
}

// How many of the spans from `first` to `last` (places) lie in each stretch of so many of `count` rows.
function inEachStretch(first, last, count, length) {
  const [begun, ended] = [first, last].map((places) => {
    const seen = new Float64Array(count + 1);
    for (const place of places) seen[place + 1]++;
    for (let at = 0; at < count; at++) seen[at + 1] += seen[at];
    return seen;
  });
  return Array.from({ length: count - length + 1 }, (_, at) => Math.max(ended[at + length] - begun[at], 0));
}

// The records that make a stretch worth showing, by what they did.
function worthSeeing({ records, done, own, drops, closures, spans, events, wait }) {
  const isNear = (i) => records.stream[i] - done.lag - records.time[i] <= NEAR * wait;
  const opened = [...spans.values()].flat().map(([begin]) => begin).filter((begin) => begin >= 0);
  const found = { drops: drops.filter(isNear), farDrops: drops.filter((i) => !isNear(i)), opened };
  const kept = own.filter((i) => done.decision[i] < LATE);
  return { ...events, ...found, closes: closures.map((row) => done.closes.at[row]), kept };
}

function mostToSee(history, rows) {
  const [long, short] = [MOST_ROWS, FEWEST_ROWS].map((length) => ({ ...bestStretch(history, rows, length), length }));
  const { start, length } = short.score > long.score ? short : long;
  return trimmed(history, rows.slice(start, start + length));
}

// What the stretch of so many rows with most to see is worth, and where it begins.
function bestStretch(history, rows, length) {
  const { records, own, drops, overlap, wait } = history;
  const kinds = worthSeeing(history);
  const placesOf = (at) => at.map((i) => searchSorted(rows, i));
  const counted = (at, since = at) => inEachStretch(placesOf(since), placesOf(at), rows.length, length);
  const recordBefore = (at) => at.map((i) => own[searchSorted(own, i) - 1] ?? i); // without it a closure tells little
  const score = new Float64Array(rows.length - length + 1);
  for (const [kind, at] of Object.entries(kinds)) {
    const [worth, enough] = WORTH[kind];
    counted(at, kind === "closes" ? recordBefore(at) : at).forEach((n, start) => (score[start] += worth * (Math.min(n, 1) + Math.min(n, enough) / enough)));
  }
  const dropped = counted(drops);
  counted(own).forEach((n, start) => (score[start] += (Math.min(n, MOST_ROWS / 2) - WALL_COST * dropped[start]) / MOST_ROWS));
  const alive = aliveAt(history, rows);
  const jumps = (at) => at && records.stream[rows[at]] - records.stream[rows[at - 1]] > LONG_SILENCE * wait;
  const silent = counted(rows.filter((_, at) => jumps(at)));
  const kept = counted(kinds.kept);
  const enough = Math.min(ENOUGH_KEPT, kept.reduce((a, b) => Math.max(a, b), 0) / 2);
  let best = { start: 0, score: -Infinity };
  score.forEach((_, start) => {
    score[start] -= (CUT_WINDOW_COST / overlap) * (alive[start] + 0.5 * alive[start + length - 1]);
    score[start] -= SILENCE_COST * silent[start];
    if (kept[start] >= enough && score[start] > best.score) best = { start, score: score[start] };
  });
  return best;
}

// How many windows of the key live on from before each of `rows`.
function aliveAt({ windows, spans }, rows) {
  const change = new Float64Array(rows.length + 1);
  for (const window of windows) {
    for (const [begin, end] of spans.get(window)) {
      change[Math.min(searchSorted(rows, begin) + 1, rows.length)]++;
      change[searchSorted(rows, end)]--;
    }
  }
  let now = 0;
  return Array.from(rows, (_, at) => Math.max((now += change[at]), 0));
}

// `rows` without a long stretch at either end in which nothing of the key happens.
function trimmed({ records, done, key, closures }, rows) {
  const shown = new Set(rows);
  const own = rows.map((_, at) => at).filter((at) => records.key[rows[at]] === key);
  const ends = [...new Set(closures.map((row) => done.closes.at[row]).filter((at) => shown.has(at)))]
    .map((at) => searchSorted(rows, at))
    .sort((a, b) => a - b);
  if (!own.length) return rows;
  const before = ends.filter((end) => end < own[0]); // a cap on the first row would have no body below it
  const start = Math.max(own[0] - MARGIN_ROWS, before.length ? before.at(-1) + 1 : 0);
  const stop = Math.max(own.at(-1), ends.length ? ends.at(-1) : 0) + MARGIN_ROWS + 1;
  return rows.slice(Math.max(Math.min(start, stop - FEWEST_ROWS), 0), stop);
}

// ---- lives

// [record, start, end] each time that the bounds of a window changed up to record `last`.
function stepsOf({ done }, window, last) {
  const { windows } = done;
  if (done.kind === "time") return [[windows.openedAt[window], windows.start[window], windows.end[window]]];
  const rows = recordsByWindow(done)[window];
  return rows.filter((i) => i <= last).map((i) => [i, done.startAfter[i], done.endAfter[i]]);
}

// The lives of the key's windows as far as they lie within these rows: steps [row, start, end], their end, and how.
function livesOf(history, rows) {
  if (!rows.length) return [];
  const [first, last] = [rows[0], rows.at(-1)];
  const found = [];
  for (const window of history.windows) {
    for (const [begin, end, how] of history.spans.get(window)) {
      if (begin > last || end < first) continue;
      const mine = stepsOf(history, window, last).filter(([i]) => i >= begin && i < end);
      const before = mine.filter(([i]) => i < first).slice(-1).map(([, start, stop]) => [BOTTOM, start, stop]);
      const within = mine.filter(([i]) => i >= first).map(([i, start, stop]) => [searchSorted(rows, i), start, stop]);
      const steps = [...before, ...within];
      const goesOn = end > last;
      const top = goesOn ? rows.length - 1 + TOP : searchSorted(rows, end);
      if (steps.length && top > steps[0][0]) found.push({ window, steps, end: top, how: goesOn && how !== "open" ? "cut" : how });
    }
  }
  return found;
}
