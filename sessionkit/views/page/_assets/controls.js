// Sliders over round lengths, each with a field for any other.

// Lengths that a person would choose: a step of a slider is a step of this ladder.
const LADDER = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 3, 5, 10, 15, 20, 30, 45].map((count) => count * SECOND),
  ...[1, 2, 3, 5, 10, 15, 20, 30, 45, 60, 90].map((count) => count * MINUTE),
  ...[2, 3, 4, 5, 6, 8, 10, 12, 16].map((count) => count * HOUR),
  ...[1, 2, 3, 5, 7, 14, 28, 56, 91, 182, 364].map((count) => count * DAY),
];
const AROUND = 30; // a slider reaches so many times below and above the value it starts from

function ladderAround(value, around, name) {
  const [low, high] = [Math.floor(around / AROUND), around * AROUND];
  const steps = LADDER.filter((ms) => low <= ms && ms <= high);
  return [...new Set([...(name === "grace" ? [0] : []), value, ...steps])].sort((a, b) => a - b);
}

class Slider {
  // `changed(ms)` is called with each new length; `refuse(words)` where the field holds none.
  constructor({ id, label, hint, steps, value, changed, refuse, words = showDuration }) {
    Object.assign(this, { steps, value, changed, words, label });
    this.range = make("input", { type: "range", id, min: 0, step: 1, oninput: () => this.choose(this.steps[Number(this.range.value)]) });
    this.field = make("input", { type: "text", "aria-label": `${label}: any length, such as 45m or 1h 30m`, autocomplete: "off", spellcheck: "false" });
    this.field.addEventListener("change", () => {
      const read = readDuration(this.field.value);
      if (read === null) refuse(`“${this.field.value}” is no length of time: write 90s, 45m, 1h 30m or 2 days.`);
      else this.choose(read);
    });
    this.element = make("div", { class: "slider" }, make("label", { for: id, text: label }), make("small", { text: hint }), this.field, this.range);
    this.show(value);
  }

  choose(value) {
    this.show(value);
    this.changed(value);
  }

  show(value, steps = this.steps) {
    this.value = value;
    this.steps = steps.includes(value) ? steps : [...steps, value].sort((a, b) => a - b);
    this.range.max = this.steps.length - 1;
    this.range.value = this.steps.indexOf(value);
    this.range.setAttribute("aria-valuetext", this.words(value));
    if (document.activeElement !== this.field) this.field.value = showDuration(value);
    else this.field.value = showDuration(readDuration(this.field.value) ?? value);
  }
}
