// The lanes on a canvas: as crisp as the screen, drawn anew with each setting.

const LANE_FONT = 'Inter, "Segoe UI", "DejaVu Sans", sans-serif';
const HEAD = 7; // above the first lane, for what lies above its bars
const EDGE = 14; // of a lane with sub-lanes: above its bars for drops, below them for records
const LEAST_BAR = 3; // pixels of the bar of a session of a single moment
const ROOMY = 60; // pixels of a lane with words below its bars
const MOST_LABELS = 300; // missing graces that are worked out for labels

class LanesView {
  constructor({ keyName, words, select, colours, clock }) {
    Object.assign(this, { keyName, words, select, colours, clock });
    this.canvas = make("canvas", { tabindex: 0, role: "application", "aria-roledescription": "lanes of keys" });
    this.scale = draw("svg", { class: "axis", height: 20, "aria-hidden": "true" }); // stays above lanes that are scrolled
    this.place = make("div", { class: "canvas" }, this.canvas);
    this.tip = new Tip(this.place);
    this.things = [];
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => this.tip.hide());
    this.canvas.addEventListener("click", (event) => this.click(event));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("blur", () => this.focusOn(null));
  }

  // Draws a scene; `chosen` is the slot whose plane is shown.
  show(scene, xRange, chosen, isForPrint = false) {
    Object.assign(this, { scene, xRange, chosen });
    const colours = (this.now = this.colours(isForPrint));
    const scale = isForPrint ? 3 : Math.max(window.devicePixelRatio || 1, 1);
    const width = Math.max(this.place.clientWidth, 280);
    const count = Math.max(scene.lanes.length, 1);
    this.pitch = this.pitchOf(count);
    const height = HEAD + count * this.pitch + 2;
    const { canvas } = this;
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
    }
    const pen = (this.pen = canvas.getContext("2d"));
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.fillStyle = colours.background;
    pen.fillRect(0, 0, width, height);
    pen.textBaseline = "middle";
    pen.font = `600 13px ${LANE_FONT}`;
    const most = Math.min(190, width * 0.3);
    const full = [most, ...scene.lanes.map((slot) => this.nameOf(slot))];
    if (`${full}` !== `${this.full}`) [this.full, this.names] = [full, fitted(pen, full.slice(1), most)];
    this.left = Math.ceil(Math.max(40, ...this.names.map((name) => widthIn(pen.font, name)))) + 18;
    this.right = width - 10;
    this.bottom = HEAD + count * this.pitch;
    const [low, high] = xRange;
    this.x = (time) => this.left + ((time - low) / (high - low)) * (this.right - this.left);
    this.y = (slot) => HEAD + (count - 1 - scene.height.get(slot) + 0.5) * this.pitch;
    this.things = scene.lanes.map(() => []);
    this.ground(low, high);
    pen.save();
    pen.beginPath();
    pen.rect(this.left, 0, this.right - this.left, this.bottom);
    pen.clip();
    if (scene.done.kind === "session") this.sessions();
    else this.windows();
    this.records();
    this.clocks();
    this.drops();
    pen.restore();
    this.axis();
    if (!scene.lanes.length) this.text("no records to show", this.left + 10, this.pitch / 2, colours.mute);
    for (const things of this.things) things.sort((a, b) => a.x - b.x);
  }

  pitchOf(count) {
    const usual = Math.min(Math.max(Math.floor(640 / count), 34), 118);
    const { scene } = this;
    if (scene.done.kind === "session") return usual;
    const most = Math.max(1, ...scene.sublanes.values());
    return Math.max(Math.min(usual, 2 * EDGE + 32 * most), 2 * EDGE + Math.max(5 * most, 14));
  }

  nameOf(slot) {
    const { records, lanes } = this.scene;
    const key = Math.floor(slot / records.partitions);
    const name = this.keyName(key);
    const inSeveral = lanes.some((other) => other !== slot && Math.floor(other / records.partitions) === key);
    return inSeveral ? `${name} · ${records.partitionNumbers[slot % records.partitions]}` : name;
  }

  // ---- from the back to the front

  ground(low, high) {
    const { pen, now, scene, pitch } = this;
    scene.lanes.forEach((slot, n) => {
      if (n % 2) return;
      pen.fillStyle = now.band;
      pen.fillRect(this.left, HEAD + n * pitch, this.right - this.left, pitch);
    });
    if (scene.closeTime !== null) {
      const x = Math.min(this.x(scene.closeTime), this.right);
      pen.fillStyle = now.territory;
      if (x > this.left) pen.fillRect(this.left, 0, x - this.left, this.bottom);
    }
    pen.fillStyle = now.grid;
    for (const { at } of (this.marks = ticks(this.clock, low, high, Math.max(Math.floor((this.right - this.left) / 110), 3)))) {
      pen.fillRect(Math.round(this.x(at)), 0, 1, this.bottom);
    }
    pen.font = `11px ${LANE_FONT}`;
    for (const { at, text } of changesWithin(this.clock, low, high)) {
      const [x, width] = [Math.round(this.x(at)), widthIn(pen.font, text)];
      pen.fillStyle = now.mute;
      pen.fillRect(x, 0, 1, this.bottom);
      this.text(text, x + width + 4 > this.right ? x - width - 4 : x + 4, 6, now.mute);
    }
  }

  axis() {
    const { pen, now, scene, pitch } = this;
    const words = spaced(this.marks, this.x, 0, this.right + 10).map(({ at, text }) => draw("text", { x: this.x(at).toFixed(1), y: 14, class: "tick middle", text }));
    this.scale.replaceChildren(...words);
    this.scale.setAttribute("width", this.right + 10);
    pen.textAlign = "right";
    scene.lanes.forEach((slot, n) => {
      pen.font = `${slot === this.chosen ? 700 : 600} 13px ${LANE_FONT}`;
      this.text(this.names[n], this.left - 10, HEAD + (n + 0.5) * pitch, slot === this.chosen ? now.record : now.ink);
    });
    pen.textAlign = "left";
  }

  text(words, x, y, colour) {
    this.pen.fillStyle = colour;
    this.pen.fillText(words, x, y);
  }

  // The left edge and width of a bar: never narrower than can be seen.
  bar(start, end) {
    const [left, right] = [this.x(start), this.x(end)];
    if (right - left >= LEAST_BAR) return [left, right - left];
    return [(left + right - LEAST_BAR) / 2, LEAST_BAR];
  }

  sessions() {
    const { pen, now, scene, pitch } = this;
    const { windows } = scene.done;
    const roomy = pitch >= ROOMY;
    const half = (this.half = (roomy ? 0.26 : 0.2) * pitch);
    pen.lineWidth = 1;
    for (const window of scene.open) {
      const y = this.y(windows.slot[window]);
      const [left, right] = [this.x(windows.start[window] - scene.lengths.gap), this.x(windows.end[window] + scene.lengths.gap)];
      pen.fillStyle = now.reach;
      pen.fillRect(left, y - half, right - left, 2 * half);
      pen.setLineDash([1.5, 2.5]);
      pen.strokeStyle = now.reachEdge;
      pen.strokeRect(left, y - half, right - left, 2 * half);
      pen.setLineDash([]);
    }
    const longFirst = (a, b) => windows.end[b] - windows.start[b] - (windows.end[a] - windows.start[a]);
    for (const window of scene.closed.slice().sort(longFirst)) this.oneBar(window, half, true);
    for (const window of scene.open.slice().sort(longFirst)) this.oneBar(window, half, false);
    pen.strokeStyle = now.bridge;
    pen.lineWidth = 2.2;
    for (const [window, start, end] of scene.former) {
      const y = this.y(windows.slot[window]) + half + 0.075 * pitch;
      const [left, width] = this.bar(start, end);
      const [up, right] = [y - 0.055 * pitch, left + width - 1];
      path(pen, [left + 1, up], [left + 1, y], [right, y], [right, up]);
      pen.stroke();
    }
    this.sizes(half, roomy);
  }

  oneBar(window, half, isClosed, y = this.y(this.scene.done.windows.slot[window])) {
    const { pen, now } = this;
    const { start, end, slot } = this.scene.done.windows;
    const [left, width] = this.bar(start[window], end[window]);
    pen.fillStyle = isClosed ? now.solid : now.body;
    pen.fillRect(left, y - half, width, 2 * half);
    pen.lineWidth = isClosed ? 1 : 1.6;
    pen.strokeStyle = isClosed ? now.background : now.edge;
    pen.strokeRect(left, y - half, width, 2 * half);
    this.thing(slot[window], { kind: "window", window, x: left + width / 2, y, left, width, half });
  }

  thing(slot, each) {
    this.things[this.scene.lanes.length - 1 - this.scene.height.get(slot)].push(each);
  }

  // Below each bar its size, or (in low lanes) beside it the number of its records: where there is room.
  sizes(half, roomy) {
    const { pen, now, scene, pitch } = this;
    const sizes = sizesOf(scene.done);
    const { windows } = scene.done;
    const font = (pen.font = `${roomy ? 11 : 10}px ${LANE_FONT}`); // to read it from the pen takes long
    const verticals = [scene.closeTime, scene.streamTime].filter((time) => time !== null).map((time) => this.x(time));
    scene.lanes.forEach((slot, n) => {
      const bars = this.things[n].slice().sort((a, b) => a.left - b.left);
      let free = this.left;
      bars.forEach((bar, at) => {
        const length = windows.end[bar.window] - windows.start[bar.window];
        const choices = [number(sizes[bar.window])];
        if (roomy) choices.unshift(plural(sizes[bar.window], "record"));
        if (roomy && length) choices.unshift(`${choices[0]} · ${aboutDuration(length)}`);
        const next = bars[at + 1]?.left ?? this.right;
        for (const words of choices) {
          const width = widthIn(font, words);
          const x = roomy ? bar.left + bar.width / 2 - width / 2 : bar.left + bar.width + 6;
          const isCrossed = verticals.some((at) => at > x - 3 && at < x + width + 3);
          if (x < free + 4 || x + width > this.right || isCrossed || (!roomy && x + width + 3 > next)) continue;
          this.text(words, x, roomy ? bar.y + half + (scene.former.length ? 0.2 : 0.15) * pitch : bar.y, now.mute);
          free = x + width;
          break;
        }
      });
    });
  }

  windows() {
    const { scene, pitch, pen, now } = this;
    const sizes = sizesOf(scene.done);
    const { windows } = scene.done;
    const font = (pen.font = `10px ${LANE_FONT}`);
    for (const [window, sublane] of scene.sublane) {
      const slot = windows.slot[window];
      const count = scene.sublanes.get(slot);
      const each = Math.min((pitch - 2 * EDGE) / count, 32);
      const top = this.y(slot) - (each * count) / 2 + sublane * each;
      const half = (each - 1) / 2;
      this.oneBar(window, half, scene.done.isClosed[window] === 1, top + half);
      if (each < 12) continue;
      const [left, width] = this.bar(windows.start[window], windows.end[window]);
      const room = Math.min(left + width, this.right) - Math.max(left, this.left) - 6;
      const words = [plural(sizes[window], "record"), number(sizes[window])].find((text) => widthIn(font, text) <= room);
      if (!words) continue;
      pen.textAlign = "center";
      this.text(words, (Math.min(left + width, this.right) + Math.max(left, this.left)) / 2, top + half, now.ink);
      pen.textAlign = "left";
    }
  }

  // Heights of marks from the middle of a lane, in pixels; negative is above.
  get above() {
    return this.scene.done.kind === "session" ? -0.38 * this.pitch : -(this.pitch - EDGE) / 2;
  }

  // Each record; of plain ones that fall together one.
  records() {
    const { pen, now, scene, pitch } = this;
    const { records, done } = scene;
    const late = lateForSome(done);
    const drop = done.kind === "session" ? 0 : (pitch - EDGE) / 2;
    const radius = done.kind === "session" ? (pitch >= ROOMY ? 4 : 2.4) : 3;
    const marks = { saved: [], bridge: [] };
    let before = "";
    pen.fillStyle = now.record;
    pen.strokeStyle = now.background;
    pen.lineWidth = pitch >= ROOMY ? 1.2 : 0.7;
    for (const i of scene.shown) {
      if (done.decision[i] === LATE) continue;
      const [x, y] = [this.x(records.time[i]), this.y(records.slot[i]) + drop];
      const isLate = records.time[i] < records.stream[i] - done.lag;
      if (done.decision[i] === MERGED || late[i]) marks.bridge.push([i, x, y]);
      else if (isLate) marks.saved.push([i, x, y]);
      else {
        const cell = `${Math.round(x)} ${y}`;
        if (cell === before) continue;
        before = cell;
        pen.beginPath();
        pen.arc(x, y, radius, 0, 7);
        pen.fill();
        pen.stroke();
      }
    }
    const size = pitch >= ROOMY ? 6 : 4.5;
    for (const [kind, shape] of [["saved", TRIANGLE], ["bridge", DIAMOND]]) {
      pen.fillStyle = now[kind];
      for (const [i, x, y] of marks[kind]) {
        path(pen, ...shape.map(([across, down]) => [x + across * size, y + down * size]));
        pen.closePath();
        pen.fill();
        pen.stroke();
        this.thing(records.slot[i], { kind: "record", record: i, x, y, left: x - size, width: 2 * size, half: size });
      }
    }
  }

  clocks() {
    const { pen, now, scene } = this;
    for (const [time, colour, width, dash] of [[scene.streamTime, now.stream, 1.4, [5, 4]], [scene.closeTime, now.line, 3, []]]) {
      if (time === null || time < this.xRange[0] || time > this.xRange[1]) continue;
      pen.strokeStyle = colour;
      pen.lineWidth = width;
      pen.setLineDash(dash);
      path(pen, [this.x(time), 0], [this.x(time), this.bottom]);
      pen.stroke();
      pen.setLineDash([]);
    }
  }

  // A red cross above the lane for each drop, with the grace that it lacked where there is room.
  drops() {
    const { pen, now, scene } = this;
    const { records } = scene;
    const size = this.pitch >= ROOMY ? 4.5 : 3.4;
    const byLane = new Map();
    for (const i of scene.drops) {
      const [x, y] = [this.x(records.time[i]), this.y(records.slot[i]) + this.above];
      if (!byLane.has(records.slot[i])) byLane.set(records.slot[i], []);
      byLane.get(records.slot[i]).push([x, i]);
      cross(pen, x, y, size, now.drop, now.background);
      this.thing(records.slot[i], { kind: "drop", record: i, x, y, left: x - size - 1, width: 2 * size + 2, half: size + 1 });
    }
    if (scene.drops.length > MOST_LABELS) return;
    const font = (pen.font = `600 ${this.pitch >= ROOMY ? 11 : 10}px ${LANE_FONT}`);
    for (const [slot, found] of byLane) {
      found.sort(([a], [b]) => a - b);
      found.forEach(([x, i], n) => {
        const next = found[n + 1]?.[0] ?? this.right;
        if (next - x < 40) return;
        const words = `+${lacked(lackedBy(scene, i))}`;
        if (x + 8 + widthIn(font, words) + 8 < next) this.text(words, x + 8, this.y(slot) + this.above, now.drop);
      });
    }
  }

  // ---- pointer and keys

  under(event) {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const lane = Math.floor((y - HEAD) / this.pitch);
    const isIn = (each) => x >= each.left - 3 && x <= each.left + each.width + 3 && Math.abs(y - each.y) <= each.half + 3;
    const found = (this.things[lane] ?? []).filter(isIn);
    const order = { drop: 0, record: 1, window: 2 };
    found.sort((a, b) => order[a.kind] - order[b.kind] || a.width - b.width || Math.abs(a.x - x) - Math.abs(b.x - x));
    return { lane, thing: found[0] ?? null, x, y };
  }

  hover(event) {
    const { thing, x, y } = this.under(event);
    this.canvas.style.cursor = thing ? "pointer" : "default";
    if (thing) this.tip.show(this.words(thing), x, y);
    else this.tip.hide();
  }

  click(event) {
    const { lane, thing } = this.under(event);
    if (this.scene.lanes[lane] !== undefined) this.select(this.scene.lanes[lane], thing);
  }

  key(event) {
    const moves = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    const { lanes } = this.scene;
    if (event.key === "Enter" && this.focused) return this.select(lanes[this.focused.lane], this.things[this.focused.lane][this.focused.at] ?? null);
    if (event.key === "Escape") return this.focusOn(null);
    if (!moves[event.key] || event.ctrlKey || event.metaKey || event.altKey || !lanes.length) return undefined;
    event.preventDefault();
    const [down, along] = moves[event.key];
    const now = this.focused ?? { lane: down ? -down : 0, at: -along };
    const lane = Math.min(Math.max(now.lane + down, 0), lanes.length - 1);
    const at = Math.min(Math.max(now.at + along, 0), Math.max(this.things[lane].length - 1, 0));
    return this.focusOn({ lane, at });
  }

  // A frame around what the keys have come to, and its words.
  focusOn(focused) {
    if (this.focused) this.show(this.scene, this.xRange, this.chosen);
    this.focused = focused;
    if (!focused) return this.tip.hide();
    const thing = this.things[focused.lane][focused.at];
    const { pen, now } = this;
    pen.strokeStyle = now.ink;
    pen.lineWidth = 2;
    if (!thing) {
      pen.strokeRect(2, HEAD + focused.lane * this.pitch + 2, this.right, this.pitch - 4);
      return this.canvas.dispatchEvent(new CustomEvent("told", { detail: `${this.names[focused.lane]}: nothing to show in this span.` }));
    }
    bringIntoView(this.canvas, thing.y);
    pen.strokeRect(thing.left - 4, thing.y - thing.half - 4, thing.width + 8, 2 * thing.half + 8);
    this.tip.show(this.words(thing), thing.x, thing.y + thing.half);
    return this.canvas.dispatchEvent(new CustomEvent("told", { detail: this.words(thing) }));
  }
}

