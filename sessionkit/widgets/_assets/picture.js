// One picture of a board: a plotly figure, its title and notes, and what a person does with it.

const LEAST_WIDTH = 600; // what is narrower is shown smaller
const axisRanges = (place) => ({ x: [...place._fullLayout.xaxis.range], y: [...place._fullLayout.yaxis.range] });

// + and − zoom, ← and → move, with Shift where a board has another use for the arrows.
const ZOOMS = { "+": [0.5, 0], "=": [0.5, 0], "-": [2, 0], ArrowLeft: [1, -0.25], ArrowRight: [1, 0.25] };
const STEPS = { ArrowUp: "up", ArrowDown: "down", ArrowLeft: "left", ArrowRight: "right", Enter: "enter", "[": "drop before", "]": "drop after" };

// Of a strip its frame is zoomed and moved, and the picture above it follows.
const frameOf = (place) => ["x0", "x1"].map((end) => place._fullLayout.shapes[0][end]);

function zoomBy(Plotly, place, factor, shift, isStrip) {
  const axis = place._fullLayout.xaxis;
  const [low, high] = (isStrip ? frameOf(place) : axis.range).map(axis.r2l);
  const middle = (low + high) / 2 + shift * (high - low);
  const half = ((high - low) / 2) * factor;
  const ends = [middle - half, middle + half].map(axis.l2r);
  Plotly.relayout(place, isStrip ? { "shapes[0].x0": ends[0], "shapes[0].x1": ends[1] } : { "xaxis.range": ends });
}

// Where a click beside all marks was, on the axes: on the name of a lane, or in the plot.
function placeOf(place, event) {
  const { xaxis, yaxis } = place._fullLayout;
  const box = place.getBoundingClientRect();
  const scale = box.width / place.offsetWidth;
  const x = (event.clientX - box.left) / scale - xaxis._offset;
  const y = (event.clientY - box.top) / scale - yaxis._offset;
  const isInside = y >= 0 && y <= yaxis._length && x <= xaxis._length;
  return isInside ? { x: x < 0 ? "name" : xaxis.p2d(x), y: yaxis.p2d(y) } : null;
}

// Leader lines of labels as shapes: plotly draws annotations twice, and measures each arrow whenever it does.
function withLeaders(layout) {
  const leaders = [];
  const annotations = (layout.annotations ?? []).map((each) => {
    if (!each.showarrow) return each;
    const { x: xanchor, y: yanchor, ax, ay, arrowcolor: color, arrowwidth: width } = each;
    const ends = { xsizemode: "pixel", ysizemode: "pixel", xanchor, yanchor, x0: 0, y0: 0, x1: ax, y1: -ay };
    leaders.push({ type: "line", ...ends, line: { color, width } });
    return { ...each, showarrow: false, xshift: ax, yshift: -ay };
  });
  return leaders.length ? { ...layout, annotations, shapes: [...(layout.shapes ?? []), ...leaders] } : layout;
}

// A strip is drawn after the picture above it was painted, and not at each move of a slider.
const later = () => new Promise((resolve) => setTimeout(() => requestAnimationFrame(() => setTimeout(resolve)), 100));

