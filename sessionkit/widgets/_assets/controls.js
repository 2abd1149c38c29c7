// Everything on a board that can be set, beside its sliders.

function labelled(spec, control) {
  const element = document.createElement("label");
  element.className = "sessionkit-field";
  element.append(Object.assign(document.createElement("span"), { textContent: spec.label }), control);
  return element;
}

function makeButton(spec) {
  return Object.assign(document.createElement("button"), { type: "button", textContent: spec.label, title: spec.hint });
}

// Some buttons of which one is chosen: one stop of the Tab key, the arrows go from one to the next.
function makeChoice(spec, set) {
  const isTabs = spec.kind === "tabs";
  const group = document.createElement("div");
  const box = document.createElement("div");
  group.className = `sessionkit-choice ${spec.kind}`;
  box.setAttribute("role", isTabs ? "tablist" : "radiogroup");
  box.setAttribute("aria-label", spec.label);
  group.append(...(isTabs ? [] : [Object.assign(document.createElement("span"), { textContent: spec.label })]), box);
  const choose = (place) => {
    box.children[place].focus();
    set(place);
  };
  box.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const at = [...box.children].indexOf(event.target);
    if (!step || at < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    choose((at + step + box.children.length) % box.children.length);
  });
  function show(now, value) {
    now.words.forEach((words, place) => {
      const button = box.children[place] ?? box.appendChild(document.createElement("button"));
      button.type = "button";
      button.textContent = words;
      button.setAttribute("role", isTabs ? "tab" : "radio");
      button.setAttribute(isTabs ? "aria-selected" : "aria-checked", String(place === value));
      button.tabIndex = place === Math.max(value, 0) ? 0 : -1;
      button.onclick = () => set(place);
    });
  }
  return { element: group, show };
}

function makeList(spec, set) {
  const list = document.createElement("select");
  let shown = "";
  list.addEventListener("change", () => set(list.selectedIndex));
  function show(now, value) {
    const words = JSON.stringify(now.words);
    if (words !== shown) {
      list.replaceChildren(...now.words.map((each) => Object.assign(document.createElement("option"), { textContent: each })));
      shown = words;
    }
    list.selectedIndex = value;
  }
  return { element: labelled(spec, list), show };
}

function makeField(spec, set) {
  const field = Object.assign(document.createElement("input"), { type: "text", spellcheck: false, placeholder: spec.hint });
  let last = "";
  const commit = () => {
    if (field.value === last) return;
    last = field.value;
    set(field.value);
  };
  field.addEventListener("blur", commit);
  field.addEventListener("keydown", (event) => event.key === "Enter" && commit());
  function show(now, value) {
    if (field.value === last && value !== last) field.value = last = value;
  }
  return { element: labelled(spec, field), show };
}

function makePress(spec, set) {
  const element = makeButton(spec);
  element.addEventListener("click", () => set(true));
  return { element, show: () => {} };
}

function makeSwitch(spec, set) {
  const element = makeButton(spec);
  element.addEventListener("click", () => set(element.getAttribute("aria-pressed") !== "true"));
  return { element, show: (now, value) => element.setAttribute("aria-pressed", String(value)) };
}

// Moves a slider on until its end, or until it is pressed again; from the end it starts over.
function makePlay(spec, set, others) {
  const element = makeButton(spec);
  element.className = "sessionkit-play";
  let timer = 0;
  const tell = () => {
    element.textContent = timer ? "❚❚ pause" : "▶ play";
    element.setAttribute("aria-label", timer ? "pause" : spec.label);
  };
  const stop = () => {
    clearInterval(timer);
    timer = 0;
    tell();
  };
  element.addEventListener("click", () => {
    if (timer) return stop();
    const slider = others.get(spec.slider);
    if (!slider.next()) slider.start();
    timer = setInterval(() => slider.next() || stop(), spec.step_ms);
    tell();
  });
  tell();
  return { element, show: () => {}, remove: stop };
}

const MAKERS = {
  slider: makeSlider,
  buttons: makeChoice,
  tabs: makeChoice,
  list: makeList,
  field: makeField,
  button: makePress,
  switch: makeSwitch,
  play: makePlay,
};

