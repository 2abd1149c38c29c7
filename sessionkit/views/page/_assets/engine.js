// Decides every record, one after the other, under sessionkit's rules: which window it opens, joins or bridges, and
// which came too late. These are the steps of SessionProcessor (sessionkit/windows/session.py) and TimeProcessor
// (hopping.py), with arrays instead of a store. Times and lengths are whole milliseconds below 2**53: plain numbers.

const OPENED = 1;
const ADDED = 2;
const MERGED = 3;
const LATE = 10; // and what is above: why a record was dropped before any window was looked at
const NONE = -1;
const MOST_TOUCHES = 5_000_000; // of windows by records: 80 MB

// THE late rules: a session's end belongs to it, that of a window of fixed length does not.
const sessionIsLate = (mergedEnd, closeTime) => mergedEnd < closeTime;
const windowIsLate = (end, closeTime) => end <= closeTime;

// What is subtracted from stream time to get the close time.
const closeLag = (lengths) => (lengths.kind === "session" ? lengths.gap + lengths.grace : lengths.grace);

// The last time that lies in a window which ends then.
const lastInstant = (lengths, end) => (lengths.kind === "session" ? end : end - 1);

// Refuses lengths that windows cannot have, or with which numbers would not be exact.
function checkLengths(lengths, latest) {
  const known = lengths.kind === "session" ? ["gap", "grace"] : ["size", "advance", "grace"];
  let reach = latest;
  for (const name of known) {
    const length = lengths[name];
    if (!Number.isSafeInteger(length) || length < 0) throw new RangeError(`${name} must be whole milliseconds, 0 or more`);
    reach += length;
  }
  if (!Number.isSafeInteger(reach)) throw new RangeError("with such lengths, times would pass 2^53 ms");
  if (lengths.kind === "session") return;
  if (lengths.size === 0) throw new RangeError("size must be more than 0");
  if (lengths.advance === 0 || lengths.advance > lengths.size) {
    throw new RangeError("advance must be more than 0 and at most the size");
  }
  if (lengths.offset >= lengths.advance) throw new RangeError("advance must be more than the offset of the windows");
}

// All that was decided of `records` under windows of these lengths.
function decide(records, lengths) {
  checkLengths(lengths, Math.max(0, ...records.lastStream));
  const done = lengths.kind === "session" ? decideSessions(records, lengths) : decideWindows(records, lengths);
  closeWindows(records, lengths, done);
  return done;
}

// ---- sessions