// ---- marks

// Texts cut where most of them can still be told apart: in the middle, at the start or the end, or where they begin alike.
function fitted(pen, texts, most) {
  const { font } = pen;
  const fit = (text, share) => {
    let length = [...text].length;
    while (length > 2 && widthIn(font, cut(text, length, share)) > most) length--;
    return cut(text, length, share);
  };
  const choices = [0.5, 1, 0].map((share) => texts.map((text) => fit(text, share)));
  const [middles] = choices;
  choices.push(texts.map((text, n) => {
    const alike = texts.filter((_, m) => middles[m] === middles[n]).sort();
    const [first, last] = [alike[0], alike.at(-1)];
    let same = 0;
    while (same < first.length && first[same] === last[same]) same++;
    return first === last ? middles[n] : fit(same ? `…${text.slice(same)}` : text, 0);
  }));
  return choices.sort((a, b) => new Set(b).size - new Set(a).size)[0];
}

// Corners of marks, in parts of their size.
const DIAMOND = [[0, -1], [1, 0], [0, 1], [-1, 0]];
const TRIANGLE = [[0, -1], [1, 0.8], [-1, 0.8]];

// A path from point to point.
function path(pen, ...points) {
  pen.beginPath();
  for (const [x, y] of points) pen.lineTo(x, y);
}

function cross(pen, x, y, size, colour, rim) {
  for (const [stroke, width] of [[rim, 4.5], [colour, 2.4]]) {
    pen.strokeStyle = stroke;
    pen.lineWidth = width;
    path(pen, [x - size, y - size], [x + size, y + size]);
    pen.stroke();
    path(pen, [x + size, y - size], [x - size, y + size]);
    pen.stroke();
  }
}
