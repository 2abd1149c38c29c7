// Plain keys in this element are its own: notebooks bind arrows and Enter to commands. With Ctrl or ⌘ they are theirs.
function keepPlainKeys(element) {
  const isPlain = (event) => !(event.ctrlKey || event.metaKey);
  const note = (event) => {
    if (element.contains(event.target)) event.target.toggleAttribute("data-lm-suppress-shortcuts", isPlain(event));
  };
  window.addEventListener("keydown", note, true); // before the commands' own listener, which is the document's
  element.addEventListener("keydown", (event) => {
    if (isPlain(event)) event.stopPropagation(); // a notebook also listens to what comes up from its cells
    const find = element.querySelector("[data-control=letters] input");
    if (event.key !== "/" || !find || event.target.matches("input, select")) return;
    event.preventDefault();
    find.focus();
  });
  return () => window.removeEventListener("keydown", note, true);
}

