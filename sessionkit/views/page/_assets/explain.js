// Why a record did what it did, in the words of run.explain (sessionkit/views/explain, views/words.py).

const PLAIN = {
  11: "was dropped: its key is null. It does not move stream time (Kafka drops it before it looks at the time)",
  12: 'was dropped: it has no time, and the plan says on_bad_time="drop"',
  13: 'was dropped: its time lies before 1970, and the plan says on_bad_time="drop"',
  16: "was dropped: its time lies further ahead of its arrival than max_ahead= allows. It does not move stream time (a rule of sessionkit's own, which Kafka does not have)",
};
const KEPT_AHEAD = `Its time lies further ahead of its arrival than max_ahead= allows: it moves no stream time, as ahead="keep" says (a rule of sessionkit's own, which Kafka does not have).`;
const NAMED_WINDOWS = 3; // so many are named one by one; of more, the first and the last

const lowerFirst = (name) => name[0].toLowerCase() + name.slice(1);

// What explanations need to know: the records, what was decided of them, and how keys and times are said.
class Explainer {
  constructor(records, lengths, done, keys, clock, zone, hasKeys = true) {
    Object.assign(this, { records, lengths, done, keys, clock, zone, hasKeys });
    this.at = clock.show;
  }

  record(i) {
    const code = this.done.decision[i];
    if (code > LATE) return `${this.name(i)} ${PLAIN[code] ?? "was dropped"}.`;
    return (this.done.kind === "session" ? this.ofSession(i) : this.ofWindows(i)).join(" ");
  }

  // The record by its offset and key, as a sentence begins.
  name(i) {
    const { records } = this;
    const label = records.label(i) && `${records.label(i)}, `;
    const partition = records.partitions > 1 ? `partition ${records.partitionNumbers[records.partition[i]]}, ` : "";
    const key = !this.hasKeys ? "" : records.key[i] < 0 ? "no key" : `key ${this.keys[records.key[i]]}`;
    const told = `${label}${partition}${key}`.replace(/, $/, "");
    return `Record ${records.offset[i]}${told && ` (${told})`}`;
  }

  span(start, end) {
    return start === end ? `at ${this.at(start)}` : `${this.at(start)} to ${this.at(end)}`;
  }

  get times() {
    return this.zone ? [`Times are in ${this.zone}.`] : [];
  }

  // ---- sessions

  ofSession(i) {
    const { records, lengths, done, at } = this;
    const [time, stream] = [records.time[i], records.stream[i]];
    const close = stream - done.lag;
    const [gap, grace] = [showDuration(lengths.gap), showDuration(lengths.grace)];
    const words = [`${this.name(i)}, event time ${at(time)}, ${this.decision(i)}.`];
    const line = `sessions that ended before ${at(close)} were closed (${at(stream)} − gap ${gap} − grace ${grace})`;
    if (done.decision[i] === LATE) {
      words.push(`It arrived when stream time was ${at(stream)}, so ${line}.`, this.closedNear(i));
      const missing = missingGrace(records, lengths, i);
      words.push(`It came ${lacked(missing)} too late: with grace ${graceWith(lengths.grace, missing)} instead of ${grace} it would have been kept.`);
    } else {
      const kept = `It was late, ${aboutDuration(close - time)} behind the close line: ${line}. But it was kept, as it touches a session that was still open.`;
      words.push(...(done.decision[i] !== OPENED && time < close ? [kept] : []), ...this.goneNear(i));
    }
    if (time > stream) words.push(KEPT_AHEAD);
    return [...words, this.whoMoved(i), ...this.times];
  }

