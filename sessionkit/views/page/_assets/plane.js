// The plane of one key as SVG: event time across, arrival upward.

const SMALLEST_PLANE = 420;
const LARGEST_PLANE = 620;
const ROW_PIXELS = 18;
const HEAD_PIXELS = 34; // above the newest row's end, for the labels of what is still open
const CAP_HALF_PIXELS = 5; // half the least width of a cap: a session may be a single moment
const MOST_OF_A_KIND = 3;
const [MOST_TICKS, LEAST_TICKS, TICK_ROOM] = [11, 3, 16]; // of the axis of offsets; pixels between two

const textWidth = (text) => widthIn(`600 12px ${LANE_FONT}`, text);

// The ticks whose words have room between two edges, and beside the one before.
function spaced(all, x, from, to) {
  let free = from - 10;
  return all.filter(({ at, text }) => {
    const half = textWidth(text) / 2;
    if (x(at) - half < free + 10 || x(at) + half > to) return false;
    free = x(at) + half;
    return true;
  });
}

// Round offsets [place between the rows, offset], where they have room, else those of rows: as in sessionkit/views/plane.
function arrivalTicks(offset, y) {
  const stepOver = (span) => {
    for (let ten = 1; ; ten *= 10) for (const digit of [1, 2, 5]) if (span <= digit * ten * MOST_TICKS) return digit * ten;
  };
  const kept = [];
  for (const value of multiples(offset[0], offset.at(-1), stepOver(offset.at(-1) - offset[0]))) {
    const next = searchSorted(offset, value);
    const place = offset[next] === value ? next : next - 1 + (value - offset[next - 1]) / (offset[next] - offset[next - 1]);
    if (!kept.length || Math.abs(y(place) - y(kept.at(-1)[0])) >= TICK_ROOM) kept.push([place, value]);
  }
  const step = stepOver(offset.length);
  return kept.length >= Math.min(LEAST_TICKS, offset.length) ? kept : offset.flatMap((value, row) => (row % step ? [] : [[row, value]]));
}

// Of two outlines of horizontal lines, one going on where the other ends: [from, to, from, to] at each row.
function parts(away, lacking) {
  const found = [];
  for (let n = 0; n < away.x.length; n += 3) {
    found.push({ x: [away.x[n], away.x[n + 1], lacking.x[n], lacking.x[n + 1]], y: [away.y[n]] });
  }
  return found;
}

class PlaneView {
  constructor({ words, select, clock, keyName }) {
    Object.assign(this, { words, select, clock, keyName });
    this.svg = draw("svg", { tabindex: 0, role: "application", "aria-roledescription": "plane of one key" });
    this.place = make("div", { class: "plane" }, this.svg);
    this.tip = new Tip(this.place);
    this.svg.addEventListener("keydown", (event) => this.key(event));
    this.svg.addEventListener("pointerover", (event) => this.hover(event));
    this.svg.addEventListener("pointerout", () => this.tip.hide());
    this.svg.addEventListener("click", (event) => {
      const thing = this.thingOf(event.target);
      if (thing) this.select(thing);
    });
  }

  show(scene, sizes) {
    Object.assign(this, { scene, sizes, things: [], taken: [], focused: null });
    const { rows } = scene;
    const { records, done } = scene.history;
    const width = (this.width = Math.max(this.place.clientWidth, 280));
    this.svg.replaceChildren();
    if (!rows.length) {
      this.svg.setAttribute("height", 60);
      this.svg.append(draw("text", { x: 10, y: 30, text: "No record of this key is here.", class: "quiet" }));
      return;
    }
    const few = Math.min(SMALLEST_PLANE, 150 + 45 * rows.length);
    const plot = Math.min(Math.max(few, rows.length * ROW_PIXELS), LARGEST_PLANE);
    const widest = number(records.offset[rows.at(-1)]).length * 7.6;
    Object.assign(this, { left: Math.ceil(30 + widest), right: width - 12, top: 6, bottom: plot + 6 });
    this.svg.setAttribute("width", width);
    this.svg.setAttribute("height", plot + 58);
    this.svg.setAttribute("viewBox", `0 0 ${width} ${plot + 58}`);
    const [low, high] = scene.xRange;
    const yLow = -0.8;
    const yHigh = scene.top + (HEAD_PIXELS * (scene.top + 0.8)) / (plot - HEAD_PIXELS);
    this.x = (time) => this.left + ((time - low) / (high - low)) * (this.right - this.left);
    this.y = (row) => this.top + ((yHigh - row) / (yHigh - yLow)) * plot;
    const clip = draw("clipPath", { id: "plane-room" }, draw("rect", { x: this.left, y: this.top, width: this.right - this.left, height: plot }));
    this.svg.append(draw("defs", {}, clip));
    this.axes(low, high);
    this.room = draw("g", { "clip-path": "url(#plane-room)" });
    this.svg.append(this.room);
    this.territory();
    if (done.kind === "session") this.sessions();
    else this.windows();
    this.lines();
    this.marks();
    this.labels();
    this.ring = draw("circle", { r: 9, class: "ring", visibility: "hidden" });
    this.svg.append(this.ring);
  }

