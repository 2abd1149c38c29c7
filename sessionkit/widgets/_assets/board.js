// A board: its parts in their places, shown as the kernel says; what a person does is told to the kernel.

// One message at a time: of the many moves of a slider the newest is sent when the one before has been answered.
const ANSWER_MS = 5_000;

function speakTo(model) {
  const waiting = new Map(); // by what they are about; a later one takes the place of an earlier one
  let sent = null;
  let count = 0;
  let timer = 0;
  function flush() {
    clearTimeout(timer);
    if (sent && model.get("state").answered === sent) sent = null;
    const [next] = waiting;
    if (sent || !next) return;
    waiting.delete(next[0]);
    sent = crypto.randomUUID?.() ?? `${Math.random()}`; // there may be several views of one board
    model.send({ ...next[1], number: sent });
    timer = setTimeout(() => ((sent = null), flush()), ANSWER_MS);
  }
  const send = (message, about = `${(count += 1)}`) => {
    waiting.set(about, message);
    flush();
  };
  return { send, flush, isIdle: () => !sent && !waiting.size };
}

const part = (name, role, ...children) => make("div", { class: `sessionkit-${name}`, role }, ...children);

// The height that is left for the pictures, so that all of the board is on one screen.
const AROUND = 190; // pixels of the notebook above and below its cells
const TWO_COLUMNS = 1_200;
function heightFor(grid, pictures) {
  const isWide = grid.clientWidth >= TWO_COLUMNS;
  const above = pictures.getBoundingClientRect().top - grid.getBoundingClientRect().top;
  const room = window.innerHeight - AROUND - Math.max(above, 0) - 60;
  return Math.round(Math.min(Math.max(room, 330), isWide ? 640 : 420) / 10) * 10;
}

function makeParts(el) {
  const plain = ["sliders", "settings", "views", "pictures", "tools", "means", "table"];
  const [sliders, settings, views, pictures, tools, legend, table] = plain.map((name) => part(name));
  const counts = part("counts", "status");
  const refused = part("words refused", "alert");
  const said = part("words", "status");
  const doing = part("doing"); // changes each second: not read out
  const top = part("top", null, sliders, settings);
  const main = part("main", null, views, pictures);
  const side = part("side", null, doing, said, legend);
  const below = part("below", null, table);
  const grid = part("grid", null, top, counts, refused, main, side, below);
  const board = part("board", "group", grid);
  el.append(board);
  return { sliders, settings, views, counts, refused, pictures, below, top, board, grid, doing, said, tools, legend, table };
}

// The pictures in their place, and two buttons that save the one that is shown.
function makeTools(parts, model) {
  const said = make("span", { class: "sessionkit-note", role: "status" });
  const buttons = ["svg", "png"].map((format) => {
    const label = format.toUpperCase();
    const button = makeButton({ label, hint: `saves the picture with its title and legend as ${label}` }, () => {
      said.textContent = "";
      model.send({ kind: "whole", format });
    });
    return put(button, { "aria-label": `save the picture as ${label}` });
  });
  parts.tools.append("save the picture as", ...buttons, said);
  return async (message) => {
    if (message.kind !== "whole") return;
    try {
      const Plotly = await plotly(model);
      const { data, layout } = JSON.parse(message.figure);
      const { width = 1120, height = 500 } = layout;
      await Plotly.downloadImage({ data, layout }, { format: message.format, filename: "sessionkit", width, height });
      said.textContent = "saved";
    } catch (error) {
      said.textContent = `it could not be saved: ${error.message}`;
    }
  };
}

// Makes and updates the controls; those of other views are hidden.
function makeControls(parts, model, send) {
  const made = new Map();
  const places = { slider: parts.sliders, play: parts.sliders, tabs: parts.views };
  return (isAnswered) => {
    const { values = {} } = model.get("state");
    const specs = model.get("controls");
    const tabs = specs.find((spec) => spec.kind === "tabs");
    const view = tabs && tabs.options[values[tabs.name]];
    for (const spec of specs) {
      if (!made.has(spec.name)) {
        const set = (value) => send({ kind: "set", name: spec.name, value }, `set ${spec.name}`);
        const control = MAKERS[spec.kind](spec, set, made);
        control.element.dataset.control = spec.name;
        made.set(spec.name, control);
        (places[spec.kind] ?? parts.settings).append(control.element);
      }
      const control = made.get(spec.name);
      control.element.hidden = spec.views.length > 0 && !spec.views.includes(view);
      control.show(spec, values[spec.name], isAnswered);
    }
    return () => made.forEach((control) => control.remove?.());
  };
}