  // What became of a record, as the end of a sentence that begins with its name.
  decision(i) {
    const { lengths, done, at } = this;
    const gap = showDuration(lengths.gap);
    if (done.decision[i] === LATE) return "was dropped: too late";
    if (done.decision[i] === OPENED) return `opened a new session, as it found none of its key to join within the gap of ${gap}`;
    const [start, end] = [done.startAfter[i], done.endAfter[i]];
    const met = this.met(i);
    if (done.decision[i] === MERGED) {
      const spans = met.map((bounds) => this.span(...bounds)).join(" and ");
      return `is a bridge: it is within the gap of ${gap} of two sessions, ${spans}, which became one, ${this.span(start, end)}`;
    }
    const [before] = met;
    if (before[0] === start && before[1] === end) return `joined the session ${this.span(start, end)}, inside its bounds`;
    const moved = [];
    if (end > before[1]) moved.push(`its end moved from ${at(before[1])} to ${at(end)}`);
    if (start < before[0]) moved.push(`its start moved from ${at(before[0])} to ${at(start)}`);
    return `joined the session ${this.span(...before)}: ${moved.join(", ")}`;
  }

  // The bounds of the sessions that an accepted record joined, oldest first, as they were before it.
  met(i) {
    const { merges, window } = this.done;
    const rows = [window[i]];
    merges.at.forEach((at, n) => at === i && rows.push(merges.absorbed[n]));
    return rows.map((row) => this.boundsBefore(row, i));
  }

  boundsBefore(window, i) {
    const rows = recordsByWindow(this.done)[window];
    const last = rows[searchSorted(rows, i) - 1];
    return [this.done.startAfter[last], this.done.endAfter[last]];
  }

  closedNear(i) {
    const near = this.near(i);
    if (!near) return `No session of its key, open or closed, was within the gap of ${showDuration(this.lengths.gap)}.`;
    return `The session ${this.span(...near)} would have taken it, but was closed already.`;
  }

  goneNear(i) {
    const near = this.near(i);
    if (!near) return [];
    const close = this.records.stream[i] - this.done.lag;
    const { grace } = this.lengths;
    const enough = `with grace ${graceWith(grace, close - near[1])} instead of ${showDuration(grace)} it would have been open`;
    const gone = near[1] < close ? `was closed already: what ended before ${this.at(close)} was; ${enough}` : "the store had forgotten it";
    return [`The session ${this.span(...near)} would have taken it, but ${gone}.`];
  }

  // Bounds of the last other session of its key, open or not, that was within the gap of a record when it came.
  near(i) {
    const { records, lengths, done } = this;
    const { windows, merges } = done;
    const own = new Set([done.window[i], ...merges.absorbed.filter((_, n) => merges.at[n] <= i)]);
    let found = null;
    for (let window = 0; window < windows.slot.length && windows.openedAt[window] < i; window++) {
      if (windows.slot[window] !== records.slot[i] || own.has(window)) continue;
      const [start, end] = this.boundsBefore(window, i);
      if (start > records.time[i] + lengths.gap || end < records.time[i] - lengths.gap) continue;
      if (!found || end > found[1]) found = [start, end];
    }
    return found;
  }

  // The record that had moved stream time to where this one met it, if it is in the page, and stream time before it.
  mover(i) {
    const { records } = this;
    const { rows, stream } = stairs(records)[records.partition[i]];
    const place = searchSorted(stream, records.stream[i]);
    const isHere = records.slot[rows[place]] !== NONE && records.time[rows[place]] === records.stream[i];
    return [isHere ? rows[place] : NONE, stream[place - 1] ?? NONE];
  }

  // Which record had moved stream time to where this one met it, in words.
  whoMoved(i) {
    const { records } = this;
    const stream = records.stream[i];
    if (stream < 0) return "No record had moved stream time yet.";
    const [mover] = this.mover(i);
    if (mover === i) return `It moved stream time to ${this.at(stream)} itself.`;
    const other = "of another key: stream time belongs to the partition";
    if (mover === NONE) {
      return `Stream time had been moved to ${this.at(stream)} by a record that is not in this page, ${other}.`;
    }
    const whose = records.key[mover] === records.key[i] ? "of the same key" : other;
    return `Stream time had been moved to ${this.at(stream)} by ${lowerFirst(this.name(mover))}, ${whose}.`;
  }

