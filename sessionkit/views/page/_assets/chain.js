// The chain of a decision: the record, the close line, stream time, and the record that moved it; in the words and with
// the lines of sessionkit/views/explain/figure.py, under the lengths of the sliders.

const LONGEST_NAME = 40; // of a record in a row of the chain
const CHAIN_ROWS = ["record", "close", "stream", "mover"];

// What the chain shows: a sentence for each of CHAIN_ROWS, lines [row, from, to, kind, is it upright], and marks.
function decisionChain(explainer, i, isWhole) {
  const { records, lengths, done, at } = explainer;
  const [stream, isLate] = [records.stream[i], lateForSome(done)[i] === 1];
  const close = stream - done.lag;
  const name = cut(explainer.name(i), LONGEST_NAME);
  const [said, lines] = [[`${name} was kept`], []];
  if (isLate) {
    const missed = done.touches ? missedStarts(records, done, i) : [];
    const ends = missed.map((start) => endOf(start, lengths));
    const missing = ends.length ? close - (ends[0] - 1) : missingGrace(records, lengths, i);
    said[0] = `${name} came ${ends.length > 1 ? "up to " : ""}${lacked(missing)} too late${ends.length ? ` for ${plural(ends.length, "window")}` : ""}`;
    const meets = ends.length ? [missed[0], ends.at(-1)] : [records.time[i], close - missing].sort((a, b) => a - b);
    lines.push(["record", close - missing, close, "lacking"], ["record", ...meets, ends.length ? "missed" : "away"]);
  } else if (records.time[i] < close) said[0] += ": it is behind the close line, but its window was still open";
  const lag = `${done.kind === "session" ? ` − gap ${showDuration(lengths.gap)}` : ""} − grace ${showDuration(lengths.grace)}`;
  said.push(`Close line: ${at(close)}, which is stream time${lag}`, `Stream time: ${at(stream)}`);
  lines.push(["close", close, stream, "wait"], ...["record", "close"].map((row) => [row, close, close, "close", true]));
  const [mover, before] = explainer.mover(i);
  if (isWhole && mover !== NONE && before >= 0) {
    said[2] += `, moved on by ${aboutDuration(stream - before)}`;
    lines.push(["stream", before, stream, "moved"]);
  }
  lines.push(...CHAIN_ROWS.map((row) => [row, stream, stream, "stream", true]));
  said.push(`${mover === NONE ? "A record that is not in this page" : cut(explainer.name(mover), LONGEST_NAME)} moved stream time${mover === i ? " itself" : ""}`);
  const marks = [["record", i, isLate ? "drop" : "record"], ...(mover === NONE || mover === i ? [] : [["mover", mover, "mover"]])];
  const became = !isLate ? "was kept" : done.decision[i] === LATE ? "was dropped" : "missed a window";
  let met = 0;
  const { rows, stream: all } = stairs(records)[records.partition[i]];
  for (let n = searchSorted(all, stream); all[n] === stream; n++) met += lateForSome(done)[rows[n]];
  const note = isLate && isWhole ? `${plural(met, "record")} came too late for this stream time.` : "";
  return { title: `Why ${cut(lowerFirst(explainer.name(i)), 60)} ${became}`, said, lines, marks, note };
}

// The chain as elements: a sentence and a strip of time for each row, the mover on top, and an axis below.
function drawChain({ said, lines, marks, note }, { records, clock, at, name }, width) {
  const times = [...lines.flatMap(([, from, to]) => [from, to]), ...marks.map(([, i]) => records.time[i])];
  const [low, high] = spanOf(times, 25, 1);
  const x = (time) => `${((100 * (time - low)) / (high - low)).toFixed(2)}%`;
  const strip = (row) => {
    const svg = draw("svg", { class: "strip", "aria-hidden": "true" });
    for (const [of, from, to, kind, isUpright] of lines) {
      if (of === row) svg.append(draw("line", { x1: x(from), x2: x(to), y1: isUpright ? 2 : 11, y2: isUpright ? 20 : 11, class: kind }));
    }
    const shapes = { drop: "M-5-5L5 5M5-5L-5 5", mover: "M0-7L7 0L0 7L-7 0Z", record: "M-5 0A5 5 0 1 0 5 0A5 5 0 1 0-5 0Z" };
    for (const [of, i, kind] of marks) {
      if (of === row) svg.append(draw("svg", { x: x(records.time[i]), y: 11, class: "place" }, draw("path", { d: shapes[kind], class: kind }, draw("title", { text: `${name(i)}, ${at(records.time[i])}` }))));
    }
    return svg;
  };
  const axis = draw("svg", { class: "strip", "aria-hidden": "true" });
  for (const { at: time, text } of spaced(ticks(clock, low, high, Math.max(Math.floor(width / 120), 2)), (time) => ((time - low) / (high - low)) * width, 0, width)) {
    axis.append(draw("text", { x: x(time), y: 14, class: "tick middle", text }));
  }
  return [...CHAIN_ROWS.map((row, n) => make("div", {}, make("p", { text: said[n] }), strip(row))).reverse(), axis, make("p", { class: "quiet", text: note })];
}
