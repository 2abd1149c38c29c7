// Parts of the page.

// A text cut to so many letters: in the middle, as errors.py in sessionkit has it, or with another share of its end.
function cut(text, most, share = 0.5) {
  const letters = [...text];
  const end = Math.floor((most - 1) * share);
  return letters.length <= most ? text : [...letters.slice(0, most - 1 - end), "…", ...letters.slice(letters.length - end)].join("");
}

// Scrolls so far that a height of a picture lies neither behind the settings nor behind what is told.
function bringIntoView(picture, height) {
  const y = picture.getBoundingClientRect().top + height;
  if (y < 0.45 * window.innerHeight || y > 0.8 * window.innerHeight) window.scrollBy({ top: y - window.innerHeight / 2 });
}

// A box of words that follows the pointer inside of `place`.
class Tip {
  constructor(place) {
    this.place = place;
    this.box = make("div", { class: "tip", hidden: "", "aria-hidden": "true" });
    place.append(this.box);
  }

  show(text, x, y) {
    if (!text) return this.hide();
    this.box.textContent = text;
    this.box.hidden = false;
    const width = Math.min(360, this.place.clientWidth - 16);
    this.box.style.maxWidth = `${width}px`;
    const left = Math.min(Math.max(x + 14, 0), this.place.clientWidth - this.box.offsetWidth - 4);
    this.box.style.left = `${Math.max(left, 0)}px`;
    this.box.style.top = `${y + 18}px`;
  }

  hide() {
    this.box.hidden = true;
  }
}

// The entries of a legend: [class of the mark, words].
function legend(entries) {
  const symbols = {
    circle: () => draw("circle", { cx: 8, cy: 8, r: 4.5 }),
    diamond: () => draw("path", { d: "M8 2L14 8L8 14L2 8Z" }),
    triangle: () => draw("path", { d: "M8 2.5L14 13L2 13Z" }),
    cross: () => draw("path", { d: "M3.5 3.5L12.5 12.5M12.5 3.5L3.5 12.5" }),
    bar: () => draw("rect", { x: 1, y: 4, width: 14, height: 8 }),
    line: () => draw("path", { d: "M0 8H16" }),
    bracket: () => draw("path", { d: "M2 5V11H14V5" }),
  };
  const items = entries.map(([mark, kind, words]) =>
    make("li", {}, draw("svg", { class: `mark ${kind}`, width: 16, height: 16, "aria-hidden": "true" }, symbols[mark]()), make("span", { text: words })),
  );
  return make("ul", { class: "legend" }, ...items);
}

const ruler = document.createElement("canvas").getContext("2d");
const widths = new Map();

// Pixels of a text in a font; at each step of a slider the same ones are asked for again.
function widthIn(font, text) {
  const known = widths.get(font) ?? widths.set(font, new Map()).get(font);
  if (!known.has(text)) {
    ruler.font = font;
    known.set(text, ruler.measureText(text).width);
  }
  return known.get(text);
}
