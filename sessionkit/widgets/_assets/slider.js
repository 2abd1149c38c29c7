// A slider over steps that have names, read out as they are; some can be typed as well.
function makeSlider(spec, set) {
  const element = document.createElement("div");
  const id = `sessionkit-slider-${(shared.sliders = (shared.sliders ?? 0) + 1)}`;
  const label = Object.assign(document.createElement("label"), { htmlFor: id });
  const slider = Object.assign(document.createElement("input"), { type: "range", min: "0", step: "1", id });
  const typed = Object.assign(document.createElement("input"), { type: "text", spellcheck: false, autocomplete: "off" });
  const said = document.createElement("output");
  const refused = document.createElement("span");
  refused.setAttribute("role", "alert");
  element.className = "sessionkit-slider";
  element.append(label, slider, spec.typed ? typed : said, refused);

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
  slider.addEventListener("input", () => move(slider.valueAsNumber));
  typed.addEventListener("input", () => (isEditing = true));
  const commit = () => {
    if (!isEditing) return;
    isEditing = false;
    movedTo = null;
    if (typed.value.trim()) set(typed.value);
  };
  typed.addEventListener("blur", commit);
  typed.addEventListener("keydown", (event) => event.key === "Enter" && commit());

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

