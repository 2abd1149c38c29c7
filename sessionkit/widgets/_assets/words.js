// Sentences, numbers and tables: what comes from the data is text, never markup.

function sentences(place, texts, isRefused) {
  const said = JSON.stringify([texts, isRefused]);
  if (place.dataset.said === said) return; // a screen reader reads what changes
  place.dataset.said = said;
  place.classList.toggle("refused", Boolean(isRefused));
  place.replaceChildren(...(texts ?? []).map((text) => make("p", { text })));
}

function tiles(place, counts) {
  const shown = counts.map(({ name, shown, words, bad }) =>
    make("div", { class: bad ? "bad" : null }, make("b", { text: shown }), make("span", { text: name }), make("small", { text: words })),
  );
  place.replaceChildren(...shown);
}

// With `pick`, the first cell of a row is a button that chooses it.
function fillTable(place, { titles = [], rows = [], label = "", pick = "" }, choose) {
  place.hidden = !titles.length;
  if (place.hidden) return place.replaceChildren();
  const heads = titles.map((text) => make("th", { scope: "col", text }));
  const lines = rows.map(([first, ...others], number) => {
    const chosen = pick ? make("button", { type: "button", title: pick, text: first }) : first;
    const cells = [chosen, ...others].map((cell) => make("td", {}, cell));
    return make("tr", { onclick: pick ? () => choose(number) : null }, ...cells);
  });
  const head = make("thead", {}, make("tr", {}, ...heads));
  place.replaceChildren(make("table", { "aria-label": label }, head, make("tbody", {}, ...lines)));
}