  path(outline, kind) {
    if (!outline.x.length) return;
    let d = "";
    let begins = true;
    for (let n = 0; n < outline.x.length; n++) {
      if (outline.x[n] === null) {
        begins = true;
        continue;
      }
      d += `${begins ? "M" : "L"}${this.x(outline.x[n]).toFixed(1)} ${this.y(outline.y[n]).toFixed(1)}`;
      begins = false;
    }
    this.room.append(draw("path", { d, class: kind }));
  }

  axes(low, high) {
    const { rows, history } = this.scene;
    const room = this.right - this.left;
    const across = ticks(this.clock, low, high, Math.max(Math.floor(room / 110), 2));
    for (const { at } of across) this.svg.append(draw("path", { d: `M${this.x(at).toFixed(1)} ${this.top}V${this.bottom}`, class: "grid" }));
    for (const { at, text } of spaced(across, this.x, 0, this.width)) {
      this.svg.append(draw("text", { x: this.x(at).toFixed(1), y: this.bottom + 18, class: "tick middle", text }));
    }
    for (const { at, text } of changesWithin(this.clock, low, high)) {
      const x = this.x(at);
      const side = x + 8 * text.length > this.right ? "tick end" : "tick";
      this.svg.append(draw("path", { d: `M${x.toFixed(1)} ${this.top}V${this.bottom}`, class: "change" }));
      this.svg.append(draw("text", { x: (x + (side === "tick" ? 4 : -4)).toFixed(1), y: this.top + 10, class: side, text }));
    }
    this.svg.append(draw("text", { x: this.left, y: this.bottom + 42, class: "tick", text: "across: event time · upward: arrival, by offset" }));
    for (const [place, offset] of arrivalTicks(rows.map((i) => history.records.offset[i]), this.y)) {
      this.svg.append(draw("text", { x: this.left - 8, y: (this.y(place) + 4).toFixed(1), class: "tick end", text: number(offset) }));
    }
  }

  // The area that the close line has passed.
  territory() {
    const { closeLine } = this.scene;
    if (!closeLine.x.length) return;
    const d = closeLine.x.map((time, n) => `L${Math.max(this.x(time), this.left - 5).toFixed(1)} ${this.y(closeLine.y[n]).toFixed(1)}`).join("");
    const edge = this.left - 5;
    this.room.append(draw("path", { d: `M${edge} ${this.y(closeLine.y[0])}${d}L${edge} ${this.y(closeLine.y.at(-1))}Z`, class: "territory" }));
  }

  sessions() {
    this.path(this.scene.reach, "reach");
    this.path(this.scene.bodies, "body");
    this.path(this.scene.retained, "retained");
  }

  windows() {
    const { scene } = this;
    if (scene.deep > MOST_LAYERS) {
      for (const layer of scene.layers) this.path(layer, "body many");
      this.path(scene.feet, "foot");
    } else {
      for (const layer of scene.layers) this.path(layer, scene.deep === 1 ? "body" : "body over");
    }
  }

  lines() {
    const { scene } = this;
    this.path(scene.streamLine, "stream");
    this.path(scene.closeLine, "close");
    for (const cap of scene.caps) {
      const [left, right] = [this.x(cap.start), this.x(cap.end)];
      const [middle, half] = [(left + right) / 2, Math.max((right - left) / 2, CAP_HALF_PIXELS)];
      const y = this.y(scene.y(cap.at));
      const line = draw("path", { d: `M${(middle - half).toFixed(1)} ${y.toFixed(1)}H${(middle + half).toFixed(1)}`, class: "cap" });
      this.room.append(line);
      this.thing(line, { kind: "cap", cap, window: cap.window, x: middle, y });
    }
    if (scene.bars) this.path(scene.bars, "merge");
    this.path(scene.bands, "crowd");
    this.path(scene.away, "away");
    this.path(scene.lacking, "lacking");
    for (const { record, end } of (scene.missedEnds ?? []).filter(({ record }) => scene.isAlone(record))) {
      const [x, y] = [this.x(end), this.y(scene.y(record))];
      this.room.append(draw("path", { d: `M${x.toFixed(1)} ${(y - 5).toFixed(1)}v10`, class: "away" }));
    }
  }

  thing(element, each) {
    element.dataset.thing = this.things.length;
    this.things.push(each);
  }

