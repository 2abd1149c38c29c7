// A plotly figure whose JSON is the widget's state: what a kernel still knows is drawn again after a reload.

// plotly.js comes from the kernel, once a page: nothing is fetched from elsewhere, nothing is saved in the notebook.
const shared = (globalThis.sessionkit ??= {});
const PATIENCE_MS = 10_000;
const LEAST_WIDTH = 600; // what is narrower is shown smaller

function ask(model) {
  shared.askedAt = Date.now();
  shared.plotly = new Promise((resolve, reject) => {
    const answer = (message, buffers) => {
      if (message.kind !== "plotly") return;
      model.off("msg:custom", answer);
      load(buffers[0]).then(resolve, reject);
    };
    model.on("msg:custom", answer);
    model.send({ kind: "plotly" });
  }).then((module) => (shared.loaded = module));
}

async function load(gzipped) {
  const unzipped = new Blob([gzipped]).stream().pipeThrough(new DecompressionStream("gzip"));
  const script = await new Response(unzipped).text();
  const head = "const module = { exports: {} }; const exports = module.exports; let define, require;\n";
  const url = URL.createObjectURL(new Blob([head, script, "\nexport default module.exports;"], { type: "text/javascript" }));
  try {
    return (await import(url)).default;
  } finally {
    URL.revokeObjectURL(url);
  }
}

async function plotly(model) {
  if (!shared.loaded && !(Date.now() - shared.askedAt < PATIENCE_MS)) ask(model);
  return shared.loaded ?? shared.plotly;
}

const theme = () => {
  const { jpThemeLight, vscodeThemeKind } = document.body.dataset;
  return jpThemeLight === "false" || vscodeThemeKind?.includes("dark") ? "dark" : "light";
};

// ---- what a person does: zoom (also by keys), click

const ranges = (place) => ({ x: [...place._fullLayout.xaxis.range], y: [...place._fullLayout.yaxis.range] });

function zoom(Plotly, place, factor, shift) {
  const axis = place._fullLayout.xaxis;
  const [low, high] = axis.range.map(axis.r2l);
  const middle = (low + high) / 2 + shift * (high - low);
  const half = ((high - low) / 2) * factor;
  Plotly.relayout(place, { "xaxis.range": [middle - half, middle + half].map(axis.l2r) });
}

const KEYS = {
  "+": [0.5, 0],
  "=": [0.5, 0],
  "-": [2, 0],
  ArrowLeft: [1, -0.25],
  ArrowRight: [1, 0.25],
};

function listen(Plotly, model, place) {
  place.on("plotly_relayout", () => {
    model.set("zoomed", ranges(place));
    model.save_changes();
  });
  place.on("plotly_click", ({ points: [point] }) => {
    const { x, y } = point;
    model.send({ kind: "click", x, y, name: point.data.name ?? "" });
  });
  place.addEventListener("keydown", (event) => {
    const step = KEYS[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    zoom(Plotly, place, ...step);
  });
}

// ---- drawing

function render({ model, el }) {
  const room = document.createElement("div"); // as wide as there is room; the picture in it may be made smaller
  const place = document.createElement("div");
  room.className = "sessionkit-room";
  place.className = "sessionkit-picture";
  place.setAttribute("role", "img");
  place.tabIndex = 0;
  room.append(place);
  el.append(room);
  let drawing = false;
  let again = false;
  let drawn = false;
  let isFluid = false; // as wide as the room

  async function draw() {
    again = drawing;
    if (drawing) return; // the newest figure is drawn when this one is done
    drawing = true;
    do {
      again = false;
      place.setAttribute("aria-label", model.get("label"));
      const text = model.get("figure");
      if (!text) continue;
      try {
        const Plotly = await plotly(model);
        const figure = JSON.parse(text);
        const layout = { ...figure.layout, ...JSON.parse(model.get("patch") || "{}") };
        isFluid = !layout.width;
        if (isFluid) layout.width = Math.max(room.clientWidth, LEAST_WIDTH);
        await Plotly.react(place, figure.data, layout, { displaylogo: false, scrollZoom: model.get("can_scroll") });
        if (!drawn) listen(Plotly, model, place);
        drawn = true;
        fit();
        place.dataset.revision = model.get("revision");
      } catch (error) {
        place.textContent = `This picture could not be drawn: ${error.message}`;
      }
    } while (again);
    drawing = false;
  }

  async function patch() {
    if (!drawn || drawing) return draw();
    const Plotly = await plotly(model);
    await Plotly.relayout(place, JSON.parse(model.get("patch") || "{}"));
    place.dataset.revision = model.get("revision");
  }

  // What is still too wide is shown smaller as a whole.
  function fit() {
    const { width, height } = place._fullLayout;
    const scale = Math.min(1, room.clientWidth / width);
    if (!room.clientWidth) return;
    place.style.width = `${width}px`;
    place.style.transform = scale < 1 ? `scale(${scale})` : "";
    room.style.height = `${Math.ceil(height * scale)}px`;
  }

  function followWidth() {
    const width = Math.floor(room.clientWidth / 20) * 20;
    if (!width) return; // not shown now
    if (drawn && isFluid) shared.loaded.relayout(place, { width: Math.max(width, LEAST_WIDTH) }).then(fit);
    else if (drawn) fit();
    if (width === model.get("width")) return;
    model.set("width", width);
    model.save_changes();
  }

  function followTheme() {
    if (model.get("theme") === theme()) return;
    model.set("theme", theme());
    model.save_changes();
  }
  const watcher = new MutationObserver(followTheme);
  watcher.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "data-vscode-theme-kind"] });
  const release = keepPlainKeys(place);
  const measure = new ResizeObserver(followWidth);
  measure.observe(room);
  model.on("change:figure", draw);
  model.on("change:patch", patch);
  followTheme();
  draw();
  return () => {
    watcher.disconnect();
    measure.disconnect();
    release();
    model.off("change:figure", draw);
    model.off("change:patch", patch);
    shared.loaded?.purge(place);
  };
}

export default { render };
