// The page: settings on top, what they come to, and the pictures that follow them.

const MOST_LANES = 40;
const MOST_NAMED = 300; // keys in the list; the others are found by their letters
const LEAST_ARRIVALS = 6; // that a plane is brought closer to
const MOST_LISTED = 200; // windows in the table
const LATER_MS = 100;
const HINTS = {
  gap: "records of a key no further apart are in one session",
  size: "how long a window is",
  advance: "from the start of one window to that of the next",
  grace: "how long after its end a window still takes late records",
};

const durationCode = (ms) => showDuration(ms).replace("min", "m").replace(/[ ,]/g, "");

class WhatIf {
  constructor(root, data, records) {
    Object.assign(this, { root, data, records });
    this.clock = clockOf(data.clock);
    this.noun = data.lengths.kind === "session" ? "session" : "window";
    this.lengths = { ...data.lengths };
    this.wanted = this.asRun = { ...data.lengths };
    this.tumbles = data.lengths.advance === data.lengths.size;
    this.advance = data.lengths.advance;
    this.sort = "drops";
    [this.outOfSight, this.timers] = [new Set(), new Map()];
    this.held = this.chained = null; // the first and the last record of the plane; the late one that is explained
    this.build();
    this.done = decide(records, this.lengths);
    this.before = countsOf(records, this.done);
    this.everything = allLanes(records);
    [this.first, this.last] = this.mostEventful;
    this.order();
    this.key = this.mostEventfulSlot();
    this.listKeys();
    this.follow();
  }

  // ---- the parts of the page

  build() {
    const refuse = (words) => this.refuse(words);
    const own = this.data.lengths.bounds ? [] : ["size", "advance"]; // a calendar has its lengths
    const names = this.data.lengths.kind === "session" ? ["gap", "grace"] : [...own, "grace"];
    const longest = Math.max(...names.map((name) => this.lengths[name]));
    this.sliders = Object.fromEntries(
      names.map((name) => {
        const value = this.lengths[name];
        const steps = name === "advance" ? this.advances() : ladderAround(value, value || longest || HOUR, name);
        const words = name === "advance" ? (ms) => this.advanceWords(ms) : showDuration;
        const changed = (ms) => this.set(name, ms);
        return [name, new Slider({ id: `sk-${name}`, label: name, hint: HINTS[name], steps, value, words, changed, refuse })];
      }),
    );
    this.reset = make("button", { type: "button", text: "as it was run", onclick: () => this.back() });
    this.refused = make("p", { class: "refused", role: "alert", hidden: "" });
    this.counts = make("div", { class: "counts", role: "status", "aria-live": "polite", "aria-label": "what these settings come to" });
    this.code = make("code");
    const settings = make("section", { class: "settings", "aria-label": "settings" });
    settings.append(make("div", { class: "sliders" }, ...Object.values(this.sliders).map((slider) => slider.element)));
    settings.append(make("div", { class: "come" }, this.counts, make("p", { class: "code" }, this.code, this.reset)), this.refused);
    this.why = make("p", { class: "why", role: "status", "aria-live": "polite", text: `Click a record, a cross or a ${this.noun}, or go there with the arrow keys: why it is so is told here.` });
    this.chain = make("details", { class: "chain", hidden: "", ontoggle: () => this.showChain() }, make("summary"), make("div"));
    this.chain.open = window.innerWidth >= 900 && window.innerHeight >= 640; // beside the words there, else over the pictures
    const told = make("div", { class: "told" }, this.why, this.chain); // stays in view, below
    this.root.replaceChildren(...this.root.querySelectorAll(".partly"), settings, this.buildLanes(), this.buildPlane(), told);
    new ResizeObserver(() => this.root.clientWidth !== this.width && this.redraw()).observe(this.root);
    new ResizeObserver(() => this.root.style.setProperty("--settings", `${settings.offsetHeight}px`)).observe(settings);
    window.addEventListener("resize", () => this.redraw());
    const inSight = new IntersectionObserver((entries) => entries.forEach(({ target, isIntersecting }) => this.outOfSight[isIntersecting ? "delete" : "add"](target)));
    for (const { place } of [this.lanes, this.plane]) inSight.observe(place);
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
    for (const isPrinting of [true, false]) {
      window.addEventListener(isPrinting ? "beforeprint" : "afterprint", () => {
        this.isPrinting = isPrinting; // the page is measured anew meanwhile
        this.drawLanes();
      });
    }
  }