// The place of the first of `sessions`, which go by start, that starts after a time.
function placeAfter(sessions, start, time) {
  let high = sessions.length;
  if (!high || start[sessions[high - 1]] <= time) return high; // as nearly always
  let low = 0;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (start[sessions[middle]] <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}

function decideSessions(records, lengths) {
  const { gap, grace } = lengths;
  const retention = Math.max(lengths.retention ?? 0, gap + grace);
  const { count, time, stream, slot } = records;
  const decision = new Uint8Array(count);
  const window = new Int32Array(count).fill(NONE);
  const startAfter = new Float64Array(count).fill(NONE); // bounds of its session once the record is in it
  const endAfter = new Float64Array(count).fill(NONE);
  const windows = { slot: [], start: [], end: [], openedAt: [], mergedInto: [] };
  const merges = { at: [], into: [], absorbed: [] };
  const reopenings = { at: [], window: [], start: [], end: [] };
  const { start, end } = windows;
  const stored = []; // for each slot its sessions that can be found, by start; they lie further apart than the gap

  for (let i = 0; i < count; i++) {
    if (slot[i] === NONE) {
      decision[i] = records.reason[i];
      continue;
    }
    const t = time[i];
    const closeTime = stream[i] - grace - gap;
    const sessions = (stored[slot[i]] ??= []);
    let forgotten = 0;
    while (forgotten < sessions.length && end[sessions[forgotten]] < stream[i] - retention) forgotten++;
    if (forgotten) sessions.splice(0, forgotten);

    // those that the record is within the gap of: none, one, or two that it joins
    const after = placeAfter(sessions, start, t + gap);
    let first = after;
    while (first > 0 && end[sessions[first - 1]] >= t - gap) first--;
    let mergedStart = t;
    let mergedEnd = t;
    for (let place = first; place < after; place++) {
      mergedStart = Math.min(mergedStart, start[sessions[place]]);
      mergedEnd = Math.max(mergedEnd, end[sessions[place]]);
    }
    if (sessionIsLate(mergedEnd, closeTime)) {
      decision[i] = LATE;
      continue;
    }

    let row = sessions[first];
    if (first === after) {
      decision[i] = OPENED;
      row = start.length;
      windows.slot.push(slot[i]);
      windows.openedAt.push(i);
      windows.mergedInto.push(NONE);
      sessions.splice(first, 0, row);
    } else {
      decision[i] = after - first === 1 ? ADDED : MERGED;
      for (let place = first; place < after; place++) {
        const met = sessions[place];
        if (end[met] < closeTime) {
          reopenings.at.push(i);
          reopenings.window.push(met);
          reopenings.start.push(start[met]);
          reopenings.end.push(end[met]);
        }
        if (place === first) continue;
        merges.at.push(i);
        merges.into.push(row);
        merges.absorbed.push(met);
        windows.mergedInto[met] = row;
      }
      sessions.splice(first + 1, after - first - 1);
    }
    start[row] = startAfter[i] = mergedStart;
    end[row] = endAfter[i] = mergedEnd;
    window[i] = row;
  }
  return { kind: "session", decision, window, startAfter, endAfter, windows, merges, reopenings };
}

// ---- tumbling and hopping windows

// Where the oldest window that a time is in starts: no window below 0, that of a calendar at one of its bounds.
function firstStart(time, { size, advance, offset = 0, bounds }) {
  if (bounds) return bounds[searchSorted(bounds, time, true) - 1];
  const least = Math.max(0, time - size + advance - offset);
  return offset + least - (least % advance);
}

// Where the window that starts then ends.
const endOf = (start, { size, bounds }) => (bounds ? bounds[searchSorted(bounds, start, true)] : start + size);

function decideWindows(records, lengths) {
  const { size, advance, grace } = lengths;
  const { count, time, stream, slot } = records;
  const most = count * Math.ceil(size / advance);
  if (most > MOST_TOUCHES) {
    throw new RangeError(`each record would be in ${Math.ceil(size / advance).toLocaleString("en-US")} windows: choose a longer advance`);
  }
  const decision = new Uint8Array(count);
  const windows = { slot: [], start: [], end: [], openedAt: [], newest: [], size: [] };
  const touches = { record: new Int32Array(most), window: new Int32Array(most), start: new Float64Array(most), count: 0 };
  const stored = []; // for each slot its windows by start

  for (let i = 0; i < count; i++) {
    if (slot[i] === NONE) {
      decision[i] = records.reason[i];
      continue;
    }
    const closeTime = stream[i] - grace;
    const found = (stored[slot[i]] ??= new Map());
    let decided = LATE;
    if (lengths.offset && time[i] < size) throw new RangeError("size must be less than the first time: with an offset, no window is cut at 1970");
    for (let start = firstStart(time[i], lengths); start <= time[i]; start += advance) {
      const touch = touches.count++;
      touches.record[touch] = i;
      touches.start[touch] = start;
      touches.window[touch] = NONE;
      const end = endOf(start, lengths);
      if (windowIsLate(end, closeTime)) continue;
      let row = found.get(start);
      if (row === undefined) {
        row = windows.start.length;
        found.set(start, row);
        windows.slot.push(slot[i]);
        windows.start.push(start);
        windows.end.push(end);
        windows.openedAt.push(i);
        windows.newest.push(time[i]);
        windows.size.push(0);
        decided = OPENED;
      } else if (decided === LATE) {
        decided = ADDED;
      }
      touches.window[touch] = row;
      windows.newest[row] = Math.max(windows.newest[row], time[i]);
      windows.size[row]++;
    }
    decision[i] = decided;
  }
  return { kind: "time", decision, windows, touches, merges: { at: [], into: [], absorbed: [] } };
}

// ---- what is final

// Where a value would stand among numbers in rising order: before equal ones, or (`right`) behind them.
function searchSorted(numbers, value, right = false) {
  let low = 0;
  let high = numbers.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] < value || (right && numbers[middle] === value)) low = middle + 1;
    else high = middle;
  }
  return low;
}

