// What the marks of a figure mean, beside it: a small drawing of each, and its name.
const SYMBOLS = {
  circle: "M14,3a5,5 0 1,0 .01,0Z",
  "circle-open": "M14,3a5,5 0 1,0 .01,0Z",
  square: "M9,3h10v10h-10Z",
  diamond: "M14,2l6,6l-6,6l-6,-6Z",
  "triangle-up": "M14,2.5l5.5,10h-11Z",
  x: "M9.5,2l4.5,4.5l4.5,-4.5l1.5,1.5l-4.5,4.5l4.5,4.5l-1.5,1.5l-4.5,-4.5l-4.5,4.5l-1.5,-1.5l4.5,-4.5l-4.5,-4.5Z",
};
const DASHES = { dash: "6 4", dot: "2 3", dashdot: "6 3 2 3" };

function drawnAs(trace) {
  const { line = {}, marker } = trace;
  const dash = DASHES[line.dash] ?? "none";
  if (marker && trace.mode !== "lines") {
    const isOpen = String(marker.symbol).endsWith("-open");
    return {
      d: SYMBOLS[marker.symbol ?? "circle"] ?? SYMBOLS.circle,
      fill: isOpen ? "none" : marker.color,
      stroke: isOpen ? marker.color : "none",
    };
  }
  const stroke = line.width ? line.color : "none";
  if (trace.fill) return { d: "M2,2h24v12h-24Z", fill: trace.fillcolor, stroke, "stroke-dasharray": dash };
  return { d: "M1,8h26", fill: "none", stroke, "stroke-width": line.width, "stroke-dasharray": dash };
}

// What the marks of these traces mean; nothing is done where it stands there already.
function legendInto(place, traces) {
  const named = traces.filter((trace) => trace.showlegend !== false && trace.name);
  named.sort((one, other) => (one.legendrank ?? 1000) - (other.legendrank ?? 1000));
  const told = JSON.stringify(named.map((trace) => [trace.name, drawnAs(trace)]));
  if (place.dataset.told === told) return;
  place.dataset.told = told;
  const entries = named.map((trace) => {
    const drawing = draw("svg", { width: 28, height: 16, "aria-hidden": true }, draw("path", drawnAs(trace)));
    return make("li", {}, drawing, trace.name);
  });
  const list = make("ul", { class: "sessionkit-legend", "aria-label": "what the marks mean" }, ...entries);
  place.replaceChildren(...(named.length ? [list] : []));
}

