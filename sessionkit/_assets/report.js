// Draws each figure in the reader's theme, and again when the theme changes.
const dark = window.matchMedia("(prefers-color-scheme: dark)");
function draw() {
  const theme = dark.matches ? "dark" : "light";
  for (const place of document.querySelectorAll(".figure")) {
    const data = document.querySelector(`script[data-figure="${place.id}"][data-theme="${theme}"]`);
    const figure = JSON.parse(data.textContent);
    Plotly.react(place, figure.data, figure.layout, { displaylogo: false });
  }
}
dark.addEventListener("change", draw);
draw();
