// plotly.js comes from the kernel, once a page: nothing is fetched from elsewhere, nothing is saved in the notebook.
const shared = (globalThis.sessionkit ??= {}); // each widget has its own copy of this module
const PATIENCE_MS = 10_000;

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

// Whoever was asked first may be gone before it could answer: then another board asks.
async function plotly(model) {
  while (!shared.loaded) {
    if (!(Date.now() - shared.askedAt < PATIENCE_MS)) ask(model);
    await Promise.race([shared.plotly, new Promise((resolve) => setTimeout(resolve, PATIENCE_MS))]);
  }
  return shared.loaded;
}

// plotly writes its styles into the page; a notebook that keeps each cell's styles apart needs them there, too.
function bringStyles(element) {
  const root = element.getRootNode();
  if (root === document) return;
  const rules = [...document.querySelectorAll("style[id^='plotly.js-style']")].flatMap((style) => [...style.sheet.cssRules]);
  const text = rules.map((rule) => rule.cssText).join("\n");
  let style = root.querySelector(".sessionkit-plotly-style");
  if (!style) {
    style = Object.assign(document.createElement("style"), { className: "sessionkit-plotly-style" });
    root.append(style);
  }
  if (style.textContent !== text) style.textContent = text;
}

