// Plain keys in this element are its own: notebooks bind arrows to commands. With Ctrl or ⌘ they are the notebook's.
function keepPlainKeys(element) {
  const note = (event) => {
    if (!element.contains(event.target)) return;
    event.target.toggleAttribute("data-lm-suppress-shortcuts", !(event.ctrlKey || event.metaKey));
  };
  window.addEventListener("keydown", note, true); // before the notebook's own listener, which is the document's
  return () => window.removeEventListener("keydown", note, true);
}