  buildLanes() {
    const sorts = { drops: "drops first", merges: "merges first", activity: "most records first", key: "by key" };
    const options = SORTS.filter((sort) => sort !== "merges" || this.noun === "session");
    this.sorts = make("select", { id: "sk-sort", onchange: () => this.sortBy(this.sorts.value) }, ...options.map((sort) => make("option", { value: sort, text: sorts[sort] })));
    const button = (text, label, act) => make("button", { type: "button", text, "aria-label": label, title: label, onclick: act });
    const bar = make(
      "div",
      { class: "bar" },
      make("label", { for: "sk-sort", text: "keys" }),
      this.sorts,
      make(
        "span",
        { class: "buttons", role: "group", "aria-label": "span of time" },
        button("←", "earlier", () => this.move(-0.5, 1)),
        button("→", "later", () => this.move(0.5, 1)),
        button("+", "closer", () => this.move(0, 0.5)),
        button("−", "wider", () => this.move(0, 2)),
        button("most to see", "the part with the most to see", () => this.showSpan(...this.mostEventful, true)),
        button("everything", "all times", () => this.showSpan(...this.whole, true)),
      ),
    );
    this.lanes = new LanesView({
      keyName: (key) => this.data.keys[key] + (key === this.data.cut?.key ? " (a part)" : ""),
      words: (thing) => this.wordsFor(thing),
      select: (slot, thing) => this.select(slot, thing),
      colours: (isForPrint) => this.data.palettes[!isForPrint && window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"],
      clock: this.clock,
    });
    this.lanes.canvas.addEventListener("told", ({ detail }) => this.tell(detail));
    for (const part of [this.lanes.canvas, this.lanes.scale]) zoomable(part, () => part === this.lanes.scale, (factor, x, _, moved) => this.zoomLanes(factor, x, moved));
    this.times = new Minimap({ label: "all times", caption: "all times", words: (time) => this.clock.about(time), chosen: (first, last, isDone) => this.showSpan(first, last, isDone) });
    this.lanesWords = make("p", { class: "words" });
    const isSession = this.noun === "session";
    this.ownMarks = [
      ["circle", "record", "record"],
      ["diamond", "bridge", isSession ? "bridge: joins two sessions into one" : "too late for some of its windows"],
      ["triangle", "saved", `late, but its ${this.noun} is still open`],
    ];
    this.lanesLegend = legend([
      ...this.ownMarks,
      ["cross", "drop", "dropped (+ the grace it lacked)"],
      ["bar", "solid", `closed ${this.noun}: final`],
      ["bar", "body", `open ${this.noun}: can still change`],
      ...(isSession ? [["bar", "reach", "reach: a record in here joins (± gap)"], ["bracket", "merge", "sessions before they were merged"]] : []),
      ["line", "close", "close line now"],
      ["line", "stream", "stream time now"],
    ]);
    return make("section", { class: "lanes", "aria-label": "many keys" }, make("h2", { text: "Many keys, a lane each" }), this.lanesWords, bar, make("div", { class: "head" }, this.times.place, this.lanesLegend, this.lanes.scale), this.lanes.place);
  }

  buildPlane() {
    this.letters = make("input", { type: "search", id: "sk-find", autocomplete: "off", spellcheck: "false", oninput: () => this.listKeys(true) });
    document.addEventListener("keydown", (event) => {
      if (event.key !== "/" || event.target.matches("input, select, textarea")) return;
      event.preventDefault();
      this.letters.focus();
    });
    this.keys = make("select", { id: "sk-key", onchange: () => this.select(Number(this.keys.value), null) });
    this.earlier = make("button", { type: "button", text: "↓ earlier arrivals", onclick: () => this.turn(-1) });
    this.later = make("button", { type: "button", text: "↑ later arrivals", onclick: () => this.turn(1) });
    const bar = make("div", { class: "bar" }, make("label", { for: "sk-key", text: "key" }), this.keys, make("label", { for: "sk-find", text: "find" }), this.letters, make("span", { class: "buttons" }, this.earlier, this.later));
    this.plane = new PlaneView({ words: (thing) => this.wordsFor(thing), select: (thing) => this.select(this.key, thing), clock: this.clock });
    this.plane.svg.addEventListener("told", ({ detail }) => this.tell(detail));
    zoomable(this.plane.svg, (x, y) => x < this.plane.left || y > this.plane.bottom, (factor, _, y) => this.zoomPlane(factor, y));
    this.arrivals = new Minimap({ label: "all arrivals, by offset", caption: "arrivals", words: (offset) => `offset ${number(Math.round(offset))}`, chosen: (first, last, isDone) => isDone && this.showOffsets(first, last) });
    this.planeTitle = make("h2");
    this.planeWords = make("p", { class: "words" });
    const isSession = this.noun === "session";
    const entries = legend([
      ...this.ownMarks,
      ["cross", "drop", "dropped (dotted: the missing grace)"],
      ["bar", "body", isSession ? "session, as it grows" : "window, from its first record on"],
      ["line", "cap", "closed: the result is final"],
      ["line", "close", `close line = stream time ${isSession ? "− gap " : ""}− grace`],
      ["line", "stream", "stream time (newest event seen)"],
      ["circle", "other", "other keys (they move stream time too)"],
    ]);
    this.table = make("table");
    this.list = make("details", { class: "list", ontoggle: () => this.fillTable() }, make("summary"), make("div", { class: "scroll", tabindex: 0 }, this.table));
    return make("section", { class: "one", "aria-label": "one key" }, this.planeTitle, this.planeWords, bar, this.arrivals.place, this.plane.place, entries, this.list);
  }

  // ---- settings

  advances() {
    const { size } = this.lengths;
    return [...LADDER.filter((ms) => ms < size && ms * 60 >= size), size];
  }

  advanceWords(ms) {
    return ms === this.lengths.size ? `${showDuration(ms)}, the size: windows that do not overlap` : showDuration(ms);
  }

  set(name, ms) {
    const wanted = { ...this.wanted, [name]: ms }; // as all sliders stand, also after a refusal
    if (name === "advance") {
      this.tumbles = ms === wanted.size;
      this.advance = ms;
    }
    if (name === "size") wanted.advance = this.tumbles ? ms : Math.min(this.advance, ms);
    this.wanted = wanted;
    if (this.isWaiting) return; // the newest is taken when the next picture is painted
    this.isWaiting = true;
    requestAnimationFrame(() => {
      this.isWaiting = false;
      this.take(this.wanted);
    });
  }

  // Decides the records anew under other lengths, and shows what comes of it.
  take(lengths) {
    try {
      this.done = decide(this.records, lengths);
    } catch (error) {
      this.refuse(`${error.message}.`);
      return;
    }
    this.lengths = lengths;
    this.refused.hidden = true;
    this.sliders.advance?.show(lengths.advance, this.advances());
    this.follow();
  }

  refuse(words) {
    this.refused.textContent = `${words} What is shown is still ${this.settingsInWords()}.`;
    this.refused.hidden = false;
  }

  settingsInWords(lengths = this.lengths) {
    return Object.keys(this.sliders).map((name) => `${name} ${showDuration(lengths[name])}`).join(", ");
  }

  back() {
    this.tumbles = this.asRun.advance === this.asRun.size;
    this.advance = this.asRun.advance;
    for (const [name, slider] of Object.entries(this.sliders)) slider.show(this.asRun[name]);
    this.wanted = { ...this.asRun };
    this.take(this.wanted);
  }

  // ---- what follows

  // What is out of sight is drawn when the rest was painted.
  follow() {
    this.showCounts();
    this.drawInTurn(this.lanes.place, () => this.drawLanes());
    this.drawInTurn(this.plane.place, () => this.followPlane());
    if (this.selected) this.explain(this.selected);
  }

  followPlane() {
    this.drawPlane();
    if (this.selected) this.plane.mark(this.selected.record ?? this.selected.opener);
  }

  drawInTurn(picture, drawing) {
    clearTimeout(this.timers.get(picture));
    if (this.outOfSight.has(picture)) this.timers.set(picture, setTimeout(drawing, LATER_MS));
    else drawing();
  }

  redraw() {
    this.width = this.root.clientWidth;
    this.drawLanes();
    this.drawPlane();
  }

  showCounts() {
    const { noun, before } = this;
    const now = countsOf(this.records, this.done);
    const share = now.usable ? `${percent(now.dropped / now.usable)} of the records` : "no records";
    const end = noun === "session" ? "its last record" : "its end";
    const { whole } = this.data; // the counts of the run, where the page carries only a part of it
    this.reset.disabled = Object.keys(this.sliders).every((name) => this.lengths[name] === this.asRun[name]);
    const tile = (value, name, words, counted, kind = "") => {
      const change = counted ? now[counted] - before[counted] : 0;
      const more = change ? `${change > 0 ? "+" : "−"}${number(Math.abs(change))} ` : "";
      const all = whole && counted ? [make("small", { class: "whole", text: `${number(whole[counted])} in the whole run${this.reset.disabled ? "" : " as it was run"}` })] : [];
      return make("div", { class: `count ${kind}` }, make("b", { text: value }), make("span", { text: name }), make("small", { text: words }), ...all, make("small", { class: "change", text: more && `${more}against the plan` }));
    };
    const tiles = [tile(number(now.windows), now.windows === 1 ? noun : `${noun}s`, `${number(now.closed)} final, ${number(now.open)} open`, "windows")];
    if (noun === "session") tiles.push(tile(number(now.merges), now.merges === 1 ? "merge" : "merges", "times a record joined two", "merges"));
    tiles.push(tile(number(now.dropped), "dropped", share, "dropped", now.dropped || whole?.dropped ? "bad" : ""));
    if (now.partly || before.partly || whole?.partly) tiles.push(tile(number(now.partly), "partly late", "too late for some of their windows", "partly"));
    if (this.data.unusable) tiles.push(tile(number(this.data.unusable), "unusable", "dropped: no key, no time or no value"));
    tiles.push(tile(number(now.kept), "late but kept", `their ${noun} was still open`, "kept"));
    const change = this.done.lag - closeLag(this.asRun);
    const wait = tile(showDuration(this.done.lag), "until final", `after ${end}, in stream time`);
    wait.lastChild.textContent = change ? `${change > 0 ? "+" : "−"}${showDuration(Math.abs(change))} against the plan` : "";
    this.counts.replaceChildren(...tiles, wait);
    const names = { gap: "inactivity_gap" };
    const code = Object.keys(this.sliders).filter((name) => name !== "advance" || !this.tumbles).map((name) => `${names[name] ?? name}="${durationCode(this.lengths[name])}"`);
    this.code.textContent = `plan.with_windows(${code.join(", ")})`;
  }

  drawLanes() {
    const { records, lengths, done, shown, first, last } = this;
    const scene = lanesScene(records, lengths, done, shown, first, last);
    const [low, high] = extentOf(records, done, shown);
    this.lanes.show(scene, lanesRange(scene, first > low, last < high), this.key, this.isPrinting);
    const { whole } = this;
    const usual = usualSpan(records);
    const range = [Math.min(Math.max(whole[0], usual.first), first), Math.max(Math.min(whole[1], usual.last), last, first + 1)];
    records.usable ??= Array.from({ length: records.count }, (_, i) => i).filter((i) => records.slot[i] !== NONE);
    this.times.show({ rows: records.usable, at: records.time, isDrop: lateForSome(done), range, shown: [first, last], edges: [this.lanes.left, this.lanes.right] });
    this.lanes.canvas.dataset.drawn = Number(this.lanes.canvas.dataset.drawn ?? 0) + 1;
    const more = this.everything.length - shown.length;
    const isNarrow = usual.outside && first >= usual.first && last <= usual.last;
    const words = [
      `${this.clock.about(Math.max(first, low))} to ${this.clock.about(Math.min(last, high))}: ${plural(scene.windows.length, this.noun)}, ${number(scene.drops.length)} dropped`,
      ...(isNarrow ? [`${plural(usual.outside, "record lies", "records lie")} outside this span, far off the others`] : []),
      ...(more ? [`${plural(more, "more key")} not shown`] : []),
      ...(records.partitions > 1 && scene.streamTime === null ? ["several partitions, each with a stream time of its own: no close line is drawn"] : []),
      ...(this.data.zone ? [`times are in ${this.data.zone}`] : []),
    ];
    this.lanesWords.textContent = words.join(" · ");
    this.lanes.canvas.setAttribute("aria-label", `${words.join(". ")}. Arrow keys go from mark to mark, Enter chooses one.`);
  }

  drawPlane() {
    if (this.key === null) {
      this.planeTitle.textContent = "No key to show";
      return;
    }
    const { records, lengths, done } = this;
    const [key, partition] = [Math.floor(this.key / records.partitions), this.key % records.partitions];
    const isSame = this.history?.done === done && this.history.key === key && this.history.partition === partition;
    const history = isSame ? this.history : historyOf(records, lengths, done, key, partition);
    const rows = chooseRows(history, this.held);
    this.rows = rows;
    this.held = rows.length ? [rows[0], rows.at(-1)] : null; // it stays while sliders move
    const scene = planeScene(history, rows);
    this.plane.show(scene, sizesOf(done));
    const { ofPartition: all } = history;
    const places = (list) => [records.offset[list[0]], records.offset[list.at(-1)]];
    this.arrivals.place.hidden = rows.length === all.length; // nothing to choose from
    if (rows.length < all.length) this.arrivals.show({ rows: history.own, at: records.offset, isDrop: lateForSome(done), range: places(all), shown: places(rows), edges: [this.plane.left, this.plane.right] });
    const kept = history.own.filter((i) => done.decision[i] < LATE).length;
    const dropped = history.own.length - kept;
    const where = records.partitions > 1 ? `, partition ${records.partitionNumbers[partition]}` : "";
    this.planeTitle.textContent = `${this.data.hasKeys ? `Key “${this.data.keys[key]}”` : "All records"}${where}: ${plural(kept, "record")} kept, ${number(dropped)} dropped`;
    const isPart = rows.length < history.ofPartition.length;
    const said = ["read upwards: each row is one arriving record; sideways is when it happened"];
    if (rows.length && !scene.timed.some((i) => scene.missing.has(i)) && !scene.drops.length) {
      const where = dropped ? "no dropped record is in this part" : "none of its records was dropped";
      said.push(`${where}: the picture shows ${plural(new Set(scene.lives.map(({ window }) => window)).size, this.noun)}${scene.merges.length ? `, ${plural(scene.merges.length, "merge")}` : ""}`);
    }
    if (isPart && rows.length) said.push(`shown: offsets ${number(records.offset[rows[0]])} to ${number(records.offset[rows.at(-1)])}, without records of other keys that moved little or nothing`);
    if (key === this.data.cut?.key) said.push(this.data.cut.words);
    this.planeWords.textContent = said.join(" · ");
    this.earlier.disabled = !isPart || rows[0] <= history.ofPartition[0];
    this.later.disabled = !isPart || rows.at(-1) >= history.ofPartition.at(-1);
    this.plane.svg.setAttribute("aria-label", `${this.planeTitle.textContent}. Arrow keys go from record to record, [ and ] from drop to drop, / finds a key, Enter explains one.`);
    this.plane.svg.dataset.drawn = Number(this.plane.svg.dataset.drawn ?? 0) + 1;
    this.history = history;
    this.fillTable();
  }

  // The windows of the key with their results, where the list is open.
  fillTable() {
    const { done, records, data, history } = this;
    if (!history) return;
    const rows = history.windows.filter((window) => isStanding(done, window)).sort((a, b) => done.windows.start[a] - done.windows.start[b]);
    const some = rows.length > MOST_LISTED ? `the first ${MOST_LISTED} of ` : "";
    this.list.firstChild.textContent = `${some}${plural(rows.length, this.noun)} of this key as a table`;
    if (!this.list.open) return;
    const results = data.results.map(([name, what, column]) => [name, resultsOf(done, what, records.values[column])]);
    const head = make("tr", {}, ...["start", "end", "records", "", ...results.map(([name]) => name)].map((text) => make("th", { scope: "col", text })));
    const sizes = sizesOf(done);
    const body = rows.slice(0, MOST_LISTED).map((window) => {
      const cells = [this.clock.show(done.windows.start[window]), this.clock.show(done.windows.end[window])];
      const numbers = [number(sizes[window]), done.isClosed[window] ? "final" : "open", ...results.map(([, values]) => this.value(values[window]))];
      return make("tr", {}, ...cells.map((text) => make("td", { text })), ...numbers.map((text) => make("td", { class: "n", text })));
    });
    this.table.replaceChildren(make("thead", {}, head), make("tbody", {}, ...body));
  }

  value(value) {
    return value === null ? "" : number(value);
  }

  // ---- which keys, which times

  get whole() {
    return (this.done.extent ??= extentOf(this.records, this.done, this.everything));
  }

  get mostEventful() {
    return mostEventful(this.records, this.lengths, this.done, this.everything, this.clock);
  }

  order() {
    this.shown = ranked(this.records, this.done, this.sort, this.first, this.last).slice(0, MOST_LANES);
  }

  sortBy(sort) {
    this.sort = sort;
    this.order();
    this.drawLanes();
  }

  move(along, factor) {
    const half = ((this.last - this.first) / 2) * factor;
    const middle = (this.first + this.last) / 2 + along * (this.last - this.first);
    this.showSpan(middle - half, middle + half);
  }

  // The lanes over a span; the keys are put in order for it where it stands.
  showSpan(first, last, isDone = false) {
    [this.first, this.last] = [Math.floor(first), Math.max(Math.ceil(last), Math.floor(first) + 1)];
    if (isDone) this.order();
    this.drawLanes();
  }

  zoomLanes(factor, x, moved) {
    const { left, right, xRange: [low, high] } = this.lanes;
    const each = (high - low) / (right - left); // ms of a pixel
    const at = low + (x - left) * each;
    const [first, last] = [this.first, this.last].map((time) => at + (time - at) * factor - moved * each);
    if (factor > 1 && last - first > this.whole[1] - this.whole[0]) return this.showSpan(...this.whole, true);
    return this.showSpan(first, last);
  }

  // Fewer or more arrivals, about the row at a height of the plane.
  zoomPlane(factor, y) {
    const { plane, rows, records: { offset } } = this;
    if (!rows.length) return;
    const row = Math.round((plane.y(0) - y) / (plane.y(0) - plane.y(1)));
    const at = offset[rows[Math.min(Math.max(row, 0), rows.length - 1)]];
    this.showOffsets(...[rows[0], rows.at(-1)].map((i) => at + (offset[i] - at) * factor), factor > 1);
  }

  // The arrivals between two offsets; of more than a plane can show those in the middle, or (`isAll`) nothing new.
  showOffsets(first, last, isAll = false) {
    const { history, records: { offset } } = this;
    let rows = history.ofPartition.filter((i) => first <= offset[i] && offset[i] <= last);
    if (rows.length > MOST_ROWS) rows = telling(history, rows);
    if (rows.length < LEAST_ARRIVALS || (isAll && rows.length > MOST_ROWS)) return this.drawPlane();
    const start = Math.max((rows.length - MOST_ROWS) >> 1, 0);
    const shown = rows.slice(start, start + MOST_ROWS);
    this.held = [shown[0], shown.at(-1)];
    this.drawPlane();
    return this.plane.mark(this.selected?.record ?? this.selected?.opener);
  }

  // Of the key with most drops, merges and rescues, the partition with most of its records.
  mostEventfulSlot() {
    const { records, done, everything } = this;
    if (!everything.length) return null;
    const score = new Float64Array(this.data.keys.length);
    for (let i = 0; i < records.count; i++) {
      if (records.slot[i] === NONE) continue;
      const isMarked = done.decision[i] === LATE || done.decision[i] === MERGED;
      const isKept = done.kind === "session" && done.decision[i] < LATE && records.time[i] < records.stream[i] - done.lag;
      score[records.key[i]] += 3 * isMarked + 2 * isKept;
    }
    const asked = this.data.firstKey ?? null;
    const key = asked ?? score.reduce((best, value, at) => (value > score[best] ? at : best), 0);
    const mine = everything.filter((slot) => Math.floor(slot / records.partitions) === key);
    const bySlot = rowsBySlot(records);
    const size = (slot) => bySlot[slot]?.length ?? 0;
    return mine.sort((a, b) => size(b) - size(a))[0] ?? everything[0];
  }

  listKeys(isSearch = false) {
    const letters = this.letters.value.toLocaleLowerCase();
    const named = (slot) => this.lanes.scene?.records && this.records.partitions > 1 ? `${this.data.keys[Math.floor(slot / this.records.partitions)]} · ${this.records.partitionNumbers[slot % this.records.partitions]}` : this.data.keys[Math.floor(slot / this.records.partitions)];
    const matching = this.everything.filter((slot) => named(slot).toLocaleLowerCase().includes(letters)).slice(0, MOST_NAMED);
    if (!letters && this.key !== null && !matching.includes(this.key)) matching.unshift(this.key);
    this.keys.replaceChildren(...matching.map((slot) => make("option", { value: slot, text: named(slot) || "(empty)" })));
    if (matching.includes(this.key)) this.keys.value = this.key;
    else if (isSearch && matching.length) this.select(matching[0], null);
  }

  turn(step) {
    this.held = turned(this.history, this.rows, step * Math.floor(MOST_ROWS / 2));
    this.drawPlane();
  }

  select(slot, thing) {
    if (slot !== this.key) {
      this.key = slot;
      this.held = null;
      this.listKeys();
      this.drawPlane();
      this.drawLanes();
    }
    const record = thing?.record ?? (thing ? this.done.windows.openedAt[thing.window] : null);
    if (record !== null && !this.rows.includes(record)) {
      this.held = turned(this.history, [record], -MOST_ROWS / 2);
      this.drawPlane();
    }
    this.selected = thing && (thing.kind === "window" || thing.kind === "cap" ? { opener: this.done.windows.openedAt[thing.window], start: this.done.windows.start[thing.window] } : { record: thing.record });
    if (!this.selected) return;
    this.plane.mark(record);
    this.explain(this.selected);
  }

  explain(selected) {
    if (selected.record !== undefined) this.tell(this.explainer.record(selected.record), selected.record);
    else this.tell(this.windowWords(this.windowOf(selected)));
  }

  // Words, and of a late record the chain that led to its decision.
  tell(words, record = null) {
    const { records, done } = this;
    this.why.textContent = words;
    const isLate = record !== null && (lateForSome(done)[record] || (done.decision[record] < LATE && records.time[record] < records.stream[record] - done.lag));
    this.chained = isLate ? record : null;
    this.showChain();
  }

  showChain() {
    this.chain.hidden = this.chained === null;
    if (this.chain.hidden) return;
    const { explainer, data } = this;
    const chain = decisionChain(explainer, this.chained, !data.whole);
    this.chain.firstChild.textContent = chain.title;
    if (!this.chain.open) return;
    const { records, clock, at } = explainer;
    this.chain.lastChild.replaceChildren(...drawChain(chain, { records, clock, at, name: (i) => explainer.name(i) }, this.chain.clientWidth));
  }

  // The session that this record is in, or the window of its key that starts then; other settings make other ones.
  windowOf({ opener, start }) {
    const { done, records } = this;
    if (done.kind === "session") return done.window[opener] === NONE ? NONE : rootOf(done, done.window[opener]);
    return done.windows.start.findIndex((each, window) => each === start && done.windows.slot[window] === records.slot[opener]);
  }

  get explainer() {
    return new Explainer(this.records, this.lengths, this.done, this.data.keys, this.clock, this.data.zone, this.data.hasKeys);
  }

  windowWords(window) {
    if (window < 0) return "Under these settings there is no such window.";
    const { done, records, data } = this;
    const results = data.results.filter(([, what]) => what !== "count").map(([name, what, column]) => [name, this.value(resultsOf(done, what, records.values[column])[window]) || "no value"]);
    return this.explainer.window(window, sizesOf(done)[window], results);
  }

  // A few words for the pointer; the whole reason is told below the settings after a click.
  wordsFor(thing) {
    const { records, done, data, lengths } = this;
    if (thing.kind === "window" || thing.kind === "cap") {
      const { start, end, slot } = done.windows;
      const [from, to] = thing.cap ? [thing.cap.start, thing.cap.end] : [start[thing.window], end[thing.window]];
      const state = thing.cap ? "closed" : done.isClosed[thing.window] ? "closed" : "still open";
      const size = thing.cap ? heldAt(this.plane.scene, thing.cap, sizesOf(done)) : sizesOf(done)[thing.window];
      return `${data.keys[Math.floor(slot[thing.window] / records.partitions)]}: ${state}\n${this.clock.short(from)} to ${this.clock.short(to)}\n${plural(size, "record")}${to > from ? ` · ${aboutDuration(to - from)}` : ""}`;
    }
    const i = thing.record;
    const said = [`${data.keys[records.key[i]]} · offset ${number(records.offset[i])}${records.label(i) && ` · ${records.label(i)}`} · ${this.clock.short(records.time[i])}`];
    if (thing.kind === "other") return `${said[0]}\nanother key`;
    if (done.decision[i] === LATE) {
      const missing = lackedBy({ records, lengths, done }, i);
      said.push(`dropped: ${lacked(missing)} short`, `grace ${showDuration(lengths.grace)} → ${graceWith(lengths.grace, missing)} would keep it`);
    } else if (done.decision[i] === MERGED) said.push("a bridge: it joined two sessions");
    else if (lateForSome(done)[i]) said.push("too late for some of its windows");
    else if (records.time[i] < records.stream[i] - done.lag) said.push(`late, but its ${this.noun} is still open`);
    return said.join("\n");
  }
}

async function start() {
  for (const root of document.querySelectorAll(".what-if")) {
    const data = JSON.parse(document.querySelector("script[data-what-if]").textContent);
    try {
      const records = recordsOf(await unpack(data), data.told);
      globalThis.whatIf = new WhatIf(root, data, records);
      root.dataset.ready = "";
    } catch (error) {
      root.append(make("p", { class: "refused", role: "alert", text: `The pictures could not be drawn: ${error.message}` }));
    }
  }
}
