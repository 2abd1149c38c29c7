// A slider over steps that have names, read out as they are; some can be typed as well.
function makeSlider(spec, set) {
  const id = `sessionkit-slider-${(shared.sliders = (shared.sliders ?? 0) + 1)}`;
  let words = [];
  let isEditing = false; // what is being typed is not overwritten
  let movedTo = null; // a move that the kernel has not answered is not taken back
  const tell = (step) => {
    slider.setAttribute("aria-valuetext", step);
    said.textContent = step;
    if (!isEditing && !refused.textContent) typed.value = step.replaceAll(",", "");
  };
  const move = (place) => {
    movedTo = place;
    slider.value = place;
    tell(words[place]);
    set(place);
  };
  const commit = () => {
    if (!isEditing) return;
    isEditing = false;
    movedTo = null;
    if (typed.value.trim()) set(typed.value);
  };
  const label = make("label", { for: id });
  const slider = make("input", { type: "range", min: 0, step: 1, id, oninput: () => move(slider.valueAsNumber) });
  const typed = typedInto({ autocomplete: "off", oninput: () => (isEditing = true) }, commit);
  const said = make("output");
  const refused = make("span", { role: "alert" });
  const element = make("div", { class: "sessionkit-slider" }, label, slider, spec.typed ? typed : said, refused);

  function show(now, value, isAnswered) {
    words = now.words;
    label.textContent = now.label;
    slider.max = words.length - 1;
    typed.setAttribute("aria-label", `${now.label}, typed: ${now.hint}`);
    typed.setAttribute("aria-invalid", now.refused ? "true" : "false");
    refused.textContent = now.refused ?? "";
    if (isAnswered) movedTo = null;
    if (movedTo !== null) return;
    slider.value = value;
    tell(words[value] ?? "");
  }
  const next = () => slider.valueAsNumber < words.length - 1 && (move(slider.valueAsNumber + 1), true);
  return { element, show, next, start: () => move(0) };
}