// For each partition its records, and the stream time at each of them.
function stairs(records) {
  if (records.stairs) return records.stairs;
  const found = (records.stairs = records.lastStream.map(() => ({ rows: [], stream: [] })));
  for (let i = 0; i < records.count; i++) {
    const mine = found[records.partition[i]];
    mine.rows.push(i);
    mine.stream.push(records.stream[i]);
  }
  return found;
}

// The first record of the partition at which stream time has passed a time; `count` if none in the page does.
function passedBy(records, partition, lastOpen) {
  const { rows, stream } = stairs(records)[partition];
  return rows[searchSorted(stream, lastOpen, true)] ?? records.count;
}

// Marks what stream time has closed, and notes each closure: of which record, with which bounds, until when.
function closeWindows(records, lengths, done) {
  const { windows } = done;
  const lag = closeLag(lengths);
  const isClosed = new Uint8Array(windows.start.length);
  const closes = { at: [], window: [], start: [], end: [], until: [] };
  const note = (window, start, end, until) => {
    const partition = windows.slot[window] % records.partitions;
    const lastOpen = lastInstant(lengths, end) + lag;
    if (records.lastStream[partition] <= lastOpen) return;
    if (until === Infinity) isClosed[window] = 1;
    closes.at.push(passedBy(records, partition, lastOpen));
    closes.window.push(window);
    closes.start.push(start);
    closes.end.push(end);
    closes.until.push(until);
  };
  const { reopenings } = done;
  for (let n = 0; n < (reopenings?.at.length ?? 0); n++) {
    note(reopenings.window[n], reopenings.start[n], reopenings.end[n], reopenings.at[n]);
  }
  for (let window = 0; window < windows.start.length; window++) {
    if (isStanding(done, window)) note(window, windows.start[window], windows.end[window], Infinity);
  }
  done.isClosed = isClosed;
  done.closes = closes;
  done.lag = lag;
}

// Whether no other session absorbed a window.
const isStanding = ({ windows: { mergedInto } }, window) => !mergedInto || mergedInto[window] === NONE;

// The session that a session became a part of in the end.
function rootOf({ windows: { mergedInto } }, window) {
  while (mergedInto[window] !== NONE) window = mergedInto[window];
  return window;
}

// ---- what windows hold

// Calls `add(window, record)` for each record in each window that it counts in, and `join(into, absorbed)` where two
// sessions become one, in the order of arrival.
function replay(done, add, join) {
  if (done.kind === "time") {
    const { record, window, count } = done.touches;
    for (let touch = 0; touch < count; touch++) if (window[touch] !== NONE) add(window[touch], record[touch]);
    return;
  }
  let merge = 0;
  const { at, into, absorbed } = done.merges;
  for (let i = 0; i < done.window.length; i++) {
    for (; at[merge] === i; merge++) join(into[merge], absorbed[merge]);
    if (done.window[i] !== NONE) add(done.window[i], i);
  }
}

// How many records each window holds; what was absorbed counts in what absorbed it.
function sizesOf(done) {
  if (done.kind === "time") return done.windows.size;
  if (done.sizes) return done.sizes;
  const size = (done.sizes = new Array(done.windows.start.length).fill(0));
  replay(done, (window) => size[window]++, (into, absorbed) => (size[into] += size[absorbed]));
  return size;
}