  thingOf(target) {
    return this.things[Number(target.dataset?.thing)] ?? null;
  }

  marks() {
    const { scene } = this;
    const size = scene.rows.length <= 40 ? 5.5 : scene.rows.length <= 80 ? 4.5 : 4;
    const kinds = [
      ["others", "other", () => draw("circle", { r: size * 0.55 })],
      ["reopened", "reopened", () => draw("circle", { r: size + 4 })],
      ["plain", "record", () => draw("circle", { r: size })],
      ["lateButKept", "saved", () => draw("path", { d: `M0 ${-size - 1.5}L${size + 1.5} ${size}L${-size - 1.5} ${size}Z` })],
      ["partlyLate", "bridge", () => draw("path", { d: `M0 ${-size - 2}L${size + 2} 0L0 ${size + 2}L${-size - 2} 0Z` })],
      ["merges", "bridge", () => draw("path", { d: `M0 ${-size - 2}L${size + 2} 0L0 ${size + 2}L${-size - 2} 0Z` })],
      ["drops", "drop", () => draw("path", { d: `M${-size} ${-size}L${size} ${size}M${size} ${-size}L${-size} ${size}` })],
    ];
    for (const [name, kind, shape] of kinds) {
      for (const i of scene[name]) {
        const [x, y] = [this.x(scene.at(i)), this.y(scene.y(i))];
        const mark = scene.far.has(i) ? draw("path", { d: `M${size} ${-size}L${-size} 0L${size} ${size}Z` }) : shape();
        mark.setAttribute("class", kind);
        mark.setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)})`);
        this.room.append(mark);
        if (name !== "reopened") this.thing(mark, { kind: name === "others" ? "other" : "record", record: i, x, y });
      }
    }
  }

  // ---- words beside the marks, where there is room

  labels() {
    const { scene } = this;
    const { records, lengths, done } = scene.history;
    const at = (i) => [this.x(scene.at(i)), this.y(scene.y(i))];
    for (const i of scene.timed) this.take(at(i), 7);
    for (const { x, y, cap } of this.things.filter(({ kind }) => kind === "cap")) {
      const half = (this.x(cap.end) - this.x(cap.start)) / 2;
      this.taken.push([x - half - 3, y - 4, x + half + 3, y + 4]);
    }
    for (const { x: [from, , , to], y: [row] } of parts(scene.away, scene.lacking)) {
      this.taken.push([this.x(from) - 2, this.y(row) - 3, this.x(to) + 2, this.y(row) + 3]);
    }
    const spoken = (list, kind, words) => {
      let count = 0;
      for (const i of list) if (count < MOST_OF_A_KIND && this.label(words(i), ...at(i), kind)) count++;
    };
    const cure = (least, most) => {
      const said = `grace ${showDuration(lengths.grace)} → ${graceWith(lengths.grace, least)} would keep it`;
      return least === most ? said : `${said} in one window`;
    };
    for (const crowd of scene.crowds) {
      const behind = crowd.map((i) => records.stream[i] - done.lag - records.time[i]);
      const ends = [Math.min(...behind), Math.max(...behind)].map(aboutDuration);
      const isDrop = new Set(scene.drops);
      const dropped = crowd.filter((i) => isDrop.has(i)).length;
      const partly = dropped < crowd.length ? ` and ${number(crowd.length - dropped)} too late for some windows` : "";
      const middle = crowd[crowd.length >> 1];
      const x = (this.x(scene.at(middle)) + this.x(records.stream[middle] - done.lag)) / 2;
      const words = [`${plural(dropped, "record")} dropped${partly}`, `${[...new Set(ends)].join(" to ")} behind the line`];
      this.label(words, x, this.y(scene.y(middle)), "drop", true) || this.label(words, x, this.y(scene.y(middle)), "drop");
    }
    spoken(scene.drops.filter((i) => scene.missing.has(i) && scene.isAlone(i)), "drop", (i) => {
      const missing = scene.missing.get(i);
      const [least, most] = Array.isArray(missing) ? missing : [missing, missing];
      const short = `${lacked(least)} short`;
      return scene.far.has(i) ? ["◂ dropped", this.clock.show(records.time[i]), short] : [`dropped · ${short}`, cure(least, most)];
    });
    spoken(scene.merges, "bridge", () => ["bridge: two sessions become one"]);
    spoken(scene.partlyLate.filter(scene.isAlone), "bridge", () => ["too late for some of its windows"]);
    spoken(scene.reopened, "ink", () => ["re-opened: closed, but still retained"]);
    for (const { how, steps, end } of scene.lives) {
      if (how !== "open" && how !== "cut") continue;
      const [, start, stop] = steps.at(-1);
      this.label([how === "open" ? "still open" : "goes on ↑"], (this.x(start) + this.x(stop)) / 2, this.y(end), "edge", true);
    }
    const sized = scene.caps.map((cap) => [cap, heldAt(scene, cap, this.sizes)]).sort((a, b) => b[1] - a[1] || a[0].at - b[0].at);
    let count = 0;
    for (const [cap, size] of sized) {
      const length = done.kind === "session" && cap.end > cap.start ? ` · ${aboutDuration(cap.end - cap.start)}` : "";
      const middle = (this.x(cap.start) + this.x(cap.end)) / 2;
      if (count < MOST_OF_A_KIND && this.label([`closed · ${plural(size, "record")}${length}`], middle, this.y(scene.y(cap.at)), "ink", true)) count++;
    }
    const kept = done.kind === "session" ? "its session is open" : "its window is open";
    spoken(scene.lateButKept, "saved", (i) => [`late but kept: ${aboutDuration(records.stream[i] - done.lag - records.time[i])} behind`, `the close line; ${kept}`]);
  }

  take([x, y], radius) {
    this.taken.push([x - radius, y - radius, x + radius, y + radius]);
  }

  // Puts a label near a point, over no mark and no other label; says whether there was room.
  label(lines, x, y, kind, isAbove = false) {
    const width = Math.max(...lines.map(textWidth)) + 10;
    const height = lines.length * 15 + 4;
    const near = isAbove ? [[0, -15], [0, 16], [width / 3, -15], [-width / 3, -15], [width / 3, 16], [-width / 3, 16]] : [];
    const around = [40, 62, 88, 120].flatMap((away) => [[-1, -0.6], [1, -0.6], [-1, 0.6], [1, 0.6], [0, -1], [0, 1]].map(([a, b]) => [a * (away * 0.5 + width / 2), b * (away * 0.6)]));
    for (const [dx, dy] of isAbove ? near : around) {
      const box = [x + dx - width / 2, y + dy - height / 2, x + dx + width / 2, y + dy + height / 2];
      if (box[0] < this.left + 2 || box[2] > this.right - 2 || box[1] < this.top || box[3] > this.bottom) continue;
      if (this.taken.some((other) => box[0] < other[2] && box[2] > other[0] && box[1] < other[3] && box[3] > other[1])) continue;
      this.taken.push(box);
      if (!isAbove) this.svg.append(draw("path", { d: `M${x.toFixed(1)} ${y.toFixed(1)}L${(x + dx).toFixed(1)} ${(y + dy).toFixed(1)}`, class: `leader ${kind}` }));
      this.svg.append(draw("rect", { x: box[0].toFixed(1), y: box[1].toFixed(1), width: width.toFixed(1), height, rx: 3, class: "behind" }));
      const words = lines.map((line, n) => draw("tspan", { x: (x + dx).toFixed(1), y: (box[1] + 14 + 15 * n).toFixed(1), text: line }));
      this.svg.append(draw("text", { class: `label middle ${kind}` }, ...words));
      return true;
    }
    return false;
  }

  // ---- pointer and keys

  // A ring around a record, from which the keys go on.
  mark(record) {
    this.focused = this.things.find((thing) => thing.kind === "record" && thing.record === record) ?? null;
    if (!this.focused) return;
    this.ring.setAttribute("cx", this.focused.x);
    this.ring.setAttribute("cy", this.focused.y);
    this.ring.setAttribute("visibility", "visible");
  }

  hover(event) {
    const thing = this.thingOf(event.target);
    if (thing) this.tip.show(this.words(thing), thing.x, thing.y);
  }

  key(event) {
    const steps = { ArrowUp: 1, ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1, PageUp: 10, PageDown: -10, "]": 1, "[": -1 };
    const isDrop = "[]".includes(event.key) ? ({ record }) => this.scene.drops.includes(record) : () => true;
    const records = this.things.filter((thing) => thing.kind === "record" && isDrop(thing)).sort((a, b) => a.record - b.record);
    if (event.key === "Enter" && this.focused) return this.select(this.focused);
    if (!steps[event.key] || event.ctrlKey || event.metaKey || event.altKey || !records.length) return;
    event.preventDefault();
    const step = steps[event.key];
    const now = this.focused?.record ?? (step > 0 ? -1 : Infinity);
    const passed = records.filter(({ record }) => (step > 0 ? record <= now : record < now)).length;
    const next = passed + step - (step > 0 ? 1 : 0);
    this.mark(records[Math.min(Math.max(next, 0), records.length - 1)].record);
    bringIntoView(this.svg, this.focused.y);
    this.tip.show(this.words(this.focused), this.focused.x, this.focused.y);
    this.svg.dispatchEvent(new CustomEvent("told", { detail: this.words(this.focused) }));
  }
}
