// Numbers, lengths and times as a person says them: the same words as sessionkit's own (base/durations.py, moments.py).

const MILLISECOND = 1;
const SECOND = 1_000;
const MINUTE = 60_000;
const HOUR = 3_600_000;
const DAY = 86_400_000;
const UNITS = [["d", DAY], ["h", HOUR], ["min", MINUTE], ["s", SECOND], ["ms", MILLISECOND]];
const LAST_DATE = 253_402_300_799_999; // the end of the year 9999

const number = (value) => value.toLocaleString("en-US", { maximumFractionDigits: 6 });
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

// A grace that is as good as this one and takes as few words.
function enoughDuration(length) {
  const step = length >= HOUR ? MINUTE : length >= MINUTE ? SECOND : MILLISECOND;
  return showDuration(Math.ceil(length / step) * step);
}

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

// What the clocks of a zone show: see WallClock in base/moments.py. `changes` is empty for UTC.
function clockOf({ changes, offsets, slowFrom, isElapsed }) {
  const piece = (time) => {
    let at = 0;
    while (at < changes.length && changes[at] <= time) at++;
    return at;
  };
  // A place on an axis that never steps back: an hour that clocks show twice is drawn at half the pace.
  const place = (time) => {
    const at = piece(time);
    return time + offsets[at] - (slowFrom[at] >= 0 ? (time - slowFrom[at]) / 2 : 0);
  };
  const timeAt = (wanted) => {
    let low = wanted - 2 * DAY;
    let high = wanted + 2 * DAY;
    for (let step = 0; step < 60 && high - low > 0.5; step++) {
      const middle = (low + high) / 2;
      if (place(middle) <= wanted) low = middle;
      else high = middle;
    }
    return Math.round(low);
  };
  const date = (time) => {
    if (!(time <= LAST_DATE)) return `${time} ms`;
    const at = piece(time);
    let offset = offsets[at];
    let suffix = "";
    if (slowFrom[at] >= 0) {
      const back = offsets[at] - offsets[at + 1];
      if (time >= slowFrom[at] + back) offset = offsets[at + 1];
      const minutes = Math.abs(offset) / MINUTE;
      const two = (value) => String(Math.floor(value)).padStart(2, "0");
      suffix = `${offset < 0 ? "-" : "+"}${two(minutes / 60)}:${two(minutes % 60)}`;
    }
    const iso = new Date(time + offset).toISOString().replace("T", " ").replace("Z", "");
    return (time % 1000 ? iso : iso.slice(0, -4)) + suffix;
  };
  const plain = { place: (time) => time, timeAt: Math.round, isElapsed };
  if (isElapsed) return { show: showDuration, short: showDuration, about: aboutDuration, ...plain };
  const short = (time) => date(time).replace(/(\d\d:\d\d):00(?=$|[+-])/, "$1");
  const about = (time) => short(time <= LAST_DATE ? Math.floor(time / MINUTE) * MINUTE : time);
  return { show: date, short, about, ...plain, ...(changes.length || offsets[0] ? { place, timeAt } : {}) };
}

// Round places for so many ticks between two places of an axis, and how each is written.
const STEPS = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500].map((count) => count * MILLISECOND),
  ...[1, 2, 5, 10, 15, 30].map((count) => count * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((count) => count * MINUTE),
  ...[1, 2, 3, 6, 12].map((count) => count * HOUR),
  ...[1, 2, 7, 14].map((count) => count * DAY),
];

function ticks(clock, low, high, most) {
  const step = STEPS.find((each) => (high - low) / each <= most);
  if (!clock.isElapsed && (!step || step > 2 * DAY) && high <= LAST_DATE) return monthTicks(low, high, most, step);
  const every = step ?? Math.ceil((high - low) / most / DAY) * DAY;
  const found = [];
  for (let at = Math.ceil(low / every) * every; at <= high; at += every) found.push({ at, text: tickText(clock, at, every) });
  return found;
}

function tickText(clock, at, step) {
  if (clock.isElapsed) return showDuration(at);
  if (at > LAST_DATE) return `${number(at)} ms`;
  const iso = new Date(at).toISOString();
  if (at % DAY === 0) return iso.slice(0, 10);
  return step % MINUTE === 0 ? iso.slice(11, 16) : step % SECOND === 0 ? iso.slice(11, 19) : iso.slice(11, 23);
}

function monthTicks(low, high, most, step) {
  const months = Math.ceil((high - low) / (30.5 * DAY) / most);
  const every = step ? 0 : ([1, 2, 3, 6, 12, 24, 60, 120].find((count) => count >= months) ?? 120 * Math.ceil(months / 120));
  const found = [];
  if (!every) {
    for (let at = Math.ceil(low / step) * step; at <= high; at += step) found.push({ at, text: new Date(at).toISOString().slice(0, 10) });
    return found;
  }
  const first = new Date(low);
  for (let month = Math.floor((first.getUTCFullYear() * 12 + first.getUTCMonth()) / every) * every; ; month += every) {
    const at = Date.UTC(Math.floor(month / 12), month % 12, 1);
    if (at > high) return found;
    if (at >= low) found.push({ at, text: new Date(at).toISOString().slice(0, every >= 12 ? 4 : 7) });
  }
}