// One result for each window, null where there is no value: "count", "sum", "min", "max" or "mean" of a column.
// A value that is missing is null in the column and counts nowhere but in "count".
function resultsOf(done, what, column) {
  if (what === "count") return sizesOf(done);
  const total = new Array(done.windows.start.length).fill(what === "sum" || what === "mean" ? 0 : null);
  const count = new Array(total.length).fill(0);
  const two = { sum: (a, b) => a + b, mean: (a, b) => a + b, min: Math.min, max: Math.max }[what];
  const put = (window, value) => (total[window] = total[window] === null ? value : two(total[window], value));
  replay(
    done,
    (window, record) => {
      if (column[record] === null) return;
      put(window, column[record]);
      count[window]++;
    },
    (into, absorbed) => {
      if (total[absorbed] !== null) put(into, total[absorbed]);
      count[into] += count[absorbed];
    },
  );
  return what === "mean" ? total.map((sum, window) => (count[window] ? sum / count[window] : null)) : total;
}

// The numbers of a run.
function countsOf(records, done) {
  const found = { windows: 0, closed: 0, open: 0, merges: done.merges.at.length, dropped: 0, partly: 0, kept: 0, usable: 0 };
  for (let window = 0; window < done.windows.start.length; window++) {
    if (!isStanding(done, window)) continue;
    found.windows++;
    found[done.isClosed[window] ? "closed" : "open"]++;
  }
  const late = lateForSome(done);
  for (let i = 0; i < records.count; i++) {
    if (records.slot[i] === NONE) continue;
    found.usable++;
    if (done.decision[i] === LATE) found.dropped++;
    else if (late[i]) found.partly++;
    else if (records.time[i] < records.stream[i] - done.lag) found.kept++;
  }
  return found;
}

// 1 for each record that came too late for a window, even if it counts in others.
function lateForSome(done) {
  if (done.late) return done.late;
  const late = (done.late = new Uint8Array(done.decision.length));
  for (let i = 0; i < late.length; i++) late[i] = done.decision[i] === LATE ? 1 : 0;
  for (let touch = 0; touch < (done.touches?.count ?? 0); touch++) {
    if (done.touches.window[touch] === NONE) late[done.touches.record[touch]] = 1;
  }
  return late;
}

// ---- the grace that a dropped record lacked

// How much more grace would have kept a late record of a session run, exactly: with 1 ms less it is still dropped.
// Found by deciding anew what its key had seen, under other graces: more grace never drops what less kept.
function missingGrace(records, lengths, row) {
  const near = chainOf(records, lengths.gap, row);
  const last = near.length - 1;
  const part = {
    count: near.length,
    time: near.map((i) => records.time[i]),
    stream: near.map((i) => records.stream[i]),
    slot: new Int32Array(near.length),
    reason: new Uint8Array(near.length),
  };
  const kept = (grace) => decideSessions(part, { ...lengths, grace }).decision[last] < LATE;
  let dropped = lengths.grace;
  let enough = records.stream[row] - lengths.gap - records.time[row]; // with this it is not late even if it stays alone
  if (!last || !kept(enough - 1)) return enough - lengths.grace; // no session would have taken it in: the usual case
  enough--;
  while (enough - dropped > 1) {
    const middle = dropped + Math.floor((enough - dropped) / 2);
    if (kept(middle)) enough = middle;
    else dropped = middle;
  }
  return enough - lengths.grace;
}

// For each slot its records, in the order of arrival.
function rowsBySlot(records) {
  if (records.bySlot) return records.bySlot;
  const found = (records.bySlot = []);
  for (let i = 0; i < records.count; i++) if (records.slot[i] !== NONE) (found[records.slot[i]] ??= []).push(i);
  return found;
}

// The records of its key up to `row` that can meet it over others, whatever the grace: no further apart than the gap.
function chainOf(records, gap, row) {
  const { time, slot } = records;
  const byTime = ((records.byTime ??= [])[slot[row]] ??= Float64Array.from(rowsBySlot(records)[slot[row]]).sort(
    (a, b) => time[a] - time[b] || a - b,
  ));
  let low = byTime.indexOf(row);
  let high = low;
  while (low > 0 && time[byTime[low]] - time[byTime[low - 1]] <= gap) low--;
  while (high + 1 < byTime.length && time[byTime[high + 1]] - time[byTime[high]] <= gap) high++;
  return Array.from(byTime.subarray(low, high + 1)).filter((i) => i <= row).sort((a, b) => a - b);
}