// `onDrawn` is told the traces that are drawn.
function makePicture(name, model, send, onDrawn) {
  const isStrip = name === "strip";
  const title = make("b");
  const notes = make("span");
  const caption = make("figcaption", {}, title, " ", notes);
  const place = make("div", { class: isStrip ? "sessionkit-strip" : "sessionkit-picture", role: "img", tabindex: 0 });
  const room = make("div", { class: "sessionkit-room" }, place); // as wide as there is; the picture may be made smaller
  const element = make("figure", { class: "sessionkit-figure" }, caption, room);
  const shown = { figure: "", overlay: "" };
  let wanted = null;
  let configured = "";
  let drawing = false;
  let isDrawn = false;
  let isFluid = false; // as wide as the room
  let arrows = null; // labels with their arrows as they came, where their leader lines are shapes now
  let onMark = false; // a click on a mark is one on the plot, too

  function listen(Plotly) {
    place.on("plotly_relayout", (change) => {
      if (arrows && Object.keys(change).some((each) => each.includes("axis.range"))) {
        const whole = arrows;
        arrows = null;
        Plotly.relayout(place, whole); // an arrow is hidden with its label where its point is no longer shown
      }
      if (Object.keys(change).some((each) => each.startsWith("shapes[0].x"))) {
        send({ kind: "zoom", picture: name, x: frameOf(place), y: [] }, `zoom ${name}`);
      } else if (wanted.picture.zoom && Object.keys(change).some((each) => each.startsWith("xaxis"))) {
        send({ kind: "zoom", picture: name, ...axisRanges(place) }, `zoom ${name}`);
      }
    });
    place.on("plotly_click", ({ points: [point] }) => {
      onMark = true;
      send({ kind: "click", picture: name, x: point.x, y: point.y, name: point.data.name ?? "" });
    });
    place.addEventListener("click", (event) => {
      // plotly tells of a mark when the button comes up, which is before the click
      const at = onMark || !place._fullLayout?.xaxis ? null : placeOf(place, event);
      onMark = false;
      if (at) send({ kind: "click", picture: name, ...at, name: "" });
    });
    place.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const zooming = wanted.picture.zoom && ZOOMS[event.key];
      if (zooming) zoomBy(Plotly, place, ...zooming, isStrip);
      else if (STEPS[event.key]) send({ kind: "key", picture: name, key: STEPS[event.key] });
      else return;
      event.preventDefault();
    });
  }

  async function drawOnce() {
    const { picture, overlay, revision } = wanted;
    place.setAttribute("aria-label", picture.label);
    title.textContent = picture.title;
    notes.textContent = picture.notes.join(" · ");
    caption.hidden = !picture.title;
    const Plotly = await plotly(model);
    if (picture.figure !== shown.figure) {
      const figure = JSON.parse(picture.figure);
      const whole = { ...figure.layout, ...JSON.parse(overlay || "{}") };
      const layout = overlay ? whole : withLeaders(whole);
      arrows = layout === whole ? null : { annotations: whole.annotations, shapes: whole.shapes ?? [] };
      isFluid = !layout.width;
      if (isFluid) layout.width = Math.max(room.clientWidth, LEAST_WIDTH);
      const config = {
        displaylogo: false,
        displayModeBar: picture.zoom && !isStrip ? "hover" : false,
        scrollZoom: picture.zoom === "wheel",
        doubleClick: picture.zoom && !isStrip ? "reset" : false,
        showTips: !isStrip,
        modeBarButtonsToRemove: ["toImage", "select2d", "lasso2d", "sendChartToCloud"],
        showSendToCloud: false, // nothing leaves the notebook
        plotlyServerURL: "",
      };
      const told = JSON.stringify(config);
      // with a config, plotly looks up and compares all of its own settings at each step
      await Plotly.react(place, figure.data, layout, ...(told === configured ? [] : [config]));
      configured = told;
      bringStyles(place);
      if (!isDrawn) listen(Plotly);
      isDrawn = true;
      fit();
      if (!isStrip) onDrawn(picture.legend ? figure.data : []);
    } else if (overlay !== shown.overlay) {
      await Plotly.relayout(place, JSON.parse(overlay || "{}"));
    }
    Object.assign(shown, { figure: picture.figure, overlay });
    place.dataset.revision = revision;
  }

  async function draw() {
    if (drawing) return; // the newest figure is drawn when this one is done
    drawing = true;
    if (isStrip) await later();
    for (let last = null; last !== wanted; ) {
      last = wanted;
      try {
        await drawOnce();
      } catch (error) {
        place.textContent = `This picture could not be drawn: ${error.message}`;
        isDrawn = false;
        configured = "";
      }
    }
    drawing = false;
  }

  // What is still too wide is shown smaller as a whole.
  function fit() {
    if (!isDrawn || !room.clientWidth) return;
    const wide = Math.max(room.clientWidth, LEAST_WIDTH);
    if (isFluid && place._fullLayout.width !== wide) shared.loaded.relayout(place, { width: wide });
    const { width, height } = place._fullLayout;
    const scale = Math.min(1, room.clientWidth / width);
    place.style.width = `${width}px`;
    place.style.transform = scale < 1 ? `scale(${scale})` : "";
    room.style.height = `${Math.ceil(height * scale)}px`;
  }

  const release = keepPlainKeys(place);
  const show = (picture, overlay, revision) => {
    wanted = { picture, overlay, revision };
    return draw();
  };
  const remove = () => {
    release();
    shared.loaded?.purge(place);
    element.remove();
  };
  return { element, room, show, fit, remove };
}

