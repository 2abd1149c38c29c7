// Numbers, lengths and times as a person says them: the same words as sessionkit's own (base/durations.py, moments.py).

const MILLISECOND = 1;
const SECOND = 1_000;
const MINUTE = 60_000;
const HOUR = 3_600_000;
const DAY = 86_400_000;
const UNITS = [["d", DAY], ["h", HOUR], ["min", MINUTE], ["s", SECOND], ["ms", MILLISECOND]];
const LAST_DATE = 253_402_300_799_999; // the end of the year 9999

const inEnglish = new Intl.NumberFormat("en-US", { maximumFractionDigits: 6 }); // made once: it takes long
const number = (value) => (Number.isInteger(value) && value >= 0 && value < 1_000 ? `${value}` : inEnglish.format(value));
const plural = (count, one, many) => `${number(count)} ${count === 1 ? one : (many ?? `${one}s`)}`;

// A share as a person says it; never 100% of what is not all, or 0% of what is something.
function percent(share) {
  for (const digits of [2, 3, 4]) {
    const said = (100 * share).toFixed(digits).replace(/\.?0+$/, "");
    if ((said !== "100" && said !== "0") || share === 0 || share === 1) return `${said}%`;
  }
  return share > 0.5 ? "more than 99.9999%" : "less than 0.0001%";
}

function showDuration(length) {
  if (length < 0) return `-${showDuration(-length)}`;
  const parts = [];
  for (const [unit, ms] of UNITS) {
    if (length < ms) continue;
    parts.push(`${number(Math.floor(length / ms))} ${unit}`);
    length %= ms;
  }
  return parts.join(" ") || "0 s";
}

// A length as a person says it: in its two largest units, in one from ten of it on.
function aboutDuration(length) {
  const step = stepOf(length);
  return showDuration(Math.floor((length + Math.floor(step / 2)) / step) * step);
}

// The smallest unit in which a length is said that is not said to the millisecond.
function stepOf(length) {
  for (const [unit, next] of [[DAY, HOUR], [HOUR, MINUTE], [MINUTE, SECOND], [SECOND, 100]]) {
    if (length >= unit) return length >= 10 * unit ? unit : next;
  }
  return 1;
}

// The grace that a dropped record lacked, and one that would have kept it: see base/durations.py.
function enough(length) {
  const step = length >= HOUR ? MINUTE : length >= MINUTE ? SECOND : MILLISECOND;
  return Math.ceil(length / step) * step;
}
const lacked = (missing) => showDuration(enough(missing));
const graceWith = (grace, missing) => showDuration(grace + enough(missing));

const NAMES = {
  ms: /^(ms|msecs?|millis?|milliseconds?)$/,
  s: /^(s|secs?|seconds?)$/,
  min: /^(m|mins?|minutes?)$/,
  h: /^(h|hrs?|hours?)$/,
  d: /^(d|days?)$/,
  w: /^(w|wks?|weeks?)$/,
};
const IN_MS = { ms: MILLISECOND, s: SECOND, min: MINUTE, h: HOUR, d: DAY, w: 7 * DAY };

// The milliseconds of "90s", "1h 30m", "2 hours and 30 minutes" or "0"; null for what is no length of time.
function readDuration(text) {
  const said = text.trim().toLowerCase().replace(/(\d),(?=\d{3}(?!\d))/g, "$1"); // as lengths are shown: 1,000 d
  if (/^0+$/.test(said)) return 0;
  const part = /(\d+(?:\.\d+)?)\s*([a-z]+)\s*(?:,\s*|and\s+)?/y;
  let total = 0;
  while (part.lastIndex < said.length) {
    const at = part.lastIndex;
    const found = part.exec(said);
    const unit = found && Object.keys(NAMES).find((name) => NAMES[name].test(found[2]));
    if (!unit || part.lastIndex === at) return null;
    total += Number(found[1]) * IN_MS[unit];
  }
  return said && Number.isSafeInteger(Math.round(total)) && Math.abs(total - Math.round(total)) < 1e-6 ? Math.round(total) : null;
}

// ---- clocks

