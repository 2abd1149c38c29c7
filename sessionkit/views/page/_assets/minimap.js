// A thin strip of the whole run above a picture: where its records and drops lie, and a brush over the stretch shown.

const STRIP = 34; // pixels
const CELL = 3; // pixels of a bar

class Minimap {
  // `words(place)` says a place; `chosen(first, last, isDone)` is called while the brush moves and once it stands.
  constructor({ label, caption, words, chosen }) {
    Object.assign(this, { words, chosen });
    const grip = (kind, name) => make("div", { class: `grip ${kind}`, tabindex: 0, role: "slider", "aria-label": `${label}: ${name}`, onkeydown: (event) => this.key(event, kind) });
    this.grips = { both: grip("both", "the part that is shown"), first: grip("first", "where it begins"), last: grip("last", "where it ends") };
    this.svg = draw("svg", { height: STRIP, "aria-hidden": "true" });
    this.place = make("div", { class: "minimap", title: `${label}: drag to choose the part that is shown below`, onpointerdown: (event) => this.press(event), onpointermove: (event) => this.drag(event), onpointerup: () => this.release(), onpointercancel: () => this.release() }, make("span", { text: caption }), this.svg, ...Object.values(this.grips));
  }

  // `at[i]` is the place of each of `rows`; `range` what the strip spans, `shown` the brush, `edges` of the picture below.
  show({ rows, at, isDrop, range, shown, edges: [left, right] }) {
    if (this.held) range = this.range; // it stays under the pointer
    Object.assign(this, { range, width: right - left });
    const count = Math.max(Math.floor(this.width / CELL), 1);
    const [all, drops] = [new Float64Array(count), new Float64Array(count)];
    const cells = count / (range[1] - range[0]);
    for (const i of rows) {
      const cell = Math.min(Math.floor((at[i] - range[0]) * cells), count - 1);
      all[cell]++; // far off the others: no cell
      if (isDrop[i]) drops[cell]++;
    }
    const most = Math.sqrt(all.reduce((a, b) => Math.max(a, b), 1));
    const bars = (counts, least) => [...counts].map((n, cell) => n && `M${cell * CELL} ${STRIP}v${-(least + ((STRIP - 4 - least) * Math.sqrt(n)) / most).toFixed(1)}h${CELL - 0.5}V${STRIP}`).filter(Boolean).join("");
    this.svg.replaceChildren(draw("path", { d: bars(all, 2), class: "records" }), draw("path", { d: bars(drops, 4), class: "drops" }));
    this.svg.setAttribute("width", this.width);
    this.place.style.margin = `0 0 4px ${left}px`;
    this.place.style.width = `${this.width}px`;
    this.brush(...shown);
  }

  brush(first, last) {
    const [low, high] = this.range;
    [first, last] = [first, last].map((place) => Math.min(Math.max(place, low), high));
    this.shown = [first, last];
    const [from, to] = this.shown.map((place) => ((place - low) / (high - low)) * this.width);
    const { both, first: begin, last: end } = this.grips;
    Object.assign(both.style, { left: `${from}px`, width: `${Math.max(to - from, 2)}px` });
    begin.style.left = `${Math.max(from - 16, 0)}px`; // beside a brush that may be thin
    end.style.left = `${Math.min(to, this.width - 16)}px`;
    for (const [grip, now, text] of [[both, (first + last) / 2, `${this.words(first)} to ${this.words(last)}`], [begin, first, this.words(first)], [end, last, this.words(last)]]) {
      for (const [name, value] of Object.entries({ valuemin: low, valuemax: high, valuenow: now, valuetext: text })) grip.setAttribute(`aria-${name}`, value);
    }
  }

  // Moves an edge, or the whole brush, by so much from where it stood; `isDone` at the end of a movement.
  shift(kind, by, [first, last], isDone) {
    const [low, high] = this.range;
    const within = (place, from, to) => Math.min(Math.max(place, from), to);
    if (kind === "both") {
      const start = within(first + by, low, high - (last - first));
      return this.choose(start, start + last - first, isDone);
    }
    const moved = within((kind === "first" ? first : last) + by, low, high);
    const other = kind === "first" ? last : first;
    return this.choose(Math.min(moved, other), Math.max(moved, other), isDone);
  }

  choose(first, last, isDone) {
    [first, last] = [Math.floor(first), Math.max(Math.ceil(last), Math.floor(first) + 1)];
    this.brush(first, last);
    this.chosen(first, last, isDone);
  }

  key(event, kind) {
    const steps = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10, Home: -Infinity, End: Infinity };
    if (!steps[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const [first, last] = this.shown;
    const length = kind === "both" ? (last - first) / 4 : (this.range[1] - this.range[0]) / 100;
    this.shift(kind, steps[event.key] * Math.max(length, 1), this.shown, true);
  }

  press(event) {
    const [[first, last], [low, high]] = [this.shown, this.range];
    const kind = Object.keys(this.grips).find((each) => this.grips[each] === event.target);
    const isNew = !kind || (kind === "both" && last - first > 0.98 * (high - low)); // nothing is beside a brush over all
    const place = low + ((event.clientX - this.place.getBoundingClientRect().left) / this.width) * (high - low);
    this.held = { x: event.clientX, kind: isNew ? "last" : kind, from: isNew ? [place, place] : this.shown, before: this.shown, isNew, hasMoved: false };
    this.place.setPointerCapture(event.pointerId);
  }

  drag(event, isDone = false) {
    if (!this.held) return;
    this.now = event;
    const moved = event.clientX - this.held.x;
    this.held.hasMoved ||= Math.abs(moved) > 3;
    if (this.held.hasMoved) this.shift(this.held.kind, (moved / this.width) * (this.range[1] - this.range[0]), this.held.from, isDone);
  }

  // A drag chooses; a click beside the brush brings it there.
  release() {
    const { held } = this;
    if (held?.hasMoved) this.drag(this.now, true);
    else if (held?.isNew) this.shift("both", held.from[0] - (held.before[0] + held.before[1]) / 2, held.before, true);
    this.held = null;
  }
}

// The wheel with ctrl, or anywhere on an axis, and two fingers: `zoom(factor, x, y, moved)` about a place in pixels.
function zoomable(element, isAxis, zoom) {
  const wheel = (event) => {
    const box = element.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    if (!event.ctrlKey && !event.metaKey && !isAxis(x, y)) return; // the page scrolls
    event.preventDefault();
    zoom(Math.exp(Math.min(Math.max(event.deltaY, -25), 25) / 100), x, y, 0);
  };
  element.addEventListener("wheel", wheel, { passive: false });
  let before = null;
  const fingers = ({ touches: [a, b] }) => {
    const box = element.getBoundingClientRect();
    const middle = { x: (a.clientX + b.clientX) / 2 - box.left, y: (a.clientY + b.clientY) / 2 - box.top };
    return { ...middle, apart: Math.max(Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY), 10) };
  };
  const pinch = (event) => {
    if (event.touches.length !== 2) return;
    event.preventDefault();
    const [last, now] = [before, (before = fingers(event))];
    if (last && (last.apart !== now.apart || last.x !== now.x)) zoom(last.apart / now.apart, now.x, now.y, now.x - last.x);
  };
  const touched = (event) => {
    before = event.touches.length === 2 ? fingers(event) : null;
    event.target.addEventListener("touchmove", pinch, { passive: false }); // which may leave the picture as it is drawn anew
  };
  element.addEventListener("touchstart", touched, { passive: false });
  element.addEventListener("touchend", () => (before = null));
}
