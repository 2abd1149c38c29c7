// Text that can be copied with one press.
function makeCode() {
  const element = document.createElement("div");
  const text = document.createElement("pre");
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: "copy" });
  const said = document.createElement("span");
  said.setAttribute("role", "status");
  text.tabIndex = 0;
  element.className = "sessionkit-code";
  element.append(button, said, text);
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text.textContent);
      said.textContent = "copied";
    } catch {
      window.getSelection().selectAllChildren(text);
      said.textContent = "selected: press Ctrl-C to copy";
    }
  });
  function show(code) {
    element.hidden = !code.label;
    if (text.textContent === (code.text ?? "")) return;
    text.textContent = code.text ?? "";
    text.setAttribute("aria-label", code.label);
    said.textContent = "";
  }
  return { element, show };
}

