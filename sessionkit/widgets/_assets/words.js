// Sentences, numbers and tables: what comes from the data is text, never markup.

function sentences(place, texts, isRefused) {
  const said = JSON.stringify([texts, isRefused]);
  if (place.dataset.said === said) return; // a screen reader reads what changes
  place.dataset.said = said;
  place.classList.toggle("refused", Boolean(isRefused));
  place.replaceChildren(...(texts ?? []).map((text) => Object.assign(document.createElement("p"), { textContent: text })));
}

function tiles(place, counts) {
  const shown = counts.map(({ name, shown, words, bad }) => {
    const tile = document.createElement("div");
    tile.classList.toggle("bad", bad);
    const parts = { b: shown, span: name, small: words };
    tile.append(...Object.entries(parts).map(([tag, text]) => Object.assign(document.createElement(tag), { textContent: text })));
    return tile;
  });
  place.replaceChildren(...shown);
}

function cellsOf(tag, texts) {
  return texts.map((text) => Object.assign(document.createElement(tag), { textContent: text }));
}

// With `pick`, the first cell of a row is a button that chooses it.
function fillTable(place, { titles = [], rows = [], label = "", pick = "" }, choose) {
  place.hidden = !titles.length;
  if (place.hidden) return place.replaceChildren();
  const table = document.createElement("table");
  const heads = cellsOf("th", titles);
  for (const head of heads) head.scope = "col";
  const lines = rows.map((cells, number) => {
    const row = document.createElement("tr");
    row.append(...cellsOf("td", cells));
    if (pick) {
      const button = Object.assign(document.createElement("button"), { type: "button", textContent: cells[0], title: pick });
      row.firstChild.replaceChildren(button);
      row.addEventListener("click", () => choose(number));
    }
    return row;
  });
  table.setAttribute("aria-label", label);
  table.createTHead().insertRow().append(...heads);
  table.createTBody().append(...lines);
  place.replaceChildren(table);
}

