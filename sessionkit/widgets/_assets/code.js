// Text that can be copied with one press.
function makeCode() {
  const text = make("pre", { tabindex: 0 });
  const said = make("span", { role: "status" });
  const button = makeButton({ label: "copy" }, async () => {
    try {
      await navigator.clipboard.writeText(text.textContent);
      said.textContent = "copied";
    } catch {
      window.getSelection().selectAllChildren(text);
      said.textContent = "selected: press Ctrl-C to copy";
    }
  });
  const element = make("div", { class: "sessionkit-code" }, button, said, text);
  function show(code) {
    element.hidden = !code.label;
    if (text.textContent === (code.text ?? "")) return;
    text.textContent = code.text ?? "";
    text.setAttribute("aria-label", code.label);
    said.textContent = "";
  }
  return { element, show };
}