  // ---- tumbling and hopping windows

  ofWindows(i) {
    const { records, lengths, done, at } = this;
    const first = touchesByRecord(records, done);
    const [counted, made, missed] = [[], [], missedStarts(records, done, i)];
    for (let touch = first[i]; touch < first[i + 1]; touch++) {
      const window = done.touches.window[touch];
      if (window === NONE) continue;
      counted.push(done.touches.start[touch]);
      if (done.windows.openedAt[window] === i) made.push(done.touches.start[touch]);
    }
    const [time, stream] = [records.time[i], records.stream[i]];
    const close = stream - done.lag;
    const said = counted.length ? `counts in ${plural(counted.length, "window")}: ${this.spans(counted)}` : "was dropped";
    const words = [`${this.name(i)}, event time ${at(time)}, ${said}.`];
    if (made.length && made.length < counted.length) words.push(`It opened ${this.spans(made)}.`);
    else if (made.length) words.push(made.length === 1 ? "It opened it." : "It opened all of them.");
    const grace = showDuration(lengths.grace);
    if (missed.length) {
      const last = missed.map((start) => endOf(start, lengths) - 1);
      const enough = graceWith(lengths.grace, close - Math.min(...last));
      words.push(
        `It came too late for ${plural(missed.length, "window")}, ${this.spans(missed)}: stream time was ${at(stream)}, so ` +
          `windows that ended up to ${at(close)} were closed (− grace ${grace}); with grace ${enough} it would have ` +
          `counted in ${missed.length === 1 ? "it" : "all of them"}.`,
      );
    } else if (time < close) {
      const kept = counted.length === 1 ? "its window was still open" : "its windows were still open";
      words.push(`It was late, ${aboutDuration(close - time)} behind the close line (${at(stream)} − grace ${grace}), but ${kept}.`);
    }
    if (time > stream) words.push(KEPT_AHEAD);
    return [...words, this.whoMoved(i), ...this.times];
  }

  spans(starts) {
    const spans = starts.map((start) => `${this.at(start)} to ${this.at(endOf(start, this.lengths))}`);
    if (spans.length > NAMED_WINDOWS) return `${spans[0]}, …, ${spans.at(-1)}`;
    return spans.length > 1 ? `${spans.slice(0, -1).join(", ")} and ${spans.at(-1)}` : spans[0];
  }

  // ---- a window

  // What a window holds, whether it is final, and what it grew from; `results` are [name, value as text].
  window(row, size, results = []) {
    const { records, done, lengths, at, keys } = this;
    const { windows } = done;
    const noun = done.kind === "session" ? "Session" : "Window";
    const [start, end] = [windows.start[row], windows.end[row]];
    const key = keys[Math.floor(windows.slot[row] / records.partitions)];
    const length = end - start && done.kind === "session" ? `, ${showDuration(end - start)} long` : "";
    const words = [`${noun} of ${key}, ${this.span(start, end)}: ${plural(size, "record")}${length}.`];
    const absorbed = done.merges.into.filter((into) => into === row).length;
    if (absorbed) words.push(`It took in ${absorbed === 1 ? "another session" : `${absorbed} other sessions`}.`);
    const last = lastInstant(lengths, end) + done.lag;
    if (done.isClosed[row]) {
      const by = passedBy(records, windows.slot[row] % records.partitions, last);
      words.push(`It became final when stream time passed ${at(last)}${by < records.count && records.time[by] === records.stream[by] ? `, with ${lowerFirst(this.name(by))}` : ""}.`);
    } else {
      words.push(`It is still open: it becomes final once stream time has passed ${at(last)}, and stream time is ${at(records.lastStream[windows.slot[row] % records.partitions])}.`);
    }
    if (results.length) words.push(`${results.map(([name, value]) => `${name}: ${value}`).join(", ")}.`);
    return [...words, ...this.times].join(" ");
  }
}
