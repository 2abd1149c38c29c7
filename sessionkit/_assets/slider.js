// A slider over steps that have names, read out as they are; some can be typed as well.
let count = 0;

function render({ model, el }) {
  const id = `sessionkit-slider-${++count}`;
  const label = document.createElement("label");
  const slider = Object.assign(document.createElement("input"), { type: "range", min: "0", step: "1", id });
  const typed = Object.assign(document.createElement("input"), { type: "text", spellcheck: false, autocomplete: "off" });
  const refused = document.createElement("span");
  label.htmlFor = id;
  refused.setAttribute("role", "alert");
  el.classList.add("sessionkit-slider");
  const said = document.createElement("output");
  el.append(label, slider, model.get("can_type") ? typed : said, refused);

  const name = (step) => {
    slider.setAttribute("aria-valuetext", step);
    said.textContent = step;
  };
  function show() {
    const words = model.get("words");
    label.textContent = model.get("name");
    slider.max = words.length - 1;
    slider.value = model.get("place");
    name(words[model.get("place")]);
    typed.setAttribute("aria-label", `${model.get("name")}, typed: ${model.get("hint")}`);
    if (document.activeElement !== typed || !model.get("refused")) typed.value = model.get("text");
    refused.textContent = model.get("refused");
    typed.setAttribute("aria-invalid", model.get("refused") ? "true" : "false");
  }
  const send = (name, value) => {
    model.set(name, value);
    model.save_changes();
  };
  slider.addEventListener("input", () => {
    name(model.get("words")[slider.valueAsNumber]);
    send("place", slider.valueAsNumber);
  });
  typed.addEventListener("change", () => send("typed", typed.value));
  for (const input of [slider, typed]) {
    input.addEventListener("keydown", (event) => event.stopPropagation()); // the notebook has its own ideas of keys
  }
  for (const name of ["words", "place", "text", "refused"]) model.on(`change:${name}`, show);
  show();
  return () => model.off(null, show);
}

export default { render };