// What the clocks of a zone show: see ClockChanges in base/moments.py. `changes` is empty for UTC.
function clockOf({ changes, offsets, isElapsed }) {
  const below = (all, time) => searchSorted(all, time, true);
  const local = (time) => time + offsets[below(changes, time)];
  const [before, after] = [0, 1].map((n) => changes.map((time, at) => time + offsets[at + n]));
  const firstAt = (shown) => {
    const at = below(before, shown);
    return Math.max(shown - offsets[at], changes[at - 1] ?? -Infinity);
  };
  const lastAt = (shown) => {
    const at = below(after, shown);
    return Math.min(shown - offsets[at], changes[at] ?? Infinity);
  };
  // [from, to, offset] of each stretch of a span in which clocks are not changed.
  const pieces = (low, high) => {
    const inside = changes.filter((time) => time > low && time <= high);
    return [low, ...inside].map((from, n) => [from, n < inside.length ? inside[n] - 1 : high, local(from) - from]);
  };
  const offsetOf = (time) => {
    const minutes = Math.abs(local(time) - time) / MINUTE;
    const two = (value) => String(Math.floor(value)).padStart(2, "0");
    return `${local(time) < time ? "-" : "+"}${two(minutes / 60)}:${two(minutes % 60)}`;
  };
  // The date, the time and, where clocks show it twice, the offset.
  const parts = (time) => {
    const shown = local(time);
    const [day, clock] = new Date(shown).toISOString().slice(0, -1).split("T");
    return [day, clock, firstAt(shown) === lastAt(shown) ? "" : offsetOf(time)];
  };
  const date = (time) => {
    if (!(time <= LAST_DATE)) return `${time} ms`;
    const [day, clock, offset] = parts(time);
    return `${day} ${time % 1000 ? clock : clock.slice(0, 8)}${offset}`;
  };
  const table = { local, firstAt, lastAt, pieces, parts, isElapsed };
  if (isElapsed) return { show: showDuration, short: showDuration, about: aboutDuration, ...table };
  const short = (time) => date(time).replace(/(\d\d:\d\d):00(?=$|[+-])/, "$1");
  const about = (time) => short(time <= LAST_DATE ? Math.floor(time / MINUTE) * MINUTE : time);
  return { show: date, short, about, ...table };
}

// Where clocks are changed within a span, and how that is said.
function changesWithin(clock, low, high) {
  const pieces = clock.pieces(low, high);
  return pieces.slice(1).map(([at, , after], n) => {
    const more = after - pieces[n][2];
    return { at, text: `clocks ${more < 0 ? "back" : "forward"} ${showDuration(Math.abs(more))}` };
  });
}

// Round places for so many ticks between two places of an axis, and how each is written.
const STEPS = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500].map((count) => count * MILLISECOND),
  ...[1, 2, 5, 10, 15, 30].map((count) => count * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((count) => count * MINUTE),
  ...[1, 2, 3, 6, 12].map((count) => count * HOUR),
  ...[1, 2, 7, 14].map((count) => count * DAY),
];

const multiples = (low, high, step) => {
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high; at += step) found.push(at);
  return found;
};

// Round local times: those that clocks show twice come twice, with their offsets.
function ticks(clock, low, high, most) {
  const step = STEPS.find((each) => (high - low) / each <= most);
  if (clock.isElapsed || high > LAST_DATE) {
    const every = step ?? Math.ceil((high - low) / most / DAY) * DAY;
    return multiples(low, high, every).map((at) => ({ at, text: clock.isElapsed ? showDuration(at) : `${number(at)} ms` }));
  }
  if (step < DAY) {
    const round = ([from, to, ahead]) => multiples(from + ahead, to + ahead, step).map((shown) => shown - ahead);
    return clock.pieces(low, high).flatMap(round).map((at) => ({ at, text: tickText(clock, at, step) }));
  }
  const span = [clock.local(low), clock.local(high)];
  const [days, letters] = step ? [multiples(...span, step), 10] : months(...span, most);
  const found = days.map((day) => ({ at: clock.firstAt(day), text: new Date(day).toISOString().slice(0, letters) }));
  return found.filter(({ at }) => low <= at && at <= high);
}

function tickText(clock, at, step) {
  const [day, time, offset] = clock.parts(at);
  if (time === "00:00:00.000" && !offset) return day;
  return time.slice(0, step % MINUTE === 0 ? 5 : step % SECOND === 0 ? 8 : 12) + offset;
}

// The first days of months, and how many letters of their date are written.
function months(low, high, most) {
  const least = Math.ceil((high - low) / (30.5 * DAY) / most);
  const every = [1, 2, 3, 6, 12, 24, 60, 120].find((count) => count >= least) ?? 120 * Math.ceil(least / 120);
  const [first, last] = [low, high].map((time) => new Date(time).getUTCFullYear() * 12 + new Date(time).getUTCMonth());
  return [multiples(Math.floor(first / every) * every, last, every).map((month) => Date.UTC(Math.floor(month / 12), month % 12, 1)), every >= 12 ? 4 : 7];
}
