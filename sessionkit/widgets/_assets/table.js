// A table of which the kernel sends a page at a time. All that comes from the data is set as text.

const button = (text, onclick, label) => make("button", { type: "button", text, onclick, "aria-label": label });
const PAGE = 50;
const TYPING_MS = 250; // until what is typed is looked for

function render({ model, el }) {
  let question = { letters: "", spans: {}, column: -1, descending: false, first: 0, ...model.get("state") };
  let answered = question; // the last question that had an answer
  let active = 0; // the row of the page that the keyboard is at
  let chosen = -1; // the row that is explained, by its number in the run
  let waiting; // for more letters
  let goTo = null; // where the keyboard goes once the page is there: "first" or "last"

  // ---- the parts

  const letters = make("input", { type: "search", "aria-label": "letters in the key or in any text", placeholder: "letters in the key or text" });
  const column = make("select", { "aria-label": "column to filter" });
  const from = make("input", { type: "text", "aria-label": "from", placeholder: "from", size: "16" });
  const to = make("input", { type: "text", "aria-label": "to", placeholder: "to", size: "16" });
  const filter = button("filter", applySpan);
  const chips = make("span", { class: "chips" });
  const refused = make("span", { role: "alert" });
  const bar = make("div", { class: "bar" }, letters, make("span", { class: "span" }, column, from, to, filter), chips, refused);
  const head = make("tr");
  const body = make("tbody");
  const table = make("table", { role: "grid" }, make("thead", {}, head), body);
  const box = make("div", { class: "box" }, table);
  const pages = [
    button("« first", () => turn(0), "first page"),
    button("‹ previous", () => turn(shown().first - PAGE), "previous page"),
    button("next ›", () => turn(shown().first + PAGE), "next page"),
    button("last »", () => turn(lastPage()), "last page"),
  ];
  const said = make("span", { role: "status", class: "said" });
  const zone = make("span", { class: "zone" });
  const foot = make("div", { class: "foot" }, pages[0], pages[1], said, pages[2], pages[3], zone);
  const words = make("div", { class: "words", role: "status" });
  el.classList.add("sessionkit-table");
  el.append(bar, box, foot, words);

  const focused = () => el.getRootNode().activeElement; // some notebooks draw a widget in a tree of its own

  // ---- what a person does

  function ask(change) {
    question = { ...question, ...change, asked: (question.asked ?? 0) + 1 };
    model.set("state", question);
    model.save_changes();
  }
  const shown = () => model.get("shown") ?? {};
  const lastPage = () => Math.max(0, Math.floor(((shown().found ?? 0) - 1) / PAGE)) * PAGE;

  function turn(first, row) {
    const place = Math.min(Math.max(first, 0), lastPage());
    if (place === shown().first) return;
    goTo = row;
    ask({ first: place });
  }

  function sortBy(number) {
    const [now, descending] = shown().sorted ?? [-1, false];
    if (now !== number) ask({ column: number, descending: false, first: 0 });
    else if (!descending) ask({ column: number, descending: true, first: 0 });
    else ask({ column: -1, descending: false, first: 0 }); // as the run has them
  }

  function explain(row) {
    chosen = row;
    mark();
    model.send({ kind: "explain", row });
  }

  function applySpan() {
    const spans = { ...question.spans };
    if (from.value.trim() || to.value.trim()) spans[column.value] = [from.value, to.value];
    else delete spans[column.value];
    ask({ spans, first: 0 });
  }

  letters.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => ask({ letters: letters.value, first: 0 }), TYPING_MS);
  });
  for (const field of [from, to]) {
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter") applySpan();
    });
  }

  const KEYS = {
    ArrowDown: () => (active + 1 < body.rows.length ? focusRow(active + 1) : turn(shown().first + PAGE, "first")),
    ArrowUp: () => (active > 0 ? focusRow(active - 1) : turn(shown().first - PAGE, "last")),
    Home: () => focusRow(0),
    End: () => focusRow(body.rows.length - 1),
    PageDown: () => turn(shown().first + PAGE, "first"),
    PageUp: () => turn(shown().first - PAGE, "first"),
    Enter: () => explain(shown().rows[active]),
    " ": () => explain(shown().rows[active]),
  };
  body.addEventListener("keydown", (event) => {
    if (!KEYS[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    KEYS[event.key]();
  });
  body.addEventListener("click", (event) => {
    const row = event.target.closest("tr");
    if (!row || window.getSelection().toString()) return; // a person who marks text does not ask
    focusRow(row.sectionRowIndex);
    explain(shown().rows[active]);
  });

  function focusRow(place) {
    const row = body.rows[place];
    if (!row) return;
    for (const each of body.rows) each.tabIndex = -1;
    active = place;
    row.tabIndex = 0;
    row.focus({ preventScroll: true });
    row.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  // ---- what the kernel sends

  function drawHead({ columns, sorted: [now, descending] }) {
    const before = [...head.cells].indexOf(head.querySelector(":focus")?.closest("th"));
    head.replaceChildren(
      ...columns.map(({ title, kind, sort }, number) => {
        if (!sort) return make("th", { scope: "col", class: kind, text: title });
        const way = now !== number ? "none" : descending ? "descending" : "ascending";
        const arrow = make("span", { "aria-hidden": "true", class: "way" }, { none: "", ascending: "▲", descending: "▼" }[way]);
        const press = make("button", { type: "button", onclick: () => sortBy(number) }, make("span", {}, title), arrow);
        return make("th", { scope: "col", class: kind, "aria-sort": way }, press);
      }),
    );
    head.cells[before]?.querySelector("button")?.focus();
  }

  function drawFields({ columns, spans }) {
    const options = columns.flatMap(({ title, span }, number) => (span ? [make("option", { value: number }, title)] : []));
    const before = column.value;
    column.replaceChildren(...options);
    if (options.some(({ value }) => value === before)) column.value = before;
    bar.querySelector(".span").hidden = !options.length;
    chips.replaceChildren(
      ...spans.map(({ column: number, words: text }) => {
        const withoutIt = () => {
          const left = { ...question.spans };
          delete left[number];
          ask({ spans: left, first: 0 });
          letters.focus();
        };
        return button(`${text} ✕`, withoutIt, `no longer ${text}`);
      }),
    );
    if (focused() !== letters) letters.value = question.letters;
  }

  function draw() {
    const page = shown();
    if (page.asked !== undefined && question.asked !== undefined && page.asked < question.asked) return; // a later one comes
    refused.textContent = page.refused ?? "";
    if (page.refused) question = { ...answered, asked: question.asked }; // what is shown answers that one
    if (page.refused || !page.columns) return;
    answered = question;
    const had = body.contains(focused());
    drawHead(page);
    drawFields(page);
    table.setAttribute("aria-label", model.get("label"));
    table.setAttribute("aria-rowcount", page.found);
    body.replaceChildren(
      ...page.cells.map((cells, place) => {
        const shownCells = cells.map((text, number) => make("td", { class: page.columns[number].kind }, text));
        return make("tr", { tabindex: place ? -1 : 0, "aria-rowindex": page.first + place + 2 }, ...shownCells);
      }),
    );
    said.textContent = page.said;
    zone.textContent = page.zone;
    pages[0].disabled = pages[1].disabled = page.first === 0;
    pages[2].disabled = pages[3].disabled = page.first >= lastPage();
    active = 0;
    box.scrollTop = 0;
    if (had || goTo) focusRow(goTo === "last" ? body.rows.length - 1 : 0);
    goTo = null;
    mark();
    el.dataset.asked = page.asked;
  }

  function mark() {
    const rows = shown().rows ?? [];
    for (const [place, row] of [...body.rows].entries()) row.setAttribute("aria-selected", rows[place] === chosen);
  }

  function say() {
    words.replaceChildren(...model.get("words").map((line) => make("p", {}, line)));
  }

  const release = keepPlainKeys(el);
  model.on("change:shown", draw);
  model.on("change:words", say);
  draw();
  say();
  return () => {
    clearTimeout(waiting);
    release();
    model.off("change:shown", draw);
    model.off("change:words", say);
  };
}

export default { render };
