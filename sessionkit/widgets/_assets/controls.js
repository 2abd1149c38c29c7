// Everything on a board that can be set, beside its sliders.

const labelled = (spec, control) => make("label", { class: "sessionkit-field" }, make("span", { text: spec.label }), control);

function makeButton(spec, onclick) {
  return make("button", { type: "button", text: spec.label, title: spec.hint, onclick });
}

// A field for text, which is done with it as it loses the focus or with Enter.
function typedInto(attributes, done) {
  const field = make("input", { type: "text", spellcheck: false, onblur: done, ...attributes });
  field.addEventListener("keydown", (event) => event.key === "Enter" && done());
  return field;
}

// Some buttons of which one is chosen: one stop of the Tab key, the arrows go from one to the next.
function makeChoice(spec, set) {
  const isTabs = spec.kind === "tabs";
  const box = make("div", { role: isTabs ? "tablist" : "radiogroup", "aria-label": spec.label });
  const title = isTabs ? [] : [make("span", { text: spec.label })];
  const group = make("div", { class: `sessionkit-choice ${spec.kind}` }, ...title, box);
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
      const made = { type: "button", role: isTabs ? "tab" : "radio", onclick: () => set(place) };
      const button = box.children[place] ?? box.appendChild(make("button", made));
      const tabindex = place === Math.max(value, 0) ? 0 : -1;
      put(button, { text: words, tabindex, [isTabs ? "aria-selected" : "aria-checked"]: place === value });
    });
  }
  return { element: group, show };
}

function makeList(spec, set) {
  const list = make("select", { onchange: () => set(list.selectedIndex) });
  let shown = "";
  function show(now, value) {
    const words = JSON.stringify(now.words);
    if (words !== shown) {
      list.replaceChildren(...now.words.map((text) => make("option", { text })));
      shown = words;
    }
    list.selectedIndex = value;
  }
  return { element: labelled(spec, list), show };
}

function makeField(spec, set) {
  let last = "";
  const commit = () => {
    if (field.value === last) return;
    last = field.value;
    set(field.value);
  };
  const field = typedInto({ placeholder: spec.hint }, commit);
  function show(now, value) {
    if (field.value === last && value !== last) field.value = last = value;
  }
  return { element: labelled(spec, field), show };
}

function makePress(spec, set) {
  return { element: makeButton(spec, () => set(true)), show: () => {} };
}

function makeSwitch(spec, set) {
  const element = makeButton(spec, () => set(element.getAttribute("aria-pressed") !== "true"));
  return { element, show: (now, value) => element.setAttribute("aria-pressed", String(value)) };
}

// Moves a slider on until its end, or until it is pressed again; from the end it starts over.
function makePlay(spec, set, others) {
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
  const element = makeButton(spec, () => {
    if (timer) return stop();
    const slider = others.get(spec.slider);
    if (!slider.next()) slider.start();
    timer = setInterval(() => slider.next() || stop(), spec.step_ms);
    tell();
  });
  element.className = "sessionkit-play";
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

