// The page's policy takes no style from text; plotly writes some as attributes, so they are set as properties.
const setAttribute = Element.prototype.setAttribute;
Element.prototype.setAttribute = function (name, value) {
  if (name === "style") this.style.cssText = value;
  else setAttribute.call(this, name, value);
};
// Draws each figure in the reader's theme, and again when the theme changes.
const dark = window.matchMedia("(prefers-color-scheme: dark)");
function draw() {
  const theme = dark.matches ? "dark" : "light";
  for (const place of document.querySelectorAll(".figure")) {
    const data = document.querySelector(`script[data-figure="${place.id}"][data-theme="${theme}"]`);
    const figure = JSON.parse(data.textContent);
    Plotly.react(place, figure.data, figure.layout, { displaylogo: false, toImageButtonOptions: { format: "svg" } });
  }
}
dark.addEventListener("change", draw);
draw();
