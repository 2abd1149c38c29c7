// A slider over steps that have names, read out as they are; some can be typed as well.
const shared = (globalThis.sessionkit ??= {}); // each widget has its own copy of this module

function render({ model, el }) {
  const id = `sessionkit-slider-${(shared.sliders = (shared.sliders ?? 0) + 1)}`;
  const label = document.createElement("label");
  const slider = Object.assign(document.createElement("input"), { type: "range", min: "0", step: "1", id });
  const typed = Object.assign(document.createElement("input"), { type: "text", spellcheck: false, autocomplete: "off" });
  const refused = document.createElement("span");
  label.htmlFor = id;
  refused.setAttribute("role", "alert");
  el.classList.add("sessionkit-slider");
  const said = document.createElement("output");
  el.append(label, slider, model.get("can_type") ? typed : said, refused);

  let isEditing = false; // what is being typed is not overwritten
  const tell = (step) => {
    slider.setAttribute("aria-valuetext", step);
    said.textContent = step;
    if (!isEditing && !model.get("refused")) typed.value = step.replaceAll(",", "");
  };
  function show() {
    const words = model.get("words");
    label.textContent = model.get("name");
    slider.max = words.length - 1;
    slider.value = model.get("place");
    tell(words[model.get("place")]);
    typed.setAttribute("aria-label", `${model.get("name")}, typed: ${model.get("hint")}`);
    refused.textContent = model.get("refused");
    typed.setAttribute("aria-invalid", model.get("refused") ? "true" : "false");
  }
  const send = (name, value) => {
    model.set(name, value);
    model.save_changes();
  };
  slider.addEventListener("input", () => {
    tell(model.get("words")[slider.valueAsNumber]);
    send("place", slider.valueAsNumber);
  });
  typed.addEventListener("input", () => (isEditing = true));
  const commit = () => {
    if (!isEditing) return;
    isEditing = false;
    send("typed", typed.value);
  };
  typed.addEventListener("blur", commit);
  typed.addEventListener("keydown", (event) => event.key === "Enter" && commit());
  const release = keepPlainKeys(el);
  for (const name of ["words", "place", "typed", "refused"]) model.on(`change:${name}`, show);
  show();
  return () => {
    release();
    model.off(null, show);
  };
}

export default { render };