function makePictures(parts, model, send) {
  const made = new Map();
  const explain = (traces) => legendInto(parts.legend, traces);
  function show() {
    const figures = model.get("figures");
    const overlays = model.get("overlays");
    const { revision } = model.get("state");
    for (const [name, picture] of made) {
      if (name in figures) continue;
      picture.remove();
      made.delete(name);
    }
    for (const [name, figure] of Object.entries(figures)) {
      if (!made.has(name)) {
        const picture = makePicture(name, model, send, explain);
        parts.pictures.insertBefore(picture.element, made.get("strip")?.element ?? null);
        made.set(name, picture);
      }
      made.get(name).show(figure, overlays[name] ?? "", revision);
    }
    if (parts.pictures.lastChild !== parts.tools) parts.pictures.append(parts.tools);
    parts.tools.hidden = !made.size;
    if (!made.size) explain([]);
  }
  return { show, fit: () => made.forEach((picture) => picture.fit()), remove: () => made.forEach((picture) => picture.remove()) };
}

function render({ model, el }) {
  const parts = makeParts(el);
  const { send, flush, isIdle } = speakTo(model);
  const showControls = makeControls(parts, model, send);
  const pictures = makePictures(parts, model, send);
  const onMessage = makeTools(parts, model);
  const code = makeCode();
  const table = (row) => send({ kind: "row", row });
  parts.below.append(code.element);
  const shown = {};
  let removeControls = () => {};
  let isPlanned = false;

  const isNew = (name) => {
    const value = model.get(name);
    const is = shown[name] !== value;
    shown[name] = value;
    return is;
  };
  function show() {
    isPlanned = false;
    flush();
    parts.board.setAttribute("aria-label", model.get("title"));
    removeControls = showControls(isIdle());
    if (isNew("counts")) tiles(parts.counts, model.get("counts"));
    if (isNew("words")) {
      const words = model.get("words");
      sentences(parts.doing, words.doing);
      sentences(parts.said, words.said, words["said is refused"]);
      sentences(parts.refused, words.refused, true);
    }
    if (isNew("table")) fillTable(parts.table, model.get("table"), table);
    if (isNew("code")) code.show(model.get("code"));
    pictures.show();
    parts.board.dataset.revision = model.get("state").revision;
  }
  const plan = () => {
    if (!isPlanned) queueMicrotask(show); // what changes together is shown together
    isPlanned = true;
  };

  let look = "";
  function tellLook() {
    const width = Math.floor(parts.pictures.clientWidth / 20) * 20;
    if (!width) return; // not shown now
    pictures.fit();
    const message = { kind: "look", theme: pageTheme(), width, height: heightFor(parts.grid, parts.pictures) };
    parts.board.dataset.theme = message.theme;
    const text = JSON.stringify(message);
    if (text !== look) send(message, "look");
    look = text;
  }
  const measure = new ResizeObserver(tellLook);
  const releaseTheme = followTheme(tellLook);
  const releaseKeys = keepPlainKeys(parts.top);
  const releaseViews = keepPlainKeys(parts.views);
  const traits = ["controls", "state", "figures", "overlays", "words", "counts", "table", "code"];
  parts.board.dataset.theme = pageTheme();
  for (const name of traits) model.on(`change:${name}`, plan);
  model.on("msg:custom", onMessage);
  window.addEventListener("resize", tellLook);
  show();
  measure.observe(parts.pictures);
  return () => {
    measure.disconnect();
    window.removeEventListener("resize", tellLook);
    for (const release of [releaseTheme, releaseKeys, releaseViews, removeControls, pictures.remove]) release();
    for (const name of traits) model.off(`change:${name}`, plan);
    model.off("msg:custom", onMessage);
  };
}

export default { render };
